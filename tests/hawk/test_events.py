"""Refined runs as programs: derivatives of every order; the rules that cannot be refined, by the user's line."""

import pickle
from typing import Any

import numpy as np
import pytest
from hawktest.compiled import assert_compiled_as_interpreted

import hawk
from hawk import Bool, Int32, Mutable, Param, Scalar, Terminated
from hawk import math as hm
from hawk.diff import Vjp, jvp, vjp
from hawk.diff.loops import Schedule
from hawk.events import EVENT, RULE, STATUS, EventRun, NoSmoothCrossing
from hawk.ir.interpret import interpret
from hawk.ir.printer import text
from hawk.ir.types import Type
from hawk.ir.verify import verify
from hawk.run import LIMIT, STEPS


@hawk.kernel(time="t", time_step="dt")
def turn(dt: Param, q: Scalar, w: Scalar, done: Terminated, x: Mutable[Scalar], v: Mutable[Scalar], t: Mutable[Scalar]):
    """An exact step of a rotation."""
    c, s = hm.cos(w * dt), hm.sin(w * dt)
    xn = c * x + s * v
    v = c * v - s * x
    x = xn
    t = t + dt
    done = hm.exp(xn) < hm.exp(q)


def planes(n: int, most: int = 200) -> dict[str, Any]:
    counts = {name: np.zeros(n, np.int32) for name in (STEPS, STATUS, RULE)}
    return {
        "dt": np.float64(0.1),
        "q": np.linspace(0.1, 0.4, n),
        "w": np.linspace(1.3, 0.7, n),
        "done": np.zeros(n, bool),
        "x": np.linspace(2.0, 1.0, n),
        "v": np.linspace(0.3, -0.1, n),
        "t": np.zeros(n),
        LIMIT: np.int32(most),
        **counts,
    }


def end(q: Any, w: Any, x: Any, v: Any) -> Any:
    """The time of the event."""
    return (np.arctan2(v, x) + np.arccos(q / np.hypot(x, v))) / w


def test_the_event_in_the_interpreter() -> None:
    given = planes(9)
    found = interpret(verify(EventRun(turn.definition, "dt").program(Type.F64)), given)
    np.testing.assert_allclose(found["t"], end(*(given[k] for k in "qwxv")), rtol=1e-15)
    assert found["done"].all()
    assert (found[STATUS] == EVENT).all()
    assert (found[RULE] == 0).all()


def test_compiled_event_runs_are_interpreted_ones() -> None:
    run = EventRun(turn.definition, "dt")
    assert_compiled_as_interpreted(run.program(Type.F64), planes(21, 12), (1, 8, 16))
    seeds = {"bar_t": np.linspace(0, 1, 21), "bar_x": np.ones(21), "bar_v": np.ones(21)}
    back = Vjp(run, None, schedule=Schedule("window", "checkpoints"))
    sizes = {"window": np.int32(5), "checkpoints": np.int32(3)}
    assert_compiled_as_interpreted(verify(back.program(Type.F64)), planes(21, 12) | seeds | sizes, (8,))


def test_pickles_and_precisions() -> None:
    run = EventRun(turn.definition, "dt")
    again = pickle.loads(pickle.dumps(run))
    for real in (Type.F64, Type.F32):
        assert text(verify(again.program(real))) == text(run.program(real))


def test_first_and_second_derivatives_are_those_of_the_implicit_function() -> None:
    """Of the time by everything it depends on, forward over reverse; expected from differences of the closed form's
    own derivatives, in steps that cost few digits."""
    names = ("q", "w", "x", "v")
    run = hawk.Kernel("run", EventRun(turn.definition, "dt"))
    back = vjp(run, names)
    program = verify(jvp(hawk.Kernel("back", back), names).program(Type.F64))
    given = planes(5) | {"dt": np.float64(0.4)}
    at = np.array([given[k] for k in names])
    zeros = {a.name: np.zeros(5 if a.role.value != "param" else ()) for a in program.arguments if a.name not in given}

    def by(k: int, at: np.ndarray, h: float = 1e-3) -> np.ndarray:
        """d end / d at[k], by differences of the sixth order."""
        step = h * np.eye(4)[:, k : k + 1]
        pairs = [end(*(at + i * step)) - end(*(at - i * step)) for i in (1, 2, 3)]
        return (45 * pairs[0] - 9 * pairs[1] + pairs[2]) / (60 * h)

    for k, moved in enumerate(names):
        found = interpret(program, zeros | given | {"bar_t": np.ones(5), f"dot_{moved}": np.ones(5)})
        for j, name in enumerate(names):
            step = 1e-3 * np.eye(4)[:, k : k + 1]
            pairs = [by(j, at + i * step) - by(j, at - i * step) for i in (1, 2, 3)]
            expected = (45 * pairs[0] - 9 * pairs[1] + pairs[2]) / (60 * 1e-3)
            np.testing.assert_allclose(
                found[f"dot_bar_{name}"], expected, rtol=1e-7, atol=1e-7, err_msg=f"{moved} {name}"
            )


