"""rsqrt, cbrt, hypot."""

from __future__ import annotations

from . import coefficients as c
from .formats import not_positive_normal, pick
from .lanes import Lanes, V
from .pairs import Pair, two_product


def rsqrt(m: Lanes, x: V) -> V:
    """1 / sqrt(x), error below 0.51 ulp; inf with the sign of a zero, NaN below it.

    Halving the exponent in the bits gives a first y within 3.5 %, a polynomial in e = 1 - x*y*y the second.
    For the last step e is computed exactly, so that only the last addition rounds.
    """

    def slow() -> V:
        scale = pick(m, 2.0**54, 2.0**24)
        result = m.mul(_rsqrt(m, m.mul(x, m.real(scale))), m.real(scale**0.5))
        result = m.select(m.eq(x, m.real(float("inf"))), m.real(0.0), result)
        result = m.select(m.eq(x, m.real(0.0)), m.copysign(m.real(float("inf")), x), result)
        return m.select(m.no(m.ge(x, m.real(0.0))), m.real(float("nan")), result)

    return m.rare(not_positive_normal(m, x), _rsqrt(m, x), slow)


def _rsqrt(m: Lanes, x: V) -> V:
    y = _inverse_root_guess(m, x)
    xy, xy_low = two_product(m, x, y)
    e = m.fma(m.neg(xy_low), y, m.fma(m.neg(xy), y, m.real(1.0)))
    return m.fma(m.mul(y, e), _next_slope(m, e), y)


def _inverse_root_guess(m: Lanes, x: V) -> V:
    """1 / sqrt(x) to 20 bits (in single: 15)."""
    guess = m.int(pick(m, 0x5FE6EB50C7B537A9, 0x5F375A86))
    y = m.from_bits(m.isub(guess, m.lshr(m.to_bits(x), m.int(1))))
    e = m.fma(m.neg(m.mul(x, y)), y, m.real(1.0))
    return m.mul(y, m.poly(e, pick(m, c.RSQRT_64, c.RSQRT_32)))


def _next_slope(m: Lanes, e: V) -> V:
    """((1 - e)**(-1/2) - 1) / e for the small e of the last step."""
    return m.fma(e, m.real(0.375), m.real(0.5)) if m.bits == 64 else m.real(0.5)


def sqrt_pair(m: Lanes, x: Pair) -> Pair:
    """The square root of a pair that is 0 or normal, as a pair; without a division or a machine root."""
    y = _inverse_root_guess(m, x[0])
    e = m.fma(m.neg(m.mul(x[0], y)), y, m.real(1.0))
    y = m.fma(m.mul(y, e), _next_slope(m, e), y)
    root = m.mul(x[0], y)
    rest = m.add(m.fma(m.neg(root), root, x[0]), x[1])
    return root, m.mul(rest, m.mul(y, m.real(0.5)))


def hypot(m: Lanes, x: V, y: V) -> V:
    """sqrt(x*x + y*y) without undue overflow or underflow; inf if either is infinite, even beside a NaN."""
    x, y = m.abs(x), m.abs(y)
    swap = m.lt(x, y)
    large, small = m.select(swap, y, x), m.select(swap, x, y)
    low, high, shift = pick(m, (2.0**-450, 2.0**500, 2.0**600), (2.0**-50, 2.0**60, 2.0**100))

    def slow() -> V:
        tiny = m.lt(large, m.real(1.0))
        down = m.select(tiny, m.real(1 / shift), m.real(shift))
        up = m.select(tiny, m.real(shift), m.real(1 / shift))
        result = m.mul(_hypot(m, m.mul(large, up), m.mul(small, up)), down)
        infinity = m.real(float("inf"))
        result = m.select(m.either(m.ne(x, x), m.ne(y, y)), m.real(float("nan")), result)
        return m.select(m.either(m.eq(x, infinity), m.eq(y, infinity)), infinity, result)

    calm = m.both(m.ge(large, m.real(low)), m.le(large, m.real(high)))
    return m.rare(m.no(calm), _hypot(m, large, small), slow)


def _hypot(m: Lanes, large: V, small: V) -> V:
    square, square_low = two_product(m, large, large)
    total = m.fma(small, small, square)
    total_low = m.add(m.fma(small, small, m.sub(square, total)), square_low)
    return m.add(*sqrt_pair(m, (total, total_low)))


def cbrt(m: Lanes, x: V) -> V:
    """Cube root, error below 0.51 ulp.

    A third of the exponent in the bits gives a first y near |x|**(-1/3), a polynomial in e = 1 - |x| y**3 the
    next; |x| y*y is the root but for a last step with an exact residual.
    """
    size = m.abs(x)

    def slow() -> V:
        up, down = pick(m, (2.0**120, 2.0**-40), (2.0**60, 2.0**-20))
        result = m.mul(_cbrt(m, m.mul(size, m.real(up))), m.real(down))
        # 0, inf and NaN are their own cube roots
        finite = m.both(m.gt(size, m.real(0.0)), m.lt(size, m.real(float("inf"))))
        return m.select(finite, result, size)

    # the residual of a root must be a normal number too
    outside = not_positive_normal(m, size, margin=pick(m, 60, 30))
    return m.copysign(m.rare(outside, _cbrt(m, size), slow), x)


def _cbrt(m: Lanes, x: V) -> V:
    third = m.mul(m.to_real(m.to_bits(x)), m.real(1 / 3))
    y = m.from_bits(m.to_int(m.sub(m.real(pick(m, *c.CBRT_GUESS)), third)))
    y = m.mul(y, m.poly(_cube_defect(m, x, y), pick(m, c.CBRT_64, c.CBRT_32)))
    if m.bits == 64:
        e = _cube_defect(m, x, y)
        y = m.fma(m.mul(y, e), m.fma(e, m.real(2 / 9), m.real(1 / 3)), y)
    square = m.mul(y, y)
    root = m.mul(x, square)
    high, low = two_product(m, root, root)
    rest = m.fma(m.neg(low), root, m.fma(m.neg(high), root, x))
    return m.fma(rest, m.mul(square, m.real(1 / 3)), root)


def _cube_defect(m: Lanes, x: V, y: V) -> V:
    """1 - x y**3"""
    return m.fma(m.neg(m.mul(x, y)), m.mul(y, y), m.real(1.0))
