"""Runs as a user meets them: what is refused, in which words; records; results; progress."""

import os
import pickle
import re
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from eagletest.kernels import plan
from eagletest.kernels import square as no_run
from eagletest.processes import in_child

import eagle
import hawk
from eagle import Status
from eagle.errors import ArgumentError, Busy, PlaneError, RecordError, ReverseError, SeedError
from hawk.diff import vjp
from hawk.kernel import Stepping

from . import kernels as k
from .running import copied, everything, gradients, pendulums, ran, same_bits, simulation, walkers


def refused(call: Callable[[], object], error: type[BaseException], message: str) -> None:
    with pytest.raises(error) as refusal:
        call()
    assert str(refusal.value) == message


# options


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"max_steps": -1}, "max_steps=-1: the most steps a sample may take, an integer from 0 on"),
    ({"max_steps": 2.0}, "max_steps=2.0: the most steps a sample may take, an integer from 0 on"),
    ({"max_steps": True}, "max_steps=True: the most steps a sample may take, an integer from 0 on"),
    (
        {"window": 5},
        "window=5 is for the reverse of a recorded run; pass record=True as well, or leave it out",
    ),
    (
        {"memory_budget": 10},
        "memory_budget=10 is for the reverse of a recorded run; pass record=True as well, or leave it out",
    ),
    ({"record": True, "window": 0}, "window=0: a number of steps from 1 on, or 'full'"),
    ({"record": True, "window": "all"}, "window='all': a number of steps from 1 on, or 'full'"),
    ({"record": True, "memory_budget": 0}, "memory_budget=0: a number of bytes"),
    ({"record": True, "memory_budget": "1 GB"}, "memory_budget='1 GB': a number of bytes"),
    ({"events": "exact"}, "events='exact': 'step' stops at the end of a step, 'refine' inside it"),
    (
        {"on_no_event": "ignore"},
        "on_no_event='ignore': 'raise' refuses a sample without an event, 'zero' lets its stop time have derivative "
        "zero",
    ),
    (
        {"events": "refine"},
        "events='refine': pendulum names no time step; declare it with @hawk.kernel(time=..., time_step=...)",
    ),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS)
def test_options_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    settings = {"max_steps": 10} | options
    planes = pendulums(3)
    refused(lambda: eagle.simulation(k.pendulum, **planes, **settings), ArgumentError, message)
    refused(lambda: eagle.until_done(plan(k.pendulum), **planes, **settings), ArgumentError, message)


def test_what_is_no_step() -> None:
    planes = pendulums(3)
    refused(
        lambda: eagle.until_done(k.pendulum, max_steps=3, **planes),  # type: ignore[arg-type]
        ArgumentError,
        "until_done takes plans (eagle.deploy([kernel])), found Kernel",
    )
    refused(
        lambda: eagle.simulation(plan(k.pendulum), max_steps=3, **planes),  # type: ignore[arg-type]
        ArgumentError,
        "simulation takes kernels, found Plan; a plan goes to eagle.until_done",
    )
    refused(
        lambda: eagle.simulate([], max_steps=3, **planes),
        ArgumentError,
        "until_done was given an empty list: a step is at least one plan",
    )
    back = hawk.Kernel("back", vjp(k.pendulum))
    with pytest.raises(ArgumentError, match="back is a vjp: it belongs to a reverse, never to a forward step"):
        eagle.simulate(back, max_steps=3, **planes)
    with pytest.raises(ValueError, match="float16"):
        eagle.simulate(k.pendulum, max_steps=3, mode="float16", **planes)


def test_a_plane_with_the_name_of_an_option() -> None:
    refused(
        lambda: eagle.simulate(k.windowed, max_steps=3, x=np.ones(2), window=3),
        ArgumentError,
        "windowed: its argument window has the name of an option of a run; rename it",
    )


