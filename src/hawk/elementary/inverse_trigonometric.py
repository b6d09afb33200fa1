"""asin, acos, atan, atan2."""

from __future__ import annotations

from . import coefficients as c
from .formats import pick
from .lanes import Lanes, V
from .pairs import Pair, fast_two_sum, quotient_pair
from .roots import sqrt_pair


def asin(m: Lanes, x: V) -> V:
    """Arc sine; NaN outside [-1, 1]."""
    size, small, y, tail = _arc_sine(m, x)
    high, low = (m.real(part) for part in pick(m, c.HALF_PI_PAIR_64, c.HALF_PI_PAIR_32))
    two = m.real(-2.0)
    whole = m.fma(two, y, high)
    rest = m.add(m.fma(two, y, m.sub(high, whole)), m.fma(two, tail, low))
    result = m.select(small, m.add(y, tail), m.add(whole, rest))
    return m.copysign(_undefined_beyond_one(m, size, result), x)


def acos(m: Lanes, x: V) -> V:
    """Arc cosine; NaN outside [-1, 1]."""
    size, small, y, tail = _arc_sine(m, x)
    high, low = pick(m, c.HALF_PI_PAIR_64, c.HALF_PI_PAIR_32)
    zero = m.real(0.0)
    negative = m.lt(x, zero)
    # the result is base + factor * (y + tail)
    far_base, far_low = m.select(negative, m.real(2 * high), zero), m.select(negative, m.real(2 * low), zero)
    base, base_low = m.select(small, m.real(high), far_base), m.select(small, m.real(low), far_low)
    factor = m.copysign(m.select(small, m.real(1.0), m.real(2.0)), x)
    factor = m.select(small, m.neg(factor), factor)
    whole = m.fma(factor, y, base)
    rest = m.add(m.fma(factor, y, m.sub(base, whole)), m.fma(factor, tail, base_low))
    return _undefined_beyond_one(m, size, m.add(whole, rest))


def _arc_sine(m: Lanes, x: V) -> tuple[V, V, V, V]:
    """|x|, where it is at most 1/2, and y + tail: asin|x| there, else asin(sqrt((1 - |x|) / 2))."""
    size = m.abs(x)
    half = m.real(0.5)
    small = m.le(size, half)
    z = m.select(small, m.mul(size, size), m.fma(size, m.real(-0.5), half))
    root, root_low = sqrt_pair(m, (z, m.real(0.0)))
    y = m.select(small, size, root)
    y_low = m.select(small, m.real(0.0), root_low)
    return size, small, y, m.fma(m.mul(y, z), m.poly(z, pick(m, c.ASIN_64, c.ASIN_32)), y_low)


def _undefined_beyond_one(m: Lanes, size: V, result: V) -> V:
    return m.select(m.le(size, m.real(1.0)), result, m.real(float("nan")))


def atan(m: Lanes, x: V) -> V:
    """Arc tangent."""
    size = m.abs(x)
    limit = m.real(pick(m, 2.0**60, 2.0**30))  # from here on the result is pi/2
    size = m.select(m.gt(size, limit), limit, size)
    one = m.real(1.0)
    swap = m.gt(size, one)
    over, under = m.select(swap, one, size), m.select(swap, size, one)
    return m.copysign(_arc_tangent(m, over, under, m.select(swap, m.real(-2.0), m.real(0.0))), x)


def atan2(m: Lanes, y: V, x: V) -> V:
    """The angle of the point (x, y), in [-pi, pi]; the signs of zeros and infinities count as in C99."""
    x_size, y_size = m.abs(x), m.abs(y)
    swap = m.gt(y_size, x_size)
    over, under = m.select(swap, x_size, y_size), m.select(swap, y_size, x_size)
    negative = m.ilt(m.to_bits(x), m.int(0))
    quarters = m.select(swap, m.real(-2.0), m.real(0.0))
    quarters = m.select(negative, m.select(swap, m.real(2.0), m.real(-4.0)), quarters)
    # Between these nothing over- or underflows; an over of 0 is fine too.
    low, high = pick(m, (2.0**-900, 2.0**900), (2.0**-100, 2.0**100))

    def slow() -> V:
        if m.bits == 32:
            wide = m.wide()
            ratio = _finite_ratio(wide, m.widen(over), m.widen(under))
            result = m.narrow(_arc_tangent(wide, *ratio, m.widen(quarters)))
        else:
            factor = m.select(m.gt(under, m.real(high)), m.real(2.0**-120), m.real(2.0**120))
            ratio = _finite_ratio(m, m.mul(over, factor), m.mul(under, factor))
            result = _arc_tangent(m, *ratio, quarters)
        return m.select(m.either(m.ne(x, x), m.ne(y, y)), m.real(float("nan")), result)

    calm = m.both(m.ge(under, m.real(low)), m.le(under, m.real(high)))
    calm = m.both(calm, m.no(m.both(m.lt(over, m.real(low)), m.gt(over, m.real(0.0)))))
    return m.copysign(m.rare(m.no(calm), _arc_tangent(m, over, under, quarters), slow), y)


def _finite_ratio(m: Lanes, over: V, under: V) -> Pair:
    """Numbers with the ratio that C99 gives to 0 / 0, inf / inf and x / inf; others as they are."""
    one, zero, infinity = m.real(1.0), m.real(0.0), m.real(float("inf"))
    infinite = m.eq(under, infinity)
    over = m.select(infinite, m.select(m.eq(over, infinity), one, zero), over)
    return over, m.select(m.either(infinite, m.eq(under, zero)), one, under)


def _arc_tangent(m: Lanes, over: V, under: V, quarters: V) -> V:
    """+-(quarters * pi/4 + atan(over / under)) for 0 <= over <= under.

    Beyond tan(pi/8) the quotient is (over - under) / (over + under), one more quarter. It is kept as a pair.
    """
    zero = m.real(0.0)
    middle = m.gt(over, m.mul(under, m.real(0.41421356237309503)))
    difference = m.sub(over, under)
    difference_low = m.sub(over, m.add(difference, under))
    total, total_low = fast_two_sum(m, under, over)
    t, t_low = quotient_pair(
        m,
        (m.select(middle, difference, over), m.select(middle, difference_low, zero)),
        (m.select(middle, total, under), m.select(middle, total_low, zero)),
    )
    quarters = m.add(quarters, m.select(middle, m.real(1.0), zero))
    z = m.mul(t, t)
    tail = m.fma(m.mul(t, z), m.poly(z, pick(m, c.ATAN_64, c.ATAN_32)), t_low)
    high, low = (m.real(part) for part in pick(m, c.QUARTER_PI_64, c.QUARTER_PI_32))
    whole, whole_low = fast_two_sum(m, m.mul(quarters, high), t)
    return m.add(whole, m.add(whole_low, m.fma(quarters, low, tail)))
