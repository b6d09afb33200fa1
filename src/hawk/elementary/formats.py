"""What elementary functions know of the two binary formats: their fields, and steps made of bit patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from .lanes import Lanes, V

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format: `fraction` stored significand bits, exponent `bias`, and numbers at its edges."""

    fraction: int
    bias: int
    sign: int  # the bit pattern of -0.0
    infinity: int  # the bit pattern of +inf
    tiny: float  # the smallest normal number
    largest: float
    rounder: float  # added and taken away again, it rounds to an integer


_FORMATS = {
    64: Format(
        fraction=52,
        bias=1023,
        sign=-(1 << 63),
        infinity=0x7FF << 52,
        tiny=2.0**-1022,
        largest=2.0**1023 * (2 - 2.0**-52),
        rounder=1.5 * 2.0**52,
    ),
    32: Format(
        fraction=23,
        bias=127,
        sign=-(1 << 31),
        infinity=0xFF << 23,
        tiny=2.0**-126,
        largest=2.0**127 * (2 - 2.0**-23),
        rounder=1.5 * 2.0**23,
    ),
}


def format_of(m: Lanes) -> Format:
    return _FORMATS[m.bits]


def pick(m: Lanes, double: T, single: T) -> T:
    """The constant for the precision of `m`."""
    return double if m.bits == 64 else single


def multiple(m: Lanes, x: V, per_unit: float) -> tuple[V, V]:
    """x * per_unit rounded to an integer, as a real and as an integer whose low bits are right.

    The integer has the number's low `fraction - 1` bits, below the bits of the rounder: good for shifting
    and masking. Needs |x * per_unit| < 2**(fraction - 1).
    """
    rounder = m.real(format_of(m).rounder)
    shifted = m.fma(x, m.real(per_unit), rounder)
    return m.sub(shifted, rounder), m.to_bits(shifted)


def flip_sign(m: Lanes, x: V, sign: V) -> V:
    """x, negated where the integer `sign` is the sign bit (elsewhere it is 0)."""
    return m.from_bits(m.ixor(m.to_bits(x), sign))


def times_power(m: Lanes, x: V, n: V) -> V:
    """x * 2**n by adding to the exponent: x and the result must be normal; bits of n that shift out don't matter."""
    return m.from_bits(m.iadd(m.to_bits(x), m.shl(n, m.int(format_of(m).fraction))))


def power_of_two(m: Lanes, n: V) -> V:
    """2**n for the integer n of a normal power."""
    f = format_of(m)
    return m.from_bits(m.shl(m.iadd(n, m.int(f.bias)), m.int(f.fraction)))


def times_power_in_steps(m: Lanes, x: V, n: V) -> V:
    """x * 2**n rounded once, also where the result is subnormal or overflows; |n| up to twice the bias."""
    half = m.ashr(n, m.int(1))
    return m.mul(m.mul(x, power_of_two(m, half)), power_of_two(m, m.isub(n, half)))


def exponent_and_significand(m: Lanes, x: V) -> tuple[V, V]:
    """k (integer) and s with x = s * 2**k and s in [sqrt(1/2), sqrt(2)), for positive normal x."""
    f = format_of(m)
    bits = m.to_bits(x)
    root = m.int(pick(m, 0x3FE6A09E667F3BCD, 0x3F3504F3))  # sqrt(1/2)
    k = m.ashr(m.isub(bits, root), m.int(f.fraction))
    return k, m.from_bits(m.isub(bits, m.shl(k, m.int(f.fraction))))


def not_positive_normal(m: Lanes, x: V, margin: int = 0) -> V:
    """Where x is zero, subnormal, negative, infinite or NaN: one comparison of shifted bits.

    With a `margin` also where x is below 2**margin times the smallest normal number.
    """
    f = format_of(m)
    least = (1 + margin) << f.fraction
    shifted = m.iadd(m.to_bits(x), m.int(f.sign - least))
    return m.no(m.ilt(shifted, m.int(f.sign + f.infinity - least)))
