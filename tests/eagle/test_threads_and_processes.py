"""Threads that use one object, many threads that compile, forked children, Ctrl-C."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from eagletest import kernels as k
from eagletest.graphs import Chain, gradients, recorded
from eagletest.kernels import plan
from eagletest.numpy_sums import bits
from eagletest.processes import LIMIT, in_child

import eagle
import hawk
from eagle.diff import Reverse, reverse
from eagle.errors import Busy, RecordError
from eagle.graph import Graph

LONG = 20_000  # trips: a launch takes long enough for another thread to find it running


class Slow:
    """A recorded graph whose launches and reverses take a while, or none with trips=1."""

    def __init__(self, trips: int = LONG, samples: int = 4 * 256) -> None:
        self.x, self.y = np.linspace(0.1, 0.9, samples), np.zeros(samples)
        self.graph = recorded(("drift", k.drift, {"trips": trips, "x": self.x, "y": self.y}))
        self.seeds = {"y": np.ones(samples)}


class NotYet(Exception):
    """The other thread has not begun."""


class Worker(threading.Thread):
    """Work in another thread, to be found at it."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__()
        self.work = work
        self.raised: BaseException | None = None

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self.raised = error

    def __enter__(self) -> "Worker":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.join(LIMIT)
        assert not self.is_alive()
        assert self.raised is None

    def makes_busy(self, call: Callable[[], object], before: type[Exception] = NotYet) -> str:
        """What Busy says when `call` meets the work; until the work begins, it raises `before`."""
        while self.is_alive():
            message = busy(call, before)
            if message:
                return message
        raise AssertionError("the work ended, and the call was never Busy")


def busy(call: Callable[[], object], before: type[Exception]) -> str:
    try:
        call()
    except before:
        return ""
    except Busy as error:
        return str(error)
    raise AssertionError("the call went through while another thread was at work, or was to be")


def test_a_launch_during_a_reverse() -> None:
    slow = Slow()
    slow.graph.launch()
    record = slow.graph.record
    message = "a reverse is reading the record of this graph; launch or update it when that is done"
    with Worker(lambda: reverse(record, slow.seeds)) as worker:
        assert worker.makes_busy(slow.graph.launch, RecordError) == message
        with pytest.raises(Busy) as refusal:
            slow.graph.update(trips=1)
        assert str(refusal.value) == message
    assert not record.live
    slow.graph.update(trips=1)
    slow.graph.launch()
    np.testing.assert_allclose(slow.y, np.sin(slow.x) + slow.x)


def test_everything_else_during_a_launch() -> None:
    slow = Slow()
    slow.graph.launch()
    old = slow.graph.record
    kept = old.keep()
    expected = reverse(kept, slow.seeds)
    message = "another thread is launching this graph"

    def reverse_the_old_one() -> None:
        reverse(old, slow.seeds)
        raise NotYet

    with Worker(slow.graph.launch) as worker:
        assert worker.makes_busy(reverse_the_old_one) == message
        for call in (slow.graph.launch, lambda: slow.graph.update(trips=1), lambda: slow.graph.record, old.keep):
            with pytest.raises(Busy) as refusal:
                call()
            assert str(refusal.value) == message
        assert bits(reverse(kept, slow.seeds)["x"]) == bits(expected["x"])  # a kept one is read meanwhile
    assert bits(reverse(slow.graph.record, slow.seeds)["x"]) == bits(expected["x"])


def test_one_reverse_in_two_threads() -> None:
    slow = Slow()
    slow.graph.launch()
    record = slow.graph.record
    rev = Reverse(slow.graph)
    rev(record, {"y": np.zeros(len(slow.x))})

    def other_seeds() -> None:
        rev(record, {})
        raise NotYet

    with Worker(lambda: rev(record, slow.seeds)) as worker:
        message = worker.makes_busy(other_seeds)
        second = Reverse(slow.graph)(record, slow.seeds)  # its own goes through meanwhile
    assert message == "another thread is running this Reverse; build one for each thread"
    assert bits(rev(record, slow.seeds)["x"]) == bits(second["x"])