def test_stop_rules_of_their_own() -> None:
    planes = {"x": np.ones(2), "q": np.ones(2), "least": 0.1}
    refused(
        lambda: eagle.simulate(k.halve, until=k.large, max_steps=3, **planes),
        ArgumentError,
        "until=large: halve has a Terminated of its own; a run has one stop rule",
    )
    refused(
        lambda: eagle.simulate(k.grow, until=k.halve, max_steps=3, **planes),
        ArgumentError,
        "until=halve: a stop rule writes one Terminated and nothing else",
    )
    with pytest.raises(ArgumentError, match="built for different precisions; deploy them with one mode"):
        eagle.until_done([plan(k.grow), plan(k.tick, "float32")], max_steps=1, dt=1.0, x=np.ones(2), t=np.ones(2))


def test_planes_are_refused_by_name() -> None:
    planes = pendulums(3)
    for changed, error, message in (
        ({"v": None}, ArgumentError, "pendulum: v is Mutable[Scalar]: expected"),
        (
            {"w": np.ones(3)},
            ArgumentError,
            "pendulum: no plane is named w; its planes are dt, c, t_final, termin",
        ),
        ({"x": np.zeros(4)}, PlaneError, "pendulum: t_final has 3 samples and x has 4"),
        ({"x": np.zeros(3, np.float32)}, PlaneError, "pendulum: x is Mutable[Scalar]"),
        ({"x": planes["v"]}, PlaneError, "pendulum: x and pendulum: v are written to the same array"),
    ):
        with pytest.raises(error, match=f"^{re.escape(message)}") as refusal:
            eagle.simulation(k.pendulum, max_steps=3, **(planes | changed))
        assert "_steps" not in str(refusal.value)
    with pytest.raises(ArgumentError, match=r"^pendulum: missing v; its planes are dt"):
        eagle.simulate(k.pendulum, max_steps=3, **{name: a for name, a in planes.items() if name != "v"})
    refused(
        lambda: eagle.simulation(k.pendulum, max_steps=3, dt=0.1, c=1.0),
        PlaneError,
        "pendulum: no plane is given, so the number of samples is unknown",
    )


def test_a_kernel_of_several_steps_is_not_recorded() -> None:
    many = hawk.Kernel("many", k.pendulum.definition, None, Stepping(steps="auto"))
    refused(
        lambda: eagle.simulation(many, max_steps=3, record=True, **pendulums(3)),
        ArgumentError,
        "record=True: many takes steps='auto' per launch; record a kernel of one step per launch, "
        "@hawk.kernel(steps=1)",
    )
    assert eagle.simulate(many, max_steps=3, **pendulums(3)).steps.tolist() == [3, 3, 3]


def test_the_number_of_steps_of_a_part() -> None:
    runner = simulation(k.pendulum, pendulums(3)).runner
    for steps in (-1, 1.5, True, "2"):
        message = f"run(steps={steps!r}): a number of steps, or None to run to the end"
        refused(lambda steps=steps: runner.run(steps=steps), ArgumentError, message)


# another start


def test_a_start_is_checked_before_anything_changes() -> None:
    sim = simulation(k.walk, walkers(4))
    before = [a.copy() for a in sim.planes.values()]
    for name, value, error, message in (
        ("w", 1.0, ArgumentError, "walk has no argument 'w'; it has dt, k, limit, trips, force, done, p, energy, cell"),
        ("energy", np.zeros(5), PlaneError, "walk: energy is float64 of shape (4,), found float64 of shape (5,)"),
        ("energy", "four", PlaneError, "walk: energy is float64 of shape (4,), found <U4 of shape ()"),
        ("cell", np.zeros(4), PlaneError, "walk: cell is int32 of shape (4,), found float64 of shape (4,)"),
    ):
        refused(lambda name=name, value=value: sim.run(p=np.ones((2, 4)), **{name: value}), error, message)
    with pytest.raises(PlaneError, match=r"walk: k is Param\[Vector\[2\]\]"):
        sim.run(p=np.ones((2, 4)), k=3.0)
    same_bits(sim.planes.values(), before)


def test_a_param_is_set_by_name_alone() -> None:
    sim = simulation(k.pendulum, pendulums(3))
    with pytest.raises(ValueError, match="read-only"):
        sim.planes["c"][...] = 7.0
    assert sim.planes["c"] == 0.3
    sim.run(c=7.0)
    assert sim.planes["c"] == 7.0


