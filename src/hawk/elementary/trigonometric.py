"""sin, cos, tan.

The argument is reduced to r in [-pi/4, pi/4] and a quadrant by Cody and Waite's method in three parts
(with fma the first part may be full: its subtraction is exact), and huge arguments by Payne and Hanek's.
r is a pair: its low part is what makes 1 ulp possible.
"""

from __future__ import annotations

from collections.abc import Callable

from . import coefficients as c
from .formats import flip_sign, multiple, pick
from .lanes import Lanes, V
from .pairs import Pair, fast_two_sum, quotient, two_product, two_sum

# Beyond these the middle part of pi/2 times the quadrant is no longer exact.
_USUAL_64 = 1.0e6
_USUAL_32 = 400.0


def sin(m: Lanes, x: V) -> V:
    """Sine; NaN for infinities."""
    return _with_slow_path(m, x, _sin)


def cos(m: Lanes, x: V) -> V:
    """Cosine; NaN for infinities."""
    return _with_slow_path(m, x, _cos)


def tan(m: Lanes, x: V) -> V:
    """Tangent; NaN for infinities. Single precision is computed in double."""
    if m.bits == 64:
        return _with_slow_path(m, x, _tan)
    return m.narrow(_with_slow_path(m.wide(), m.widen(x), _tan_for_single))


Finish = Callable[[Lanes, V, V, V], V]  # of the quadrant and the reduced argument


def _with_slow_path(m: Lanes, x: V, finish: Finish) -> V:
    """finish(reduced x); what is too large for the usual reduction is reduced in double, or as a huge number."""

    def in_double() -> V:
        n, _, r, _ = _reduce(m.wide(), m.widen(x))
        return m.rare(m.gt(m.abs(x), m.real(_USUAL_64)), finish(m, *_to_single(m, n, r)), huge_in_double)

    def huge_in_double() -> V:
        n, r, _ = _reduce_huge(m.wide(), m.widen(x))
        return finish(m, *_to_single(m, n, r))

    def huge() -> V:
        n, r, minus_low = _reduce_huge(m, x)
        return finish(m, m.to_int(n), r, minus_low)

    _, quadrant, r, minus_low = _reduce(m, x)
    far = m.gt(m.abs(x), m.real(pick(m, _USUAL_64, _USUAL_32)))
    return m.rare(far, finish(m, quadrant, r, minus_low), pick(m, huge, in_double))


def _to_single(m: Lanes, n: V, r: V) -> tuple[V, V, V]:
    """The quadrant and (r, -low) in single, from a reduction in double that needs no low part."""
    high = m.narrow(r)
    return m.to_int(m.narrow(n)), high, m.narrow(m.wide().sub(m.widen(high), r))


def _sin(m: Lanes, quadrant: V, r: V, minus_low: V) -> V:
    sine, cosine = _sine_and_cosine(m, r, minus_low)
    odd = m.ieq(m.iand(quadrant, m.int(1)), m.int(1))
    return _turn(m, m.select(odd, cosine, sine), quadrant)


def _cos(m: Lanes, quadrant: V, r: V, minus_low: V) -> V:
    sine, cosine = _sine_and_cosine(m, r, minus_low)
    odd = m.ieq(m.iand(quadrant, m.int(1)), m.int(1))
    return _turn(m, m.select(odd, sine, cosine), m.iadd(quadrant, m.int(1)))


def _turn(m: Lanes, x: V, quadrant: V) -> V:
    """-x in the quadrants 2 and 3 (modulo 4)."""
    return flip_sign(m, x, m.shl(m.iand(quadrant, m.int(2)), m.int(m.bits - 2)))


def _reduce(m: Lanes, x: V) -> tuple[V, V, V, V]:
    """n, as a real and by its low bits, and (r, -low) with x = n * pi/2 + r + low.

    r = x - n*P1 - n*P2 is one rounding away from exact, because n*P1 leaves an exact difference and P2 is
    short enough for n*P2 to be exact; that rounding and n*P3 are the low part. The signs are such that
    x = -0.0 gives r = -0.0 and -low = +0.0.
    """
    first, second, third = pick(m, c.HALF_PI_64, c.HALF_PI_32)
    n, n_bits = multiple(m, x, pick(m, *c.TWO_OVER_PI))
    minus_n = m.neg(n)
    near = m.fma(minus_n, m.real(first), x)
    r = m.fma(minus_n, m.real(second), near)
    minus_low = m.fma(n, m.real(third), m.fma(n, m.real(second), m.sub(r, near)))
    return n, n_bits, r, minus_low


