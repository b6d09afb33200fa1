"""Writes src/hawk/elementary/coefficients.py: the minimax polynomials of the elementary functions.

    python tools/coefficients.py            all of them
    python tools/coefficients.py SIN COS    those whose names start so; the others are kept as they stand

Each `Fit` asks for the polynomial p of a given degree that makes max |weight * (p - target)| smallest
over an interval (Remez exchange in 60-digit arithmetic). Coefficients are rounded to the working
precision, the lowest powers one by one, each time refitting the others to what was rounded away.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np

mp.mp.dps = 100
Real = Any  # an mpmath number
TABLES = Path(__file__).parents[1] / "src" / "hawk" / "elementary" / "coefficients.py"


Node = tuple[Real, Real, Real]  # a point, the value there and its weight


@dataclass(frozen=True)
class Fit:
    """A polynomial to find. `fixed` are the lowest coefficients, given; the rest, up to `degree`, are free."""

    name: str
    doc: str
    target: Callable[[Real], Real]
    interval: tuple[Real, Real]
    degree: int
    weight: Callable[[Real], Real]
    fixed: tuple[float, ...] = ()
    bits: int = 64


def polynomial(coefficients: list[Real], x: Real) -> Real:
    """The value at x, coefficients from the lowest power up."""
    value = mp.mpf(0)
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value


def remez(fit: Fit, fixed: list[Real], points: list[Real]) -> tuple[list[Real], list[Real]]:
    """The best coefficients above those already `fixed`, lowest power first, and where their error is largest.

    With k of them fixed the free part is x**k q(x). Around 0 the powers above k alternate no more, so q is
    fitted to (target - fixed part) / x**k under the weight |weight x**k|. `points` are where to start.
    """
    k = len(fixed)
    count = fit.degree - k + 2

    def node(x: Real) -> Node:
        return x, (fit.target(x) - polynomial(fixed, x)) / x**k, abs(fit.weight(x) * x**k)

    grid = [node(x) for x in chebyshev_points(fit.interval, 24 * (fit.degree + 2))]
    # at first the weights are equal: the true ones may vanish at a point
    nodes = [(x, value, mp.mpf(1)) for x, value, _ in map(node, points)]
    best, least = [mp.mpf(0)], mp.inf
    for turn in range(20):
        rows, right = mp.matrix(count, count), mp.matrix(count, 1)
        for row, (x, value, weight) in enumerate(nodes):
            for power in range(count - 1):
                rows[row, power] = weight * x**power
            rows[row, count - 1] = (-1) ** row
            right[row] = weight * value
        solution = mp.lu_solve(rows, right)
        free, level = list(solution[: count - 1]), abs(solution[count - 1])
        errors = [(weight * (polynomial(free, x) - value), (x, value, weight)) for x, value, weight in grid]
        nodes, worst = _alternation(errors, count, nodes)
        if worst < least:
            best, least = free, worst
        if turn and worst <= level * mp.mpf("1.02"):
            break
    return best, [x for x, _, _ in nodes]


def chebyshev_points(interval: tuple[Real, Real], count: int) -> list[Real]:
    """The zeros of a Chebyshev polynomial, moved a little so that none is the middle."""
    low, high = map(mp.mpf, interval)
    angles = [mp.pi * (k + mp.mpf("0.47")) / count for k in range(count)]
    return [(low + high) / 2 - (high - low) / 2 * mp.cos(angle) for angle in angles]


def _alternation(errors: list[tuple[Real, Node]], count: int, nodes: list[Node]) -> tuple[list[Node], Real]:
    """The extrema of an error curve, one for each change of sign: the `count` largest neighbours."""
    runs: list[tuple[Real, Node]] = []
    for error, node in errors:
        if runs and (error > 0) == (runs[-1][0] > 0):
            if abs(error) > abs(runs[-1][0]):
                runs[-1] = (error, node)
        else:
            runs.append((error, node))
    worst = max(abs(error) for error, _ in runs)
    while len(runs) > count:
        sizes = [abs(error) for error, _ in runs]
        least = sizes.index(min(sizes))
        if len(runs) == count + 1 or least in (0, len(runs) - 1):
            runs.pop(0 if sizes[0] < sizes[-1] else -1)
        else:  # its neighbours have the same sign: keep the larger
            other = least - 1 if sizes[least - 1] < sizes[least + 1] else least + 1
            del runs[min(least, other) : max(least, other) + 1]
    return ([node for _, node in runs] if len(runs) == count else nodes), worst


def rounded(number: Real, bits: int) -> float:
    return float(number) if bits == 64 else float(np.float32(float(number)))


def solve(fit: Fit) -> list[float]:
    """The rounded coefficients, lowest power first."""
    chosen = [mp.mpf(c) for c in fit.fixed]
    points = chebyshev_points(fit.interval, fit.degree - len(chosen) + 2)
    while len(chosen) <= fit.degree:
        exact, points = remez(fit, chosen, points)
        best = [mp.mpf(rounded(coefficient, fit.bits)) for coefficient in exact]
        chosen += best[:1] if len(chosen) < 5 else best  # the rounding of high powers matters little
        points.remove(min(points, key=abs))
    return [float(c) for c in chosen]


def error_bits(fit: Fit, coefficients: Sequence[float], count: int = 500) -> float:
    """log2 of the largest weighted error at `count` points; coefficients from the lowest power up."""
    low, high = map(mp.mpf, fit.interval)
    exact = [mp.mpf(c) for c in coefficients]
    grid = [low + (high - low) * (k + mp.mpf(1) / 2) / count for k in range(count)]
    return float(mp.log(max(abs(fit.weight(x) * (polynomial(exact, x) - fit.target(x))) for x in grid), 2))


Function = Callable[[Real], Real]


def series(function: Function, term: Callable[[int], Real]) -> Function:
    """`function`, or the sum of term(k) * x**k close to 0, where the formula cancels."""

    def value(x: Real) -> Real:
        return function(x) if abs(x) > mp.mpf("1e-4") else sum(term(k) * x**k for k in range(25))

    return value


def exp2(r: Real) -> Real:
    return mp.exp(r * mp.log(2))


HALF_LN2 = mp.log(2) / 2
QUARTER_PI = mp.pi / 4
ERFC_MIDDLE = 1.5
ERF_LIMIT = 3.9375


def odd_tail(function: Function, term: Callable[[int], Real]) -> Function:
    """(f(x)/x - f'(0)) / z in z = x*x for an odd f with the coefficients `term(k)` of x**(2k+1)."""
    return series(lambda z: (function(mp.sqrt(z)) / mp.sqrt(z) - term(0)) / z, lambda k: term(k + 1))


def tan_term(k: int) -> Real:
    """The coefficient of x**(2k+1) in tan x."""
    n = k + 1
    size = mp.mpf(4) ** n * (mp.mpf(4) ** n - 1) * mp.bernoulli(2 * n) / mp.factorial(2 * n)
    return (-1) ** k * size


def half_tan(x: Real) -> Real:
    return 2 * mp.tan(x / 2)


def erfc_curve(t: Real) -> Real:
    """(1 + 2x) exp(x*x) erfc(x) for t = (x - K)/(x + K)."""
    x = ERFC_MIDDLE * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def erfc_slope(t: Real) -> Real:
    t = t or mp.mpf("1e-30")
    return (erfc_curve(t) - erfc_curve(mp.mpf(0))) / t


def place(x: float) -> float:
    """t for x"""
    return (x - ERFC_MIDDLE) / (x + ERFC_MIDDLE)


sin_tail = odd_tail(mp.sin, lambda k: mp.mpf(-1) ** k / mp.factorial(2 * k + 1))
sinh_tail = odd_tail(mp.sinh, lambda k: 1 / mp.factorial(2 * k + 1))
tan_tail = odd_tail(half_tan, lambda k: tan_term(k) / mp.mpf(4) ** k)
tanh_tail = odd_tail(mp.tanh, lambda k: (-1) ** k * tan_term(k))
atan_tail = odd_tail(mp.atan, lambda k: mp.mpf(-1) ** k / (2 * k + 1))
atanh_tail = odd_tail(mp.atanh, lambda k: mp.mpf(1) / (2 * k + 1))
asin_tail = odd_tail(mp.asin, lambda k: mp.binomial(2 * k, k) / mp.mpf(4) ** k / (2 * k + 1))
erf_tail = odd_tail(mp.erf, lambda k: 2 / mp.sqrt(mp.pi) * mp.mpf(-1) ** k / mp.factorial(k) / (2 * k + 1))
erf_ratio = series(
    lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z),
    lambda k: 2 / mp.sqrt(mp.pi) * mp.mpf(-1) ** k / mp.factorial(k) / (2 * k + 1),
)
cos_tail = series(lambda z: (mp.cos(mp.sqrt(z)) - 1) / z, lambda k: mp.mpf(-1) ** (k + 1) / mp.factorial(2 * k + 2))
cosh_tail = series(lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z, lambda k: 1 / mp.factorial(2 * k + 2))
exp_tail = series(lambda r: (mp.expm1(r) - r) / r**2, lambda k: 1 / mp.factorial(k + 2))
log_tail = series(lambda z: 2 * atanh_tail(z), lambda k: mp.mpf(2) / (2 * k + 3))
log_pair_tail = series(lambda z: (log_tail(z) - mp.mpf(2) / 3) / z, lambda k: mp.mpf(2) / (2 * k + 5))
log_ratio = series(lambda z: 2 + z * log_tail(z), lambda k: mp.mpf(2) / (2 * k + 1))
log1p_tail = series(lambda f: (f - f * f / 2 - mp.log1p(f)) * 2 / f**3, lambda k: 2 * mp.mpf(-1) ** (k + 1) / (k + 3))

