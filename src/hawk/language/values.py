"""Traced scalars: what a kernel's numbers are while it is traced."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn, final

import numpy as np

from ..elementary.numpy_lanes import NumpyLanes
from ..elementary.real_ops import REAL_OPS
from ..ir.build import Builder
from ..ir.interpret import INTEGERS
from ..ir.ops import OPS
from ..ir.program import Value
from ..ir.types import Type
from .errors import KernelError

_NAMES = {
    Type.REAL: "a real",
    Type.I32: "an int32",
    Type.U32: "a uint32",
    Type.I64: "an int64",
    Type.BOOL: "a bool",
}
_LIMITS = {Type.I32: (-(2**31), 2**31 - 1), Type.U32: (0, 2**32 - 1), Type.I64: (-(2**63), 2**63 - 1)}


def _binary(op: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """The methods of a binary operator and of its reflection; they leave what is no scalar to the other operand."""

    def forward(self: Any, other: Any) -> Any:
        return operate(op, self, other) if is_scalar(other) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return operate(op, other, self) if is_scalar(other) else NotImplemented

    return forward, reflected


@final
class Traced:
    """A scalar the kernel computes: an IR value and the builder it belongs to."""

    __slots__ = ("builder", "value")
    __array_ufunc__ = None  # NumPy arrays and scalars leave mixed operators to us
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, builder: Builder, value: Value) -> None:
        self.builder = builder
        self.value = value

    @property
    def type(self) -> Type:
        return self.value.type

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
    __lshift__, __rlshift__ = _binary("<<")
    __rshift__, __rrshift__ = _binary(">>")
    __lt__ = _binary("<")[0]
    __le__ = _binary("<=")[0]
    __gt__ = _binary(">")[0]
    __ge__ = _binary(">=")[0]
    __eq__ = _binary("==")[0]
    __ne__ = _binary("!=")[0]

    def __neg__(self) -> Any:
        return apply("neg", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return apply("abs", self)

    def __invert__(self) -> Any:
        if not self.type.is_int:
            _refuse(self, f"~ takes an integer, not {describe(self)}", "write `not x` for a bool")
        return apply("not", self)

    def __bool__(self) -> NoReturn:
        _refuse(
            self,
            f"Python asked whether {describe(self)} is true, which is known only when the kernel runs",
            "decide with if, and, or, not in kernel code, or with hm.where",
        )

    def __index__(self) -> NoReturn:
        _refuse(
            self,
            f"Python needs a whole number here, but {describe(self)} is known only when the kernel runs",
            "use a constant, or index a Vector or a Table (.at) with an int32",
        )

    def __int__(self) -> NoReturn:
        _refuse(self, f"{describe(self)} is known only when the kernel runs", "write hm.int32(x)")

    def __float__(self) -> NoReturn:
        _refuse(self, f"{describe(self)} is known only when the kernel runs", "use the functions of hawk.math")

    def __iter__(self) -> NoReturn:
        _refuse(self, f"{describe(self)} cannot be unpacked or iterated", "make a vector with hm.vec(...)")

    def __getitem__(self, index: object) -> NoReturn:
        _refuse(self, f"{describe(self)} has no components to index", "make a vector with hm.vec(...)")

    def __repr__(self) -> str:
        return describe(self)


@final
class Index(int):
    """The number of a trip of an unrolled loop: a Python int whose arithmetic with reals is the kernel's.

    A loop of many trips computes ``0.1 * i`` in the kernel's precision; so must an unrolled one.
    """

    builder: Builder

    def __new__(cls, number: int, builder: Builder) -> Index:
        self = super().__new__(cls, number)
        self.builder = builder
        return self


Scalar = Traced | bool | int | float


def is_scalar(x: object) -> bool:
    return isinstance(x, (Traced, bool, int, float, np.number, np.bool_))


def is_symbolic(x: object) -> bool:
    """Whether arithmetic with this scalar is emitted rather than done by Python."""
    return isinstance(x, (Traced, Index))


def plain(x: Any) -> Any:
    """A NumPy scalar as the Python number it is; anything else as it is."""
    return x.item() if isinstance(x, (np.number, np.bool_)) else x


def describe(x: object) -> str:
    """How a message names a value."""
    if isinstance(x, Traced):
        return _NAMES[x.type]
    if isinstance(x, (bool, int, float, str, type(None))):
        return repr(x)
    return f"a {type(x).__name__}"


def _refuse(x: Traced, problem: str, fix: str = "") -> NoReturn:
    raise KernelError(problem, fix, x.builder.span)


def builder_of(*operands: Any) -> Builder:
    return next(x.builder for x in operands if isinstance(x, (Traced, Index)))


# types


def common_type(*operands: Scalar) -> Type:
    """The type scalars meet in: a Python number is weak and takes the type of the traced ones if it fits."""
    strong = {x.type for x in operands if isinstance(x, Traced)}
    weak = [x for x in operands if not isinstance(x, Traced)]
    if Type.REAL in strong or any(isinstance(x, float) for x in weak):
        return Type.REAL
    if any(not isinstance(x, (bool, int)) for x in weak):
        bad = next(x for x in weak if not isinstance(x, (bool, int)))
        raise KernelError(f"a kernel has no numbers of type {type(bad).__name__}", "", _span(operands))
    ints = strong - {Type.BOOL}
    if not ints and all(isinstance(x, bool) for x in weak):
        return Type.BOOL
    common = Type.I32 if not ints else next(iter(ints)) if len(ints) == 1 else Type.I64
    if all(_fits(x, common) for x in weak):
        return common
    if all(_fits(x, Type.I64) for x in weak):
        return Type.I64
    raise KernelError("an integer is too large for a kernel", "its integers have at most 64 bits", _span(operands))


def _span(operands: tuple[Scalar, ...]) -> Any:
    return builder_of(*operands).span if any(is_symbolic(x) for x in operands) else None


def _fits(number: Any, type: Type) -> bool:
    low, high = _LIMITS[type]
    return bool(low <= number <= high)


def lift(builder: Builder, x: Scalar, type: Type) -> Value:
    """`x` as an IR value of `type`."""
    if isinstance(x, Traced):
        return builder.cast(x.value, type)
    if type.is_real:
        return builder.const(float(x), type)
    return builder.const(bool(x) if type is Type.BOOL else int(x), type)


# operations


def apply(op: str, *operands: Any) -> Any:
    """One op of the IR on scalars: emitted if any is traced, computed now (as the kernel would) if none is."""
    operands = tuple(plain(x) for x in operands)
    if not any(is_symbolic(x) for x in operands):
        return _evaluate(op, operands)
    builder = builder_of(*operands)
    kind = common_type(*operands)
    if kind is Type.BOOL and OPS[op].rule((Type.REAL,) * len(operands)) is Type.REAL:
        kind = Type.I32  # arithmetic on bools counts them, as in Python
    if OPS[op].rule((kind,) * len(operands)) is None:
        if OPS[op].rule((Type.REAL,) * len(operands)) is None:
            names = " and ".join(describe(x) for x in operands)
            raise KernelError(f"{op} does not take {names}", OPS[op].doc, builder.span)
        kind = Type.REAL
    return Traced(builder, builder(op, *(lift(builder, x, kind) for x in operands)))


def _evaluate(op: str, operands: tuple[Any, ...]) -> Any:
    whole = not any(isinstance(x, float) for x in operands) and OPS[op].rule((Type.I64,) * len(operands)) is not None
    with np.errstate(all="ignore"):
        if whole:
            result = INTEGERS[op](*(np.array([x]) for x in operands))
        else:
            result = REAL_OPS[op](NumpyLanes(64), *(np.array([float(x)]) for x in operands))
    return result[0].item()


def cast(x: Any, type: Type) -> Any:
    """`x` converted to `type`; a Python number to the Python number it would become."""
    x = plain(x)
    if isinstance(x, Traced):
        return x if x.type is type else Traced(x.builder, x.builder.cast(x.value, type))
    if isinstance(x, Index) and not type.is_int:
        return Traced(x.builder, lift(x.builder, x, type))
    if type is Type.BOOL:
        return bool(x)
    if type.is_real:
        return float(x)
    if x != x:
        return 0
    low, high = _LIMITS[type]
    return x if isinstance(x, Index) else int(min(max(x, low), high))


def where(condition: Any, chosen: Any, other: Any) -> Any:
    """``select``: both sides are computed, the one not chosen contributes nothing."""
    condition, chosen, other = plain(condition), plain(chosen), plain(other)
    if not isinstance(condition, Traced):
        return chosen if condition else other
    if condition.type is not Type.BOOL:
        _refuse(
            condition,
            f"where needs a bool, not {describe(condition)}",
            "write a comparison, for example x != 0",
        )
    builder = condition.builder
    kind = common_type(chosen, other)
    return Traced(builder, builder.select(condition.value, lift(builder, chosen, kind), lift(builder, other, kind)))


def as_real(x: Any) -> Any:
    if not is_scalar(x):
        raise KernelError(f"a number is needed here, not {describe(x)}")
    return cast(x, Type.REAL)


_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_OPS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floordiv", "%": "mod", "&": "and", "|": "or", "^": "xor",
    "<<": "shl", ">>": "shr", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
}  # fmt: skip


def operate(op: str, a: Any, b: Any) -> Any:
    """Python's binary operator `op` on two scalars."""
    a, b = plain(a), plain(b)
    if not isinstance(a, Traced) and not isinstance(b, Traced):
        whole = isinstance(a, int) and isinstance(b, int) and op != "/" and not (op == "**" and b < 0)
        if whole or not (is_symbolic(a) or is_symbolic(b)):
            return _whole(op, a, b)
    if op == "**":
        return power(a, b)
    return apply(_OPS[op], a, b)


