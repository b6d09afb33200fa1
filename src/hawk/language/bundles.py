"""Vectors and matrices: bundles of scalars that exist only while a kernel is traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, final

import numpy as np

from ..ir.program import Span
from ..ir.types import Type
from .errors import KernelError
from .values import (
    Index,
    Traced,
    apply,
    as_real,
    common_type,
    describe,
    is_scalar,
    is_symbolic,
    operate,
    plain,
    where,
)


def _binary(op: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    function = partial(operate, op)

    def forward(self: Any, other: Any) -> Any:
        return elementwise(function, self, other) if is_operand(other) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return elementwise(function, other, self) if is_operand(other) else NotImplemented

    return forward, reflected


@final
class Bundle:
    """A vector, shape (n,), or a matrix, shape (rows, columns), of scalars in row-major order.

    A bundle is a value, as a number is: nothing changes it, and ``v[0] = x`` gives the name `v` a new one.
    Operators work component by component, with a scalar or a bundle of the same shape; ``@`` multiplies
    as matrices do.
    """

    __slots__ = ("items", "shape")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, shape: tuple[int, ...], items: tuple[Any, ...]) -> None:
        self.shape = shape
        self.items = items

    __add__, __radd__ = _binary("+")
    __sub__, __rsub__ = _binary("-")
    __mul__, __rmul__ = _binary("*")
    __truediv__, __rtruediv__ = _binary("/")
    __floordiv__, __rfloordiv__ = _binary("//")
    __mod__, __rmod__ = _binary("%")
    __pow__, __rpow__ = _binary("**")
    __and__, __rand__ = _binary("&")
    __or__, __ror__ = _binary("|")
    __xor__, __rxor__ = _binary("^")
    __lt__ = _binary("<")[0]
    __le__ = _binary("<=")[0]
    __gt__ = _binary(">")[0]
    __ge__ = _binary(">=")[0]
    __eq__ = _binary("==")[0]
    __ne__ = _binary("!=")[0]

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self)

    def __neg__(self) -> Any:
        return elementwise(partial(apply, "neg"), self)

    def __pos__(self) -> Bundle:
        return self

    def __abs__(self) -> Any:
        return elementwise(partial(apply, "abs"), self)

    def __bool__(self) -> bool:
        raise KernelError(f"{self} is neither true nor false", "compare components, or write hm.norm(v) > 0", self.span)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        index = self._checked(index)
        axis = _traced_axis(index)
        if axis is None:
            return self._take(self._positions(index))
        number, options = self._options(index, axis)
        result = options[-1]
        for k in range(len(options) - 2, -1, -1):
            result = elementwise(where, operate("<=", number, k), options[k], result)
        return result

    def replaced(self, index: Any, value: Any) -> Bundle:
        """A copy with the components at `index` set to `value`; a traced index outside changes nothing."""
        index = self._checked(index)
        axis = _traced_axis(index)
        if axis is not None:
            number, options = self._options(index, axis)
            result = self
            for k, old in enumerate(options):
                new = elementwise(where, operate("==", number, k), value, old)
                result = result.replaced((*index[:axis], k, *index[axis + 1 :]), new)
            return result
        positions = self._positions(index)
        values = elementwise(lambda old, new: new, self._take(positions), value)
        items = list(self.items)
        given = values.items if isinstance(values, Bundle) else (values,)
        for position, item in zip(positions.ravel(), given, strict=True):
            items[position] = item
        return Bundle(self.shape, tuple(items))

    def _checked(self, index: Any) -> tuple[Any, ...]:
        index = index if isinstance(index, tuple) else (index,)
        for part in index:
            bounds = (part.start, part.stop, part.step) if isinstance(part, slice) else ()
            if any(isinstance(b, Traced) for b in bounds):
                raise KernelError(
                    "a slice needs bounds known while tracing", "index single components instead", self.span
                )
            if isinstance(part, Traced) and not part.type.is_int:
                raise KernelError(
                    f"an index is a whole number, not {describe(part)}", "cast it with hm.int32", self.span
                )
            if not isinstance(part, (slice, Traced, int, np.integer)):
                raise KernelError(f"{describe(part)} cannot index {self}", "use whole numbers and slices", self.span)
        if len(index) > len(self.shape):
            raise KernelError(f"{self} has {len(self.shape)} axes, the index has {len(index)}", "", self.span)
        return index

    def _positions(self, index: tuple[Any, ...]) -> Any:
        try:
            return np.arange(len(self.items)).reshape(self.shape)[index]
        except IndexError as error:
            raise KernelError(f"{self} has no component {list(index)}: {error}", "", self.span) from None

    def _take(self, positions: Any) -> Any:
        if np.ndim(positions) == 0:
            return self.items[positions]
        return Bundle(positions.shape, tuple(self.items[p] for p in positions.ravel()))

    def _options(self, index: tuple[Any, ...], axis: int) -> tuple[Any, list[Any]]:
        """The traced index of `axis` counted from the front, and what each of its values picks."""
        extent, number = self.shape[axis], index[axis]
        number = where(operate("<", number, 0), operate("+", number, extent), number)
        return number, [self[(*index[:axis], k, *index[axis + 1 :])] for k in range(extent)]

    @property
    def T(self) -> Bundle:
        """The transpose of a matrix."""
        if len(self.shape) != 2:
            raise KernelError(f"{self} has no transpose", "only a matrix has one", self.span)
        order = np.arange(len(self.items)).reshape(self.shape).T
        return Bundle(order.shape, tuple(self.items[p] for p in order.ravel()))

    @property
    def span(self) -> Span | None:
        return next((x.builder.span for x in self.items if isinstance(x, (Traced, Index))), None)

    def __repr__(self) -> str:
        return shape_name(self.shape)


def shape_name(shape: tuple[int, ...]) -> str:
    if not shape:
        return "a scalar"
    return f"a {'Vector' if len(shape) == 1 else 'Matrix'}[{', '.join(map(str, shape))}]"


def _traced_axis(index: tuple[Any, ...]) -> int | None:
    return next((k for k, part in enumerate(index) if isinstance(part, Traced)), None)


def is_operand(x: object) -> bool:
    return is_scalar(x) or isinstance(x, Bundle) or (isinstance(x, np.ndarray) and x.ndim in (0, 1, 2))


def as_bundle(x: Any) -> Any:
    """A scalar as it is; an array, or a sequence of scalars or of such sequences, as a bundle."""
    if is_scalar(x):
        return plain(x)
    if isinstance(x, Bundle):
        return x
    if isinstance(x, np.ndarray) and x.dtype.kind in "biuf" and x.ndim <= 2 and x.size:
        return Bundle(x.shape, tuple(x.ravel().tolist())) if x.ndim else x.item()
    if isinstance(x, (list, tuple)) and x:
        rows = [as_bundle(row) for row in x]
        if all(is_scalar(row) for row in rows):
            return Bundle((len(rows),), tuple(rows))
        if all(isinstance(r, Bundle) and r.shape == rows[0].shape and len(r.shape) == 1 for r in rows):
            return Bundle((len(rows), *rows[0].shape), tuple(item for row in rows for item in row.items))
    raise KernelError(f"{describe(x)} is no number, vector or matrix", "", find_span(x))


def find_span(*operands: Any) -> Span | None:
    """Where the kernel is being traced, if any operand knows it."""
    for x in operands:
        if isinstance(x, (list, tuple)):
            found = find_span(*x)
        else:
            found = x.builder.span if isinstance(x, (Traced, Index)) else x.span if isinstance(x, Bundle) else None
        if found is not None:
            return found
    return None


def elementwise(function: Callable[..., Any], *operands: Any) -> Any:
    """`function` of the components of bundles of one shape; scalars go with every component."""
    given = [as_bundle(x) for x in operands]
    shapes = {x.shape for x in given if isinstance(x, Bundle)}
    if not shapes:
        return function(*given)
    if len(shapes) > 1:
        names = " and ".join(shape_name(s) for s in sorted(shapes))
        raise KernelError(f"{names} do not combine", "component by component needs one shape", find_span(*given))
    shape = next(iter(shapes))
    size = len(next(x for x in given if isinstance(x, Bundle)).items)
    columns = [x.items if isinstance(x, Bundle) else (x,) * size for x in given]
    return Bundle(shape, tuple(function(*row) for row in zip(*columns, strict=True)))


def vec(*components: Any) -> Bundle:
    """A vector of the given scalars; vectors among them are joined in.

    Reals unless every component is a traced integer, or every one a bool.
    """
    items: list[Any] = []
    for component in components:
        part = as_bundle(component)
        items += part.items if isinstance(part, Bundle) else [part]
    if not items:
        raise KernelError("hm.vec() has no components", "give at least one")
    counts = all(isinstance(x, bool) or (isinstance(x, Traced) and not x.type.is_real) for x in items)
    return Bundle((len(items),), tuple(items if counts else [as_real(x) for x in items]))


def total(terms: list[Any]) -> Any:
    """The sum from left to right."""
    result = terms[0]
    for term in terms[1:]:
        result = operate("+", result, term)
    return result


def dot(a: Any, b: Any) -> Any:
    """The inner product of two vectors, summed from left to right."""
    a, b = as_bundle(a), as_bundle(b)
    shapes = tuple(x.shape if isinstance(x, Bundle) else () for x in (a, b))
    if any(len(s) != 1 for s in shapes) or shapes[0] != shapes[1]:
        raise KernelError(
            f"dot of {shape_name(shapes[0])} and {shape_name(shapes[1])}",
            "it takes two vectors of one length",
            find_span(a, b),
        )
    return total([operate("*", x, y) for x, y in zip(a.items, b.items, strict=True)])


def matmul(a: Any, b: Any) -> Any:
    """The matrix product: matrix by matrix, matrix by vector, vector by matrix, or the dot of two vectors."""
    a, b = as_bundle(a), as_bundle(b)
    if not isinstance(a, Bundle) or not isinstance(b, Bundle) or a.shape[-1] != b.shape[0]:
        names = [shape_name(x.shape if isinstance(x, Bundle) else ()) for x in (a, b)]
        raise KernelError(f"{names[0]} @ {names[1]} do not fit", "the inner sizes must agree", find_span(a, b))
    rows = list(a) if len(a.shape) == 2 else [a]
    columns = list(b.T) if len(b.shape) == 2 else [b]
    shape = (*a.shape[:-1], *b.shape[1:])
    items = tuple(dot(row, column) for row in rows for column in columns)
    return Bundle(shape, items) if shape else items[0]


def component_type(x: Any) -> Type:
    """The type the components of a scalar or bundle meet in."""
    return common_type(*x.items) if isinstance(x, Bundle) else common_type(x)


def has_traced(x: Any) -> bool:
    """Whether a scalar or bundle holds anything traced."""
    return any(is_symbolic(i) for i in x.items) if isinstance(x, Bundle) else is_symbolic(x)
