"""Runs as programs: what they compute, and which steps their reverses compute again, in which order."""

import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hawktest.compiled import WIDTHS, assert_compiled_as_interpreted
from hypothesis import given
from hypothesis import strategies as st

import hawk
from hawk import Int32, Mutable, Param, Scalar, Terminated
from hawk import math as hm
from hawk.diff import Vjp
from hawk.diff.loops import Schedule
from hawk.ir.definition import Definition
from hawk.ir.interpret import Array, _Interpreter, interpret
from hawk.ir.printer import text
from hawk.ir.program import Instr, Program, Role
from hawk.ir.types import Type
from hawk.ir.verify import verify
from hawk.run import LIMIT, STEPS, Run

FULL, WINDOWS = Schedule("window"), Schedule("window", "checkpoints")


@hawk.kernel
def swing(dt: Param, limit: Scalar, done: Terminated, x: Mutable[Scalar], v: Mutable[Scalar], n: Mutable[Int32]):
    vn = v - dt * hm.sin(x)
    x = x + dt * v
    v = vn
    n = n + 1
    done = x > limit


@hawk.kernel
def drift(dt: Param, x: Mutable[Scalar]):
    x = x + dt * hm.sin(x)


def planes(n: int, limit: float = 1.0) -> dict[str, Any]:
    return {
        "dt": np.float64(0.1),
        "limit": np.full(n, limit),
        "done": np.zeros(n, bool),
        "x": np.linspace(0.1, 0.9, n),
        "v": np.linspace(0.5, 1.5, n),
        "n": np.zeros(n, np.int32),
        STEPS: np.zeros(n, np.int32),
    }


# what a run computes


def stepped(start: Mapping[str, Any], most: int) -> dict[str, Array]:
    """The interpreter's steps, each sample as long as it is not done."""
    step = swing.program()
    now = dict(start)
    for _ in range(most):
        active = ~now["done"]
        now |= {k: np.where(active, a, now[k]) for k, a in interpret(step, now).items()}
        now[STEPS] = now[STEPS] + active.astype(np.int32)
    return now


@given(st.integers(1, 9), st.integers(0, 15), st.floats(0.2, 2.0))
def test_a_run_is_its_steps(n: int, most: int, limit: float) -> None:
    start = planes(n, limit)
    found = interpret(verify(Run(swing.definition).program(Type.F64)), start | {LIMIT: np.int32(most)})
    expected = stepped(start, most)
    assert found.keys() == {"done", "x", "v", "n", STEPS}
    assert all(found[k].tobytes() == expected[k].tobytes() for k in found)


def test_a_run_goes_on_from_the_steps_it_has_taken() -> None:
    program = Run(swing.definition).program(Type.F64)
    start = planes(9)
    first = interpret(program, start | {LIMIT: np.int32(4)})
    then = interpret(program, start | first | {LIMIT: np.int32(11)})
    whole = interpret(program, start | {LIMIT: np.int32(11)})
    assert all(then[k].tobytes() == whole[k].tobytes() for k in whole)
    assert 4 < whole[STEPS].max() < 12
    assert whole[STEPS].min() < 11


def test_the_arguments_of_a_run() -> None:
    program = Run(swing.definition).program(Type.F64)
    roles = {a.name: a.role for a in program.arguments}
    assert list(roles) == ["dt", "limit", "done", "x", "v", "n", STEPS, LIMIT]
    assert roles["done"] is roles["x"] is roles[STEPS] is Role.MUTABLE
    assert roles[LIMIT] is Role.PARAM


@pytest.mark.parametrize("kernel", [swing, drift])
def test_a_run_of_float32_and_its_pickle(kernel: hawk.Kernel) -> None:
    run = Run(kernel.definition)
    again = pickle.loads(pickle.dumps(run))
    assert again.precisions == run.precisions == (Type.F64, Type.F32)
    for real in run.precisions:
        assert text(verify(again.program(real))) == text(run.program(real))


def test_compiled_runs_are_interpreted_runs() -> None:
    given = planes(37) | {LIMIT: np.int32(12)}
    assert_compiled_as_interpreted(Run(swing.definition).program(Type.F64), given, WIDTHS)


# its reverse


def vjp(definition: Definition, schedule: Schedule) -> Program:
    return verify(Vjp(definition, None, schedule=schedule).program(Type.F64))


class _Counting(_Interpreter):
    """Notes what every sine is taken of: the step's only one, so that it tells which step is computed."""

    def __init__(self, program: Program, planes: Mapping[str, Any]) -> None:
        super().__init__(program, planes, Type.F64)
        self.seen: list[Array] = []

    def _scalar(self, instr: Instr, args: list[Array]) -> Array:
        if instr.op == "sin":
            self.seen.append(np.where(self._mask, args[0], np.nan))
        return super()._scalar(instr, args)


def steps_computed(schedule: Schedule, most: int, sizes: Mapping[str, int]) -> list[int]:
    """The steps that a run of one sample and its reverse compute, by number."""
    xs, x = [], np.array([0.3])
    for _ in range(most):
        xs.append(x[0])
        x = interpret(drift.program(), {"dt": 0.1, "x": x})["x"]
    given: dict[str, Any] = {"dt": 0.1, "x": np.array([0.3]), STEPS: np.zeros(1, np.int32), LIMIT: most}
    counting = _Counting(vjp(Run(drift.definition), schedule), given | sizes | {"bar_x": np.ones(1)})
    counting.run()
    return [xs.index(float(x[0])) for x in counting.seen if not np.isnan(x[0])]


@pytest.mark.parametrize("most", [0, 1, 2, 7, 20])
def test_a_reverse_that_keeps_every_state_computes_each_step_once_more_from_the_last(most: int) -> None:
    assert steps_computed(FULL, most, {"window": max(most, 1)}) == [*range(most), *reversed(range(most))]


@pytest.mark.parametrize("window", [1, 2, 3, 5, 7, 19, 20])
@pytest.mark.parametrize("most", [0, 1, 7, 20])
def test_a_reverse_by_windows_runs_each_again_from_its_start_and_takes_it_back(most: int, window: int) -> None:
    """The windows from the last to the first; a window's steps up, onto the tape, then down."""
    expected = list(range(most))
    for start in reversed(range(0, most, window)):
        steps = range(start, min(start + window, most))
        expected += [*steps, *reversed(steps)]
    found = steps_computed(WINDOWS, most, {"window": window, "checkpoints": -(-max(most, 1) // window)})
    assert found == expected
    assert all(found.count(step) == 3 for step in range(most))


@pytest.mark.parametrize("window", [1, 3, 4, 20])
def test_windows_change_no_bit(window: int) -> None:
    """Of samples of different lengths, in the interpreter and at every width of lanes."""
    run, most = Run(swing.definition), 20
    seeds = {"bar_x": np.linspace(0, 1, 19), "bar_v": np.linspace(1, 2, 19)}
    given = planes(19, 1.3) | seeds | {LIMIT: np.int32(most)}
    steps = interpret(run.program(Type.F64), given)[STEPS]
    assert len(set(steps.tolist())) > 3
    full = interpret(vjp(run, FULL), given | {"window": np.int32(most)})
    by_windows = vjp(run, WINDOWS)
    given |= {"window": np.int32(window), "checkpoints": np.int32(-(-most // window))}
    found = interpret(by_windows, given)
    assert all(found[k].tobytes() == full[k].tobytes() for k in full)
    assert_compiled_as_interpreted(by_windows, given, (1, 4, 16))
