"""Forward mode through runs, and Hessian-vector products."""

import numpy as np
import pytest
from eagletest.numpy_sums import bits

import eagle
from eagle.diff import forward, hvp
from eagle.errors import ArgumentError, RecordError, SeedError

from . import kernels as k
from .running import pendulums, simulation

N = 300


def same(left: object, right: object) -> None:
    assert bits(np.asarray(left)) == bits(np.asarray(right))


def recorded(**options: object) -> eagle.runs.Simulation:
    sim = simulation(k.pendulum, pendulums(N), record=True, **options)
    sim.run()
    return sim


def directions(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal(N), "v": rng.standard_normal(N), "c": rng.standard_normal()}


def test_forward_is_the_transpose_of_reverse() -> None:
    sim, u = recorded(), directions(1)
    seeds = {"x": directions(2)["x"], "v": directions(3)["v"]}
    pushed = forward(sim, u)
    grads = eagle.diff.reverse(sim.record, seeds)
    along = sum(np.sum(pushed[name] * seed) for name, seed in seeds.items())
    back = sum(np.sum(grads[name] * direction) for name, direction in u.items())
    assert along == pytest.approx(back, rel=1e-12)


def test_forward_is_the_derivative_along_the_direction() -> None:
    u, h = directions(4), 1e-6
    pushed = forward(recorded(), u)
    ends = []
    for step in (h, -h):
        planes = pendulums(N)
        moved = {name: planes[name] + step * direction for name, direction in u.items()}
        ends.append(simulation(k.pendulum, planes | moved).run().x.copy())
    np.testing.assert_allclose(pushed["x"], (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-6)


def test_the_time_of_an_event_moves_along() -> None:
    """t* = sqrt(2 y0 / g): dt*/dy0 = 1/(g t*), dt*/dg = -t*/(2 g)."""
    y0, g = np.linspace(1.0, 5.0, 7), 9.81
    planes = {"dt": 0.1, "g": g, "y": y0, "v": np.zeros(7), "t": np.zeros(7)}
    sim = simulation(k.fall, planes, record=True, events="refine")
    sim.run()
    hit = np.sqrt(2 * y0 / g)
    np.testing.assert_allclose(forward(sim, {"y": np.ones(7)})["t"], 1 / (g * hit), rtol=1e-12)
    np.testing.assert_allclose(forward(sim, {"g": 1.0})["t"], -hit / (2 * g), rtol=1e-12)
    np.testing.assert_allclose(forward(sim, {"g": 1.0})["y"], 0.0, atol=1e-12)


@pytest.mark.parametrize("window", [None, 7, "full"])
def test_hvp_is_the_difference_of_gradients(window: int | str | None) -> None:
    u, h = directions(5), 1e-5
    seeds = {"x": directions(6)["x"], "v": directions(7)["v"]}
    found = hvp(recorded(window=window), seeds, u)
    grads = []
    for step in (h, -h):
        planes = pendulums(N)
        moved = {name: planes[name] + step * direction for name, direction in u.items()}
        sim = simulation(k.pendulum, planes | moved, record=True)
        sim.run()
        grads.append(eagle.diff.reverse(sim.record, seeds))
    for name in ("x", "v", "c", "dt"):
        expected = (grads[0][name] - grads[1][name]) / (2 * h)
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-5 * np.max(np.abs(expected)))


def test_the_time_of_an_event_to_second_order() -> None:
    """t* = sqrt(2 y0 / g): the second derivatives by y0 and g."""
    y0, g = np.linspace(1.0, 5.0, 7), 9.81
    planes = {"dt": 0.1, "g": g, "y": y0, "v": np.zeros(7), "t": np.zeros(7)}
    sim = simulation(k.fall, planes, record=True, events="refine")
    sim.run()
    hit = np.sqrt(2 * y0 / g)
    by_height = hvp(sim, {"t": np.ones(7)}, {"y": np.ones(7)})
    np.testing.assert_allclose(by_height["y"], -hit / (4 * y0 * y0), rtol=1e-10)
    np.testing.assert_allclose(by_height["g"], np.sum(-hit / (4 * y0 * g)), rtol=1e-10)
    by_gravity = hvp(sim, {"t": np.ones(7)}, {"g": 1.0})
    np.testing.assert_allclose(by_gravity["g"], np.sum(3 * hit / (4 * g * g)), rtol=1e-10)


def test_the_hessian_is_symmetric() -> None:
    sim, u, w = recorded(), directions(8), directions(9)
    seeds = {"x": np.ones(N)}
    one, other = hvp(sim, seeds, u), hvp(sim, seeds, w)
    crossed = [sum(np.sum(h[name] * d[name]) for name in d) for h, d in ((one, w), (other, u))]
    assert crossed[0] == pytest.approx(crossed[1], rel=1e-11)


def test_they_are_bitwise_and_change_nothing() -> None:
    sim, u = recorded(), directions(10)
    before = {name: array.copy() for name, array in sim.planes.items()}
    same(forward(sim, u)["x"], forward(sim, u)["x"])
    seeds = {"x": np.ones(N)}
    same(hvp(sim, seeds, u)["c"], hvp(sim, seeds, u)["c"])
    for name, array in sim.planes.items():
        same(array, before[name])


def test_refusals() -> None:
    sim = recorded()
    with pytest.raises(SeedError, match=r"tangents\['z'\]: the run has no real input of that name; it has .*c.*x"):
        forward(sim, {"z": np.ones(N)})
    with pytest.raises(SeedError, match=r"tangents\['x'\] is a direction of x: expected numbers of shape \(300,\)"):
        forward(sim, {"x": np.ones(3)})
    with pytest.raises(SeedError, match="tangents is empty"):
        forward(sim, {})
    with pytest.raises(ArgumentError, match="expected a recorded run or its record, found int"):
        forward(3, {"x": np.ones(N)})  # type: ignore[arg-type]
    loose = simulation(k.pendulum, pendulums(N))
    loose.run()
    with pytest.raises(RecordError, match="record=True"):
        forward(loose, {"x": np.ones(N)})
