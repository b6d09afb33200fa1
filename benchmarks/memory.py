"""Memory of a long gradient, and how often it steps: 100,000 samples of 8 numbers, 10,000 steps, 512 MB.

Peak resident memory is counted from what the process holds after the forward run. An *advance* is a step taken
without its derivative. The two-level schedule keeps a state every w steps, and w states within a window: every step
is advanced twice. Revolve (Griewank & Walther, ACM TOMS 26, 2000) is the optimum for one sample with s states kept:
r l - C(s + r, r - 1) advances for l steps, where r is the least with C(s + r, r) >= l.
"""

from __future__ import annotations

import argparse
from math import comb

from harness import in_process, table

CODE = """
import resource, time
import numpy as np
import eagle
from models import chain

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

n, steps = {n}, {steps}
p = np.random.default_rng(0).standard_normal((8, n))
run = eagle.simulation(chain, spring=2.0, dt=0.01, p=p, max_steps=steps, record=True, memory_budget={budget})
small = eagle.simulation(chain, spring=2.0, dt=0.01, p=p[:, :512].copy(), max_steps=steps, record=True, window={window})
small.run()
eagle.diff.reverse(small.record, {{"p": np.ones((8, 512))}})  # compiled
start = time.process_time()
run.run()
forward = time.process_time() - start
before, start = peak(), time.process_time()
grads = eagle.diff.reverse(run.record, {{"p": np.ones((8, n))}})
print(grads.report.chunks, peak() - before, forward, time.process_time() - start)
"""


def revolve(steps: int, states: int) -> float:
    """Advances a step, in the optimum for that many states."""
    r = 1
    while comb(states + r, r) < steps:
        r += 1
    return r - comb(states + r, r - 1) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--budget", type=int, default=512_000_000)
    options = parser.parse_args()
    n, steps, budget = options.samples, options.steps, options.budget
    window = min(max(round(steps**0.5), 16), 1024)
    printed = in_process(CODE.format(n=n, steps=steps, budget=budget, window=window), OMP_NUM_THREADS="1")
    chunks, bytes_, forward, back = (float(x) for x in printed.split())
    rows = [
        ("passes", f"{chunks:.0f}"),
        ("peak above the run, MB", f"{bytes_ / 1e6:.0f}"),
        ("forward run, ns a sample-step", f"{1e9 * forward / n / steps:.2f}"),
        ("its gradient, in forward runs", f"{back / forward:.2f}"),
    ]
    table(f"n = {n:,}, Vector[8], {steps:,} steps, memory_budget = {budget / 1e6:.0f} MB, CPU time", ("", ""), rows)

    kept = -(-steps // window) + window
    at_once = budget // (n * 64)  # states of 64 bytes, all samples at a time
    rows = [
        (f"here: {kept} states a sample, in passes", "2.00"),
        (f"two levels, {kept} states: the least", f"{2.0:.2f}"),
        (f"revolve, {kept} states", f"{revolve(steps, kept):.2f}"),
        (f"revolve, {at_once} states: all samples at once", f"{revolve(steps, at_once):.2f}"),
    ]
    table("Advances a step", ("", ""), rows)


if __name__ == "__main__":
    main()