QUADRANT = (0, QUARTER_PI**2)
OCTAVE = (-HALF_LN2, HALF_LN2)  # e**r for 2**n e**r
HALF_OCTAVE = (0, HALF_LN2**2)
S_SQUARE = (0, ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2)  # s = (m - 1)/(m + 1), m in [sqrt(1/2), sqrt(2)]
WIDER_S_SQUARE = (0, mp.tanh(mp.log(2) * mp.mpf("0.5862") / 2) ** 2)
F_RANGE = (mp.sqrt(0.5) - 1, mp.sqrt(2) - 1)
INVERSE_ROOT = (-0.0692, 0.0676)  # 1 - x*y*y for the y that halving the exponent gives
INVERSE_CUBE_ROOT = (-0.1022, 0.1022)  # 1 - x*y**3 for the y that a third of the exponent gives
TAN_EIGHTH = mp.tan(mp.pi / 8)
ERF_HALF = 0.477
ERFC_RANGE = (place(0.47), place(28))


def flat(x: Real) -> Real:
    return mp.mpf(1)


def linear(x: Real) -> Real:
    return x


def square(x: Real) -> Real:
    return x * x


def sin_weight(z: Real) -> Real:
    return z / mp.sinc(mp.sqrt(z))


def tanh_weight(z: Real) -> Real:
    return z * mp.sqrt(z) / mp.tanh(mp.sqrt(z))


