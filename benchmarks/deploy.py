"""From decorated functions to machine code: two small kernels and their vjps, compiled and found on disk.

Each repeat is a process of its own. CPU time: it starts when eagle is imported, and covers tracing, differentiating,
compiling (or loading) and linking.
"""

from __future__ import annotations

import tempfile
from statistics import median

from harness import in_process, shown, table

CODE = """
import time
start = time.process_time()
import eagle, hawk
imported = time.process_time()
from kernels import square, wave
plans = eagle.deploy([square, wave], cache_dir={folder!r})
forward = time.process_time()
for plan in plans:
    plan.vjp.compiled()
both = time.process_time()
print(imported - start, forward - imported, both - imported)
"""


def main(repeats: int = 11) -> None:
    cold, warm = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            for found in (cold, warm):
                found.append([float(x) for x in in_process(CODE.format(folder=folder)).split()])
    rows = []
    for name, found in (("compiled", cold), ("from the disk cache", warm)):
        times = list(zip(*found, strict=True))
        rows.append((name, *[shown(median(t)) for t in times], shown(min(times[2]))))
    head = ("", "import", "two kernels", "with their vjps", "least")
    table("Deploying two small kernels (targets: 100 ms compiled, 10 ms from disk)", head, rows)


if __name__ == "__main__":
    main()
