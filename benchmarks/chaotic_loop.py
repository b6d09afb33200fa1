"""A trip of a loop that only computes, 3.99 x (1 - x), against the same loop in C: gcc -O3 -march=native.

Each trip waits for the one before it: two dependent operations. CPU time of one thread.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before the first run

import numpy as np
from harness import interleaved, table
from kernels import logistic

import eagle

N, TRIPS = 10_000, 100
SOURCE = """
void logistic(const double *x, double *y, long n) {
    for (long i = 0; i < n; ++i) {
        double z = x[i];
        for (int k = 0; k < 100; ++k) z = 3.99 * z * (1 - z);
        y[i] = z;
    }
}
"""
FLAGS = {"C, gcc -O3": ["-O3"], "C, gcc -O3 -march=native": ["-O3", "-march=native"]}


def compiled(flags: list[str], folder: str) -> ctypes._NamedFuncPointer:
    stem = Path(folder, f"logistic{len(flags)}")
    stem.with_suffix(".c").write_text(SOURCE)
    out = stem.with_suffix(".so")
    subprocess.run(["gcc", *flags, "-shared", "-fPIC", "-o", out, stem.with_suffix(".c")], check=True)
    function = ctypes.CDLL(str(out)).logistic
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
    return function  # type: ignore[no-any-return]


def main() -> None:
    x, y, z = np.linspace(0.1, 0.9, N), np.zeros(N), np.zeros(N)
    works = {"eagle": eagle.deploy([logistic])[0].bind(x=x, y=y).launch}
    with tempfile.TemporaryDirectory() as folder:
        if shutil.which("gcc"):
            for name, flags in FLAGS.items():
                loop = compiled(flags, folder)
                works[name] = lambda loop=loop: loop(x.ctypes.data, z.ctypes.data, N)
        else:
            print("gcc is not here: C is left out")
        times = interleaved(works, rounds=41, seconds=0.01, clock=time.process_time)
    each = N * TRIPS
    rows = [(k, f"{1e9 * t.least / each:.3f} ns", f"{t.ratio(times['eagle']):.2f}") for k, t in times.items()]
    table(f"A trip of a chaotic loop, {N:,} samples, CPU time", ("", "a trip", "of eagle's"), rows)


if __name__ == "__main__":
    main()
