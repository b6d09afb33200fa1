"""Runs until done: what a step of a sample costs, forward and back, on one thread and on two.

A useful sample-step is a step that a sample takes; steps that lanes wait are not counted. One thread: CPU time. Two
threads: wall time of processes taking turns, so the machine must be quiet.
"""

from __future__ import annotations

from harness import in_process, table

N = 200_000

SETUP = """
import sys, time
import numpy as np
import eagle
from models import oscillator, pendulum

n = {n}
rng = np.random.default_rng(0)

def swings(record):
    planes = dict(t_end=np.linspace(0.5, 3.0, n), angle=np.linspace(0.5, 1.5, n), speed=np.zeros(n), t=np.zeros(n))
    return eagle.simulation(pendulum, dt=0.01, friction=0.3, **planes, max_steps=400, record=record)

def springs(last, record=False):
    planes = dict(stiffness=rng.uniform(1, 2, n), friction=rng.uniform(0.1, 0.3, n), last=last.astype(np.int32))
    planes |= dict(s=np.stack([rng.uniform(0.5, 1.5, n), np.zeros(n)]), step=np.zeros(n, np.int32))
    return eagle.simulation(oscillator, dt=0.01, **planes, max_steps=1000, record=record)

def least(work, clock, repeats):
    found = []
    for _ in range(repeats):
        start = clock()
        work()
        found.append(clock() - start)
    return min(found)
"""
FORWARD = """
runs = {{
    "pendulum": swings(False),
    "oscillators, 1000 steps": springs(np.full(n, 1000)),
    "oscillators, 1 to 1000 steps": springs(np.exp(rng.uniform(0, np.log(1000), n)).clip(1, 1000)),
}}
for name, run in runs.items():
    steps = run.run().steps.sum(dtype=np.int64)
    print(f"{{name}}\t{{least(run.run, time.{clock}, {repeats}) / steps * 1e9}}")
"""
BACK = """
for name, run, output in (
    ("pendulum", swings(True), "angle"),
    ("oscillators, 1000 steps", springs(np.full(n, 1000), True), "s"),
):
    result = run.run()
    seeds = {{output: np.ones_like(result.state[output])}}
    forward = least(run.run, time.{clock}, {repeats})
    back = least(lambda: eagle.diff.reverse(run.record, seeds), time.{clock}, {repeats})
    print(f"{{name}}\t{{back / forward}}")
"""


def measured(code: str, threads: int, clock: str, n: int = N, repeats: int = 5) -> dict[str, float]:
    printed = in_process((SETUP + code).format(n=n, clock=clock, repeats=repeats), OMP_NUM_THREADS=str(threads))
    return {name: float(number) for name, number in (line.split("\t") for line in printed.splitlines())}


def best(code: str, threads: int, clock: str, rounds: int, n: int = N) -> dict[str, float]:
    found = [measured(code, threads, clock, n) for _ in range(rounds)]
    return {name: min(f[name] for f in found) for name in found[0]}


def main(rounds: int = 3) -> None:
    one = best(FORWARD, 1, "process_time", rounds)
    walls: dict[int, dict[str, float]] = {1: {}, 2: {}}
    for _ in range(rounds):
        for threads, known in walls.items():
            new = best(FORWARD, threads, "perf_counter", 1)
            known.update({k: min(known.get(k, v), v) for k, v in new.items()})
    rows = [(k, f"{one[k]:.2f}", f"{walls[2][k]:.2f}", f"{walls[1][k] / walls[2][k]:.2f}") for k in one]
    head = ("ns a useful sample-step", "1 thread, CPU", "2 threads, wall", "faster")
    table(f"Runs of {N:,} samples (targets: pendulum 1.3, 1.8 x; oscillators on two 0.65 and 1.1)", head, rows)
    back = best(BACK, 1, "process_time", rounds)
    rows = [(k, f"{v:.2f}") for k, v in back.items()]
    table("A gradient in forward runs (target: 3.5), 1 thread, CPU time", ("", "ratio"), rows)


if __name__ == "__main__":
    main()