def _sine_and_cosine(m: Lanes, r: V, minus_low: V) -> tuple[V, V]:
    """sin(r + low) and cos(r + low), |r| <= pi/4: errors below 0.8 and 0.95 ulp.

    cos = 1 + z C(z) rounds once at the end if z = (r + low)**2 carries the low part. The additions of
    zero keep the sign of sin(-0.0).
    """
    z = m.fma(r, r, m.neg(m.mul(r, m.add(minus_low, minus_low))))
    tail = m.fma(z, m.poly(z, pick(m, c.SIN_64, c.SIN_32)), m.real(0.0))
    sine = m.add(r, m.fma(r, tail, m.neg(minus_low)))
    cosine = m.fma(z, m.poly(z, pick(m, c.COS_64, c.COS_32)), m.real(1.0))
    return sine, cosine


def _tan(m: Lanes, quadrant: V, r: V, minus_low: V) -> V:
    """tan r = w / (1 - w*w/4) with w = 2 tan(r/2), numerator and denominator kept as pairs."""
    z = m.mul(r, r)
    tail = m.fma(z, m.poly(z, c.TAN_64), m.real(0.0))
    w, w_low = fast_two_sum(m, r, m.fma(r, tail, m.neg(minus_low)))
    square, square_low = two_product(m, w, w)
    quarter = m.real(-0.25)
    below = m.fma(square, quarter, m.real(1.0))
    below_low = m.fma(square, quarter, m.sub(m.real(1.0), below))
    below_low = m.fma(quarter, m.fma(m.add(w, w), w_low, square_low), below_low)
    odd = m.ieq(m.iand(quadrant, m.int(1)), m.int(1))
    over = m.select(odd, m.neg(below), w), m.select(odd, m.neg(below_low), w_low)
    under = m.select(odd, w, below), m.select(odd, w_low, below_low)
    return quotient(m, over, under)


def _tan_for_single(m: Lanes, quadrant: V, r: V, minus_low: V) -> V:
    """The same in plain double, with a polynomial good enough for single."""
    z = m.mul(r, r)
    w = m.fma(r, m.fma(z, m.poly(z, c.TAN_32), m.real(0.0)), r)
    below = m.fma(m.mul(w, w), m.real(-0.25), m.real(1.0))
    odd = m.ieq(m.iand(quadrant, m.int(1)), m.int(1))
    return m.div(m.select(odd, m.neg(below), w), m.select(odd, w, below))


def _reduce_huge(m: Lanes, x: V) -> tuple[V, V, V]:
    """n, r and -low as `_reduce` for any finite double beyond 2**20 (others are harmless), after Payne & Hanek.

    n is right modulo 4.

    2/pi is cut into 53-bit integers. Of x * 2/pi only the product with five of them matters: those before
    give multiples of 4 quadrants, those after less than 2**-150. (M. Payne and R. Hanek, "Radian reduction
    for trigonometric functions", SIGNUM Newsletter 18, 1983.)
    """
    biased = m.iand(m.lshr(m.to_bits(x), m.int(52)), m.int(0x7FF))
    beyond = m.isub(biased, m.int(1023 + 54))
    beyond = m.select(m.ilt(beyond, m.int(0)), m.int(0), beyond)
    start = m.lshr(m.imul(beyond, m.int(1237)), m.int(16))  # beyond // 53, for all exponents there are
    scale = m.shl(m.isub(m.int(1023 - 53), m.imul(start, m.int(53))), m.int(52))
    scaled = m.mul(x, m.from_bits(scale))
    products = []
    for k in range(5):
        piece = m.lookup(c.TWO_OVER_PI_PIECES, m.iadd(start, m.int(k)))
        products.append(two_product(m, scaled, m.mul(piece, m.real(2.0 ** (-53 * k)))))
    turns, fraction = _turns_and_fraction(m, products)
    first, second = c.HALF_PI_PAIR_64
    r, r_low = two_product(m, fraction[0], m.real(first))
    r_low = m.add(r_low, m.fma(fraction[0], m.real(second), m.mul(fraction[1], m.real(first))))
    return turns, r, m.neg(r_low)


def _turns_and_fraction(m: Lanes, products: list[Pair]) -> tuple[V, Pair]:
    """The sum of the products modulo 4: its nearest integer and the rest, as a pair with 2**-90 precision."""

    def modulo_four(x: V) -> V:
        return m.fma(m.rint(m.mul(x, m.real(0.25))), m.real(-4.0), x)

    (high0, low0), (high1, low1), (high2, low2), (high3, low3), (high4, _) = products
    total = modulo_four(high0)
    small = []
    for term in (modulo_four(low0), modulo_four(high1), high2, low1):
        total, error = two_sum(m, total, term)
        small.append(error)
    turns = m.rint(total)
    rest = m.sub(total, turns)
    middle, last = small[0], m.add(low3, high4)
    for term in (*small[1:], low2, high3):
        middle, error = two_sum(m, middle, term)
        last = m.add(last, error)
    rest, error = two_sum(m, rest, middle)
    return turns, fast_two_sum(m, rest, m.add(error, last))