def log1p_weight(f: Real) -> Real:
    return f**3 / mp.log1p(f) / 2


FITS = (
    Fit("SIN_64", "(sin(r)/r - 1)/z in z = r*r", sin_tail, QUADRANT, 5, sin_weight),
    Fit("SIN_32", "the same", sin_tail, QUADRANT, 2, sin_weight, bits=32),
    Fit("COS_64", "(cos(r) - 1)/z in z = r*r", cos_tail, QUADRANT, 6, linear, (-0.5,)),
    Fit("COS_32", "the same", cos_tail, QUADRANT, 3, linear, (-0.5,), 32),
    Fit("TAN_64", "(2 tan(r/2)/r - 1)/z in z = r*r", tan_tail, QUADRANT, 8, linear),
    Fit("TAN_32", "the same, for single results of double arithmetic", tan_tail, QUADRANT, 3, linear),
    Fit("EXP_64", "(exp(r) - 1 - r)/r**2", exp_tail, OCTAVE, 9, square),
    Fit("EXP_32", "the same", exp_tail, OCTAVE, 4, square, bits=32),
    Fit("EXPM1_64", "the same, for a small relative error of exp(r) - 1", exp_tail, OCTAVE, 10, linear),
    Fit("EXPM1_32", "the same", exp_tail, OCTAVE, 5, linear, bits=32),
    Fit("EXP_FOR_SINGLE", "exp(r), for single results of double arithmetic", mp.exp, OCTAVE, 6, flat),
    Fit("EXP2_64", "2**r", exp2, (-0.5, 0.5), 11, flat, (1.0,)),
    Fit("EXP2_32", "the same", exp2, (-0.5, 0.5), 6, flat, (1.0,), 32),
    Fit("SINH_64", "(sinh(r)/r - 1)/z in z = r*r", sinh_tail, HALF_OCTAVE, 4, linear),
    Fit("SINH_32", "the same", sinh_tail, HALF_OCTAVE, 2, linear, bits=32),
    Fit("COSH_64", "(cosh(r) - 1)/z in z = r*r", cosh_tail, HALF_OCTAVE, 4, linear, (0.5,)),
    Fit("COSH_32", "the same", cosh_tail, HALF_OCTAVE, 2, linear, (0.5,), 32),
    Fit("TANH_32", "(tanh(x)/x - 1)/z in z = x*x", tanh_tail, (0, 1), 6, tanh_weight, bits=32),
    Fit("LOG_64", "(log(m)/s - 2)/z in z = s*s", log_tail, S_SQUARE, 6, linear),
    Fit("LOG_32", "(log(1 + f) - f + f*f/2)/(-f**3/2)", log1p_tail, F_RANGE, 8, log1p_weight, bits=32),
    Fit("LOG_PAIR", "((log(m)/s - 2)/z - 2/3)/z in z = s*s", log_pair_tail, S_SQUARE, 7, square),
    Fit("LOG_FOR_SINGLE", "log(m)/s in z = s*s, for single results", log_ratio, S_SQUARE, 4, flat),
    Fit("ATANH_64", "(atanh(s)/s - 1)/z in z = s*s", atanh_tail, WIDER_S_SQUARE, 7, linear),
    Fit("ATANH_32", "the same", atanh_tail, WIDER_S_SQUARE, 2, linear, bits=32),
    Fit("ASIN_64", "(asin(x)/x - 1)/z in z = x*x", asin_tail, (0, 0.25), 12, linear),
    Fit("ASIN_32", "the same", asin_tail, (0, 0.25), 4, linear, bits=32),
    Fit("ATAN_64", "(atan(x)/x - 1)/z in z = x*x", atan_tail, (0, TAN_EIGHTH**2), 10, linear),
    Fit("ATAN_32", "the same", atan_tail, (0, TAN_EIGHTH**2), 4, linear, bits=32),
    Fit("ERF_64", "(erf(x)/x - 2/sqrt(pi))/z in z = x*x", erf_tail, (0, ERF_HALF**2), 7, linear),
    Fit("ERFC_64", "(E(t) - E(0))/t, E = (1 + 2x)exp(x*x)erfc(x), t = (x-K)/(x+K)", erfc_slope, ERFC_RANGE, 26, linear),
    Fit("ERF_FOR_SINGLE", "erf(x)/x in z = x*x, for single results", erf_ratio, (0, ERF_LIMIT**2), 16, flat),
    Fit("ERFC_FOR_SINGLE", "E(t), for single results", erfc_curve, (place(0), place(11)), 12, flat),
    Fit("RSQRT_64", "1/sqrt(1 - e)", lambda e: 1 / mp.sqrt(1 - e), INVERSE_ROOT, 3, flat),
    Fit("RSQRT_32", "the same", lambda e: 1 / mp.sqrt(1 - e), INVERSE_ROOT, 2, flat, bits=32),
    Fit("CBRT_64", "1/cbrt(1 - e)", lambda e: 1 / mp.cbrt(1 - e), INVERSE_CUBE_ROOT, 3, flat),
    Fit("CBRT_32", "the same", lambda e: 1 / mp.cbrt(1 - e), INVERSE_CUBE_ROOT, 3, flat, bits=32),
)

