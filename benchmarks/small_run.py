"""What a run costs beside its steps: the first of a new kernel, the next ones, and one of six samples.

The first: CPU time of a process of its own with an empty cache, from decorating the kernel to the result.
"""

from __future__ import annotations

import tempfile
import time
from statistics import median

import numpy as np
from harness import in_process, interleaved, shown, table
from models import pendulum

import eagle

COLD = """
import time
import numpy as np
import eagle
import hawk
start = time.process_time(), time.perf_counter()
from models import pendulum
n = 1000
planes = dict(t_end=np.linspace(0.5, 3.0, n), angle=np.ones(n), speed=np.zeros(n), t=np.zeros(n))
eagle.simulate(pendulum, dt=0.01, friction=0.3, **planes, max_steps=400)
print(time.process_time() - start[0], time.perf_counter() - start[1])
"""


def planes(n: int, seconds: float) -> dict[str, np.ndarray]:
    return dict(t_end=np.full(n, seconds), angle=np.ones(n), speed=np.zeros(n), t=np.zeros(n))


def main(repeats: int = 7) -> None:
    cold = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            cold.append([float(x) for x in in_process(COLD, HAWK_CACHE_DIR=folder).split()])
    cpu, wall = zip(*cold, strict=True)
    rows = [("CPU time", shown(median(cpu)), shown(min(cpu))), ("wall time", shown(median(wall)), shown(min(wall)))]
    table("simulate() of a new kernel, n = 1000, up to 300 steps (target: 150 ms)", ("", "median", "least"), rows)

    idle = planes(1000, -1.0)  # every sample is done after one step
    six = eagle.simulation(pendulum, dt=0.01, friction=0.3, **planes(6, 0.095), max_steps=400)
    recorded = eagle.simulation(pendulum, dt=0.01, friction=0.3, **planes(6, 0.095), max_steps=400, record=True)
    assert (six.run().steps == 10).all()
    seeds = {"angle": np.ones(6)}

    def there_and_back() -> None:
        recorded.run()
        eagle.diff.reverse(recorded.record, seeds)

    works = {
        "simulate() again, n = 1000, 1 step": lambda: eagle.simulate(
            pendulum, dt=0.01, friction=0.3, **idle, max_steps=400
        ),
        "run(), n = 6, 10 steps": six.run,
        "run() and reverse, n = 6, 10 steps": there_and_back,
    }
    times = interleaved(works, clock=time.process_time, seconds=0.01)
    targets = ["50 us", "10 us", ""]
    rows = [(k, shown(t.median), shown(t.least), g) for (k, t), g in zip(times.items(), targets, strict=True)]
    table("Small runs, CPU time", ("", "median", "least", "target"), rows)


if __name__ == "__main__":
    main()