def test_reverses_of_their_own_at_the_same_time() -> None:
    slow = Slow(trips=200, samples=2000)
    slow.graph.launch()
    record = slow.graph.record
    expected = reverse(record, slow.seeds)
    count = 6
    start = threading.Barrier(count)

    def work(_: int) -> list[bytes]:
        rev = Reverse(slow.graph)
        start.wait(LIMIT)
        return [bits(rev(record, slow.seeds)["x"]) for _ in range(10)]

    with ThreadPoolExecutor(count) as pool:
        found = {each for result in pool.map(work, range(count)) for each in result}
    assert found == {bits(expected["x"])}
    slow.graph.launch()


def test_a_binding_launched_by_two_threads() -> None:
    x, y = np.linspace(0.1, 0.9, 1024), np.zeros(1024)
    bound = plan(k.drift).bind(trips=LONG, x=x, y=y)
    tiny = bound.rebind(trips=0)
    tiny.launch()

    def launch_when_begun() -> None:
        if not np.array_equal(y, x):
            bound.launch()
        raise NotYet

    with Worker(bound.launch) as worker:
        message = worker.makes_busy(launch_when_begun)
    assert message == "drift: another thread is launching this binding; bind one for each thread"


def test_a_graph_that_is_not_recorded_launched_by_two_threads() -> None:
    x, y = np.linspace(0.1, 0.9, 1024), np.zeros(1024)
    y[:] = x
    graph = Graph().add(plan(k.drift).bind(trips=LONG, x=x, y=y)).build()

    def launch_when_begun() -> None:
        if not np.array_equal(y, x):
            graph.launch()
        raise NotYet

    with Worker(graph.launch) as worker:
        message = worker.makes_busy(launch_when_begun)
    assert message == "another thread is launching this graph"


# compiling


def first_use(kernel: hawk.Kernel, folder: Path, n: int) -> tuple[bytes, ...]:
    x, y = np.linspace(-1, 1, n), np.zeros(n)
    (made,) = eagle.deploy([kernel], cache_dir=folder)
    graph = Graph().add(made.bind(x=x, a=0.5, y=y)).build(record=True)
    grads = gradients(graph, {"y": np.ones(n)})
    return bits(y), bits(grads["x"]), bits(grads["a"])


def test_sixteen_threads_compile_one_new_kernel(tmp_path: Path) -> None:
    count = 16
    kernel = k.new_kernel(0.8125)
    start = threading.Barrier(count)

    def work(_: int) -> tuple[bytes, ...]:
        start.wait(LIMIT)
        return first_use(kernel, tmp_path, 300)

    with ThreadPoolExecutor(count) as pool:
        results = set(pool.map(work, range(count)))
    assert len(results) == 1
    assert len(list(tmp_path.iterdir())) == 2, "the kernel and its vjp, once each"
    assert results == {first_use(kernel, tmp_path, 300)}


def test_a_kernel_that_fails_fails_in_its_own_thread(tmp_path: Path) -> None:
    kernels = [k.new_kernel(factor) for factor in (0.125, 0.25, 0.375)]
    sizes = (1, 255, 1000)
    expected = {(i, n): first_use(kernel, tmp_path, n) for i, kernel in enumerate(kernels) for n in sizes}
    count = 4
    start = threading.Barrier(count + 1)

    def work(thread: int) -> bool:
        start.wait(LIMIT)
        cases = [(i, n) for i in range(3) for n in sizes][thread:] * 5
        return all(first_use(kernels[i], tmp_path, n) == expected[i, n] for i, n in cases)

    def fail() -> str:
        start.wait(LIMIT)
        try:
            k.new_kernel("no number")
        except hawk.KernelError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(count + 1) as pool:
        failing = pool.submit(fail)
        good = list(pool.map(work, range(count)))
        assert all(good)
        assert "factor * hm.tanh(x)" in failing.result()


