"""Arithmetic done again with Python's integers and fractions, to judge the interpreter and compiled code by."""

import math
from fractions import Fraction

import numpy as np

from hawk.ir.types import Type

# Of each real type: the exponent of the least subnormal, and the bits of a significand.
_FORMATS = {Type.F64: (-1074, 53), Type.F32: (-149, 24)}


def largest(real: Type) -> Fraction:
    return Fraction(float(np.finfo(real.dtype).max))


def rounded(value: Fraction, real: Type) -> float:
    """`value` rounded to nearest, ties to even; a zero is positive."""
    least, digits = _FORMATS[real]
    size = abs(value)
    if size == 0:
        return 0.0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent += size >= Fraction(2) ** exponent  # now size < 2**exponent
    step = Fraction(2) ** max(exponent - digits, least)
    nearest = round(size / step) * step
    result = math.inf if nearest > largest(real) else float(nearest)
    return -result if value < 0 else result


def wrapped(value: int, type: Type) -> int:
    """Two's complement, in the width of `type`."""
    info = np.iinfo(type.dtype)
    span = int(info.max) - int(info.min) + 1
    return (value - int(info.min)) % span + int(info.min)


def saturated(value: float, type: Type) -> int:
    """A real truncated into the range of an integer type; NaN is 0."""
    if math.isnan(value):
        return 0
    info = np.iinfo(type.dtype)
    if math.isinf(value):
        return int(info.max if value > 0 else info.min)
    return max(int(info.min), min(int(info.max), math.trunc(value)))
