"""What a derivative costs to run and to compile: the vjp of a Runge-Kutta step, and a kernel of 300 lines.

CPU time of one thread. Each compilation is a process of its own with an empty cache; the source is read first.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median

os.environ["OMP_NUM_THREADS"] = "1"  # before the first run

import numpy as np
from harness import in_process, interleaved, shown, table
from models import orbit

import eagle
import hawk
from eagle.plan import Plan

N = 10_000
FUNCTIONS = "sin cos exp tanh sqrt log1p".split()
COMPILE = """
import time
import eagle
from kernels import wave
eagle.deploy([wave])
start = time.process_time()
from long_kernel import long_kernel
(plan,) = eagle.deploy([long_kernel])
value = time.process_time()
plan.vjp.compiled()
print(value - start, time.process_time() - value)
"""


def long_kernel(lines: int) -> str:
    """The source of a module with a kernel of that many lines, each using two of the values before it."""
    rng = np.random.default_rng(0)
    body = []
    for k in range(lines):
        a, b = (f"v{j}" for j in rng.integers(max(0, k - 20), k + 1, 2))
        if k % 5 == 4:
            function = FUNCTIONS[rng.integers(len(FUNCTIONS))]
            term = f"hm.{function}(1.0 + {a} * {a})"
        else:
            term = f"{rng.uniform(0.2, 0.8):.3f} * {a} + {rng.uniform(0.1, 0.2):.3f} * {b} * {b}"
        body.append(f"    v{k + 1} = {term}")
    head = "from hawk import Mutable, Param, Scalar, kernel\nfrom hawk import math as hm\n\n\n@kernel\n"
    signature = "def long_kernel(v0: Scalar, k: Param, y: Mutable[Scalar]):\n"
    return head + signature + "\n".join(body) + f"\n    y = k * v{lines}\n"


def vjp_cost() -> None:
    angle = np.linspace(0, 6, N)
    s = np.array([np.cos(angle), np.sin(angle), -0.9 * np.sin(angle), 0.9 * np.cos(angle)])
    (plan,) = eagle.deploy([orbit])
    works = {"the step": plan.bind(s=s, dt=0.01, after=np.zeros_like(s)).launch}
    for what, wrt in (("its vjp by the state", ["s"]), ("by the state and dt", ["s", "dt"])):
        back = Plan(hawk.Kernel(f"back_{len(wrt)}", hawk.diff.vjp(orbit, wrt=wrt)), "float64")
        outputs = {f"bar_{k}": np.zeros(4 * N).reshape(4, N) if k == "s" else np.zeros(()) for k in wrt}
        works[what] = back.bind(s=s, dt=0.01, bar_after=np.ones_like(s), **outputs).launch
    times = interleaved(works, clock=time.process_time, seconds=0.01)
    first = times["the step"]
    rows = [(name, shown(t.median / N), shown(t.least / N), f"{t.ratio(first):.2f}") for name, t in times.items()]
    table("RK4 step of two bodies and its vjp (target: 3), CPU time", ("", "a sample, median", "least", "ratio"), rows)


def compile_cost(lines: int = 300, repeats: int = 5) -> None:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "long_kernel.py").write_text(long_kernel(lines))
        for repeat in range(repeats):
            printed = in_process(COMPILE, PYTHONPATH=_path(folder), HAWK_CACHE_DIR=f"{folder}/cache{repeat}")
            found.append([float(x) for x in printed.split()])
    value, both = ([f[0] for f in found], [sum(f) for f in found])
    rows = [
        (name, shown(median(t)), shown(min(t))) for name, t in (("the kernel", value), ("the kernel and its vjp", both))
    ]
    table(f"Compiling a kernel of {lines} lines (target for both: 1 s), CPU time", ("", "median", "least"), rows)


def _path(folder: str) -> str:
    return os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])


if __name__ == "__main__":
    vjp_cost()
    compile_cost()
