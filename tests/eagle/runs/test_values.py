"""A run leaves the bits of its steps launched one by one, however it is cut up."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from eagletest.kernels import plan
from eagletest.numpy_sums import bits
from eagletest.processes import in_child

import eagle
import hawk
from eagle import Status
from hawk.kernel import Stepping

from . import kernels as k
from .running import everything, one_by_one, pendulums, ran, same_bits, simulation, walkers


def first(planes: Mapping[str, Any], samples: slice) -> dict[str, Any]:
    """The planes of some samples."""
    shared = {"dt", "k", "c", "force"}
    return {
        name: value if name in shared else np.ascontiguousarray(value[..., samples]) for name, value in planes.items()
    }


# a run is its steps


@pytest.mark.parametrize("mode", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 7, 1003])
def test_a_run_has_the_bits_of_its_steps(n: int, mode: str) -> None:
    for kernel, planes, most in ((k.walk, walkers(n, mode), 60), (k.pendulum, pendulums(n, mode), 200)):
        expected = one_by_one(kernel, planes, most, mode)
        assert expected.finished.any() or n == 1
        result = ran(kernel, planes, most, mode=mode)
        same_bits(everything(result), expected.everything)


def test_a_run_without_a_stop_rule_takes_every_step() -> None:
    planes = {"dt": 0.1, "rate": np.linspace(0, 1, 9), "x": np.linspace(-1, 1, 9)}
    result = ran(k.decay, planes, 17)
    same_bits(everything(result), one_by_one(k.decay, planes, 17).everything)
    assert result.steps.tolist() == [17] * 9
    assert not result.finished.any()


def test_an_empty_batch() -> None:
    result = ran(k.walk, walkers(0))
    assert result.p.shape == (2, 0)
    assert result.steps.shape == result.finished.shape == result.status.shape == (0,)


def test_steps_per_launch_change_nothing() -> None:
    """``steps=`` of a kernel is how many it may take at a time, not how many it is."""
    many = hawk.Kernel("many", k.pendulum.definition, None, Stepping(steps=8))
    same_bits(everything(ran(many, pendulums(50), 77)), everything(ran(k.pendulum, pendulums(50), 77)))


# samples that are done


def test_finished_samples_are_inert() -> None:
    """A step more would take the root of a negative number."""
    x = np.array([0.5, 2.5, 6.25])
    planes = {"p": 2.0, "x": x, "y": np.zeros(3), "total": np.zeros(3), "count": np.zeros(3, np.int32)}
    result = ran(k.roots, planes, 100)
    assert result.count.tolist() == result.steps.tolist() == [1, 3, 7]
    assert bits(result.y) == bits(np.sqrt([0.5, 0.5, 0.25]))
    assert bits(result.x) == bits(np.array([-0.5, -0.5, -0.75]))
    assert result.total[0] == 2.0 * np.sqrt(0.5)
    assert np.isfinite(result.total).all()


def test_the_step_limit_is_flagged_sample_by_sample() -> None:
    result = ran(k.halve, {"least": 0.1, "x": np.array([1.0, 0.15])}, 3)
    assert result.x.tolist() == [0.125, 0.075]
    assert result.steps.tolist() == [3, 1]
    assert result.finished.tolist() == [False, True]
    assert result.status.tolist() == [Status.MAX_STEPS, Status.DONE]


def test_no_step_is_taken_with_max_steps_0() -> None:
    x = np.array([1.0, 0.05])
    result = ran(k.halve, {"least": 0.1, "x": x}, 0)
    assert bits(result.x) == bits(x)
    assert result.steps.tolist() == [0, 0]
    assert result.finished.tolist() == [False, False]


@pytest.mark.parametrize("done", [[False, True, False, False], [True] * 4])
def test_no_step_is_taken_by_a_sample_that_is_done_at_the_start(done: list[bool]) -> None:
    x = np.array([1.0, -0.0, 0.3, 8.0])
    result = ran(k.halve, {"least": 0.1, "x": x, "done": np.array(done)})
    assert bits(result.x[done]) == bits(x[done])
    assert (result.steps == 0).tolist() == done
    assert result.finished.all()
    assert (result.status == Status.DONE).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_as_many_samples_as_components(n: int) -> None:
    """A mask over the samples is not one over the components."""
    x = np.tile(10.0 ** np.arange(n), (3, 1))
    result = ran(k.halve_rows, {"x": x})
    halvings = np.array([1, 3, 6, 9])[:n]
    assert result.steps.tolist() == halvings.tolist()
    assert bits(result.x) == bits(x * 0.5**halvings)


def test_the_limit_costs_nothing() -> None:
    for most in (10, 10**6, 10**9):
        result = ran(k.double, {"most": 100.0, "x": np.array([3.0])}, most)
        assert (result.x.tolist(), result.steps.tolist()) == ([192.0], [6])


def test_an_until_that_holds_at_the_start() -> None:
    result = ran([k.grow], {"dt": 1.0, "x": np.array([0.0, 2.0, 3.0, 9.0]), "q": np.full(4, 3.0)}, until=k.large)
    assert result.x.tolist() == [3.0, 3.0, 3.0, 9.0]
    assert result.steps.tolist() == [3, 1, 0, 0]
    assert result.finished.all()


# where a sample lies


@pytest.mark.parametrize("n", [3, 17, 300])
def test_a_sample_has_its_bits_wherever_it_is(n: int) -> None:
    planes = walkers(1003)
    whole = everything(ran(k.walk, planes, 80))
    for samples in (slice(0, n), slice(1003 - n, None), slice(n, None, 5), slice(None, None, -1)):
        same_bits(everything(ran(k.walk, first(planes, samples), 80)), [a[..., samples] for a in whole])


def test_strided_planes() -> None:
    """The state in every other sample of a larger array, the last sample first; what lies between is left alone."""
    planes = walkers(40)
    whole = everything(ran(k.walk, planes, 60))
    base = {name: np.full((*planes[name].shape[:-1], 80), 7, planes[name].dtype) for name in ("p", "energy", "cell")}
    strided = {name: array[..., ::-2] for name, array in base.items()}
    limit = np.repeat(planes["limit"], 3)[::3]
    for name, view in strided.items():
        view[...] = planes[name]
    result = eagle.simulate(k.walk, max_steps=60, **(planes | strided | {"limit": limit}))
    same_bits(everything(result), whole)
    assert all((array[..., ::2] == 7).all() for array in base.values())


# in parts


@pytest.mark.parametrize("parts", [[1, 1, 5, 0, 3], [59], [7] * 8, []])
def test_a_run_in_parts_is_the_whole_run(parts: list[int]) -> None:
    planes = walkers(100)
    runner = simulation(k.walk, planes, 60, record=True).runner
    whole = ran(k.walk, planes, 60, record=True)
    taken = 0
    for part in parts:
        result = runner.run(steps=part)
        taken += part
        assert (result.steps <= taken).all()
        assert (result.steps[~result.finished] == min(taken, 60)).all()
        same_bits(everything(result), one_by_one(k.walk, planes, min(taken, 60)).everything)
    same_bits(everything(runner.run()), everything(whole))
    record = runner.record
    assert record.generation == 1
    seeds = {"p": np.ones((2, 100)), "energy": np.ones(100)}
    in_parts, at_once = (eagle.diff.reverse(r, seeds) for r in (record, whole.record))
    same_bits(in_parts.values(), at_once.values())


def test_a_part_that_reaches_the_end_ends_the_run() -> None:
    runner = simulation(k.walk, walkers(20), 60, record=True).runner
    assert runner.run(steps=59).record is None
    result = runner.run(steps=2)
    assert result.record is runner.record
    assert result is runner.result


@pytest.mark.parametrize(("first_slice", "slice_time"), [(1, 0.0), (1, 1e9), (300, 1e-5)])
def test_slices_change_nothing(first_slice: int, slice_time: float, monkeypatch: pytest.MonkeyPatch) -> None:
    planes = walkers(100)
    whole = everything(ran(k.walk, planes, 60))
    monkeypatch.setattr("eagle.runs.runner._FIRST_SLICE", first_slice)
    monkeypatch.setattr("eagle.runs.runner._SLICE", slice_time)
    same_bits(everything(ran(k.walk, planes, 60)), whole)
    refined = {"dt": 0.05, "g": 9.81, "y": np.linspace(0.1, 5, 9), "v": np.zeros(9), "t": np.zeros(9)}
    sliced = ran(k.fall, refined, events="refine")
    monkeypatch.undo()
    same_bits(everything(sliced), everything(ran(k.fall, refined, events="refine")))


def test_ctrl_c_leaves_a_run_that_goes_on_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    planes = walkers(100)
    sim = simulation(k.walk, planes, 60, record=True)
    monkeypatch.setattr("eagle.runs.runner._FIRST_SLICE", 1)
    monkeypatch.setattr("eagle.runs.runner._SLICE", 0.0)  # a step at a time
    step_to, calls = type(sim.runner)._step_to, []

    def interrupted(runner: eagle.runs.Runner, target: int) -> None:
        calls.append(target)
        if len(calls) in (3, 4, 20):
            raise KeyboardInterrupt
        step_to(runner, target)

    monkeypatch.setattr(type(sim.runner), "_step_to", interrupted)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            sim.runner.run()
        with pytest.raises(eagle.errors.RecordError):
            sim.runner.result  # noqa: B018
    result = sim.runner.run()
    monkeypatch.undo()
    whole = ran(k.walk, planes, 60, record=True)
    same_bits(everything(result), everything(whole))
    seeds = {"energy": np.ones(100)}
    same_bits(eagle.diff.reverse(sim.record, seeds).values(), eagle.diff.reverse(whole.record, seeds).values())


# again


def test_a_simulation_runs_again_to_the_same_bits() -> None:
    planes = pendulums(60)
    sim = simulation(k.pendulum, planes)
    once = [a.copy() for a in everything(sim.run())]
    sim.planes["x"][...] = 5.0  # what lies in the planes between runs does not matter
    sim.planes["terminated"][...] = True
    same_bits(everything(sim.run()), once)
    sim.runner.run(steps=3)
    same_bits(everything(sim.run()), once)


def test_a_simulation_is_given_another_start() -> None:
    planes, other = pendulums(60), pendulums(60, longest=1.0)
    sim = simulation(k.pendulum, planes)
    sim.run()
    changed = {"x": other["x"], "t_final": other["t_final"], "c": 0.5}
    same_bits(everything(sim.run(**changed)), everything(ran(k.pendulum, planes | changed)))
    same_bits(everything(sim.run()), everything(ran(k.pendulum, planes | changed)))
    x, v = sim.planes["x"].copy(), sim.planes["v"].copy()
    swapped = sim.run(x=sim.planes["v"], v=sim.planes["x"])  # read before any is written
    same_bits(everything(swapped), everything(ran(k.pendulum, planes | changed | {"x": v, "v": x})))


def test_a_runner_goes_on_from_its_planes_and_a_reset_brings_back_the_start() -> None:
    x = np.array([8.0, 1.0])
    runner = eagle.until_done(plan(k.halve), max_steps=50, least=1.0, x=x)
    assert runner.run().steps.tolist() == [4, 1]
    assert runner.run().steps.tolist() == [0, 0]  # all are done
    runner.planes["done"][...] = False
    assert runner.run().x.tolist() == [0.25, 0.25]
    runner.reset()
    assert x.tolist() == [8.0, 1.0]
    assert not runner.finished.any()
    assert runner.run().steps.tolist() == [4, 1]


# threads


def print_digests() -> None:
    results = [ran(k.walk, walkers(5003), 60), ran(k.pendulum, pendulums(5003, "float32"), 200, mode="float32")]
    planes = {"dt": 0.05, "g": 9.81, "y": np.linspace(0.1, 5, 5003), "v": np.zeros(5003), "t": np.zeros(5003)}
    results.append(ran(k.fall, planes, events="refine"))
    print(*(hashlib.sha256(b"".join(map(bits, everything(r)))).hexdigest() for r in results))


def test_the_same_bits_for_every_number_of_threads() -> None:
    digests = in_child(print_digests, 1)
    assert len(set(digests)) == 3
    for threads in (2, 3):
        assert in_child(print_digests, threads) == digests
