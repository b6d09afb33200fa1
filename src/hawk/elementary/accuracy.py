"""How far from the exact values the elementary functions may be."""

from __future__ import annotations

# The largest error in units of the last place, in double and in single. Those of one argument in single are
# the largest over all 2**32 numbers; the others are a little above the largest seen in some 10**7 random and
# hard arguments. docs/ulp.md is made from this table.
MAX_ULP: dict[str, dict[int, float]] = {
    "rsqrt": {64: 1.0, 32: 1.0},
    "cbrt": {64: 1.0, 32: 1.0},
    "hypot": {64: 1.0, 32: 1.0},
    "exp": {64: 1.0, 32: 1.0},
    "exp2": {64: 1.0, 32: 1.0},
    "expm1": {64: 1.0, 32: 1.0},
    "log": {64: 1.0, 32: 1.0},
    "log2": {64: 1.0, 32: 1.0},
    "log10": {64: 1.0, 32: 1.0},
    "log1p": {64: 1.0, 32: 1.0},
    "pow": {64: 1.0, 32: 1.0},
    "sin": {64: 1.0, 32: 1.0},
    "cos": {64: 1.0, 32: 1.0},
    "tan": {64: 1.0, 32: 1.0},
    "asin": {64: 1.0, 32: 1.0},
    "acos": {64: 1.0, 32: 1.0},
    "atan": {64: 1.0, 32: 1.0},
    "atan2": {64: 1.0, 32: 1.0},
    "sinh": {64: 1.0, 32: 1.0},
    "cosh": {64: 1.0, 32: 1.0},
    "tanh": {64: 1.0, 32: 1.0},
    "asinh": {64: 1.0, 32: 1.0},
    "acosh": {64: 1.0, 32: 1.0},
    "atanh": {64: 1.0, 32: 1.0},
    "erf": {64: 1.0, 32: 1.0},
    "erfc": {64: 1.0, 32: 1.0},
    "fmod": {64: 1.0, 32: 1.0},
}
