"""Tables inside a kernel: reading one array shared by all samples."""

from __future__ import annotations

from typing import Any, NoReturn, final

from ..ir.build import Builder
from ..ir.program import Argument
from ..ir.types import Type
from .errors import KernelError
from .values import Traced, apply, cast, describe, lift, operate, plain


@final
class TableValue:
    """A table argument while its kernel is traced."""

    __slots__ = ("_argument", "_builder")

    def __init__(self, argument: Argument, builder: Builder) -> None:
        self._argument = argument
        self._builder = builder

    def at(self, *indices: Any, **named: Any) -> Traced:
        """The element at an index for each axis, by position or by the axis's name.

        A constant index must be inside the table; one computed by the kernel is moved to the nearest inside.
        The gradient with respect to the table goes to the element read, none goes to the index.
        """
        flat: Any = None
        for axis, extent, index in zip(
            self._argument.axes, self._argument.shape, self._order(indices, named), strict=True
        ):
            inside = self._inside(axis, extent, index)
            flat = inside if flat is None else operate("+", operate("*", flat, extent), inside)
        b = self._builder
        return Traced(b, b.table(self._argument.name, lift(b, cast(flat, Type.I32), Type.I32), self._argument.type))

    def _order(self, indices: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        axes = self._argument.axes
        given = dict(zip(axes, indices, strict=False))
        if len(indices) > len(axes) or given.keys() & named.keys() or given.keys() | named.keys() != set(axes):
            written = ", ".join([*map(describe, indices), *(f"{k}={describe(v)}" for k, v in named.items())])
            each = ", ".join(f"{axis}=..." for axis in axes)
            self._fail(f"{self}.at({written}) does not index every axis once", f"write {self}.at({each})")
        given |= named
        return [given[axis] for axis in axes]

    def _inside(self, axis: str, extent: int, index: Any) -> Any:
        index = plain(index)
        if isinstance(index, Traced) and index.type.is_int:
            return apply("minimum", apply("maximum", index, 0), extent - 1)
        if isinstance(index, (Traced, bool)) or not isinstance(index, int):
            self._fail(
                f"{self}.at({axis}={describe(index)}): an index is a whole number",
                "cast it with hm.int32(...)",
            )
        if not 0 <= index < extent:
            self._fail(f"{self}.at({axis}={index}) is outside the table", f"{axis} goes from 0 to {extent - 1}")
        return index

    def __getitem__(self, index: object) -> NoReturn:
        self._fail(f"{self} is a Table: it is not indexed with []", f"write {self}.at(...)")

    def _fail(self, problem: str, fix: str) -> NoReturn:
        raise KernelError(problem, fix, self._builder.span)

    def __repr__(self) -> str:
        return self._argument.name
