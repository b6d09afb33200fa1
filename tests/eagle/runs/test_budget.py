"""Windows, budgets and passes change time and memory, and no bit."""

import hashlib
from typing import Any

import numpy as np
import pytest
from eagletest.numpy_sums import bits
from eagletest.processes import in_child

import eagle
from eagle.diff import Gradients
from eagle.runs import Runner
from eagle.runs.reverse import CHECKPOINTS, WINDOW, Passes, schedule_for, schedule_for_all, vjp_plan
from hawk.codegen.frame import tape_bytes

from . import kernels as k
from .running import gradients, pendulums, ran, same_bits, simulation, walkers

# One pendulum: x, v, t and the flag; the adjoints of x, v, t, t_final, dt and c.
STATE, ADJOINTS = 25, 48


@pytest.fixture
def small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else runs as short as these keep every state, whatever their window is."""
    monkeypatch.setattr("eagle.runs.reverse._CACHE", 0)


def bits_of(grads: Gradients) -> list[bytes]:
    return [bits(g) for g in grads.values()]


def pendulum_gradients(n: int = 600, max_steps: int = 250, **options: Any) -> Gradients:
    return gradients(k.pendulum, pendulums(n), {"x": 1.0, "v": -0.5}, max_steps, **options)


def walk_gradients(n: int = 600, max_steps: int = 60, **options: Any) -> Gradients:
    return gradients(k.walk, walkers(n), {"p": 1.0, "energy": -0.5}, max_steps, **options)


# windows


@pytest.mark.usefixtures("small_cache")
@pytest.mark.parametrize("window", [1, 2, 7, 20, 100, 249, 250, 1000, None])
def test_any_window_gives_the_bits_of_keeping_every_state(window: int | None) -> None:
    full, windows = pendulum_gradients(window="full"), pendulum_gradients(window=window)
    assert bits_of(windows) == bits_of(full)
    full, windows = walk_gradients(window="full"), walk_gradients(window=window)
    assert bits_of(windows) == bits_of(full)


@pytest.mark.usefixtures("small_cache")
def test_a_window_of_an_event_run() -> None:
    planes = {"dt": 0.013, "g": 9.81, "y": np.linspace(0.1, 5, 40), "v": np.zeros(40), "t": np.zeros(40)}
    full, *others = (
        gradients(k.fall, planes, {"t": 1.0}, events="refine", window=window) for window in ("full", 1, 5, 20, None)
    )
    assert all(bits_of(g) == bits_of(full) for g in others)


def test_a_run_too_long_for_the_cache_goes_by_windows() -> None:
    planes = pendulums(20, longest=20.0)
    results = []
    for window in ("full", None, 3):
        sim = simulation(k.pendulum, planes, 2500, record=True, window=window)
        steps = int(sim.run().steps.max())
        assert (schedule_for(sim.runner, steps)[0].checkpoints is None) == (window == "full")
        results.append(bits_of(eagle.diff.reverse(sim.record, {"x": np.ones(20)})))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(("max_steps", "window"), [(1, 16), (200, 16), (257, 17), (400, 20), (401, 21), (10**9, 1024)])
def test_the_default_window(max_steps: int, window: int) -> None:
    """The root of max_steps, rounded up, from 16 to 1024."""
    assert simulation(k.pendulum, pendulums(2), max_steps).runner.options.steps_between == window


# the schedule's memory


def sizes(runner: Runner) -> dict[str, int]:
    return schedule_for(runner, int(runner.steps.max()))[1]


@pytest.mark.usefixtures("small_cache")
def test_tapes_follow_the_steps_that_were_taken() -> None:
    found = []
    for most in (10, 10**6, 10**9):
        sim = simulation(k.double, {"most": 100.0, "x": np.array([3.0])}, most, record=True)
        sim.run()
        found.append(sizes(sim.runner))
        grads = eagle.diff.reverse(sim.record, {"x": np.ones(1)})
        assert grads["x"].tolist() == [64.0]
        assert grads.report.chunks == 1
    assert found == [{WINDOW: 6}] * 3
    sim = simulation(k.pendulum, pendulums(30), 400, record=True, window=20)
    steps = int(sim.run().steps.max())
    assert 20 < steps < 260
    assert sizes(sim.runner) == {WINDOW: 20, CHECKPOINTS: -(-steps // 20)}


@pytest.mark.usefixtures("small_cache")
@pytest.mark.parametrize("events", ["step", "refine"])
def test_tapes_hold_no_more_than_a_budget_counts(events: str) -> None:
    planes = {"dt": 0.013, "g": 9.81, "y": np.linspace(0.1, 5, 40), "v": np.zeros(40), "t": np.zeros(40)}
    sim = simulation(k.fall, planes, 200, record=True, events=events, window=10)
    sim.run()
    for steps in (5, 77, 200):
        schedule, tapes = schedule_for(sim.runner, steps)
        plan = vjp_plan(sim.runner, schedule)
        lanes = plan._entry.width
        kept = min(200, -(-steps // 10) + 10)
        assert tape_bytes(plan.program, lanes, tapes) <= lanes * kept * 25


def test_a_phase_keeps_about_twice_the_root_of_its_most_steps() -> None:
    planes = {"dt": 0.1, "q": np.ones(2), "u": np.zeros(2), "t": np.zeros(2)}
    runner = simulation(k.reach, planes, 10**9, events="refine").runner
    assert schedule_for_all(runner)[1] == {WINDOW: 31623, CHECKPOINTS: 31623}


# budgets and passes


def passes(n: int, budget: int | None, max_steps: int = 400, **options: Any) -> Passes:
    sim = simulation(k.pendulum, pendulums(n), max_steps, record=True, memory_budget=budget, **options)
    return Passes.of(sim.runner, 250)


def one(kept: int) -> int:
    """The bytes that one pendulum holds."""
    return kept * STATE + ADJOINTS


@pytest.mark.parametrize(
    ("options", "kept"), [({}, 40), ({"window": 7}, 65), ({"window": "full"}, 400), ({"window": 900}, 401)]
)
def test_passes_are_the_largest_that_fit(options: dict[str, Any], kept: int) -> None:
    for size in (256, 512, 1024):
        for budget in (one(kept) * size, one(kept) * 2 * size - 1):
            found = passes(2048, budget, **options)
            assert (found.samples, found.count) == (size, 2048 // size)
    assert passes(2048, one(kept) * 2048, **options).count == 1
    assert passes(1500, one(kept) * 512, **options).count == 3
    assert passes(300, one(kept) * 299, **options).count == 2
    assert passes(200, one(kept) * 200, **options).count == 1
    with pytest.raises(MemoryError, match="a pass needs 256"):
        passes(2048, one(kept) * 256 - 1, **options)


def test_a_budget_counts_max_steps_and_without_one_the_steps_taken_count() -> None:
    assert passes(800, one(40) * 512, 400).count == 2
    assert passes(800, one(40) * 512, 100).count == 1
    assert passes(800, None, 10**9).count == 1


def test_the_passes_of_a_reverse_are_reported() -> None:
    whole, capped = (pendulum_gradients(2048, 400, window=20, memory_budget=b) for b in (None, 1_000_000))
    assert (whole.report.chunks, capped.report.chunks) == (1, 4)
    assert bits_of(whole) == bits_of(capped)


@pytest.mark.parametrize("window", [20, "full"])
@pytest.mark.parametrize("n", [257, 2048, 3000])
def test_any_budget_gives_the_same_bits(n: int, window: int | str) -> None:
    kept = 40 if window == 20 else 400
    whole = pendulum_gradients(n, 400, window=window)
    for size in (256, 512, 1024):
        capped = pendulum_gradients(n, 400, window=window, memory_budget=one(kept) * size)
        assert capped.report.chunks == -(-n // size)
        assert bits_of(capped) == bits_of(whole)


@pytest.mark.usefixtures("small_cache")
def test_sums_into_tables_in_passes() -> None:
    """The additions into a table are in a fixed order too."""
    whole = walk_gradients(5000)
    capped = walk_gradients(5000, memory_budget=256 * 1600)
    assert capped.report.chunks > 5
    assert bits_of(capped) == bits_of(whole)


def test_a_budget_that_is_too_small_is_refused() -> None:
    held = "one sample holds 40 states, 1,048 bytes (max_steps=400, window=20)"
    fix = "raise memory_budget, lower max_steps, or set window"
    for budget, what in (
        (1000, "cannot hold one sample: "),
        (100_000, "holds 95 samples, and a pass needs 256, 268,288 bytes, to keep the sums' bits: "),
    ):  # fmt: skip
        with pytest.raises(MemoryError) as refusal:
            pendulum_gradients(2048, 400, memory_budget=budget)
        assert str(refusal.value) == f"memory_budget={budget:,} bytes {what}{held}; {fix}"


# threads


def print_digests() -> None:
    patch = pytest.MonkeyPatch()
    found = [pendulum_gradients(5003), walk_gradients(5003), walk_gradients(5003, memory_budget=256 * 1600)]
    patch.setattr("eagle.runs.reverse._CACHE", 0)
    found += [pendulum_gradients(5003, window=w) for w in (1, 9)]
    planes = {"dt": 0.05, "g": 9.81, "y": np.linspace(0.1, 5, 5003), "v": np.zeros(5003), "t": np.zeros(5003)}
    found.append(gradients(k.fall, planes, {"t": 1.0}, events="refine"))
    patch.undo()
    print(*(hashlib.sha256(b"".join(bits_of(grads))).hexdigest() for grads in found))


def test_the_same_bits_for_every_number_of_threads() -> None:
    digests = in_child(print_digests, 1)
    assert digests[0] == digests[3] == digests[4]
    assert digests[1] == digests[2]
    assert len(set(digests)) == 3
    for threads in (2, 3):
        assert in_child(print_digests, threads) == digests


# what a record holds


def test_the_bytes_of_a_record() -> None:
    """x, v, t, the flag; dt and c; the steps; when kept, t_final too."""
    record = simulation(k.pendulum, pendulums(100), record=True).run().record
    assert record.nbytes == 100 * 25 + 2 * 8 + 100 * 4
    assert record.keep().nbytes == record.nbytes + 100 * 8
    assert ran(k.pendulum, pendulums(100)).record is None


def test_the_sums_of_a_run_do_not_depend_on_how_long_it_may_be() -> None:
    same_bits(pendulum_gradients(300, 250).values(), pendulum_gradients(300, 10**8).values())
