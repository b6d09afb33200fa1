"""Running a function of a test module in a process of its own, where a hang is a failure."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

LIMIT = 60  # seconds, for a hang; no test is about time


def in_child(program: Callable[[], None], threads: int) -> list[str]:
    """The words that a module's function prints in a process with that many threads."""
    code = f"import sys; sys.path[:0] = sys.argv[1:]; from {program.__module__} import {program.__name__} as p; p()"
    done = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parents[1])],
        env=dict(os.environ, OMP_NUM_THREADS=str(threads)),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