def _whole(op: str, a: Any, b: Any) -> Any:
    """An operator on Python numbers; what loop numbers give is a loop number."""
    builder = builder_of(a, b) if is_symbolic(a) or is_symbolic(b) else None
    result = _PYTHON[op](int(a) if isinstance(a, Index) else a, int(b) if isinstance(b, Index) else b)
    return result if builder is None or isinstance(result, bool) else Index(result, builder)


def power(x: Any, exponent: Any) -> Any:
    """x ** exponent. A small constant whole exponent is a product, so no logarithm enters its derivative."""
    x, exponent = plain(x), plain(exponent)
    if isinstance(x, Index) or isinstance(exponent, float):
        x = cast(x, Type.REAL)
    if not is_symbolic(exponent) and exponent in (-1, 0, 1, 2, 3, 4):
        if exponent == -1:
            return apply("div", 1.0, x)
        if exponent == 0:
            return 1 if common_type(x).is_int else 1.0
        square = operate("*", x, x) if exponent > 1 else x
        if exponent < 3:
            return square
        return operate("*", square, x if exponent == 3 else square)
    if isinstance(x, Traced) and x.type.is_int and isinstance(exponent, int) and 4 < exponent < 64:
        half = power(x, int(exponent) // 2)
        return half * half * x if exponent % 2 else half * half
    return apply("pow", cast(x, Type.REAL), cast(exponent, Type.REAL))
