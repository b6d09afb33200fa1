"""exp, exp2, expm1.

x = n ln 2 + r with |r| <= ln(2)/2; e**r is a polynomial, 2**n goes into the exponent.
"""

from __future__ import annotations

from . import coefficients as c
from .formats import multiple, pick, times_power, times_power_in_steps
from .lanes import Lanes, V
from .pairs import Pair, fast_two_sum


def exp(m: Lanes, x: V) -> V:
    """e**x; inf above the largest argument, subnormal and then 0 below the smallest."""
    r, tail, n_bits = _reduced(m, x)
    power = m.fma(r, tail, m.real(1.0))
    outside = m.no(m.le(m.abs(x), m.real(pick(m, 707.0, 86.0))))
    return m.rare(outside, times_power(m, power, n_bits), lambda: scaled_at_the_edges(m, x, power, n_bits))


def expm1_reduced(m: Lanes, x: V) -> tuple[V, V]:
    """p and n (bits for `times_power`) with e**x = 2**n (1 + p), |p| < 0.42."""
    r, tail, n_bits = _reduced(m, x)
    return m.mul(r, tail), n_bits


def _reduced(m: Lanes, x: V) -> tuple[V, V, V]:
    """r, t and n (bits) with e**x = 2**n (1 + r t)."""
    n, n_bits = multiple(m, x, pick(m, *c.LOG2_E))
    first, second = pick(m, c.LN2_64, c.LN2_32)
    minus_n = m.neg(n)
    # the first difference is exact: it is a multiple of the last place of `first` and less than 1
    r = m.fma(minus_n, m.real(second), m.fma(minus_n, m.real(first), x))
    return r, m.fma(r, m.poly(r, pick(m, c.EXP_64, c.EXP_32)), m.real(1.0)), n_bits


def exp2(m: Lanes, x: V) -> V:
    """2**x; exact for integers."""
    n, n_bits = multiple(m, x, 1.0)
    power = m.poly(m.sub(x, n), pick(m, c.EXP2_64, c.EXP2_32))
    outside = m.no(m.le(m.abs(x), m.real(pick(m, 1021.0, 125.0))))
    limits = pick(m, (-1080.0, 1030.0), (-160.0, 130.0))
    return m.rare(outside, times_power(m, power, n_bits), lambda: scaled_at_the_edges(m, x, power, n_bits, limits))


def expm1(m: Lanes, x: V) -> V:
    """e**x - 1, with a small relative error also near 0."""
    (p, p_low), n_bits = expm1_pair(m, x)
    one = m.real(1.0)
    scale = times_power(m, one, n_bits)
    rest = m.sub(scale, one)
    rest_low = m.sub(m.sub(scale, rest), one)  # matters where 1 is in the last place of 2**n
    high = m.fma(scale, p, rest)
    low = m.add(m.fma(scale, p_low, m.fma(scale, p, m.sub(rest, high))), rest_low)

    def slow() -> V:
        return m.select(m.lt(x, m.real(0.0)), m.real(-1.0), scaled_at_the_edges(m, x, m.add(one, p), n_bits))

    outside = m.no(m.le(m.abs(x), m.real(pick(m, 707.0, 86.0))))
    return m.rare(outside, m.copysign(m.add(high, low), x), slow)


def scaled_at_the_edges(m: Lanes, x: V, power: V, n_bits: V, limits: tuple[float, float] | None = None) -> V:
    """power * 2**n for any n: subnormal, 0 or inf where it must be.

    `limits`: below the first x the result is surely 0, above the second inf, and n may be senseless; by
    default those of e**x.
    """
    # n is in the low bits of the rounded sum: sign-extend 16 of them
    n = m.ashr(m.shl(n_bits, m.int(m.bits - 16)), m.int(m.bits - 16))
    result = times_power_in_steps(m, power, n)
    lowest, highest = limits or pick(m, (-750.0, 720.0), (-110.0, 95.0))
    result = m.select(m.gt(x, m.real(highest)), m.real(float("inf")), result)
    return m.select(m.lt(x, m.real(lowest)), m.real(0.0), result)


def expm1_pair(m: Lanes, x: V) -> tuple[Pair, V]:
    """p as a pair and n (bits) with e**x = 2**n (1 + p), |p| < 0.42; p has a small relative error."""
    n, n_bits = multiple(m, x, pick(m, *c.LOG2_E))
    first, second = pick(m, c.LN2_64, c.LN2_32)
    near = m.fma(m.neg(n), m.real(first), x)
    r = m.fma(m.neg(n), m.real(second), near)
    low = m.fma(m.neg(n), m.real(second), m.sub(near, r))
    curve = m.fma(m.mul(r, r), m.poly(r, pick(m, c.EXPM1_64, c.EXPM1_32)), m.fma(r, low, low))
    return fast_two_sum(m, r, curve), n_bits


def exp_of_pair(m: Lanes, x: Pair) -> tuple[Pair, V]:
    """p as a pair and n (bits) with e**(x + low) = 2**n p, in double.

    The pair is 1 + r and the rest of the series, some hundredths: its sum has an error little above half an
    ulp, so that exact powers come out exact.
    """
    n, n_bits = multiple(m, x[0], c.LOG2_E[0])
    first, second = c.LN2_64
    near = m.fma(m.neg(n), m.real(first), x[0])
    r, low = fast_two_sum(m, near, m.fma(m.neg(n), m.real(second), x[1]))
    curve = m.fma(m.mul(r, r), m.poly(r, c.EXP_64), low)
    one_r, one_r_low = fast_two_sum(m, m.real(1.0), r)
    return (one_r, m.add(one_r_low, curve)), n_bits


def exp_for_single(m: Lanes, x: V) -> V:
    """e**x in double lanes with what single precision needs; |x| < 700."""
    n, n_bits = multiple(m, x, c.LOG2_E[0])
    r = m.fma(m.neg(n), m.real(c.LN2_64[0]), x)
    return times_power(m, m.poly(r, c.EXP_FOR_SINGLE), n_bits)