def test_a_read_only_input_cannot_be_set() -> None:
    planes = copied(pendulums(3))
    planes["t_final"].flags.writeable = False
    run = eagle.until_done(plan(k.pendulum), max_steps=10, **planes)
    run.run()
    refused(
        lambda: run.set_start({"t_final": np.ones(3)}),
        PlaneError,
        "pendulum: t_final was given as a read-only array, so its values cannot be set; give a writable one",
    )


def test_a_run_under_way_is_not_given_another_start() -> None:
    runner = simulation(k.pendulum, pendulums(3)).runner
    runner.run(steps=2)
    message = "this run is under way; run() it to its end, or give it up with reset()"
    refused(lambda: runner.set_start({"c": 1.0}), RecordError, message)
    runner.reset()
    runner.set_start({"c": 1.0})
    same_bits(everything(runner.run()), everything(ran(k.pendulum, pendulums(3) | {"c": 1.0})))


# records


SEEDS = {"x": np.ones(5)}


def test_there_is_no_record_without_a_run_or_without_asking_for_one() -> None:
    sim = simulation(k.pendulum, pendulums(5))
    refused(lambda: sim.result, RecordError, "there is no complete run yet; call run()")
    sim.run()
    refused(lambda: sim.record, RecordError, "this run is not recorded; pass record=True")
    recorded = simulation(k.pendulum, pendulums(5), record=True)
    refused(lambda: recorded.record, RecordError, "there is no complete run to reverse; call run()")
    recorded.runner.run(steps=2)
    refused(lambda: recorded.record, RecordError, "there is no complete run to reverse; call run()")


STALE = (
    "this record is of run 1, and {}; its inputs may hold newer values. keep() a record to reverse it after later runs"
)


def test_a_record_is_good_until_the_next_run_unless_it_is_kept() -> None:
    sim = simulation(k.pendulum, pendulums(5), record=True)
    record = sim.run().record
    assert not record.live
    first = [np.array(g) for g in eagle.diff.reverse(record, SEEDS).values()]
    kept = record.keep()
    assert kept.keep() is kept
    sim.run(t_final=np.full(5, 0.3), c=9.0)
    assert sim.record.generation == 2
    for call in (lambda: eagle.diff.reverse(record, SEEDS), record.keep):
        refused(call, RecordError, STALE.format("and the current one is 2").replace("and and", "and"))
    same_bits(eagle.diff.reverse(kept, SEEDS).values(), first)
    assert eagle.diff.reverse(kept, SEEDS).report.generation == 1
    changed = pendulums(5) | {"t_final": np.full(5, 0.3), "c": 9.0}
    same_bits(eagle.diff.reverse(sim.record, SEEDS).values(), gradients(k.pendulum, changed, SEEDS).values())


def test_a_record_is_stale_when_its_inputs_are_set() -> None:
    sim = simulation(k.pendulum, pendulums(5), record=True)
    record = sim.run().record
    first = [np.array(g) for g in eagle.diff.reverse(record, SEEDS).values()]
    sim.runner.set_start({"c": 5.0, "x": np.zeros(5)})  # of these a record has copies
    sim.runner.reset()
    same_bits(eagle.diff.reverse(record, SEEDS).values(), first)
    sim.runner.set_start({"t_final": np.full(5, 0.3)})
    refused(
        lambda: eagle.diff.reverse(record, SEEDS),
        RecordError,
        STALE.format("and inputs were set since").replace("and and", "and"),
    )


def test_a_record_has_no_turn_to_give_up() -> None:
    sim = simulation(k.pendulum, pendulums(5), record=True)
    record = sim.run().record
    record.discard()
    eagle.diff.reverse(record, SEEDS)
    sim.run()


