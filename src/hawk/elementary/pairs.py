"""Unevaluated sums of two reals, for the steps that need more digits than the working precision has.

A pair is (high, low). The algorithms are Dekker's and Knuth's with fma, as in Muller et al., "Handbook of
Floating-Point Arithmetic", 2nd ed., sections 4.3 to 4.4.
"""

from __future__ import annotations

from .lanes import Lanes, V

Pair = tuple[V, V]


def fast_two_sum(m: Lanes, x: V, y: V) -> Pair:
    """x + y and its exact error, where |x| >= |y| (or x is 0)."""
    total = m.add(x, y)
    return total, m.add(m.sub(x, total), y)


def two_sum(m: Lanes, x: V, y: V) -> Pair:
    """x + y and its exact error."""
    total = m.add(x, y)
    part = m.sub(total, x)
    return total, m.add(m.sub(x, m.sub(total, part)), m.sub(y, part))


def two_product(m: Lanes, x: V, y: V) -> Pair:
    """x * y and its exact error."""
    product = m.mul(x, y)
    return product, m.fma(x, y, m.neg(product))


def times(m: Lanes, x: Pair, y: Pair) -> Pair:
    """The product of two pairs, relative error below 2**-102 (2**-44 in single); not renormalised."""
    high, low = two_product(m, x[0], y[0])
    return high, m.fma(x[0], y[1], m.fma(x[1], y[0], low))


def quotient_pair(m: Lanes, x: Pair, y: Pair) -> Pair:
    """x / y as a rounded quotient and what to add to it. The sign of a zero x is kept in their sum."""
    inverse = m.div(m.real(1.0), y[0])
    first = m.mul(x[0], inverse)
    excess = m.fma(first, y[0], m.neg(x[0]))
    excess = m.sub(m.fma(first, y[1], excess), x[1])
    return first, m.mul(m.neg(excess), inverse)


def quotient(m: Lanes, x: Pair, y: Pair) -> V:
    """x / y rounded to one real, with an error little above half an ulp. The sign of a zero x is kept."""
    return m.add(*quotient_pair(m, x, y))
