"""How near to memory speed: a graph of two kernels on a million samples against NumPy's copy.

Each plane counts once: the launch reads x and writes y and z (24 MB), the reverse reads x, y and the seed and
writes the gradient of x (32 MB). np.copyto of half as many bytes reads and writes as much. With
OMP_NUM_THREADS=1 the time is the CPU's, else the wall's.
"""

from __future__ import annotations

import os
import time

import numpy as np
from harness import interleaved, shown, table
from kernels import square, wave

import eagle

N = 10**6


def main() -> None:
    x, y, z = np.linspace(-3, 3, N), np.zeros(N), np.zeros(N)
    square_plan, wave_plan = eagle.deploy([square, wave])
    graph = eagle.Graph().add(square_plan.bind(x=x, a=0.5, y=y), name="square")
    graph.add(wave_plan.bind(x=y, y=z), name="wave").build(record=True)
    reverse, seeds = eagle.diff.Reverse(graph), {"wave.y": np.ones(N)}

    def launch() -> None:
        graph.launch()
        graph.record.discard()

    def copy(planes: int) -> object:
        source, target = np.ones(N * planes // 2), np.zeros(N * planes // 2)
        return lambda: np.copyto(target, source)

    works = {
        "launch()": launch,
        "NumPy copies 12 MB": copy(3),
        "reverse": lambda: reverse(graph.record, seeds),
        "NumPy copies 16 MB": copy(4),
    }
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    clock = time.process_time if threads == "1" else time.perf_counter
    times = interleaved(works, clock=clock, seconds=0.01)
    names = list(times)
    ratios = [f"{times[a].ratio(times[b]):.2f}" for a, b in (names[:2], names[2:])]
    rows = [
        (name, shown(t.median), shown(t.least), ratio, target)
        for (name, t), ratio, target in zip(
            times.items(), [ratios[0], "", ratios[1], ""], ["1.5", "", "1.5", ""], strict=True
        )
    ]
    table(f"Two kernels, n = {N:,}, threads: {threads}", ("", "median", "least", "to the copy", "target"), rows)


if __name__ == "__main__":
    main()
