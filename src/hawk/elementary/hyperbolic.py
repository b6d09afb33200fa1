"""sinh, cosh, tanh."""

from __future__ import annotations

from typing import final

from . import coefficients as c
from .exponential import expm1_pair, expm1_reduced, scaled_at_the_edges
from .formats import multiple, pick, times_power
from .lanes import Lanes, V
from .pairs import Pair, fast_two_sum, quotient, two_sum


def sinh(m: Lanes, x: V) -> V:
    """Hyperbolic sine."""
    size = m.abs(x)
    parts = _Parts(m, size)
    usual = parts.combine(parts.sinh_n, parts.cosh_n[0])
    return m.copysign(m.rare(parts.outside(), usual, parts.half_exponential), x)


def cosh(m: Lanes, x: V) -> V:
    """Hyperbolic cosine."""
    parts = _Parts(m, m.abs(x))
    return m.rare(parts.outside(), parts.combine(parts.cosh_n, parts.sinh_n[0]), parts.half_exponential)


@final
class _Parts:
    """x = n ln 2 + r + low for x >= 0, and what the sums sinh(a + b), cosh(a + b) need of both.

    No division and one exponent each way: cosh(n ln 2) and sinh(n ln 2) are half sums of 2**n and 2**-n.
    """

    def __init__(self, m: Lanes, x: V) -> None:
        self.m, self.x = m, x
        n, self.n_bits = multiple(m, x, pick(m, *c.LOG2_E))
        first, second = pick(m, c.LN2_64, c.LN2_32)
        near = m.fma(m.neg(n), m.real(first), x)
        self.r = m.fma(m.neg(n), m.real(second), near)
        low = m.fma(m.neg(n), m.real(second), m.sub(near, self.r))
        z = m.mul(self.r, self.r)
        self.sinh_tail = m.fma(m.mul(z, self.r), m.poly(z, pick(m, c.SINH_64, c.SINH_32)), low)
        self.cosh_tail = m.fma(z, m.poly(z, pick(m, c.COSH_64, c.COSH_32)), m.mul(self.r, low))
        half = m.real(0.5)
        grows = times_power(m, half, self.n_bits)
        shrinks = times_power(m, half, m.isub(m.int(0), self.n_bits))
        self.cosh_n = fast_two_sum(m, grows, shrinks)
        self.sinh_n = fast_two_sum(m, grows, m.neg(shrinks))

    def combine(self, whole: Pair, other: V) -> V:
        """whole cosh(r + low) + other sinh(r + low). The whole is 0 or the larger term by far."""
        m = self.m
        main, main_low = whole
        high = m.fma(other, self.r, main)
        low = m.add(m.fma(other, self.r, m.sub(main, high)), main_low)
        low = m.add(low, m.fma(main, self.cosh_tail, m.mul(other, self.sinh_tail)))
        return m.add(high, low)

    def outside(self) -> V:
        return self.m.no(self.m.le(self.x, self.m.real(pick(self.m, 707.0, 86.0))))

    def half_exponential(self) -> V:
        """e**x / 2, all that is left of both for large x."""
        m = self.m
        power = m.add(m.real(1.0), m.add(self.r, m.add(self.sinh_tail, self.cosh_tail)))
        return scaled_at_the_edges(m, self.x, power, m.isub(self.n_bits, m.int(1)))


def tanh(m: Lanes, x: V) -> V:
    """Hyperbolic tangent: (E - 1) / (E + 1) with E = e**(2|x|), both as pairs, and one division."""
    if m.bits == 32:
        return _tanh_single(m, x)
    size = m.abs(x)
    limit = m.real(20.0)  # where the result has become 1
    clamped = m.select(m.gt(size, limit), limit, size)
    (p, p_low), n_bits = expm1_pair(m, m.add(clamped, clamped))
    one = m.real(1.0)
    scale = times_power(m, one, n_bits)
    rest = m.sub(scale, one)
    over = m.fma(scale, p, rest)
    over_low = m.fma(scale, p_low, m.fma(scale, p, m.sub(rest, over)))
    under, under_low = two_sum(m, over, m.real(2.0))
    result = quotient(m, (over, over_low), (under, m.add(under_low, over_low)))
    return m.copysign(result, x)


def _tanh_single(m: Lanes, x: V) -> V:
    """A polynomial near 0; farther out 1 - 2 / (E + 1), where the part subtracted is small enough."""
    size = m.abs(x)
    limit = m.real(10.0)
    clamped = m.select(m.gt(size, limit), limit, size)
    z = m.mul(clamped, clamped)
    near = m.fma(m.mul(clamped, z), m.poly(z, c.TANH_32), clamped)
    one = m.real(1.0)
    p, n_bits = expm1_reduced(m, m.add(clamped, clamped))
    scale = times_power(m, one, n_bits)
    far = m.sub(one, m.div(m.real(2.0), m.fma(scale, p, m.add(scale, one))))
    return m.copysign(m.select(m.lt(size, m.real(0.99)), near, far), x)
