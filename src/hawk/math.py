"""The functions of a kernel: ``from hawk import math as hm``.

Each works on scalars and, component by component, on vectors and matrices. On plain Python numbers they
give Python numbers, with the bits of a float64 kernel, so constants may be computed with them outside
kernels. An integer given to a function of reals is taken as a real.
"""

from __future__ import annotations

import math as _math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from .ir.ops import OPS as _OPS
from .ir.types import Type as _Type
from .language import random
from .language import values as _values
from .language.bundles import as_bundle as _as_bundle
from .language.bundles import dot, elementwise, matmul, vec
from .language.carry import bounded
from .language.errors import KernelError as _KernelError
from .language.linear import cross, det, hypot, inv, norm, outer, solve, transpose
from .language.rotations import qconj, qmul, qrotate

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bounded",
    "cbrt",
    "ceil",
    "clip",
    "copysign",
    "cos",
    "cosh",
    "cross",
    "det",
    "dot",
    "e",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fma",
    "fmod",
    "hypot",
    "inf",
    "int32",
    "inv",
    "isfinite",
    "isinf",
    "isnan",
    "land",
    "lnot",
    "log",
    "log1p",
    "log2",
    "log10",
    "lor",
    "matmul",
    "maximum",
    "minimum",
    "nan",
    "norm",
    "outer",
    "pi",
    "pow",
    "qconj",
    "qmul",
    "qrotate",
    "random", "real",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softplus",
    "solve",
    "sqrt",
    "tan",
    "tanh",
    "transpose",
    "trunc",
    "uint32",
    "vec",
    "where",
]  # fmt: skip

pi, e, inf, nan = _math.pi, _math.e, _math.inf, _math.nan


def _function(op: str) -> Callable[..., Any]:
    """The op as a function of scalars and bundles."""
    apply = partial(_values.apply, op)

    def function(*args: Any) -> Any:
        if len(args) != _OPS[op].arity:
            raise _KernelError(f"hm.{op} takes {_OPS[op].arity} argument(s), got {len(args)}", f"it is {_OPS[op].doc}")
        return elementwise(apply, *args)

    function.__name__ = function.__qualname__ = op
    function.__doc__ = f"{_OPS[op].doc}."
    return function


sqrt, rsqrt, cbrt = _function("sqrt"), _function("rsqrt"), _function("cbrt")
exp, exp2, expm1 = _function("exp"), _function("exp2"), _function("expm1")
log, log2, log10, log1p = _function("log"), _function("log2"), _function("log10"), _function("log1p")
sin, cos, tan = _function("sin"), _function("cos"), _function("tan")
asin, acos, atan, atan2 = _function("asin"), _function("acos"), _function("atan"), _function("atan2")
sinh, cosh, tanh = _function("sinh"), _function("cosh"), _function("tanh")
asinh, acosh, atanh = _function("asinh"), _function("acosh"), _function("atanh")
erf, erfc = _function("erf"), _function("erfc")
abs, sign, copysign, fma, fmod = map(_function, ("abs", "sign", "copysign", "fma", "fmod"))
floor, ceil, trunc, round = _function("floor"), _function("ceil"), _function("trunc"), _function("round")


def pow(x: Any, y: Any) -> Any:
    """x ** y. A constant y of -1, 0, 1, 2, 3 or 4 is a product; for no constant y is a logarithm taken."""
    return elementwise(_values.power, x, y)


def _fold(op: str, values: tuple[Any, ...]) -> Any:
    if not values:
        raise _KernelError(f"hm.{op}() of nothing", "give at least one number")
    return reduce(lambda x, y: elementwise(partial(_values.apply, op), x, y), values)


def minimum(*values: Any) -> Any:
    """The smallest, from left to right; NaN if one is. Of two equal ones each gets half the derivative."""
    return _fold("minimum", values)


def maximum(*values: Any) -> Any:
    """The largest, from left to right; NaN if one is. Of two equal ones each gets half the derivative."""
    return _fold("maximum", values)


def clip(x: Any, low: Any, high: Any) -> Any:
    """`x` moved into [low, high]: minimum(maximum(x, low), high)."""
    return minimum(maximum(x, low), high)


def where(condition: Any, chosen: Any, other: Any) -> Any:
    """`chosen` where the condition holds, else `other`.

    Both are computed; the one not chosen contributes exactly nothing to a derivative, also when it is inf
    or NaN. To skip the work too, write if or a conditional expression.
    """
    return elementwise(_values.where, condition, chosen, other)


def land(*values: Any) -> Any:
    """Whether all hold, component by component; all of them are computed."""
    return _fold("and", tuple(_bools(v, "land") for v in values))


def lor(*values: Any) -> Any:
    """Whether any holds, component by component; all of them are computed."""
    return _fold("or", tuple(_bools(v, "lor") for v in values))


def lnot(value: Any) -> Any:
    """The opposite, component by component."""
    return elementwise(partial(_values.apply, "not"), _bools(value, "lnot"))


def _bools(value: Any, what: str) -> Any:
    value = _as_bundle(value)
    for x in getattr(value, "items", (value,)):
        if _values.common_type(x) is not _Type.BOOL:
            raise _KernelError(
                f"hm.{what} takes bools, not {_values.describe(x)}", "write a comparison, for example x != 0"
            )
    return value


def isnan(x: Any) -> Any:
    """Whether `x` is NaN."""
    return elementwise(lambda v: _values.operate("!=", v, v), real(x))


def isinf(x: Any) -> Any:
    """Whether `x` is an infinity."""
    return elementwise(lambda v: _values.operate("==", _values.apply("abs", v), inf), real(x))


def isfinite(x: Any) -> Any:
    """Whether `x` is neither an infinity nor NaN."""
    return elementwise(lambda v: _values.operate("<", _values.apply("abs", v), inf), real(x))


def _cast(x: Any, type: _Type) -> Any:
    return elementwise(lambda v: _values.cast(v, type), x)


def real(x: Any) -> Any:
    """`x` as a real of the kernel's precision; a bool is 0 or 1."""
    return _cast(x, _Type.REAL)


def int32(x: Any) -> Any:
    """`x` truncated to a 32-bit integer, to the nearest one where it does not fit; NaN is 0. No derivative."""
    return _cast(x, _Type.I32)


def uint32(x: Any) -> Any:
    """`x` truncated to an unsigned 32-bit integer, as `int32` does."""
    return _cast(x, _Type.U32)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow on either side."""
    x = real(x)
    positive = x >= 0.0
    small = exp(where(positive, -x, x))
    return where(positive, 1.0, small) / (1.0 + small)


def softplus(x: Any) -> Any:
    """log(1 + exp(x)), without overflow."""
    x = real(x)
    positive = x >= 0.0
    return where(positive, x, 0.0) + log1p(exp(where(positive, -x, x)))
