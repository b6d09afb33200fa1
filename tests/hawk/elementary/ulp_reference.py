"""Exact values by mpmath, errors in ulp, and where to look for the largest ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp
import numpy as np

Array = Any  # an ndarray of a real type
Real = Any  # an mpmath number

DTYPE: dict[int, type[np.floating[Any]]] = {64: np.float64, 32: np.float32}
DIGITS = 60  # decimal digits of the exact values


def _cbrt(x: Real) -> Real:
    return mp.sign(x) * mp.cbrt(abs(x))


EXACT: dict[str, Callable[..., Real]] = {
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "cbrt": _cbrt,
    "hypot": mp.hypot,
    "exp": mp.exp,
    "exp2": lambda x: mp.mpf(2) ** x,
    "expm1": mp.expm1,
    "log": mp.log,
    "log2": lambda x: mp.log(x) / mp.log(2),
    "log10": lambda x: mp.log(x) / mp.log(10),
    "log1p": mp.log1p,
    "pow": lambda x, y: mp.power(x, y),
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "atan2": mp.atan2,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "asinh": mp.asinh,
    "acosh": mp.acosh,
    "atanh": mp.atanh,
    "erf": mp.erf,
    "erfc": mp.erfc,
    "fmod": lambda x, y: mp.sign(x) * (abs(x) - mp.floor(abs(x) / abs(y)) * abs(y)),
}


def exact_values(name: str, arguments: Sequence[Array]) -> list[Real]:
    """The values of a function at finite arguments inside its domain."""
    # 2200 digits of fmod's quotient: its arguments may lie 2**2098 apart
    with mp.workdps(700 if name == "fmod" else DIGITS):
        rows = zip(*(a.tolist() for a in arguments), strict=True)
        return [EXACT[name](*(mp.mpf(x) for x in row)) for row in rows]


def ulp_errors(got: Array, exact: Sequence[Real], bits: int) -> Array:
    """|got - exact| in units of the last place of `exact`; 0 for an overflow to infinity where it must be."""
    info = np.finfo(DTYPE[bits])
    digits, least, largest = info.nmant + 1, int(np.log2(float(info.smallest_subnormal))), float(info.max)
    errors = []
    with mp.workdps(DIGITS):
        for g, e in zip(got.tolist(), exact, strict=True):
            if np.isinf(g):
                errors.append(0.0 if abs(e) >= largest and (g > 0) == (e > 0) else np.inf)
                continue
            exponent = mp.frexp(e)[1] if e else least
            errors.append(float(abs(mp.mpf(g) - e) / mp.ldexp(1, max(exponent - digits, least))))
    return np.array(errors)


def samples(name: str, bits: int, count: int, seed: int = 0) -> tuple[Array, ...]:
    """About `count` arguments: a share of each range of the function, all finite and inside its domain."""
    rng = np.random.default_rng([seed, bits, *name.encode()])
    ranges = RANGES[name]
    share = -(-count // len(ranges))
    draws = [draw(rng, bits, share) for draw in ranges]
    parts = [d if isinstance(d, tuple) else (d,) for d in draws]
    with np.errstate(all="ignore"):
        arguments = [np.concatenate([part[k] for part in parts]).astype(DTYPE[bits]) for k in range(len(parts[0]))]
    finite = np.all([np.isfinite(a) for a in arguments], axis=0)
    arguments = [a[finite] for a in arguments]
    inside = DOMAINS.get(name, _everywhere)(*arguments)
    return tuple(a[inside] for a in arguments)


Draw = Callable[[np.random.Generator, int, int], Any]


def uniform(low: float, high: float) -> Draw:
    return lambda rng, bits, n: rng.uniform(low, high, n)


def by_precision(double: Draw, single: Draw) -> Draw:
    return lambda rng, bits, n: (double if bits == 64 else single)(rng, bits, n)


def magnitudes(low: float, high: float) -> Draw:
    """Of both signs, the exponents (to base 2) spread evenly."""
    return lambda rng, bits, n: np.exp2(rng.uniform(low, high, n)) * rng.choice([-1.0, 1.0], n)


def whole(low: int, high: int) -> Draw:
    return lambda rng, bits, n: rng.integers(low, high, n).astype(np.float64)


def any_number(rng: np.random.Generator, bits: int, n: int) -> Array:
    """Any bit pattern."""
    return rng.integers(0, 1 << bits, n, dtype=np.uint64).astype(f"u{bits // 8}").view(DTYPE[bits])


def near(base: Draw, steps: int = 3) -> Draw:
    """A few neighbours of the numbers drawn."""

    def draw(rng: np.random.Generator, bits: int, n: int) -> Array:
        centre = base(rng, bits, n).astype(DTYPE[bits])
        return centre + np.spacing(centre) * rng.integers(-steps, steps + 1, n).astype(DTYPE[bits])

    return draw


def scaled(base: Draw, factor: float) -> Draw:
    return lambda rng, bits, n: base(rng, bits, n) * factor


def both(first: Draw, second: Draw) -> Draw:
    """Two arguments."""
    return lambda rng, bits, n: (first(rng, bits, n), second(rng, bits, n))


def _everywhere(*arguments: Array) -> Array:
    return np.ones(arguments[0].shape, bool)


tiny_and_subnormal = by_precision(magnitudes(-1074, -1010), magnitudes(-149, -115))
quarter_turns = near(by_precision(scaled(whole(-600000, 600000), np.pi / 2), scaled(whole(-300, 300), np.pi / 2)))
_angles = [uniform(-1, 1), uniform(-10, 10), by_precision(uniform(-2e6, 2e6), uniform(-1000, 1000)), quarter_turns]
_exponents = [
    uniform(-1, 1),
    uniform(-20, 20),
    by_precision(uniform(-746, 711), uniform(-104, 89.5)),
    by_precision(uniform(-746, -700), uniform(-104, -85)),
    by_precision(uniform(706, 711), uniform(86, 89.5)),
    magnitudes(-60, 0),
    near(scaled(whole(-120, 120), np.log(2) / 2)),
]
_near_one = [uniform(0.5, 2), uniform(0.99, 1.01), near(uniform(1, 1))]
_unit = [uniform(-1, 1), uniform(0.45, 0.55), near(uniform(1, 1), 1000), magnitudes(-60, 0), tiny_and_subnormal]
_pairs = [
    both(uniform(-1, 1), uniform(-1, 1)),
    both(magnitudes(-20, 20), magnitudes(-20, 20)),
    both(any_number, any_number),
    both(tiny_and_subnormal, tiny_and_subnormal),
]

RANGES: dict[str, list[Draw]] = {
    "rsqrt": [uniform(1, 4), any_number, tiny_and_subnormal],
    "cbrt": [uniform(1, 8), any_number, tiny_and_subnormal],
    "hypot": _pairs,
    "exp": _exponents,
    "exp2": [
        uniform(-1, 1),
        uniform(-20, 20),
        by_precision(uniform(-1076, 1026), uniform(-151, 130)),
        magnitudes(-60, 0),
    ],
    "expm1": [*_exponents, uniform(-0.5, 0.5), tiny_and_subnormal],
    "log": [*_near_one, any_number, tiny_and_subnormal],
    "log2": [*_near_one, any_number, tiny_and_subnormal],
    "log10": [*_near_one, any_number, tiny_and_subnormal],
    "log1p": [
        uniform(-1, 1),
        uniform(-0.01, 0.01),
        uniform(0, 100),
        magnitudes(-70, 0),
        any_number,
        near(uniform(-1, -1)),
    ],
    "pow": [
        both(uniform(0, 10), uniform(-10, 10)),
        both(uniform(0.9, 1.1), by_precision(uniform(-5000, 5000), uniform(-700, 700))),
        both(any_number, uniform(-3, 3)),
        both(uniform(-10, 10), whole(-100, 100)),
        both(tiny_and_subnormal, uniform(-1, 1)),
        both(near(uniform(1, 1), 1000), any_number),
    ],
    "sin": [*_angles, any_number, tiny_and_subnormal],
    "cos": [*_angles, any_number, tiny_and_subnormal],
    "tan": [*_angles, any_number, tiny_and_subnormal],
    "asin": _unit,
    "acos": _unit,
    "atan": [uniform(-1, 1), uniform(-3, 3), magnitudes(-60, 70), any_number, tiny_and_subnormal],
    "atan2": _pairs,
    "sinh": [*_exponents, tiny_and_subnormal],
    "cosh": _exponents,
    "tanh": [uniform(-1, 1), uniform(-25, 25), uniform(-0.3, 0.3), magnitudes(-60, 0), tiny_and_subnormal],
    "asinh": [uniform(-1, 1), uniform(-10, 10), magnitudes(-60, 60), any_number, tiny_and_subnormal],
    "acosh": [uniform(1, 2), uniform(1, 100), near(uniform(1, 1), 1000), any_number],
    "atanh": [*_unit, uniform(-0.3, 0.3)],
    "erf": [uniform(-1, 1), uniform(-7, 7), uniform(0.4, 0.6), magnitudes(-60, 0), tiny_and_subnormal],
    "erfc": [uniform(-1, 1), uniform(-7, 7), uniform(0.4, 0.6), by_precision(uniform(25, 27.5), uniform(9, 10.3))],
    "fmod": [
        both(uniform(-10, 10), uniform(-3, 3)),
        both(magnitudes(-10, 70), magnitudes(-10, 10)),
        both(any_number, any_number),
        both(magnitudes(-100, 100), tiny_and_subnormal),
    ],
}

DOMAINS: dict[str, Callable[..., Array]] = {
    "rsqrt": lambda x: x > 0,
    "log": lambda x: x > 0,
    "log2": lambda x: x > 0,
    "log10": lambda x: x > 0,
    "log1p": lambda x: x > -1,
    "pow": lambda x, y: (x > 0) | ((x != 0) & (y == np.rint(y)) & (np.abs(y) < 2**53)),
    "asin": lambda x: np.abs(x) <= 1,
    "acos": lambda x: np.abs(x) <= 1,
    "acosh": lambda x: x >= 1,
    "atanh": lambda x: np.abs(x) < 1,
    "fmod": lambda x, y: y != 0,
}
