"""pow: x**y = exp(y log x), the logarithm and the product being pairs (in single: double is enough)."""

from __future__ import annotations

from .exponential import exp_for_single, exp_of_pair, scaled_at_the_edges
from .formats import format_of, not_positive_normal, times_power
from .lanes import Lanes, V
from .logarithm import log_for_single, log_pair
from .pairs import Pair

_CALM = 707.0  # |y log x| up to this has a normal result


def pow(m: Lanes, x: V, y: V) -> V:
    """x**y with the special values of C99 (Annex F.9.4.4): x**0 and 1**y are 1 even for NaN.

    A negative x wants an integer y, else the result is NaN. Powers that are exact numbers are found exactly.
    """
    if m.bits == 32:
        return _pow_for_single(m, x, y)
    product, product_low = _times_logarithm(m, y, log_pair(m, x))
    pair, n_bits = exp_of_pair(m, (product, product_low))
    power = m.add(*pair)
    outside = m.either(not_positive_normal(m, x), m.no(m.le(m.abs(product), m.real(_CALM))))
    return m.rare(outside, times_power(m, power, n_bits), lambda: _special_cases(m, x, y, _size(m, m.abs(x), y)))


def _times_logarithm(m: Lanes, y: V, logarithm: Pair) -> Pair:
    product = m.mul(y, logarithm[0])
    return product, m.fma(y, logarithm[1], m.fma(y, logarithm[0], m.neg(product)))


def _size(m: Lanes, x: V, y: V) -> V:
    """x**y for any double x >= 0 but 1, and any y but 0."""
    small = m.lt(x, m.real(format_of(m).tiny))
    scaled = m.select(small, m.mul(x, m.real(2.0**54)), x)
    logarithm, low = log_pair(m, scaled, m.select(small, m.int(-54), m.int(0)))
    product, product_low = _times_logarithm(m, y, (_with_infinities(m, x, logarithm), low))
    pair, n_bits = exp_of_pair(m, (product, product_low))
    power = m.add(*pair)
    return scaled_at_the_edges(m, product, power, n_bits)


def _with_infinities(m: Lanes, x: V, logarithm: V) -> V:
    """The logarithm of x >= 0, its values at 0 and inf put right."""
    infinity = m.real(float("inf"))
    logarithm = m.select(m.eq(x, infinity), infinity, logarithm)
    return m.select(m.eq(x, m.real(0.0)), m.neg(infinity), logarithm)


def _pow_for_single(m: Lanes, x: V, y: V) -> V:
    wide = m.wide()

    def product_with_log(size: V) -> V:
        size = m.widen(size)
        return wide.mul(m.widen(y), _with_infinities(wide, size, log_for_single(wide, size)))

    def slow() -> V:
        size = m.abs(x)
        product = product_with_log(size)
        limit = wide.real(200.0)  # far outside the range of single
        product = wide.select(wide.gt(product, limit), limit, product)
        product = wide.select(wide.lt(product, wide.neg(limit)), wide.neg(limit), product)
        return _special_cases(m, x, y, m.narrow(exp_for_single(wide, product)))

    product = wide.mul(m.widen(y), log_for_single(wide, m.widen(x)))
    outside = m.either(not_positive_normal(m, x), m.no(m.le(m.abs(m.narrow(product)), m.real(200.0))))
    return m.rare(outside, m.narrow(exp_for_single(wide, product)), slow)


def _special_cases(m: Lanes, x: V, y: V, size: V) -> V:
    """x**y from |x|**y."""
    one, nan = m.real(1.0), m.real(float("nan"))
    half = m.mul(y, m.real(0.5))
    whole = m.eq(m.rint(y), y)  # infinities are even integers here
    odd = m.both(whole, m.ne(m.rint(half), half))
    size = m.select(m.eq(m.abs(x), one), one, size)
    result = m.select(m.both(odd, m.ilt(m.to_bits(x), m.int(0))), m.neg(size), size)
    finite_negative = m.both(m.lt(x, m.real(0.0)), m.gt(x, m.real(float("-inf"))))
    undefined = m.either(m.both(finite_negative, m.no(whole)), m.either(m.ne(x, x), m.ne(y, y)))
    result = m.select(undefined, nan, result)
    return m.select(m.either(m.eq(x, one), m.eq(y, m.real(0.0))), one, result)
