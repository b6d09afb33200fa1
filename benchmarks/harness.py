"""Timing by interleaved repeats: what is compared runs in turn, many times, so that a busy machine disturbs all alike.

A round is short, so that some rounds escape other processes; compare least times on a machine that is shared. With
``clock=time.process_time`` the time is the CPU's, of all threads: what one thread costs, whoever else is busy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

Work = Callable[[], object]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds a call, one for each round."""

    rounds: list[float]

    @property
    def median(self) -> float:
        return median(self.rounds)

    @property
    def least(self) -> float:
        return min(self.rounds)

    def ratio(self, other: Times) -> float:
        """How many times as long as `other`, by their least times."""
        return self.least / other.least


def interleaved(
    works: Mapping[str, Work], rounds: int = 101, seconds: float = 0.002, clock: Clock = time.perf_counter
) -> dict[str, Times]:
    """Time each work in turn, `rounds` times, each time calling it for about `seconds`."""
    counts = {name: _calls(work, seconds, clock) for name, work in works.items()}
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(_timed(work, counts[name], clock))
    return {name: Times(found) for name, found in times.items()}


def _timed(work: Work, calls: int, clock: Clock) -> float:
    start = clock()
    for _ in range(calls):
        work()
    return (clock() - start) / calls


def _calls(work: Work, seconds: float, clock: Clock) -> int:
    """How often to call `work` to fill the time."""
    work()  # the first call may compile
    calls = 1
    while (once := _timed(work, calls, clock)) * calls < seconds / 4:
        calls *= 2
    return max(1, round(seconds / once))


def in_process(code: str, **environment: str) -> str:
    """What a fresh Python prints when it runs `code`."""
    found = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, cwd=_HERE
    )
    if found.returncode:
        raise RuntimeError(found.stderr)
    return found.stdout


_HERE = os.path.dirname(os.path.abspath(__file__))


def shown(seconds: float) -> str:
    """A time with a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def table(title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows of text, columns aligned."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    print(f"\n{title}")
    for first, *rest in [head, *rows]:
        cells = [first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])]
        print("  " + "  ".join(cells).rstrip())
