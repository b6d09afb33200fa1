"""Elementary functions in 10**9 elements a second: eagle, NumPy and Numba, one thread, arrays in cache; CPU time.

eagle's have at most 1 ulp of error and the same bits for every lane width; see docs/ulp.md.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable

os.environ["OMP_NUM_THREADS"] = "1"  # before the first run

import numba
import numpy as np
from harness import interleaved, table

import eagle
from hawk import Kernel, Mutable, Scalar, kernel
from hawk import math as hm

N = 10_000
RANGES = {
    "sqrt": (0, 10), "cbrt": (0, 10), "exp": (-5, 5), "expm1": (-5, 5), "log": (0.1, 10), "log1p": (-0.5, 10),
    "sin": (-5, 5), "cos": (-5, 5), "tan": (-5, 5), "asin": (-1, 1), "atan": (-5, 5), "sinh": (-5, 5),
    "tanh": (-5, 5), "asinh": (-5, 5), "atanh": (-0.99, 0.99), "erf": (-5, 5),
}  # fmt: skip


def ours(name: str) -> Kernel:
    function = getattr(hm, name)

    @kernel(name=f"{name}_of_x")
    def apply(x: Scalar, y: Mutable[Scalar]):  # type: ignore[no-untyped-def]
        y = function(x)

    return apply


def numbas(name: str) -> Callable[..., None]:
    function = getattr(np if name == "cbrt" else math, name)

    @numba.njit(fastmath=False)
    def apply(x, y):  # type: ignore[no-untyped-def]
        for i in range(x.shape[0]):
            y[i] = function(x[i])

    return apply  # type: ignore[no-any-return]


def main() -> None:
    for dtype in (np.float64, np.float32):
        rows = []
        for name, (low, high) in RANGES.items():
            x = np.random.default_rng(0).uniform(low, high, N).astype(dtype)
            y, z = np.zeros_like(x), np.zeros_like(x)
            bound = eagle.deploy([ours(name)], mode=np.dtype(dtype).name)[0].bind(x=x, y=y)
            compiled = numbas(name)
            works = {"eagle": bound.launch, "Numba": lambda: compiled(x, z)}  # noqa: B023
            if hasattr(np, name):
                works["NumPy"] = lambda: getattr(np, name)(x, out=z)  # noqa: B023
            times = interleaved(works, rounds=41, clock=time.process_time)
            rates = [f"{N / times[k].least / 1e9:.2f}" if k in times else "-" for k in ("eagle", "NumPy", "Numba")]
            against = [f"{times[k].ratio(times['eagle']):.1f}" if k in times else "-" for k in ("NumPy", "Numba")]
            rows.append((name, *rates, *against))
        head = ("", "eagle", "NumPy", "Numba", "faster than NumPy", "than Numba")
        table(f"10**9 elements a second, {np.dtype(dtype).name}, one thread, n = {N:,}", head, rows)


if __name__ == "__main__":
    main()
