"""asinh, acosh, atanh."""

from __future__ import annotations

from . import coefficients as c
from .formats import format_of, pick, power_of_two
from .lanes import Lanes, V
from .logarithm import log_of_pair
from .pairs import Pair, fast_two_sum, quotient_pair, two_sum
from .roots import sqrt_pair


def asinh(m: Lanes, x: V) -> V:
    """Inverse hyperbolic sine: log(|x| + sqrt(x*x + 1)), the argument being a pair."""
    size = m.abs(x)
    usual = _log_with_root(m, size, two_sum(m, m.mul(size, size), m.real(1.0)))
    small = m.lt(size, m.real(pick(m, 2.0**-27, 2.0**-12)))
    large = m.no(m.le(size, m.real(_largest_square(m))))
    return m.copysign(m.rare(large, m.select(small, size, usual), lambda: _log_of_twice(m, size)), x)


def acosh(m: Lanes, x: V) -> V:
    """Inverse hyperbolic cosine: log(x + sqrt(x*x - 1)); NaN below 1."""

    def slow() -> V:
        result = m.select(m.eq(x, m.real(1.0)), m.real(0.0), _log_of_twice(m, x))
        return m.select(m.lt(x, m.real(1.0)), m.real(float("nan")), result)

    usual = _log_with_root(m, x, two_sum(m, m.mul(x, x), m.real(-1.0)))
    inside = m.both(m.gt(x, m.real(1.0)), m.le(x, m.real(_largest_square(m))))
    return m.rare(m.no(inside), usual, slow)


def atanh(m: Lanes, x: V) -> V:
    """Inverse hyperbolic tangent; infinite for +-1, NaN beyond.

    With (1 + x) / (1 - x) = 2**k M and M near 1, it is (k/2) ln 2 + atanh(s), s = (M - 1) / (M + 1), where k
    is taken from the bits of 1 + x and 1 - x: log2(M) is within 0.59.
    """
    size = m.abs(x)
    one = m.real(1.0)
    over, over_low = fast_two_sum(m, one, size)
    under, under_low = fast_two_sum(m, one, m.neg(size))
    fraction = m.int(format_of(m).fraction)
    half = m.int(1 << (format_of(m).fraction - 1))
    exponent = m.ashr(m.iadd(m.isub(m.to_bits(over), m.to_bits(under)), half), fraction)
    scale = power_of_two(m, exponent)
    under, under_low = m.mul(under, scale), m.mul(under_low, scale)
    difference = m.sub(over, under)  # exact: they are within a factor of 2
    total, total_low = two_sum(m, over, under)
    s, s_low = quotient_pair(
        m, (difference, m.sub(over_low, under_low)), (total, m.add(total_low, m.add(over_low, under_low)))
    )
    k = m.to_real(exponent)
    high, low = (m.real(part / 2) for part in pick(m, c.LN2_SHORT_64, c.LN2_SHORT_32))
    whole, whole_low = fast_two_sum(m, m.mul(k, high), s)
    z = m.mul(s, s)
    tail = m.fma(m.mul(s, z), m.poly(z, pick(m, c.ATANH_64, c.ATANH_32)), m.fma(k, low, s_low))
    small = m.lt(size, m.real(pick(m, 2.0**-27, 2.0**-12)))
    usual = m.copysign(m.select(small, size, m.add(whole, m.add(whole_low, tail))), x)

    def slow() -> V:
        edge = m.copysign(m.real(float("inf")), x)
        return m.select(m.eq(size, one), edge, m.real(float("nan")))

    return m.rare(m.no(m.lt(size, one)), usual, slow)


def _largest_square(m: Lanes) -> float:
    return pick(m, 2.0**500, 2.0**60)


def _log_with_root(m: Lanes, x: V, rounded_square: Pair) -> V:
    """log(x + sqrt(x*x + c)), given the pair of RN(x*x) + c."""
    square_low = m.fma(x, x, m.neg(m.mul(x, x)))
    square, low = rounded_square
    root, root_low = sqrt_pair(m, (square, m.add(low, square_low)))
    total, total_low = two_sum(m, x, root)
    return log_of_pair(m, (total, m.add(total_low, root_low)))


def _log_of_twice(m: Lanes, x: V) -> V:
    """log(2 x) for large x, also infinite or NaN."""
    result = log_of_pair(m, (x, m.real(0.0)), m.int(1))
    return m.select(m.lt(x, m.real(float("inf"))), result, x)
