"""Trajectories of several phases: a bouncing ball, against closed forms."""

from typing import Any

import numpy as np
import pytest
from eagletest.kernels import plan
from eagletest.numpy_sums import bits

import eagle
from eagle import Status
from eagle.diff import Reverse, phase, reverse
from eagle.errors import ArgumentError, EventError, RecordError, ReverseError
from eagle.graph import Graph

from . import kernels as k
from .running import same_bits

SETTINGS: dict[str, Any] = {"max_steps": 4000, "events": "refine", "record": True}


def close(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


class Ball:
    """A ball that falls from `heights` and bounces `bounces` times, up to its last impact.

    Every fall is a phase of one and the same simulation.
    """

    def __init__(self, heights: np.ndarray, bounces: int, dt: float = 0.05, **options: Any) -> None:
        n = heights.size
        self.start = {"y": heights, "v": np.zeros(n), "t": np.zeros(n)}
        self.y, self.v, self.t = (a.copy() for a in self.start.values())
        self.e = np.linspace(0.5, 0.9, n)
        planes = {"dt": dt, "g": 9.81, "y": self.y, "v": self.v, "t": self.t}
        self.falls = eagle.simulation(k.fall, **planes, **(SETTINGS | options))
        self.phases = [phase(self.falls) for _ in range(bounces + 1)]
        self.graph = Graph().add_node(self.phases[0], name="fall0")
        for number, fall in enumerate(self.phases[1:], 1):
            self.graph.add(plan(k.bounce_back).bind(e=self.e, v=self.v), name=f"bounce{number}")
            self.graph.add_node(fall, name=f"fall{number}")
        self.graph.build(record=True)

    def launch(self) -> None:
        for name, array in self.start.items():
            getattr(self, name)[...] = array
        self.graph.launch()

    def gradients(self, **seeds: float) -> eagle.diff.Gradients:
        last = f"fall{len(self.phases) - 1}"
        given = {f"{last}.{name}": np.full(self.y.shape, seed) for name, seed in seeds.items()}
        return reverse(self.graph.record, given)


def sums(e: np.ndarray, bounces: int) -> tuple[np.ndarray, np.ndarray]:
    """1 + 2e + 2e^2 + ... and its derivative: the time of the last impact in units of the first."""
    powers = range(1, bounces + 1)
    return 1 + sum(2 * e**i for i in powers), sum((2 * i * e ** (i - 1) for i in powers), np.zeros_like(e))


# closed forms


@pytest.mark.parametrize("dt", [0.05, 0.37, 1.0])
@pytest.mark.parametrize("bounces", [0, 1, 2, 5])
def test_a_bouncing_ball(bounces: int, dt: float) -> None:
    """To the last impact: its time and speed, and their derivatives, whatever the step; it may hold a whole bounce."""
    heights = np.linspace(1, 5, 6)
    ball = Ball(heights, bounces, dt)
    ball.launch()
    first, speed = np.sqrt(2 * heights / 9.81), np.sqrt(2 * 9.81 * heights)
    share, by_e = sums(ball.e, bounces)
    close(ball.t, first * share)
    close(ball.v, -speed * ball.e**bounces)
    close(ball.y, 0.0)
    grads = ball.gradients(t=1.0)
    close(grads["y"], first * share / (2 * heights))
    close(grads.total("g"), np.sum(-first * share / (2 * 9.81)))
    close(grads["t"], 1.0)
    grads_of_speed = ball.gradients(v=1.0)
    close(grads_of_speed["y"], -speed * ball.e**bounces / (2 * heights))
    if bounces:
        close(grads["e"], first * by_e)
        close(grads_of_speed["e"], -bounces * speed * ball.e ** (bounces - 1))
    close([np.abs(g).max() for name, g in ball.gradients(y=1.0).items() if "dt" not in name], 0.0)


def test_the_jump_of_a_bounce() -> None:
    """Dropped from 5 with g = 10, e = 1/2, to a moment after its bounce: the saltation matrix in eight numbers."""
    y, v, t, t_end = np.array([5.0]), np.zeros(1), np.zeros(1), np.array([1.5])
    planes = {"dt": 0.07, "g": 10.0, "y": y, "v": v, "t": t}
    down = eagle.simulation(k.fall, **planes, **SETTINGS)
    up = eagle.simulation(k.fall_until, t_end=t_end, **planes, **SETTINGS)
    graph = (
        Graph()
        .add_node(phase(down), name="down")
        .add(plan(k.bounce_back).bind(e=np.array([0.5]), v=v), name="bounce")
        .add_node(phase(up), name="up")
        .build(record=True)
    )
    graph.launch()
    close(y, 1.25)
    close(v, 0.0)
    rev = Reverse(graph)
    by_y, by_v = (rev(graph.record, {f"up.{name}": np.ones(1)}) for name in ("y", "v"))
    for grads, expected in ((by_y, (0.25, 0.0, 5.0, 0.0)), (by_v, (1.5, -0.75, 10.0, -10.0))):
        found = grads["y"][0], grads.total("g"), grads["e"][0], grads["t_end"][0]
        close(found, expected)


def test_up_and_down_by_a_reset_into_another_plane() -> None:
    """The apex after a bounce is e^2 y0."""
    y0, e = np.linspace(1, 5, 5), np.full(5, 0.8)
    y, t, v_down, v_up = y0.copy(), np.zeros(5), np.zeros(5), np.zeros(5)
    shared: dict[str, Any] = {
        "dt": 0.05,
        "g": 9.81,
        "y": y,
        "t": t,
        "max_steps": 4000,
        "events": "refine",
        "record": True,
    }
    graph = (
        Graph()
        .add_node(phase(eagle.simulation(k.fall, v=v_down, **shared)), name="fall")
        .add(plan(k.bounce).bind(e=e, v_in=v_down, v=v_up), name="bounce")
        .add_node(phase(eagle.simulation(k.rise, v=v_up, **shared)), name="rise")
        .build(record=True)
    )
    graph.launch()
    close(y, e**2 * y0)
    close(t, np.sqrt(2 * y0 / 9.81) * (1 + e))
    grads = reverse(graph.record, {"rise.y": np.ones(5)})
    close(grads["e"], 2 * e * y0)
    close(grads["y"], e**2)


# launches


def test_a_phase_has_the_bits_of_its_run() -> None:
    ball = Ball(np.linspace(0.5, 5, 300), 2)
    ball.launch()
    again = Ball(np.linspace(0.5, 5, 300), 2)
    steps = []
    for number in range(3):
        if number:
            plan(k.bounce_back).bind(e=again.e, v=again.v).launch()
        again.falls.planes["done"][...] = False
        steps.append(again.falls.runner.run().steps.copy())
    same_bits((ball.y, ball.v, ball.t), (again.y, again.v, again.t))
    same_bits([node.steps for node in ball.phases], steps)


def test_each_launch_starts_every_phase_afresh() -> None:
    ball = Ball(np.linspace(1, 5, 7), 2)
    ball.launch()
    first = [bits(a) for a in (ball.y, ball.v, ball.t)], [bits(g) for g in ball.gradients(t=1.0).values()]
    ball.start["y"] = np.linspace(2, 9, 7)
    ball.launch()
    close(ball.t, np.sqrt(2 * ball.start["y"] / 9.81) * sums(ball.e, 2)[0])
    close(ball.gradients(t=1.0)["y"], ball.t / (2 * ball.start["y"]))
    ball.start["y"] = np.linspace(1, 5, 7)
    ball.launch()
    assert first == ([bits(a) for a in (ball.y, ball.v, ball.t)], [bits(g) for g in ball.gradients(t=1.0).values()])


def test_how_each_phase_ended() -> None:
    ball = Ball(np.array([1.0, 2.0]), 1, on_no_event="zero", max_steps=10)
    ball.launch()
    first, second = ball.phases
    assert first.event_status.tolist() == [Status.EVENT, Status.MAX_STEPS]
    assert first.finished.tolist() == [True, False]
    assert first.steps.tolist() == [10, 10]
    assert first.event_rule.tolist() == [0, -1]
    assert second.event_status.tolist() == [Status.EVENT, Status.MAX_STEPS]


def test_an_empty_batch_and_a_single_sample() -> None:
    for n in (0, 1):
        ball = Ball(np.ones(n), 1)
        ball.launch()
        grads = ball.gradients(t=1.0)
        assert grads["y"].shape == (n,)
        close(grads.total("g"), n * np.sqrt(2 / 9.81) * sums(np.array(0.5), 1)[0] / (-2 * 9.81))


def test_a_stepped_phase() -> None:
    """Its stop does not move; the state does."""
    x = np.array([8.0, 1.0, 0.3])
    graph = Graph().add_node(phase(eagle.simulation(k.halve, least=1.0, x=x, max_steps=100, record=True)), name="halve")
    graph.build(record=True).launch()
    assert x.tolist() == [0.5, 0.5, 0.15]
    grads = reverse(graph.record, {"x": np.ones(3)})
    assert grads["x"].tolist() == [1 / 16, 0.5, 0.5]


def test_params_are_updated_phase_by_phase() -> None:
    heights = np.linspace(1, 5, 5)
    ball = Ball(heights, 1)
    ball.graph.update(g=5.0)
    ball.launch()
    close(ball.t, np.sqrt(2 * heights / 5) * sums(ball.e, 1)[0])
    close(ball.gradients(t=1.0).total("g"), np.sum(-ball.t / 10))
    ball.graph.update({"fall1.g": 2.5})
    ball.launch()
    first = np.sqrt(2 * heights / 5)
    close(ball.t, first * (1 + 2 * 2 * ball.e))
    grads = ball.gradients(t=1.0)
    close(grads["fall1.g"], np.sum(-first * 4 * ball.e / 2.5))
    assert float(ball.falls.planes["g"]) == 9.81  # the simulation's own


# records


def test_records_of_phases() -> None:
    ball = Ball(np.linspace(1, 5, 5), 1)
    ball.launch()
    with pytest.raises(RecordError, match="is live, neither reversed nor kept"):
        ball.graph.launch()
    record = ball.graph.record
    expected = [bits(g) for g in ball.gradients(t=1.0).values()]
    ball.launch()
    kept = ball.graph.record.keep()
    with pytest.raises(RecordError, match="is of generation 1"):
        reverse(record, {"fall1.t": np.ones(5)})
    ball.start["y"] = np.linspace(2, 9, 5)
    ball.launch()
    assert [bits(g) for g in reverse(kept, {"fall1.t": np.ones(5)}).values()] == expected


def test_a_phase_without_an_event_is_named_and_leaves_no_record() -> None:
    ball = Ball(np.array([1.0, 3.0]), 1, max_steps=12)
    with pytest.raises(EventError) as refusal:
        ball.launch()
    assert str(refusal.value) == (
        "fall0: 1 of 2 samples have no event, the first is sample 1: it took max_steps steps and its stop rule did not "
        "hold. Pass on_no_event='zero' to let their stop times have derivative zero, or raise max_steps"
    )
    with pytest.raises(RecordError, match="this graph has no record"):
        ball.graph.record  # noqa: B018
    ball.start["y"] = np.array([1.0, 1.0])
    ball.e[...] = 0.5
    ball.launch()
    close(ball.gradients(t=1.0)["y"], np.sqrt(2 / 9.81))


def test_a_phase_whose_event_has_no_derivative_is_named() -> None:
    """Looked at for every launch, also by a Reverse that was built before, and in records that are kept."""
    x, t, q = np.ones(3), np.zeros(3), np.array([0.01, 0.25, 0.01])
    touching = eagle.simulation(k.parabola, dt=0.5, q=q, x=x, t=t, max_steps=50, events="refine", record=True)
    graph = Graph().add_node(phase(touching), name="touch").build(record=True)
    graph.launch()
    rev, seeds = Reverse(graph), {"t": np.ones(3)}
    close(rev(graph.record, seeds)["q"], -0.5 / np.sqrt(q))
    message = (
        "touch: the events of 1 of 3 samples have no derivative, the first is sample 1: its stop rule is touched, not "
        "crossed: the time of the event has no derivative. Leave these samples out of the run, or use events='step'"
    )
    q[1], t[...] = 0.0, 0.0
    graph.launch()
    kept = graph.record.keep()
    for record in (graph.record, kept):
        with pytest.raises(EventError) as refusal:
            rev(record, seeds)
        assert str(refusal.value) == message
    q[1], t[...] = 0.25, 0.0
    graph.launch()
    close(rev(graph.record, seeds)["q"], -0.5 / np.sqrt(q))
    with pytest.raises(EventError):
        reverse(kept, seeds)


def test_what_is_no_phase() -> None:
    with pytest.raises(ArgumentError, match=r"^phase takes a simulation or a runner, found Plan$"):
        phase(plan(k.bounce))  # type: ignore[arg-type]
    ball = Ball(np.ones(2), 0)
    assert type(phase(ball.falls.runner)) is type(ball.phases[0])
    ball.launch()
    with pytest.raises(ReverseError) as refusal:
        reverse(ball.graph.record, {"t": np.ones(2)}, vjps={"fall0": plan(k.bounce)})
    assert str(refusal.value) == "vjps['fall0']: the phase is reversed by eagle's own vjp of its run; leave it out"