# rules


def refusal(kernel: hawk.Kernel) -> str:
    with pytest.raises(NoSmoothCrossing) as refused:
        EventRun(kernel.definition, "dt")
    return str(refused.value)


def expected(kernel: hawk.Kernel, what: str, line: str | None = None, offset: int = 0) -> str:
    """The message, with the file, the number and the text of the user's line."""
    head = (
        f"{kernel.name}: its stop rule has no smooth crossing: {what}. With events='refine' it is a comparison of "
        "reals (<, <=, >, >=), or several joined by `and` and `or`"
    )
    if line is None:
        return head
    assert kernel.__wrapped__ is not None
    first = kernel.__wrapped__.__code__.co_firstlineno
    return f'{head}\n  File "{__file__}", line {first + offset}\n    {line}'


@hawk.kernel
def equal(dt: Param, done: Terminated, x: Mutable[Scalar]):
    x = x + dt
    done = x == 1.0


@hawk.kernel
def unequal(dt: Param, done: Terminated, x: Mutable[Scalar]):
    x = x + dt
    done = x > 0.5 and x != 1.0


@hawk.kernel
def whole(dt: Param, done: Terminated, x: Mutable[Scalar], n: Mutable[Int32]):
    x = x + dt
    n = n + 1
    done = n >= 3


@hawk.kernel
def flagged(dt: Param, stop: Bool, done: Terminated, x: Mutable[Scalar]):
    x = x + dt
    done = x > 1.0 or stop


@hawk.kernel
def only_a_flag(dt: Param, stop: Bool, done: Terminated, x: Mutable[Scalar]):
    x = x + dt
    done = stop


@hawk.kernel
def late(dt: Param, done: Terminated, x: Mutable[Scalar]):
    """The rule looks at the state before the step."""
    done = x > 1.0
    x = x + dt


@hawk.kernel
def chosen(dt: Param, done: Terminated, x: Mutable[Scalar]):
    x = x + dt
    done = (x > 1.0) if x > 0.5 else (x < -1.0)


@hawk.kernel
def never(dt: Param, x: Mutable[Scalar]):
    x = x + dt


@hawk.kernel
def counted(dt: Param, done: Terminated, x: Mutable[Scalar]):
    x = x + dt
    n = 0
    for _ in range(100):
        n = n + 1
        if n * x > 9.0:
            break
    done = n < 50


@pytest.mark.parametrize(
    ("kernel", "what", "line", "offset"),
    [
        (equal, "it depends on ==", "done = x == 1.0", 3),
        (unequal, "it depends on !=", "done = x > 0.5 and x != 1.0", 3),
        (whole, "it compares i32 values", "done = n >= 3", 4),
        (flagged, "it depends on a flag that the step reads", "done = x > 1.0 or stop", 3),
        (only_a_flag, "it depends on a flag that the step reads", None, 0),
        (late, "its comparisons do not depend on dt, the length of the step that sets it", "done = x > 1.0", 3),
        (never, "the kernel sets no Terminated", None, 0),
        (counted, "it compares i32 values", "done = n < 50", 8),
    ],
)
def test_a_rule_without_a_smooth_crossing(kernel: hawk.Kernel, what: str, line: str | None, offset: int) -> None:
    assert refusal(kernel) == expected(kernel, what, line, offset)


def test_a_choice_between_rules() -> None:
    assert "it depends on what one branch of an `if` sets" in refusal(chosen)


@hawk.kernel
def a_step_of_nothing(dt: Param, rate: Param, done: Terminated, x: Mutable[Scalar]):
    x = x + rate
    done = x > 1.0


def test_a_step_that_does_not_depend_on_its_time_step() -> None:
    assert "do not depend on dt, the length of the step" in refusal(a_step_of_nothing)