def test_seeds_are_refused_by_name() -> None:
    record = ran(k.walk, walkers(5), record=True).record
    for seeds, message in (
        (
            {"limit": np.ones(5)},
            "seeds['limit']: limit is an input. A seed is dJ/d(output); the gradient with respect to limit is "
            "grads['limit'] in what reverse returns",
        ),
        ({"q": np.ones(5)}, "seeds['q']: the run has no real state of that name; it has p, energy"),
        ({"cell": np.ones(5)}, "seeds['cell']: the run has no real state of that name; it has p, energy"),
        (
            {"p": np.ones(5)},
            "the seed of p is dJ/d(p), one value per sample: expected shape (2, 5), found (5,)",
        ),
        ({"energy": 1.0}, "the seed of energy is dJ/d(energy), one value per sample: expected shape (5,), found ()"),
        ({"energy": "one"}, "the seed of energy is no array of numbers: found str"),
        ({"energy": [[1.0], [2.0, 3.0]]}, "the seed of energy is no array of numbers: found list"),
    ):
        refused(lambda seeds=seeds: eagle.diff.reverse(record, seeds), SeedError, message)
    refused(
        lambda: eagle.diff.reverse(record, np.ones(5)),  # type: ignore[arg-type]
        SeedError,
        'seeds maps outputs to arrays, {"x": dJ_dx}, found ndarray',
    )
    refused(
        lambda: eagle.diff.reverse(record, {"energy": np.ones(5)}, vjps={"walk": plan(no_run)}),
        ReverseError,
        "vjps=['walk']: this run has no nodes of your own; its kernel's vjp is built by eagle",
    )
    assert np.all(eagle.diff.reverse(record, {})["p"] == 0)


# results


def test_a_result_by_name() -> None:
    planes = pendulums(5)
    sim = simulation(k.pendulum, planes)
    result = sim.run()
    assert result is sim.result
    assert result.x is sim.planes["x"]
    assert list(result.state) == ["x", "v", "t"]
    assert {"x", "v", "t", "steps", "status"} <= set(dir(result))
    refused(lambda: result.y, AttributeError, "a result of pendulum has no 'y'; its state is x, v, t")
    assert result.t_stop is None
    falling = {"dt": 0.1, "g": 9.81, "y": np.ones(2), "v": np.zeros(2), "t": np.zeros(2)}
    assert (ran(k.fall, falling).t_stop == ran(k.fall, falling).t).all()


def test_how_a_result_prints() -> None:
    assert repr(ran(k.halve, {"least": 0.1, "x": np.array([1.0, 0.15, 800.0])}, 3000)) == (
        "<halve: 3 of 3 samples finished, 1 to 13 steps, 18 in all>"
    )
    assert repr(ran(k.decay, {"dt": 0.1, "rate": np.ones(1000), "x": np.ones(1000)}, 2000)) == (
        "<decay: 0 of 1,000 samples finished, 2,000 to 2,000 steps, 2,000,000 in all>"
    )
    assert repr(ran(k.halve, {"least": 0.1, "x": np.ones(0)})) == "<halve: 0 samples>"


def test_how_a_result_is_shown() -> None:
    result = ran(k.halve, {"least": 0.1, "x": np.array([1.0, 0.15])}, 3)
    shown = result._repr_html_()
    for part in ("halve", "1: its stop rule held at the end of a step", "max steps", "float64 (2,), 0.075 to 0.125"):
        assert part in shown
    assert "grazing" not in shown


def test_a_result_is_pickled_without_its_record() -> None:
    result = ran(k.pendulum, pendulums(5), record=True)
    again = pickle.loads(pickle.dumps(result))
    same_bits(everything(again), everything(result))
    assert again.record is None
    assert (again.x == result.x).all()
    assert repr(again) == repr(result)


def test_how_runs_print() -> None:
    sim = simulation(k.pendulum, pendulums(5), 2000, record=True)
    assert repr(sim) == "<simulation of pendulum, 5 samples>"
    assert repr(sim.runner) == "<run of pendulum, 5 samples, at most 2,000 steps, recorded>"
    falling = {"dt": 0.1, "g": 9.81, "y": np.ones(2), "v": np.zeros(2), "t": np.zeros(2)}
    assert repr(simulation(k.fall, falling, events="refine").runner) == (
        "<run of fall, 2 samples, at most 1,000 steps, refined>"
    )


def test_every_status_has_a_message() -> None:
    messages = [status.message for status in Status]
    assert len(set(messages)) == len(Status) == 7


# progress, threads, signals


