"""Executors that take the blocks of a batch some at a time."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator

import numpy as np
import pytest

from eagle._native import Executor, Slot, set_threads, threads

from . import entries

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
PLANE = Slot.plane(0, sample_stride=8)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = threads()
    set_threads(2)
    yield
    set_threads(before)


class Log:
    """Calls on blocks, as they begin and end."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self.events: list[tuple[str, int, int]] = []
        self._callback = CALLBACK(self._call)
        self.address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def _call(self, addresses: int, count: int, first: int) -> None:
        self.events.append(("begin", first, count))
        time.sleep(self._seconds)
        self.events.append(("end", first, count))

    def passes(self) -> list[list[int]]:
        """The first samples of the calls, split where no call was under way."""
        found: list[list[int]] = [[]]
        running = 0
        for what, first, _ in self.events:
            running += 1 if what == "begin" else -1
            if what == "begin":
                found[-1].append(first)
            elif running == 0:
                found.append([])
        return found[:-1]


@pytest.mark.parametrize("blocks", [1, 4, 5, 100])
@pytest.mark.usefixtures("two_threads")
def test_a_pass_ends_before_the_next_one_begins(blocks: int) -> None:
    n = 256 * 10 + 3
    log = Log(0.001)  # long enough for the other thread to take the next block
    e = Executor(n)
    e.call(log.address, [])
    e.passes(blocks)
    e.run()
    runs = [[first // 256 // blocks for first in run] for run in log.passes()]
    assert all(len(set(run)) == 1 for run in runs), "calls of different passes at the same time"
    order = [run[0] for run in runs]
    assert order == sorted(order)
    assert sorted(first for what, first, _ in log.events if what == "end") == list(range(0, n, 256))


def test_calls_on_many_samples_stay_in_their_pass() -> None:
    n = 256 * 10 + 3
    for blocks, most in ((3, 3), (0, 8)):
        log = Log()
        e = Executor(n, 1)
        e.set_external(0, np.zeros(n), True)
        e.call(log.address, [PLANE], any_count=True)
        e.passes(blocks)
        e.run()
        calls = [(first, count) for what, first, count in log.events if what == "end"]
        assert max(count for _, count in calls) <= 256 * most
        assert sum(count for _, count in calls) == n
        if blocks:
            assert all(first // 256 // blocks == (first + count - 1) // 256 // blocks for first, count in calls)


def test_passes_of_table_sums_are_whole_parts() -> None:
    log = Log()
    e = Executor(256 * 8, 1, part_blocks=4)
    e.set_external(0, np.zeros(1), True)
    e.call(log.address, [Slot.sum(e.table_sum(0, 0, 1, True))])
    e.passes(1)
    e.run()
    assert [first for what, first, _ in log.events if what == "begin"] == [256 * k for k in range(8)]


def sums(n: int, blocks: int) -> bytes:
    """What a run in passes computes: a sum, and a table sum of which a part is two blocks."""
    rng = np.random.default_rng(n)
    x, index, totals, table = rng.standard_normal((2, n)), rng.integers(0, 7, n), np.empty(2), np.empty(7)
    first, scatter = entries.first_of_block(), entries.scatter()
    e = Executor(n, 4, part_blocks=2)
    for k, array in enumerate((x, index, totals, table)):
        e.set_external(k, array, True)
    wide = Slot.plane(0, sample_stride=8, component_stride=8 * n)
    e.call(first.address, [wide, Slot.sum(e.sum(2, 0, 2, True))])
    e.barrier()
    number = e.table_sum(3, 0, 7, True)
    e.call(scatter.address, [Slot.plane(1, sample_stride=8), PLANE, Slot.sum(number)])
    e.passes(blocks)
    e.run()
    return totals.tobytes() + table.tobytes()


@pytest.mark.parametrize("n", [1, 256, 257, 256 * 11 + 3, 60_000])
def test_sums_have_the_same_bits_in_any_passes(n: int) -> None:
    assert {sums(n, blocks) for blocks in (0, 1, 2, 5, 64)} == {sums(n, 0)}


def test_passes_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="passes: -1 blocks a pass; give a number >= 0"):
        Executor(5).passes(-1)
