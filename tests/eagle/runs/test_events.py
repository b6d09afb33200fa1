"""Stops refined inside the last step: times, states and their derivatives, against closed forms."""

from typing import Any

import numpy as np
import pytest
from eagletest.numpy_sums import bits
from hypothesis import given
from hypothesis import strategies as st

import eagle
import hawk
from eagle import Status
from eagle.errors import EventError
from eagle.runs import Simulation
from hawk import events

from . import kernels as k
from .running import Planes, copied, gradients, ran, same_bits, simulation

STEPS_OF_TIME = (0.1, 0.37, 1.0, 0.125)


def refined(kernel: hawk.Kernel, planes: Planes, max_steps: int = 1000, **options: Any) -> Simulation:
    """A refined, recorded simulation that has run."""
    sim = simulation(kernel, planes, max_steps, record=True, events="refine", **options)
    sim.run()
    return sim


def reversed_(sim: Simulation, **seeds: float) -> dict[str, np.ndarray]:
    state = sim.runner.state
    grads = eagle.diff.reverse(sim.record, {name: np.full(state[name].shape, s) for name, s in seeds.items()})
    return {name: np.asarray(grads[name]) for name in grads}


def close(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


# a ball that falls


def falling(dt: float, heights: np.ndarray, g: float = 9.8, v: float = 0.0) -> dict[str, Any]:
    return {"dt": dt, "g": g, "y": heights, "v": np.full(heights.shape, v), "t": np.zeros(heights.shape)}


@pytest.mark.parametrize("dt", [*STEPS_OF_TIME, 10.0 / 7.0, 5.0, 1e-3])
def test_a_ball_that_falls(dt: float) -> None:
    """The time, the state and their derivatives by height, gravity, speed and the start of time; for every step."""
    sim = refined(k.fall, falling(dt, np.array([10.0])), 10_000)
    time = np.sqrt(20 / 9.8)
    close(sim.runner.t_stop, time)
    close(sim.planes["y"], 0.0, 1e-13)
    close(sim.planes["v"], -9.8 * time)
    assert sim.runner.event_status.tolist() == [Status.EVENT]
    assert sim.runner.event_rule.tolist() == [0]
    by_time = reversed_(sim, t=1.0)
    close(by_time["y"], 1 / (9.8 * time))
    close(by_time["y"], 0.0714285714285714)
    close(by_time["g"], -time / (2 * 9.8))
    close(by_time["v"], 1 / 9.8)
    close(by_time["t"], 1.0)
    close(by_time["dt"], 0.0, 1e-10)
    by_speed = reversed_(sim, v=1.0)
    close(by_speed["y"], -0.7)
    close(by_speed["g"], -time / 2)
    assert all(np.abs(g).max() < 1e-12 for name, g in reversed_(sim, y=1.0).items() if name != "dt")


@pytest.mark.parametrize("dt", STEPS_OF_TIME)
def test_a_threshold_that_is_a_param(dt: float) -> None:
    """x0 exp(-T) = q."""
    sim = refined(k.cool, {"dt": dt, "q": 0.25, "x": np.array([1.0]), "t": np.zeros(1)})
    close(sim.runner.t_stop, np.log(4.0))
    by_time, by_state = reversed_(sim, t=1.0), reversed_(sim, x=1.0)
    close(by_time["q"], -4.0)
    close(by_time["x"], 1.0)
    close(by_state["q"], 1.0)
    close(by_state["x"], 0.0)


def test_a_stepped_stop_does_not_move() -> None:
    grads = gradients(k.fall, falling(0.1, np.linspace(1, 5, 5)), {"t": 1.0})
    assert grads["y"].tolist() == [0.0] * 5


def test_without_the_time_of_the_event_the_derivatives_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above see the implicit derivative: take it away, and they fail."""

    def fixed(self: Any, root: Any, which: Any) -> Any:
        return root, self._int(events.EVENT)

    monkeypatch.setattr(events._Refinement, "_root_and_derivatives", fixed)
    cut = hawk.Kernel("cut", hawk.kernel(k.fall.__wrapped__).definition, None, k.fall.stepping)
    sim = refined(cut, falling(0.1, np.array([10.0])))
    close(sim.runner.t_stop, np.sqrt(20 / 9.8))
    assert reversed_(sim, t=1.0)["y"] == 0.0
    assert abs(reversed_(sim, v=1.0)["y"] + 0.7) > 0.1


@given(st.floats(0.01, 2.0), st.floats(0.05, 50.0), st.floats(-5.0, 5.0), st.floats(1.0, 20.0))
def test_any_ball(dt: float, height: float, v: float, g: float) -> None:
    sim = refined(k.fall, falling(dt, np.array([height]), g, v), 100_000)
    root = np.sqrt(v * v + 2 * g * height)
    time = (v + root) / g
    close(sim.runner.t_stop, time, 1e-12)
    grads = reversed_(sim, t=1.0)
    scale = 1 + 1 / root
    close(grads["y"], 1 / root, 1e-11 * scale)
    close(grads["v"], time / root, 1e-11 * scale)
    close(grads["g"], -(time**2) / 2 / root, 1e-10 * scale)


def test_time_that_runs_backwards() -> None:
    """To where the ball was thrown from."""
    v = np.array([-3.0, 1.0])
    planes = falling(-0.1, np.array([1.0, 2.0])) | {"v": v}
    sim = refined(k.fall, planes)
    root = np.sqrt(v * v + 2 * 9.8 * planes["y"])
    close(sim.runner.t_stop, (v - root) / 9.8)
    grads = reversed_(sim, t=1.0)
    close(grads["y"], -1 / root)
    close(grads["v"], (1 - v / root) / 9.8)


# where the root lies


Q = [0.05, 0.1, 0.3, 0.30000000000000004, 0.5, 0.7, 5.0]


@pytest.mark.parametrize("kernel", [k.reach, k.pass_by])
@pytest.mark.parametrize("dt", [*STEPS_OF_TIME, 0.05])
def test_inside_a_step_and_on_its_edge(kernel: hawk.Kernel, dt: float) -> None:
    """And one number to either side: the time is q, and moves as q does, whichever step it falls into."""
    q = np.array([x for at in Q for x in (np.nextafter(at, 0), at, np.nextafter(at, 9))])
    sim = refined(kernel, {"dt": dt, "q": q, "u": np.zeros(q.size), "t": np.zeros(q.size)})
    assert (np.abs(sim.runner.t_stop - q) <= 1e-14).all()
    assert (np.abs(sim.planes["u"] - q) <= 1e-14).all()
    assert (sim.runner.event_status == Status.EVENT).all()
    grads = reversed_(sim, t=1.0)
    assert (np.abs(grads["q"] - 1) <= 1e-14).all()
    assert (np.abs(grads["u"] + 1) <= 1e-14).all()
    assert (np.abs(reversed_(sim, u=1.0)["u"]) <= 1e-14).all()


@pytest.mark.parametrize(
    ("height", "v", "time"),
    [
        (0.0, 0.3, 0.6),  # the event before this one was here: it rises, and falls within the step
        (-1e-17, 0.3, 0.6),  # the same, by rounding below
        (1e-17, 0.3, 0.6),
        (0.0, 1e-6, 2e-6),  # the whole bounce is short
        (0.0, 0.75, 1.5),  # it ends in a later step
        (0.0, -0.1, 0.0),  # on its way down: at once
        (-0.1, 1.0, 1.0 + np.sqrt(0.8)),  # begins where the rule holds, leaves and comes back
        (-0.375, 1.0, 1.5),
    ],
)
def test_a_start_at_the_event(height: float, v: float, time: float) -> None:
    """With a step of 1, longer than most of them take."""
    sim = refined(k.fall, falling(1.0, np.array([height]), 1.0, v))
    close(sim.runner.t_stop, time, 2e-14)
    assert sim.runner.event_status.tolist() == [Status.EVENT]
    close(reversed_(sim, t=1.0)["y"], 1 / np.sqrt(v * v + 2 * height), 1e-10)


def test_a_guard_that_is_no_number_after_a_step_of_nothing() -> None:
    """The rate over the step falls from cos t below q: found where (sin(t + tau) - sin t) / tau = q."""
    sim = refined(k.quotient, {"dt": 0.4, "q": np.array([0.99]), "x": np.zeros(1), "t": np.zeros(1)})
    tau = sim.runner.t_stop[0]
    close(np.sin(tau) / tau, 0.99, 1e-13)
    close(reversed_(sim, t=1.0)["q"], 1 / (np.cos(tau) / tau - np.sin(tau) / tau**2), 1e-10)


@given(st.floats(0.1, 600.0), st.floats(0.01, 0.99))
def test_a_rule_as_bent_as_you_like(a: float, time: float) -> None:
    """exp(a t) = q: over the step the two sides differ by up to 10^260, where they meet by nothing."""
    sim = refined(k.grow_fast, {"dt": 1.0, "a": np.array([a]), "q": np.exp([a * time]), "t": np.zeros(1)})
    q = sim.planes["q"][0]
    close(sim.runner.t_stop, np.log(q) / a, 1e-15 * (1 + 1 / a))
    close(reversed_(sim, t=1.0)["q"] * a * q, 1.0, 1e-12)
    close(reversed_(sim, t=1.0)["a"], -np.log(q) / a**2, 1e-12 * (1 + 1 / a))


# a flight, an orbit


@pytest.mark.parametrize("dt", STEPS_OF_TIME)
def test_a_flight(dt: float) -> None:
    """Range vx 2 vy / g; the rule has a second part, that holds long before."""
    vx, vy = np.array([3.0, 10.0]), np.array([4.0, 25.0])
    zeros = np.zeros(2)
    sim = refined(k.throw, {"dt": dt, "g": 9.81, "x": zeros, "y": zeros, "vx": vx, "vy": vy, "t": zeros})
    close(sim.planes["x"], 2 * vx * vy / 9.81)
    assert sim.runner.event_rule.tolist() == [1, 1]
    grads = reversed_(sim, x=1.0)
    close(grads["vx"], 2 * vy / 9.81)
    close(grads["vy"], 2 * vx / 9.81)
    close(grads["g"], np.sum(-2 * vx * vy / 9.81**2))
    close(grads["y"], vx / vy)
    close(grads["x"], 1.0)


def kepler_time(mu: float, a: float, e: float, anomaly: float) -> float:
    """From the pericentre to a true anomaly below pi."""
    half = 2 * np.arctan(np.sqrt((1 - e) / (1 + e)) * np.tan(anomaly / 2))
    return float(np.sqrt(a**3 / mu) * (half - e * np.sin(half)))


def test_an_orbit() -> None:
    """The time of a true anomaly, by Kepler's equation, and its derivatives by differences of that."""
    mu, a = 1.0, 1.0
    e, anomaly = np.array([0.1, 0.3, 0.5]), np.array([1.0, 2.0, 2.5])
    x, vy = a * (1 - e), np.sqrt(mu * (1 + e) / (a * (1 - e)))
    zeros = np.zeros(3)
    planes = {"dt": 2e-3, "mu": mu, "nx": np.cos(anomaly), "ny": np.sin(anomaly), "x": x, "y": zeros, "vx": zeros,
              "vy": vy, "t": zeros}  # fmt: skip
    sim = refined(k.orbit, planes, 5000)
    close(sim.runner.t_stop, [kepler_time(mu, a, *pair) for pair in zip(e, anomaly, strict=True)], 1e-10)
    grads = reversed_(sim, t=1.0)

    def by_start(x: float, vy: float, anomaly: float) -> float:
        axis = 1 / (2 / x - vy * vy / mu)
        return kepler_time(mu, axis, 1 - x / axis, anomaly)

    for i in range(3):
        at = x[i], vy[i], anomaly[i]
        by_x, by_vy, by_angle = (
            (by_start(*(at + h * d)) - by_start(*(at - h * d))) / (2 * h) for h in (1e-6,) for d in np.eye(3)
        )
        close(grads["x"][i], by_x, 1e-8)
        close(grads["vy"][i], by_vy, 1e-8)
        turned = grads["nx"][i] * -np.sin(anomaly[i]) + grads["ny"][i] * np.cos(anomaly[i])
        close(turned, by_angle, 1e-8)


# several rules


def three(*rows: tuple[float, float, float], dt: float = 2.0) -> dict[str, Any]:
    a, b, c = (np.array(column) for column in zip(*rows, strict=True))
    return {"dt": dt, "a": a, "b": b, "c": c, "t": np.zeros(len(rows))}


def test_the_first_of_several_wins_in_any_order() -> None:
    rows = [(1.0, 0.5, 1.5), (0.5, 1.0, 1.5), (1.5, 1.0, 0.5), (1.0, 1.5, 0.5), (5.0, 0.5, 9.0)]
    sim = refined(k.first_of, three(*rows))
    assert sim.planes["t"].tolist() == [0.5] * 5
    assert sim.runner.event_rule.tolist() == [1, 0, 2, 2, 1]
    grads = reversed_(sim, t=1.0)
    winners = np.eye(3)[[1, 0, 2, 2, 1]].T
    for name, expected in zip("abc", winners, strict=True):
        assert grads[name].tolist() == expected.tolist()  # and nothing flows through the others


def test_rules_at_one_time() -> None:
    """The lowest is named, the tie is said, and there is no derivative."""
    ulp = np.nextafter(0.5, 1)
    rows = [(0.5, 0.5, 1.5), (1.5, 0.5, 0.5), (0.5, 1.5, 0.5), (0.5, 0.5, 0.5), (0.7, 0.5, ulp), (0.5, 0.5 + 1e-9, 1.0)]
    sim = refined(k.first_of, three(*rows))
    close(sim.planes["t"], 0.5, 1e-15)
    assert sim.runner.event_rule.tolist() == [0, 1, 0, 0, 1, 0]
    assert sim.runner.event_status.tolist() == [Status.TIE] * 5 + [Status.EVENT]
    message = (
        "first_of: the events of 5 of 6 samples have no derivative, the first is sample 0: two of its stop rules begin "
        "to hold at one time: the time of the event has no single derivative. Leave these samples out of the run, or "
        "use events='step'"
    )
    for derivative in (eagle.diff.reverse, eagle.diff.forward):
        with pytest.raises(EventError) as refusal:
            derivative(sim.record, {"t": np.ones(6)})
        assert str(refusal.value) == message


def test_and_or_and_not() -> None:
    """(a and b) or c: the later of a and b, or c if that is first. A tie that decides nothing is none."""
    rows = [(0.5, 1.0, 1.5), (1.0, 0.5, 1.5), (1.0, 0.5, 0.7), (-0.5, 0.6, 9.0), (9.0, 0.5, 0.5), (9.0, 0.7, 0.5),
            (0.5, 0.5, 0.4)]  # fmt: skip
    sim = refined(k.nested, three(*rows))
    close(sim.planes["t"], [1.0, 1.0, 0.7, 0.6, 0.5, 0.5, 0.4], 1e-15)
    assert sim.runner.event_rule.tolist() == [1, 0, 2, 1, 2, 2, 2]
    assert (sim.runner.event_status == Status.EVENT).all()
    grads = reversed_(sim, t=1.0)
    assert grads["a"].tolist() == [0, 1, 0, 0, 0, 0, 0]
    assert grads["b"].tolist() == [1, 0, 0, 1, 0, 0, 0]
    assert grads["c"].tolist() == [0, 0, 1, 0, 1, 1, 1]


def test_an_and_at_one_time_is_a_tie() -> None:
    sim = refined(k.nested, three((0.5, 0.5, 9.0)))
    assert sim.runner.event_status.tolist() == [Status.TIE]


# no derivative, no event


def touching(*q: float) -> dict[str, Any]:
    return {"dt": 0.5, "q": np.array(q), "x": np.ones(len(q)), "t": np.zeros(len(q))}


@pytest.mark.parametrize("kernel", [k.parabola, k.cubic])
def test_a_rule_that_is_touched_has_no_derivative(kernel: hawk.Kernel) -> None:
    sim = refined(kernel, touching(0.0, 0.01, 0.0))
    assert sim.runner.event_status.tolist() == [Status.GRAZING, Status.EVENT, Status.GRAZING]
    close(sim.runner.t_stop[[0, 2]], 1.0, 1e-5)
    with pytest.raises(EventError) as refusal:
        reversed_(sim, t=1.0)
    assert str(refusal.value) == (
        f"{kernel.name}: the events of 2 of 3 samples have no derivative, the first is sample 0: its stop rule is "
        "touched, not crossed: the time of the event has no derivative. Leave these samples out of the run, or use "
        "events='step'"
    )


@pytest.mark.parametrize("q", [0.01, 1e-4, 1e-8])
def test_a_rule_that_is_nearly_touched_is_crossed(q: float) -> None:
    """T = 1 - sqrt(q), with a derivative that grows without bound."""
    sim = refined(k.parabola, touching(q))
    close(sim.runner.t_stop, 1 - np.sqrt(q), 1e-13 / np.sqrt(q))
    close(reversed_(sim, t=1.0)["q"], -0.5 / np.sqrt(q), 1e-11 / np.sqrt(q))


def test_a_jump_has_no_derivative() -> None:
    sim = refined(k.broken, {"dt": 0.4, "q": np.array([0.5, 9e9]), "x": np.ones(2), "t": np.zeros(2)})
    assert sim.runner.event_status.tolist() == [Status.JUMP, Status.EVENT]
    close(sim.runner.t_stop, [0.5, 10.0], 1e-15)
    with pytest.raises(EventError, match=r"broken: the events of 1 of 2 samples .* sample 0: its stop rule jumps"):
        reversed_(sim, t=1.0)


NONE = (
    "fall: 2 of 3 samples have no event, the first is sample 1: {}. Pass on_no_event='zero' to let their stop times "
    "have derivative zero"
)


def test_no_event_before_the_last_step() -> None:
    planes = falling(0.1, np.array([0.1, 10.0, 20.0]))
    with pytest.raises(EventError) as refusal:
        refined(k.fall, planes, 10)
    message = "it took max_steps steps and its stop rule did not hold"
    assert str(refusal.value) == NONE.format(message) + ", or raise max_steps"
    sim = refined(k.fall, planes, 10, on_no_event="zero")
    assert sim.runner.event_status.tolist() == [Status.EVENT, Status.MAX_STEPS, Status.MAX_STEPS]
    assert sim.runner.event_rule.tolist() == [0, -1, -1]
    assert sim.result.finished.tolist() == [True, False, False]
    close(sim.runner.t_stop, [np.sqrt(0.2 / 9.8), 1.0, 1.0])
    close(reversed_(sim, t=1.0)["y"], [1 / (9.8 * np.sqrt(0.2 / 9.8)), 0.0, 0.0])


def test_a_rule_that_held_from_the_start_has_no_event() -> None:
    """Its sample takes the whole step, as a stepped run does."""
    planes = falling(0.1, np.array([0.1, -1.0, -2.0]), v=-1.0)
    with pytest.raises(EventError) as refusal:
        refined(k.fall, planes)
    message = "its stop rule held at the end of its last step, but does not begin to hold inside that step"
    assert str(refusal.value) == NONE.format(message)
    sim = refined(k.fall, planes, on_no_event="zero")
    assert sim.runner.event_status.tolist() == [Status.EVENT, Status.NO_CROSSING, Status.NO_CROSSING]
    stepped = ran(k.fall, planes)
    for name in ("y", "v", "t"):
        assert bits(sim.planes[name][1:]) == bits(stepped.state[name][1:])
    assert reversed_(sim, t=1.0)["y"][1:].tolist() == [0.0, 0.0]


def test_done_at_the_start_is_no_event() -> None:
    planes = falling(0.1, np.array([1.0, 2.0])) | {"done": np.array([True, False])}
    sim = refined(k.fall, planes)
    assert sim.runner.event_status.tolist() == [Status.DONE, Status.EVENT]
    assert sim.planes["y"][0] == 1.0
    assert reversed_(sim, y=1.0)["y"][0] == 1.0


# the same bits


def test_a_refined_run_is_a_stepped_run_up_to_its_last_step() -> None:
    planes = falling(0.05, np.linspace(0.1, 5, 200))
    sim, stepped = refined(k.fall, planes), ran(k.fall, planes)
    assert (sim.result.steps == stepped.steps).all()
    assert ((stepped.t - sim.planes["t"] >= 0) & (stepped.t - sim.planes["t"] <= 0.05 + 1e-12)).all()


def test_a_sample_has_its_bits_wherever_it_is() -> None:
    planes = falling(0.05, np.linspace(0.1, 5, 100))
    whole = refined(k.fall, planes)
    grads = reversed_(whole, t=1.0)
    for samples in (slice(0, 1), slice(40, 57), slice(None, None, -1)):
        part = refined(k.fall, {n: np.ascontiguousarray(a[samples]) if np.ndim(a) else a for n, a in planes.items()})
        same_bits(part.runner.state.values(), [a[samples] for a in whole.runner.state.values()])
        same_bits([reversed_(part, t=1.0)["y"]], [grads["y"][samples]])


def test_a_refined_run_in_parts() -> None:
    planes = falling(0.05, np.linspace(0.1, 5, 50))
    runner = simulation(k.fall, planes, record=True, events="refine").runner
    runner.run(steps=9)
    assert 0 < runner.finished.sum() < 50
    runner.run()
    whole = refined(k.fall, planes)
    same_bits(runner.state.values(), whole.runner.state.values())
    same_bits(
        eagle.diff.reverse(runner.record, {"t": np.ones(50)}).values(),
        eagle.diff.reverse(whole.record, {"t": np.ones(50)}).values(),
    )


def test_float32() -> None:
    planes = {n: np.float32(a) for n, a in falling(0.1, np.linspace(1, 5, 20)).items()}
    sim = refined(k.fall, planes, mode="float32")
    time = np.sqrt(2 * np.linspace(1, 5, 20) / 9.8)
    close(sim.runner.t_stop, time, 3e-6)
    grads = reversed_(sim, t=1.0)
    assert grads["y"].dtype == np.float32
    close(grads["y"], 1 / (9.8 * time), 3e-6)


def test_a_step_with_a_table_and_a_loop() -> None:
    """Against differences."""
    n = 50
    planes = {"dt": 0.05, "wind": np.linspace(0.2, 1.5, 8), "top": np.linspace(1, 4, n), "h": np.zeros(n),
              "x": np.linspace(0.0123, 3.0457, n), "t": np.zeros(n)}  # fmt: skip
    grads = reversed_(refined(k.climb, planes), t=1.0)
    along = np.linspace(-1, 1, 8)

    def by(name: str, direction: np.ndarray) -> np.ndarray:
        ends = [refined(k.climb, planes | {name: planes[name] + s * 1e-6 * direction}) for s in (1, -1)]
        return (ends[0].runner.t_stop - ends[1].runner.t_stop) / 2e-6

    close(by("wind", along).sum(), (grads["wind"] * along).sum(), 1e-7)
    close(by("top", np.ones(n)), grads["top"], 1e-8)
    assert abs((grads["wind"] * along).sum()) > 1


# derivatives of derivatives, forward mode


def test_forward_agrees_with_reverse() -> None:
    planes = falling(0.1, np.linspace(1, 5, 20), v=0.3)
    sim = refined(k.fall, planes)
    for name in ("y", "v", "t"):
        ones = np.ones(20)
        moved = eagle.diff.forward(sim.record, {name: ones})
        close(moved["t"], reversed_(sim, t=1.0)[name], 1e-14)
        close(moved["v"], reversed_(sim, v=1.0)[name], 1e-13)


@pytest.mark.parametrize("dt", STEPS_OF_TIME)
def test_second_derivatives(dt: float) -> None:
    """T = (v + r) / g with r^2 = v^2 + 2 g y, along (dy, dv)."""
    g, y, v = 9.8, np.linspace(1, 5, 20), np.linspace(-1, 3, 20)
    sim = refined(k.fall, falling(dt, y) | {"v": v})
    dy, dv = np.linspace(0, 1, 20), np.linspace(2, -1, 20)
    r = np.sqrt(v * v + 2 * g * y)
    by_yy, by_yv, by_vv = -g / r**3, -v / r**3, (1 / r - v * v / r**3) / g
    found = eagle.diff.hvp(sim, {"t": np.ones(20)}, {"y": dy, "v": dv})
    close(found["y"], by_yy * dy + by_yv * dv)
    close(found["v"], by_yv * dy + by_vv * dv)
    state = eagle.diff.hvp(sim, {"y": np.ones(20)}, {"y": dy, "v": dv})
    close([state["y"], state["v"]], 0.0)


def test_a_step_of_several_kernels_and_a_rule_of_its_own() -> None:
    """Asked before the first step too, where it holds for the last sample."""
    planes = {"dt": 0.4, "x": np.array([0.0, 1.0, 9.0]), "t": np.zeros(3), "q": np.full(3, 3.0)}
    sim = eagle.simulation(
        [k.tick, k.grow], until=k.large, max_steps=99, record=True, events="refine", **copied(planes)
    )
    sim.run()
    close(sim.planes["t"], [3.0, 2.0, 0.0], 1e-14)
    assert sim.runner.event_status.tolist() == [Status.EVENT, Status.EVENT, Status.DONE]
    grads = reversed_(sim, t=1.0)
    close(grads["q"], [1.0, 1.0, 0.0], 1e-14)
    close(grads["x"], [-1.0, -1.0, 0.0], 1e-14)
