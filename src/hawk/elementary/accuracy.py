"""How far from the exact values the elementary functions may be."""

from __future__ import annotations

# The largest error in units of the last place, in double (64) and in single (32). In single, those of one
# argument are the largest over all 2**32 numbers, rounded up; the others are a little above the largest seen in
# some 10**7 random and hard arguments. docs/ulp.md is made from this table.
MAX_ULP: dict[str, dict[int, float]] = {
    "rsqrt": {64: 0.52, 32: 0.52},
    "cbrt": {64: 0.51, 32: 0.51},
    "hypot": {64: 0.78, 32: 0.78},
    "exp": {64: 0.93, 32: 0.91},
    "exp2": {64: 0.86, 32: 0.88},
    "expm1": {64: 0.93, 32: 0.87},
    "log": {64: 0.79, 32: 0.75},
    "log2": {64: 0.98, 32: 0.94},
    "log10": {64: 0.90, 32: 0.90},
    "log1p": {64: 0.79, 32: 0.75},
    "pow": {64: 0.81, 32: 0.56},
    "sin": {64: 0.91, 32: 0.89},
    "cos": {64: 0.91, 32: 0.89},
    "tan": {64: 0.94, 32: 0.55},
    "asin": {64: 0.70, 32: 0.73},
    "acos": {64: 0.67, 32: 0.70},
    "atan": {64: 0.90, 32: 0.91},
    "atan2": {64: 0.90, 32: 0.92},
    "sinh": {64: 0.92, 32: 0.98},
    "cosh": {64: 0.90, 32: 0.83},
    "tanh": {64: 0.81, 32: 0.95},
    "asinh": {64: 0.80, 32: 0.76},
    "acosh": {64: 0.81, 32: 0.77},
    "atanh": {64: 0.65, 32: 0.63},
    "erf": {64: 0.77, 32: 0.67},
    "erfc": {64: 0.98, 32: 0.56},
    "fmod": {64: 0.0, 32: 0.0},
}
