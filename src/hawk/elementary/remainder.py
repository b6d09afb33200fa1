"""fmod."""

from __future__ import annotations

from .formats import format_of, power_of_two, times_power_in_steps
from .lanes import Lanes, V
from .pairs import two_product


def fmod(m: Lanes, x: V, y: V) -> V:
    """C's fmod: x - trunc(x / y) * y, exact, with the sign of x; NaN for y = 0 and for infinite x."""
    over, under = m.abs(x), m.abs(y)

    def slow() -> V:
        if m.bits == 32:
            wide = m.wide()
            result = m.narrow(fmod(wide, m.widen(over), m.widen(under)))
        else:
            result = _fmod_huge(m, over, under)
        finite = m.both(m.lt(over, m.real(float("inf"))), m.gt(under, m.real(0.0)))
        result = m.select(finite, result, m.real(float("nan")))
        return m.select(m.both(m.eq(under, m.real(float("inf"))), finite), over, result)

    quotient = m.div(over, under)
    calm = m.both(m.le(quotient, m.real(2.0 ** format_of(m).fraction)), m.lt(under, m.real(float("inf"))))
    return m.copysign(m.rare(m.no(calm), _rest(m, over, under, m.trunc(quotient)), slow), x)


def _rest(m: Lanes, x: V, y: V, quotient: V) -> V:
    """x - quotient * y; the quotient may be 1 too large."""
    rest = m.fma(m.neg(quotient), y, x)
    return m.select(m.lt(rest, m.real(0.0)), m.add(rest, y), rest)


def _fmod_huge(m: Lanes, x: V, y: V) -> V:
    """x mod y for positive doubles, x beyond 2**52 y.

    In integers x = a 2**(d + e) and y = b 2**e with 53-bit a and b, so the result is a (2**d mod b) mod b, times
    2**e; the power of 2 comes from squaring.
    """
    a, a_exponent = _integer(m, x)
    b, e = _integer(m, y)
    d = m.isub(a_exponent, e)
    power = power_of_two(m, m.lshr(d, m.int(6)))  # at most 2**33, which is less than b/2
    for bit in range(5, -1, -1):
        odd = m.ieq(m.iand(m.lshr(d, m.int(bit)), m.int(1)), m.int(1))
        power = _times_modulo(m, power, m.select(odd, m.add(power, power), power), b)
    rest = _times_modulo(m, power, m.fma(m.rint(m.div(a, b)), m.neg(b), a), b)
    rest = m.select(m.lt(rest, m.real(0.0)), m.add(rest, b), rest)
    return times_power_in_steps(m, rest, e)


def _integer(m: Lanes, x: V) -> tuple[V, V]:
    """An integer in [2**52, 2**53) and the exponent e with x = integer * 2**e, for positive x."""
    small = m.lt(x, m.real(format_of(m).tiny))
    bits = m.to_bits(m.select(small, m.mul(x, m.real(2.0**54)), x))
    integer = m.from_bits(m.ior(m.iand(bits, m.int((1 << 52) - 1)), m.int((1023 + 52) << 52)))
    bias = m.select(small, m.int(1023 + 52 + 54), m.int(1023 + 52))
    return integer, m.isub(m.lshr(bits, m.int(52)), bias)


def _times_modulo(m: Lanes, x: V, y: V, b: V) -> V:
    """x * y modulo b, in [-b/2, b/2], for integers with |x| <= b/2 and |y| <= b.

    Each half of the product is reduced before they are added, so that no sum exceeds 53 bits.
    """
    high, low = two_product(m, x, y)
    high = m.fma(m.rint(m.div(high, b)), m.neg(b), high)
    high = m.fma(m.rint(m.div(high, b)), m.neg(b), high)
    total = m.add(high, low)
    return m.fma(m.rint(m.div(total, b)), m.neg(b), total)