def test_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar counts finished samples, and changes no bit."""
    monkeypatch.setattr("eagle.runs.runner._FIRST_SLICE", 1)
    monkeypatch.setattr("eagle.runs.runner._SLICE", 0.0)
    shown = ran(k.pendulum, pendulums(20), 300, progress=True)
    bar = capsys.readouterr().err
    assert "pendulum" in bar
    assert "20/20" in bar
    same_bits(everything(shown), everything(ran(k.pendulum, pendulums(20), 300)))
    assert capsys.readouterr().err == ""


def test_a_run_belongs_to_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = simulation(k.pendulum, pendulums(5))
    step_to, inside, go_on = type(sim.runner)._step_to, threading.Event(), threading.Event()

    def waiting(runner: eagle.runs.Runner, target: int) -> None:
        inside.set()
        go_on.wait(30)
        step_to(runner, target)

    monkeypatch.setattr(type(sim.runner), "_step_to", waiting)
    thread = threading.Thread(target=sim.run)
    thread.start()
    inside.wait(30)
    try:
        for call in (sim.run, sim.runner.run, sim.runner.reset, lambda: sim.runner.set_start({"c": 1.0})):
            refused(call, Busy, "another thread is running this run of pendulum")
    finally:
        go_on.set()
        thread.join()
    same_bits(everything(sim.result), everything(ran(k.pendulum, pendulums(5))))


def test_inputs_are_not_set_while_a_reverse_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start values and params are: the record has copies of them. A kept record has copies of all."""
    sim = simulation(k.pendulum, pendulums(5), record=True)
    record = sim.run().record
    whole = eagle.runs.reverse.reverse_run

    def meanwhile(*arguments: Any) -> Any:
        sim.runner.set_start({"c": 1.0, "x": np.zeros(5)})
        set_input = partial(sim.runner.set_start, {"t_final": np.full(5, 0.3)})
        if arguments[0] is record:
            refused(set_input, Busy, "a reverse is reading the inputs of pendulum; set them when that is done")
        else:
            set_input()
        return whole(*arguments)

    kept = record.keep()
    first = list(eagle.diff.reverse(record, SEEDS).values())
    monkeypatch.setattr("eagle.runs.reverse.reverse_run", meanwhile)
    same_bits(eagle.diff.reverse(record, SEEDS).values(), first)
    same_bits(eagle.diff.reverse(kept, SEEDS).values(), first)


def interrupted() -> None:
    """A run that would take minutes is interrupted; it stands where as many steps would have left it."""
    planes = {"dt": 1e-9, "rate": np.linspace(0, 1, 600), "x": np.linspace(1, 2, 600)}
    runner = simulation(k.decay, planes, 2**31 - 1).runner
    threading.Thread(target=lambda: (time.sleep(0.4), os.kill(os.getpid(), signal.SIGINT))).start()
    try:
        runner.run()
    except KeyboardInterrupt:
        taken = runner.steps.copy()
        for steps in set(taken.tolist()):
            again = simulation(k.decay, planes, 2**31 - 1).runner.run(steps=steps)
            at = taken == steps
            assert again.x[at].tobytes() == runner.state["x"][at].tobytes()
        assert 0 < taken.max() < 2**31 - 1
        print("interrupted")


def test_ctrl_c_in_a_long_run() -> None:
    assert in_child(interrupted, 2) == ["interrupted"]


def test_an_input_on_the_memory_of_the_state_is_refused() -> None:
    x = np.ones(3)
    with pytest.raises(PlaneError, match="decay: rate is read at every step and shares memory with x, which the run"):
        eagle.simulation(k.decay, max_steps=3, dt=0.1, rate=x, x=x)


def test_the_planes_of_a_run_are_no_start() -> None:
    x = np.ones(3)
    sim = eagle.simulation(k.decay, max_steps=3, dt=0.1, rate=np.ones(3), x=x)
    first = sim.run().x.copy()
    with pytest.raises(PlaneError, match="x: the array given is the plane that the run steps"):
        sim.run(x=x)
    assert sim.run(x=np.ones(3)).x.tolist() == first.tolist()


def test_simulate_leaves_the_start_as_it_is() -> None:
    x = np.ones(3)
    ends = [eagle.simulate(k.decay, max_steps=3, dt=0.1, rate=np.ones(3), x=x).x for _ in range(2)]
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert ends[0].tolist() == ends[1].tolist() != x.tolist()
