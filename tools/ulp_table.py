"""Writes docs/ulp.md: how exact the elementary functions are.

    python tools/ulp_table.py [--count 20000]

The stated bounds are `hawk.elementary.MAX_ULP`, which the tests hold. Beside them stands the largest error
found now, on `count` arguments by mpmath: random ones and hard ones, from the tests' own ranges.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "hawk" / "elementary")]

from ulp_reference import exact_values, samples, ulp_errors  # noqa: E402

from hawk.elementary import FUNCTIONS, MAX_ULP, NumpyLanes  # noqa: E402

INTRODUCTION = """\
# Errors of the elementary functions

Every function is at most 1 ulp (unit in the last place) from the exact value, for all arguments: subnormal
ones and results, huge angles, the edges of overflow. Zeros, infinities and NaN are treated as C99 (Annex F)
says. `sqrt` and the arithmetic operations round correctly; `fmod` is exact. The same text gives the same bits
in the interpreter, for every lane width and on every machine.

*bound*: what the tests hold. In single precision, for functions of one argument, it is the largest error over
all 2^32 numbers; else it is a little above the largest of some 10^7 random and hard arguments, measured against
arithmetic of 64 significant bits. *found*: the largest of {count} arguments against mpmath, as this page was
written (`python tools/ulp_table.py`).

| function | bound, double | found | bound, single | found |
|---|---|---|---|---|
"""


def largest_error(name: str, bits: int, count: int) -> float:
    arguments = samples(name, bits, count, seed=2026)
    got = FUNCTIONS[name](NumpyLanes(bits), *arguments)
    return float(np.max(ulp_errors(got, exact_values(name, arguments), bits)))


def row(name: str, count: int) -> str:
    double, single = (f"{MAX_ULP[name][bits]:.2f} | {largest_error(name, bits, count):.3f}" for bits in (64, 32))
    return f"| `{name}` | {double} | {single} |\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000, help="arguments per function and precision")
    count = parser.parse_args().count
    rows = [row(name, count) for name in FUNCTIONS]
    (ROOT / "docs" / "ulp.md").write_text(INTRODUCTION.format(count=f"{count:,}") + "".join(rows))


if __name__ == "__main__":
    main()