# processes


def forked(answer: Callable[[], Any], queue: Any) -> None:
    queue.put(answer())


def in_fork(answer: Callable[[], Any]) -> Any:
    """What a forked child of this process answers."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=forked, args=(answer, queue))
    process.start()
    got = queue.get(timeout=LIMIT)
    process.join(LIMIT)
    return got


def fork_after_use() -> None:
    """The same graph, used in this process before, in its children, and in this one again; a new kernel too."""
    chain = Chain(np.linspace(-2, 2, 200_001))
    rev = Reverse(chain.graph)

    def answer() -> tuple[bytes, ...]:
        chain.graph.launch()
        grads = rev(chain.graph.record, chain.ones)
        return bits(chain.z), bits(grads["x"]), bits(grads["a"])

    def compile_new() -> tuple[bytes, ...]:
        return first_use(k.new_kernel(0.6875), Path(os.environ["HAWK_CACHE_DIR"]), 300)

    expected = answer()
    in_child_process = in_fork(answer)
    with ThreadPoolExecutor(1) as pool:
        from_a_thread = pool.submit(in_fork, answer).result()
    print(in_child_process == expected, from_a_thread == expected, answer() == expected)
    print(in_fork(compile_new) == compile_new())


def test_a_fork_after_use_has_the_same_bits_and_does_not_hang() -> None:
    assert in_child(fork_after_use, 2) == ["True"] * 4


def interrupt_when_busy(call: Callable[[], object], before: type[Exception]) -> None:
    """Send this process a Ctrl-C when `call` raises Busy; until then it raises `before`."""

    def work() -> None:
        while not busy(call, before):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=work, daemon=True).start()


def interrupted(work: Callable[[], object]) -> bool:
    try:
        work()
    except KeyboardInterrupt:
        return True
    return False


def interrupted_launch() -> None:
    """Ctrl-C in a launch of a minute: there is no record of it, and the graph runs on as if nothing had been."""
    slow = Slow(trips=1, samples=256 * 2000)
    slow.graph.launch()
    before = slow.graph.record
    kept = before.keep()
    slow.graph.update(trips=100_000)
    interrupt_when_busy(lambda: slow.graph.record, RecordError)
    print(interrupted(slow.graph.launch))
    for refused in (lambda: slow.graph.record, lambda: reverse(before, slow.seeds)):
        with pytest.raises(RecordError) as refusal:
            refused()
        print(str(refusal.value).replace(" ", "_"))
    slow.graph.update(trips=1)
    slow.graph.launch()
    print(slow.graph.record.generation)
    print(bits(reverse(slow.graph.record, slow.seeds)["x"]) == bits(reverse(kept, slow.seeds)["x"]))


def test_ctrl_c_in_a_launch() -> None:
    for threads in (1, 2):
        assert in_child(interrupted_launch, threads) == [
            "True",
            "this_graph_has_no_record:_its_last_launch_was_interrupted;_call_launch()",
            "this_record_is_of_generation_1,_and_the_graph_has_launched_again:_the_current_one_is_2._Its_planes_hold_"
            "newer_values;_keep()_a_record_to_reverse_it_later",
            "3",
            "True",
        ]


def interrupted_reverse() -> None:
    """Ctrl-C in a reverse: the record stays live, and a second try gives what the first would have."""
    slow = Slow(trips=2000, samples=256 * 120)
    rev = Reverse(slow.graph)
    slow.graph.launch()
    record = slow.graph.record
    interrupt_when_busy(slow.graph.launch, RecordError)
    print(interrupted(lambda: rev(record, slow.seeds)), record.live)
    again = rev(record, slow.seeds)
    print(record.live, bits(again["x"]) == bits(reverse(record.keep(), slow.seeds)["x"]))


def test_ctrl_c_in_a_reverse() -> None:
    assert in_child(interrupted_reverse, 2) == ["True", "True", "False", "True"]
