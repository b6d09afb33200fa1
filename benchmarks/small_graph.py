"""What a call costs: a graph of two kernels on six samples, so that nearly all the time is overhead.

CPU time.
"""

from __future__ import annotations

import time

import numpy as np
from harness import interleaved, shown, table
from kernels import square, wave

import eagle

N = 6


def build(record: bool) -> eagle.Graph:
    x, y, z = np.linspace(0.1, 1, N), np.zeros(N), np.zeros(N)
    square_plan, wave_plan = eagle.deploy([square, wave])
    return (
        eagle.Graph()
        .add(square_plan.bind(x=x, a=0.5, y=y), name="square")
        .add(wave_plan.bind(x=y, y=z), name="wave")
        .build(record=record)
    )


def main() -> None:
    graph, recorded = build(record=False), build(record=True)
    reverse, seeds = eagle.diff.Reverse(recorded), {"wave.y": np.ones(N)}

    def launch_and_reverse() -> None:
        recorded.launch()
        reverse(recorded.record, seeds)

    x, out = np.linspace(0.1, 1, N), np.zeros(N)
    times = interleaved(
        {
            "launch()": graph.launch,
            "launch() and reverse": launch_and_reverse,
            "NumPy: np.sin(0.5 * x * x, out=out)": lambda: np.sin(0.5 * x * x, out=out),
        },
        clock=time.process_time,
        seconds=0.01,
    )
    targets = ["2 us", "8 us", ""]
    rows = [(name, shown(t.median), shown(t.least), g) for (name, t), g in zip(times.items(), targets, strict=True)]
    table(f"Two kernels, n = {N}", ("", "median", "least", "target"), rows)


if __name__ == "__main__":
    main()
