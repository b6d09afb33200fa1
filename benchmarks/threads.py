"""Two threads against one on a compute-bound kernel of a million samples.

Each count has processes of its own, in turn; a round is the least time of one process.
"""

from __future__ import annotations

from harness import Times, in_process, shown, table

CODE = """
import numpy as np
import eagle
from harness import interleaved
from kernels import logistic

x = np.linspace(0.1, 0.9, 10**6)
bound = eagle.deploy([logistic])[0].bind(x=x, y=np.zeros(10**6))
print(interleaved({"launch": bound.launch})["launch"].least)
"""


def main(rounds: int = 7) -> None:
    found: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for threads, times in found.items():
            times.append(float(in_process(CODE, OMP_NUM_THREADS=str(threads))))
    one, two = (Times(times) for times in found.values())
    rows = [
        ("1 thread", shown(one.median), shown(one.least), "", ""),
        ("2 threads", shown(two.median), shown(two.least), f"{one.ratio(two):.2f}", "1.8"),
    ]
    head = ("", "median", "least", "times faster", "target")
    table("100 steps of a chaotic map, 1,000,000 samples, float64", head, rows)


if __name__ == "__main__":
    main()
