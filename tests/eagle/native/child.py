"""Programs that test_processes.py runs: they depend on the environment, end a process or could hang."""

from __future__ import annotations

import ctypes
import hashlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable

import numpy as np

from eagle._native import Executor, Slot, ordered_sum, threads

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


def team() -> None:
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
    print(len(met), len(calls), sum(calls))


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


def interrupt() -> None:
    """Ctrl-C in a run of a minute."""
    counts, trips = np.zeros(256 * 20_000), np.array([1_000_000])
    slow, first = entries.slow(), entries.first_of_block()
    total = np.array([-1.0, -1.0])
    e = Executor(len(counts), 3)
    for index, array in enumerate((trips, counts, total)):
        e.set_external(index, array, True)
    e.call(slow.address, [Slot.cell(0), plane(1)])
    e.call(first.address, [plane(1), Slot.sum(e.sum(2, 0, 2, True))])
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        e.run()
        print("ran to its end")
    except KeyboardInterrupt:
        done = np.count_nonzero(counts[::256])
        trips[0] = 1
        print("interrupted", 0 < done < e.blocks, *total, e.run())


def in_child(queue: multiprocessing.Queue[tuple[int, str]]) -> None:
    queue.put((threads(), product_and_sum(100_003)))


def forked() -> tuple[int, str]:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    answer = queue.get(timeout=60)
    child.join(60)
    return answer


def fork() -> None:
    """Runs in a forked child, before and after this process had a team."""
    before = forked()
    expected = product_and_sum(100_003)
    after = forked()
    print(before[0], after[0], threads(), {before[1], after[1], expected} == {expected})


PROGRAMS: dict[str, Callable[[], None]] = {f.__name__: f for f in (bits, team, lock, interrupt, fork)}
