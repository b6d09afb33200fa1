"""Writes src/hawk/elementary/coefficients.py: the minimax polynomials of the elementary functions.

    python tools/coefficients.py            all of them
    python tools/coefficients.py SIN COS    those whose names start so; the others are kept as they stand

Each `Fit` asks for the polynomial p of a given degree that makes max |weight * (p - target)| smallest
over an interval (Remez exchange in 60-digit arithmetic). Coefficients are rounded to the working
precision one by one, lowest power first, each time refitting the others to what was rounded away.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 60
Real = mp.mpf
TABLES = Path(__file__).parents[1] / "src" / "hawk" / "elementary" / "coefficients.py"


@dataclass(frozen=True)
class Fit:
    """A polynomial to find. `fixed` are the lowest coefficients, given; the rest, up to `degree`, are free."""

    name: str
    doc: str
    target: Callable[[Real], Real]
    interval: tuple[float, float]
    degree: int
    weight: Callable[[Real], Real] = lambda x: mp.mpf(1)
    fixed: tuple[float, ...] = ()
    bits: int = 64


def polynomial(coefficients: list[Real], x: Real) -> Real:
    """The value at x, coefficients from the lowest power up."""
    return mp.polyval(coefficients[::-1], x)


def remez(fit: Fit, fixed: list[Real]) -> list[Real]:
    """The best coefficients, lowest power first, above those already `fixed`.

    With k of them fixed the free part is x**k q(x). Around 0 the powers above k alternate no more, so
    q is fitted to (target - fixed part) / x**k under the weight |weight x**k|.
    """
    k = len(fixed)
    count = fit.degree - k + 2

    def rest(x: Real) -> Real:
        return (fit.target(x) - polynomial(fixed or [mp.mpf(0)], x)) / x**k

    low, high = (mp.mpf(end) for end in fit.interval)
    grid = chebyshev_points(low, high, 24 * count)
    values = [(x, rest(x), abs(fit.weight(x) * x**k)) for x in grid]
    nodes = [(x, rest(x), mp.mpf(1)) for x in chebyshev_points(low, high, count)]  # a weight may be 0 there
    for turn in range(30):
        rows, right = mp.matrix(count, count), mp.matrix(count, 1)
        for row, (x, value, weight) in enumerate(nodes):
            for power in range(count - 1):
                rows[row, power] = weight * x**power
            rows[row, count - 1] = (-1) ** row
            right[row] = weight * value
        solution = mp.lu_solve(rows, right)
        best, level = list(solution[: count - 1]), abs(solution[count - 1])
        errors = [(weight * (polynomial(best, x) - value), (x, value, weight)) for x, value, weight in values]
        nodes, worst = _alternation(errors, count, nodes)
        if turn and worst <= level * mp.mpf("1.02"):
            break
    return best


def chebyshev_points(low: Real, high: Real, count: int) -> list[Real]:
    """The zeros of a Chebyshev polynomial, moved a little so that none is the middle."""
    angles = [mp.pi * (k + mp.mpf("0.47")) / count for k in range(count)]
    return [(low + high) / 2 - (high - low) / 2 * mp.cos(angle) for angle in angles]


Node = tuple[Real, Real, Real]


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


def solve(fit: Fit) -> tuple[list[float], float]:
    """The rounded coefficients, lowest power first, and log2 of the largest weighted error."""
    chosen = [mp.mpf(c) for c in fit.fixed]
    while len(chosen) <= fit.degree:
        best = remez(fit, chosen)
        chosen.append(mp.mpf(rounded(best[0], fit.bits)))
    low, high = (mp.mpf(end) for end in fit.interval)
    grid = [low + (high - low) * (k + mp.mpf(1) / 2) / 500 for k in range(500)]
    worst = max(abs(fit.weight(x) * (polynomial(chosen, x) - fit.target(x))) for x in grid)
    return [float(c) for c in chosen], float(mp.log(worst, 2))


def _series(function: Callable[[Real], Real], terms: Callable[[int], Real], count: int = 40) -> Callable[[Real], Real]:
    """`function`, or its power series close to 0 where the formula cancels."""

    def value(x: Real) -> Real:
        return function(x) if abs(x) > mp.mpf("1e-4") else sum(terms(k) * x**k for k in range(count))

    return value


QUARTER_PI = float(mp.pi / 4) * 1.0001
HALF_LN2 = float(mp.log(2) / 2) * 1.0001

# sin r = r + r z S(z), cos r = 1 + z C(z), z = r*r
sin_tail = _series(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda k: mp.mpf(-1) ** (k + 1) / mp.factorial(2 * k + 3))
cos_tail = _series(lambda z: (mp.cos(mp.sqrt(z)) - 1) / z, lambda k: mp.mpf(-1) ** (k + 1) / mp.factorial(2 * k + 2))
# exp r = 1 + r + r*r E(r)
exp_tail = _series(lambda r: (mp.expm1(r) - r) / r**2, lambda k: 1 / mp.factorial(k + 2))
exp2_tail = _series(lambda r: mp.expm1(r * mp.log(2)) / r, lambda k: mp.log(2) ** (k + 1) / mp.factorial(k + 1))
# log m = 2 s + s z L(z), s = (m - 1) / (m + 1), z = s*s
log_tail = _series(lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z, lambda k: mp.mpf(2) / (2 * k + 3))
# log(1 + f) = f - f*f/2 + f**3 G(f)
log1p_tail = _series(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, lambda k: mp.mpf(-1) ** k / (k + 3))
# tan y = y + y z T(z)
tan_tail = _series(lambda z: (mp.tan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda k: _tan_term(k + 1))
tanh_tail = _series(lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda k: (-1) ** (k + 1) * _tan_term(k + 1))


def _tan_term(k: int) -> Real:
    """The coefficient of y**(2k+1) in tan y."""
    n = k + 1
    return (-1) ** (n - 1) * mp.mpf(2) ** (2 * n) * (mp.mpf(2) ** (2 * n) - 1) * mp.bernoulli(2 * n) / mp.factorial(2 * n)


S_MAX = float(((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2) * 1.0001
LOG_ENDS = (float(mp.sqrt(0.5)) - 1.0001, float(mp.sqrt(2)) - 0.9999)

FITS = (
    Fit("SIN_64", "(sin(r)/r - 1)/z in z = r*r", sin_tail, (0, QUARTER_PI**2), 5, lambda z: z / mp.sinc(mp.sqrt(z))),
    Fit("SIN_32", "the same", sin_tail, (0, QUARTER_PI**2), 2, lambda z: z / mp.sinc(mp.sqrt(z)), bits=32),
    Fit("COS_64", "(cos(r) - 1)/z in z = r*r", cos_tail, (0, QUARTER_PI**2), 6, lambda z: z / mp.cos(mp.sqrt(z)), (-0.5,)),
    Fit("COS_32", "the same", cos_tail, (0, QUARTER_PI**2), 3, lambda z: z / mp.cos(mp.sqrt(z)), (-0.5,), 32),
    Fit("TAN_64", "(tan(y)/y - 1)/z in z = y*y", tan_tail, (0, QUARTER_PI**2 / 4), 8, lambda z: z),
    Fit("EXP_64", "(exp(r) - 1 - r)/r**2", exp_tail, (-HALF_LN2, HALF_LN2), 9, lambda r: r * r),
    Fit("EXP_32", "the same", exp_tail, (-HALF_LN2, HALF_LN2), 4, lambda r: r * r, bits=32),
    Fit("LOG_64", "(log(m)/s - 2)/z in z = s*s", log_tail, (0, S_MAX), 6, lambda z: z),
    Fit("LOG_32", "(log(1 + f) - f + f*f/2)/f**3", log1p_tail, LOG_ENDS, 9, lambda f: f**3 / mp.log1p(f), bits=32),
)


def tables(names: list[str]) -> str:
    """The text of coefficients.py, with the fits whose names start with one of `names` made anew."""
    kept = re.findall(r"((?:# [^\n]*\n)(\w+) = \((?:.|\n)*?\n\)\n)", TABLES.read_text()) if TABLES.exists() else []
    texts = {name: text for text, name in kept}
    parts = ['"""Minimax polynomials, highest power first. Written by tools/coefficients.py; do not edit."""\n']
    for fit in FITS:
        if fit.name not in texts or not names or any(fit.name.startswith(name) for name in names):
            coefficients, error = solve(fit)
            print(f"{fit.name}: error 2**{error:.1f}", flush=True)
            rows = "".join(f"    {c!r},\n" for c in coefficients[::-1])
            low, high = fit.interval
            texts[fit.name] = f"# {fit.doc}; [{low:.4g}, {high:.4g}]; error 2**{error:.1f}\n{fit.name} = (\n{rows})\n"
        parts.append(texts[fit.name])
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="prefixes of the fits to make anew; all when none is given")
    TABLES.write_text(tables(parser.parse_args().names))


if __name__ == "__main__":
    main()
