"""The elementary functions by the name of their op."""

from __future__ import annotations

from collections.abc import Callable

from .error_function import erf, erfc
from .exponential import exp, exp2, expm1
from .hyperbolic import cosh, sinh, tanh
from .inverse_hyperbolic import acosh, asinh, atanh
from .inverse_trigonometric import acos, asin, atan, atan2
from .lanes import V
from .logarithm import log, log1p, log2, log10
from .power import pow
from .remainder import fmod
from .roots import cbrt, hypot, rsqrt
from .trigonometric import cos, sin, tan

_ALL: tuple[Callable[..., V], ...] = (
    *(rsqrt, cbrt, hypot),
    *(exp, exp2, expm1, log, log2, log10, log1p, pow),
    *(sin, cos, tan, asin, acos, atan, atan2),
    *(sinh, cosh, tanh, asinh, acosh, atanh),
    *(erf, erfc, fmod),
)
# The first argument of each is the `Lanes` to compute in.
FUNCTIONS: dict[str, Callable[..., V]] = {function.__name__: function for function in _ALL}