# Constants as sums of reals with so many bits each.
SPLITS = (
    ("HALF_PI_64", "pi/2; the second part times a quadrant below 2**20 is exact", mp.pi / 2, (53, 33, 53)),
    ("HALF_PI_32", "pi/2; the second part times a quadrant below 2**8 is exact", mp.pi / 2, (24, 16, 24)),
    ("HALF_PI_PAIR_64", "pi/2", mp.pi / 2, (53, 53)),
    ("HALF_PI_PAIR_32", "pi/2", mp.pi / 2, (24, 24)),
    ("QUARTER_PI_64", "pi/4; a few times the first part is exact", mp.pi / 4, (50, 53)),
    ("QUARTER_PI_32", "pi/4; a few times the first part is exact", mp.pi / 4, (21, 24)),
    ("TWO_OVER_ROOT_PI", "2/sqrt(pi)", 2 / mp.sqrt(mp.pi), (53, 53)),
    ("ERFC_CENTRE", "E(0) of the error function", erfc_curve(mp.mpf(0)), (53, 53)),
    ("LOG2_E_PAIR_64", "1/ln 2", 1 / mp.log(2), (53, 53)),
    ("LOG2_E_PAIR_32", "1/ln 2", 1 / mp.log(2), (24, 24)),
    ("LOG10_E_64", "1/ln 10", 1 / mp.log(10), (53, 53)),
    ("LOG10_E_32", "1/ln 10", 1 / mp.log(10), (24, 24)),
    ("LOG10_2_64", "ln 2/ln 10; the first part times an exponent is exact", mp.log10(2), (42, 53)),
    ("LOG10_2_32", "ln 2/ln 10; the first part times an exponent is exact", mp.log10(2), (16, 24)),
    ("TWO_THIRDS", "2/3", mp.mpf(2) / 3, (53, 53)),
    ("LN2_64", "ln 2", mp.log(2), (53, 53)),
    ("LN2_32", "ln 2", mp.log(2), (24, 24)),
    ("LN2_SHORT_64", "ln 2; the first part times an exponent is exact", mp.log(2), (42, 53)),
    ("LN2_SHORT_32", "ln 2; the first part times an exponent is exact", mp.log(2), (16, 24)),
)
# Constants rounded to double and to single.
PAIRS = (
    ("TWO_OVER_PI", 2 / mp.pi),
    ("LOG2_E", 1 / mp.log(2)),
)
# 4/3 of the exponent bias in its place, less what makes the first guess of |x|**(-1/3) best.
CBRT_SHIFT = 0.051


