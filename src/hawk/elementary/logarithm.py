"""log, log2, log10, log1p."""

from __future__ import annotations

from collections.abc import Callable

from . import coefficients as c
from .formats import exponent_and_significand, format_of, not_positive_normal, pick, power_of_two
from .lanes import Lanes, V
from .pairs import Pair, fast_two_sum, times, two_product, two_sum


def log(m: Lanes, x: V) -> V:
    """Natural logarithm; -inf for zeros, NaN for negative numbers."""
    return _for_all_numbers(m, x, _log)


def log2(m: Lanes, x: V) -> V:
    """Logarithm to base 2, exact for powers of 2; -inf for zeros, NaN for negative numbers."""
    return _for_all_numbers(m, x, _log2)


def log10(m: Lanes, x: V) -> V:
    """Logarithm to base 10, exact for powers of 10; -inf for zeros, NaN for negative numbers."""
    return _for_all_numbers(m, x, _log10)


def log1p(m: Lanes, x: V) -> V:
    """log(1 + x), with a small relative error also near 0; -inf for -1, NaN below."""
    total, total_low = two_sum(m, m.real(1.0), x)

    def slow() -> V:
        result = m.select(m.eq(x, m.real(float("inf"))), x, m.real(float("nan")))
        return m.select(m.eq(x, m.real(-1.0)), m.real(float("-inf")), result)

    usual = m.copysign(log_of_pair(m, (total, total_low)), x)
    return m.rare(not_positive_normal(m, total), usual, slow)


def _log(m: Lanes, x: V, bias: V | None = None) -> V:
    """log(x * 2**bias) for positive normal x: k ln 2 + f + tail, small terms first."""
    k, f = _reduced(m, x, bias)
    high, low = (m.real(part) for part in pick(m, c.LN2_SHORT_64, c.LN2_SHORT_32))
    return m.fma(k, high, m.add(f, _tail(m, f, m.mul(k, low))))


def log_of_pair(m: Lanes, x: Pair, bias: V | None = None) -> V:
    """log((x + low) * 2**bias), x positive and normal. The result is good even if it is small."""
    exponent, significand = exponent_and_significand(m, x[0])
    # the low part times 2**-exponent, in two steps because the exponent may be that of the largest number
    low = m.mul(m.mul(x[1], power_of_two(m, m.isub(m.int(1), exponent))), m.real(0.5))
    f, rest = fast_two_sum(m, m.sub(significand, m.real(1.0)), low)
    # log(1 + f + rest) - log(1 + f) = rest / (1 + f), of which a digit is enough
    slope = m.fma(f, m.real(-0.9), m.real(1.0))
    k = m.to_real(exponent if bias is None else m.iadd(exponent, bias))
    high, low = (m.real(part) for part in pick(m, c.LN2_SHORT_64, c.LN2_SHORT_32))
    return m.fma(k, high, m.add(f, _tail(m, f, m.fma(rest, slope, m.mul(k, low)))))


def _log2(m: Lanes, x: V, bias: V | None = None) -> V:
    k, f = _reduced(m, x, bias)
    return _to_base(m, f, pick(m, c.LOG2_E_PAIR_64, c.LOG2_E_PAIR_32), k, m.real(0.0))


def _log10(m: Lanes, x: V, bias: V | None = None) -> V:
    k, f = _reduced(m, x, bias)
    high, low = (m.real(part) for part in pick(m, c.LOG10_2_64, c.LOG10_2_32))
    return _to_base(m, f, pick(m, c.LOG10_E_64, c.LOG10_E_32), m.mul(k, high), m.mul(k, low))


def _to_base(m: Lanes, f: V, factor: tuple[float, float], whole: V, whole_low: V) -> V:
    """whole + log(1 + f) * factor. Of the products only that of f itself needs all its digits."""
    first, second = (m.real(part) for part in factor)
    product, product_low = two_product(m, f, first)
    product_low = m.fma(_tail(m, f, m.real(0.0)), first, m.fma(f, second, product_low))
    total, total_low = fast_two_sum(m, whole, product)
    return m.add(total, m.add(total_low, m.add(product_low, whole_low)))


