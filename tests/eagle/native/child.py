"""Programs that test_processes.py runs: they depend on the environment, end a process or could hang."""

from __future__ import annotations

import ctypes
import hashlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from eagle._native import Executor, Slot, ordered_sum, set_threads, threads

from . import entries

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def plane(external: int) -> Slot:
    return Slot.plane(external, sample_stride=8)


def product_and_sum(n: int) -> str:
    """A digest of what runs over n samples compute: a product, a join, a sum of block firsts, a table sum."""
    rng = np.random.default_rng(n)
    x, y = rng.standard_normal((2, 2, n))
    z, total = np.empty((2, n)), np.empty(2)
    index, table = rng.integers(0, 7, n), np.empty(7)
    product, first, scatter = entries.product(), entries.first_of_block(), entries.scatter()
    e = Executor(n)
    for array in (x, y, z, total, index, table):
        e.set_external(e.add_external(), array, True)
    e.call(product.address, [plane(0), plane(1), plane(2)])
    e.join(Slot.plane(2, 8 * n, sample_stride=8), [plane(0), plane(1), plane(2)], 1, True)
    wide = Slot.plane(2, sample_stride=8, component_stride=8 * n)
    e.call(first.address, [wide, Slot.sum(e.sum(3, 0, 2, True))])
    e.barrier()
    e.call(scatter.address, [plane(4), plane(1), Slot.sum(e.table_sum(5, 0, 7, True))])
    e.copy(plane(0), Slot.plane(2, 8 * (n - 1), sample_stride=-8), 1, 8)
    for _ in range(3):
        assert e.run()
    sums = np.array([ordered_sum(z[0]), ordered_sum(z[1])])
    return hashlib.sha256(b"".join(a.tobytes() for a in (x, z, total, table, sums))).hexdigest()


def bits() -> None:
    print(threads(), *(product_and_sum(n) for n in (1, 300, 10_001, 1_000_003)))


def resized() -> None:
    """One process with more and less threads, more than there are cores too."""
    found = set()
    for count in (1, 8, 2, 3, 1):
        set_threads(count)
        assert threads() == count
        found.add(product_and_sum(100_003))
    print(len(found))


def how_many() -> None:
    print(threads())


def how_many_on_one_core() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(threads())


def meet() -> tuple[int, int, int]:
    """All threads meet inside a run: each waits in its first block until the others are in one."""
    meeting = threading.Barrier(threads(), timeout=60)
    met: set[int] = set()
    calls: list[int] = []

    def block(addresses: int, count: int, first: int) -> None:
        calls.append(count)
        if len(calls) == 1:
            time.sleep(0.01)  # the block that is run alone and timed: shows that the work is long
        elif threading.get_ident() not in met:
            met.add(threading.get_ident())
            meeting.wait()

    callback = CALLBACK(block)
    e = Executor(256 * 40 + 1, 0)
    e.call(ctypes.cast(callback, ctypes.c_void_p).value or 0, [])
    e.run()
    return len(met), len(calls), sum(calls)


def team() -> None:
    print(*meet())


def often() -> None:
    """Many short runs in a row, each worth a team; none forgets or repeats a block."""
    n = 256 * 100
    x, y = np.arange(n, dtype=float), np.zeros(n)
    add = entries.elementwise(2, "  %value = fadd double %x0, %x1")
    e = Executor(n, 2)
    e.set_external(0, x, False)
    e.set_external(1, y, True)
    for _ in range(20):
        e.call(add.address, [plane(1), plane(0), plane(1)])
    for _ in range(1000):
        e.run()
    print((y == 20_000 * x).all())


def callers() -> None:
    """Python threads that run executors of their own at the same time."""
    start = threading.Barrier(6)

    def work(_: int) -> set[str]:
        start.wait(60)
        return {product_and_sum(50_003) for _ in range(5)}

    with ThreadPoolExecutor(6) as pool:
        print(len(set().union(*pool.map(work, range(6)))))


def asleep() -> None:
    """Helpers that have nothing to do stop asking for work."""
    meet()
    while any(state != "S" for state in helper_states()):
        time.sleep(0.001)
    print(len(helper_states()))


def helper_states() -> list[str]:
    """The letters in which the system says what this process's helpers are doing."""
    states = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/stat") as stat:
            name, rest = stat.read().split("(")[1].split(")")
        if name == "eagle":
            states.append(rest.split()[0])
    return states


def lock() -> None:
    """A run that ends only when another Python thread acts."""
    flag = np.zeros(1, np.int64)
    wait = entries.wait_for_cell()
    e = Executor(1, 1)
    e.set_external(0, flag, True)
    e.call(wait.address, [Slot.cell(0)])
    threading.Timer(0.05, lambda: flag.fill(1)).start()
    e.run()
    print("released")


class Minute:
    """A run of a minute, or a short one with trips = 1."""

    def __init__(self) -> None:
        self.counts, self.trips = np.zeros(256 * 20_000), np.array([1_000_000])
        self._slow = entries.slow()
        self.executor = Executor(len(self.counts), 2)
        self.executor.set_external(0, self.trips, True)
        self.executor.set_external(1, self.counts, True)
        self.executor.call(self._slow.address, [Slot.cell(0), plane(1)])

    def run(self) -> None:
        self.executor.run()

    def done(self) -> int:
        return int(np.count_nonzero(self.counts[::256]))


def interrupt() -> None:
    """Ctrl-C in a run of a minute."""
    minute, first, total = Minute(), entries.first_of_block(), np.array([-1.0, -1.0])
    e = minute.executor
    e.set_external(e.add_external(), total, True)
    e.call(first.address, [plane(1), Slot.sum(e.sum(2, 0, 2, True))])
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        e.run()
        print("ran to its end")
    except KeyboardInterrupt:
        done = minute.done()
        minute.trips[0] = 1
        print("interrupted", 0 < done < e.blocks, *total, e.run())


def leave() -> None:
    """The interpreter ends while the helpers are there."""
    meet()
    print("left")
    sys.exit(0)


def leave_busy() -> None:
    """The interpreter ends while another thread runs."""
    minute = Minute()
    threading.Thread(target=minute.run, daemon=True).start()
    while minute.done() < 3:
        time.sleep(0.001)
    print("left")


def in_child(queue: multiprocessing.Queue[tuple[int, str]]) -> None:
    queue.put((meet()[0], product_and_sum(100_003)))


def forked() -> tuple[int, str]:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    answer = queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    return answer


def fork() -> None:
    """Runs in a forked child, before and after this process had a team, and while it uses it."""
    before = forked()
    expected = product_and_sum(100_003)
    after = forked()
    minute = Minute()
    threading.Thread(target=minute.run, daemon=True).start()
    while minute.done() < 3:
        time.sleep(0.001)
    meanwhile = forked()
    found = {before[1], after[1], meanwhile[1], expected}
    print(before[0], after[0], meanwhile[0], len(found))


PROGRAMS: dict[str, Callable[[], None]] = {
    f.__name__: f
    for f in (
        bits, resized, how_many, how_many_on_one_core, team, often, callers, asleep, lock, interrupt, leave,
        leave_busy, fork,
    )
}  # fmt: skip
