"""erf, erfc.

erfc x = e**(-x*x) R(t) / (1 + 2x) with t = (x - K) / (x + K): R is smooth and between 1 and 1.3 for all x >= 0
(M. Shepherd and J. Laframboise, "Chebyshev approximation of (1+2x)exp(x^2)erfc x", Math. Comp. 36, 1981).
"""

from __future__ import annotations

from . import coefficients as c
from .exponential import exp_for_single, exp_of_pair, scaled_at_the_edges
from .formats import times_power
from .lanes import Lanes, V
from .pairs import Pair, fast_two_sum, quotient_pair, times, two_product

_NEAR = 0.47693627620446987  # erf is 1/2 here


def erf(m: Lanes, x: V) -> V:
    """Error function."""
    if m.bits == 32:
        return m.narrow(_erf_for_single(m.wide(), m.widen(x)))
    size = m.abs(x)
    limit = m.real(6.0)  # the result is 1 from here on
    clamped = m.select(m.gt(size, limit), limit, size)
    (high, low), n_bits = _erfc_pair(m, clamped)
    one = m.real(1.0)
    scale = times_power(m, one, n_bits)
    far = m.fma(m.neg(scale), high, one)
    far = m.add(far, m.fma(m.neg(scale), low, m.fma(m.neg(scale), high, m.sub(one, far))))
    return m.copysign(m.select(m.lt(size, m.real(_NEAR)), _erf_near(m, size), far), x)


def erfc(m: Lanes, x: V) -> V:
    """Complementary error function, 1 - erf(x), with a small relative error also where it is tiny."""
    if m.bits == 32:
        return m.narrow(_erfc_for_single(m.wide(), m.widen(x)))
    size = m.abs(x)
    limit = m.real(28.0)  # the result is 0 from here on
    clamped = m.select(m.gt(size, limit), limit, size)
    pair, n_bits = _erfc_pair(m, clamped)
    power = m.add(*pair)
    minus_square = m.neg(m.mul(clamped, clamped))
    outside = m.no(m.le(clamped, m.real(26.5)))
    far = m.rare(
        outside,
        times_power(m, power, n_bits),
        lambda: scaled_at_the_edges(m, minus_square, power, n_bits),
    )
    far = m.select(m.lt(x, m.real(0.0)), m.sub(m.real(2.0), far), far)
    near = m.sub(m.real(1.0), _erf_near(m, x))
    return m.select(m.lt(size, m.real(_NEAR)), near, far)


def _erf_near(m: Lanes, x: V) -> V:
    """erf(x) for |x| < 1/2: the first coefficient is a pair."""
    z = m.mul(x, x)
    high, low = (m.real(part) for part in c.TWO_OVER_ROOT_PI)
    return m.fma(x, high, m.mul(x, m.fma(z, m.poly(z, c.ERF_64), low)))


def _erfc_pair(m: Lanes, x: V) -> tuple[Pair, V]:
    """A pair and n (bits) with erfc(x) = 2**n (high + low), x >= 0."""
    square, square_low = two_product(m, x, x)
    power, n_bits = exp_of_pair(m, (m.neg(square), m.neg(square_low)))
    power = fast_two_sum(m, *power)
    t = _place(m, x)
    centre, centre_low = (m.real(part) for part in c.ERFC_CENTRE)
    curve, curve_low = fast_two_sum(m, centre, m.mul(t, m.poly(t, c.ERFC_64)))
    over = times(m, power, (curve, m.add(curve_low, centre_low)))
    under = fast_two_sum(m, m.real(1.0), m.add(x, x))  # exact: 1 is a multiple of the sum's last place
    return quotient_pair(m, over, under), n_bits


def _place(m: Lanes, x: V) -> V:
    """t = (x - K) / (x + K); beyond K as 1 - 2K / (x + K), whose error is smaller there."""
    middle = m.real(c.ERFC_MIDDLE)
    beyond = m.gt(x, middle)
    over = m.select(beyond, m.real(-2 * c.ERFC_MIDDLE), m.sub(x, middle))
    t = m.div(over, m.add(x, middle))
    return m.select(beyond, m.add(t, m.real(1.0)), t)


def _erf_for_single(m: Lanes, x: V) -> V:
    """In double a single polynomial has digits enough up to where the result is 1."""
    limit = m.real(c.ERF_LIMIT)
    x = m.select(m.gt(m.abs(x), limit), m.copysign(limit, x), x)
    return m.mul(x, m.poly(m.mul(x, x), c.ERF_FOR_SINGLE))


def _erfc_for_single(m: Lanes, x: V) -> V:
    size = m.abs(x)
    limit = m.real(11.0)  # the result is 0 from here on
    size = m.select(m.gt(size, limit), limit, size)
    middle = m.real(c.ERFC_MIDDLE)
    shifted = m.add(size, middle)
    one_two_x = m.fma(size, m.real(2.0), m.real(1.0))
    inverse = m.div(m.real(1.0), m.mul(shifted, one_two_x))
    t = m.mul(m.mul(m.sub(size, middle), one_two_x), inverse)
    power = exp_for_single(m, m.neg(m.mul(size, size)))
    result = m.mul(m.mul(power, m.poly(t, c.ERFC_FOR_SINGLE)), m.mul(shifted, inverse))
    return m.select(m.lt(x, m.real(0.0)), m.sub(m.real(2.0), result), result)