def _reduced(m: Lanes, x: V, bias: V | None) -> tuple[V, V]:
    """k (a real) and f with x * 2**bias = 2**k (1 + f), 1 + f in [sqrt(1/2), sqrt(2))."""
    exponent, significand = exponent_and_significand(m, x)
    k = m.to_real(exponent if bias is None else m.iadd(exponent, bias))
    return k, m.sub(significand, m.real(1.0))


def _tail(m: Lanes, f: V, small: V) -> V:
    """log(1 + f) - f + small, for a small addition.

    It is -f*f/2, exact but for the rounding of the sum, and a rest: in double a series in s = f / (2 + f), as in
    FDLIBM's log, in single a polynomial in f, which is as good there and needs no division.
    """
    half = m.mul(f, m.real(-0.5))
    square = m.mul(half, f)
    if m.bits == 32:
        return m.fma(half, f, m.fma(m.mul(square, f), m.poly(f, c.LOG_32), small))
    s = m.div(f, m.add(f, m.real(2.0)))
    z = m.mul(s, s)
    return m.fma(half, f, m.fma(s, m.fma(z, m.poly(z, c.LOG_64), m.neg(square)), small))


def _for_all_numbers(m: Lanes, x: V, usual: Callable[..., V]) -> V:
    """usual(m, x) for positive normal x; subnormals are scaled first, the others have exact results."""

    def slow() -> V:
        up = format_of(m).fraction + 1
        result = usual(m, m.mul(x, m.real(2.0**up)), m.int(-up))
        result = m.select(m.eq(x, m.real(float("inf"))), x, result)
        result = m.select(m.eq(x, m.real(0.0)), m.real(float("-inf")), result)
        return m.select(m.no(m.ge(x, m.real(0.0))), m.real(float("nan")), result)

    return m.rare(not_positive_normal(m, x), usual(m, x), slow)


def log_pair(m: Lanes, x: V, bias: V | None = None) -> Pair:
    """log(x * 2**bias) for positive normal doubles x, as a pair with a relative error below 2**-66.

    2 atanh(s) = 2 s + s z (2/3 + z P(z)): s, z, 2/3 and the products with them are pairs.
    """
    k, f = _reduced(m, x, bias)
    sum_ = m.add(f, m.real(2.0))
    sum_low = m.sub(f, m.sub(sum_, m.real(2.0)))
    inverse = m.div(m.real(1.0), sum_)
    s = m.mul(f, inverse)
    minus_s = m.neg(s)
    s_low = m.mul(inverse, m.fma(minus_s, sum_low, m.fma(minus_s, sum_, f)))
    two_s = m.add(s, s)
    z, z_low = two_product(m, s, s)
    z_low = m.fma(two_s, s_low, z_low)
    two_thirds, two_thirds_low = c.TWO_THIRDS
    factor, factor_low = fast_two_sum(m, m.real(two_thirds), m.mul(z, m.poly(z, c.LOG_PAIR)))
    factor_low = m.add(factor_low, m.real(two_thirds_low))
    tail, tail_low = times(m, times(m, (z, z_low), (factor, factor_low)), (s, s_low))
    high, low = (m.real(part) for part in c.LN2_SHORT_64)
    log_s, log_s_low = fast_two_sum(m, two_s, tail)
    log_s_low = m.add(log_s_low, m.fma(s_low, m.real(2.0), tail_low))
    result, result_low = fast_two_sum(m, m.mul(k, high), log_s)
    return result, m.add(result_low, m.fma(k, low, log_s_low))


def log_for_single(m: Lanes, x: V) -> V:
    """log(x) in double lanes with what single precision needs, for positive normal x."""
    exponent, significand = exponent_and_significand(m, x)
    s = m.div(m.sub(significand, m.real(1.0)), m.add(significand, m.real(1.0)))
    return m.fma(m.to_real(exponent), m.real(c.LN2_64[0]), m.mul(s, m.poly(m.mul(s, s), c.LOG_FOR_SINGLE)))