def cut(number: Real, bits: int) -> Real:
    """`number` cut to `bits` significant bits, so that all parts of a sum have its sign."""
    return mp.fadd(number, 0, prec=bits, rounding="d")


def literal(number: float) -> str:
    return repr(float(number)).replace("e+", "e")


def constants() -> str:
    lines = []
    for name, doc, number, widths in SPLITS:
        parts = []
        for width in widths:
            parts.append(cut(number, width))
            number -= parts[-1]
        lines.append(f"# {doc}\n{name} = ({', '.join(map(literal, parts))})\n")
    for name, number in PAIRS:
        lines.append(f"{name} = ({literal(number)}, {literal(rounded(number, 32))})\n")
    guesses = [4 / 3 * (bias - CBRT_SHIFT) * 2.0**fraction for bias, fraction in ((1023, 52), (127, 23))]
    lines.append(f"# bits of |x|**(-1/3) + bits of x / 3\nCBRT_GUESS = ({', '.join(map(literal, guesses))})\n")
    lines.append(f"# K of the error function\nERFC_MIDDLE = {ERFC_MIDDLE!r}\n")
    lines.append(f"# in single, erf is 1 from here on\nERF_LIMIT = {ERF_LIMIT!r}\n")
    lines.append("# 2/pi in 53-bit integers\n")
    with mp.workprec(1500):
        rest = 2 / mp.pi
        pieces = []
        for _ in range(24):
            piece = mp.floor(mp.ldexp(rest, 53))
            pieces.append(float(piece))
            rest = mp.ldexp(rest, 53) - piece
    lines.append("TWO_OVER_PI_PIECES = (\n" + "".join(f"    {literal(piece)},\n" for piece in pieces) + ")\n")
    return "".join(lines)


def tables(names: list[str]) -> str:
    """The text of coefficients.py, with the fits whose names start with one of `names` made anew."""
    kept = re.findall(r"((?:# [^\n]*\n)(\w+) = \((?:.|\n)*?\n\)\n)", TABLES.read_text()) if TABLES.exists() else []
    texts = {name: text for text, name in kept}
    parts = ['"""Minimax polynomials, highest power first. Written by tools/coefficients.py; do not edit."""\n']
    for fit in FITS:
        if fit.name not in texts or not names or any(fit.name.startswith(name) for name in names):
            coefficients = solve(fit)
            error = error_bits(fit, coefficients)
            print(f"{fit.name}: error 2**{error:.1f}", flush=True)
            rows = "".join(f"    {literal(c)},\n" for c in coefficients[::-1])
            low, high = map(float, fit.interval)
            texts[fit.name] = f"# {fit.doc}; [{low:.4g}, {high:.4g}]; error 2**{error:.1f}\n{fit.name} = (\n{rows})\n"
        parts.append(texts[fit.name])
    return "\n".join([*parts, constants()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="prefixes of the fits to make anew; all when none is given")
    TABLES.write_text(tables(parser.parse_args().names))


if __name__ == "__main__":
    main()
