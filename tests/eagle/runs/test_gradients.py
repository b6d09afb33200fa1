"""The gradients of recorded runs: closed forms, recurrences reversed by hand, differences, forward mode."""

from typing import Any

import numpy as np
import pytest
from eagletest.numpy_sums import bits, ordered_sum
from hypothesis import given
from hypothesis import strategies as st

import eagle
import hawk
from hawk.diff import jvp, vjp
from hawk.run import Run

from . import kernels as k
from .running import gradients, pendulums, ran, same_bits, simulation, walkers

# closed forms


def test_the_samples_that_stop_first_have_no_part_in_later_steps() -> None:
    """y = sqrt(x0 - steps + 1); a step more would make the param's gradient NaN."""
    zeros = {"y": np.zeros(3), "total": np.zeros(3), "count": np.zeros(3, np.int32)}
    planes = {"p": 2.0, "x": np.array([0.5, 2.5, 6.25])} | zeros
    grads = gradients(k.roots, planes, {"y": 1.0})
    np.testing.assert_allclose(grads["x"], [np.sqrt(0.5), np.sqrt(0.5), 1.0], rtol=1e-15)
    assert grads["y"].tolist() == [0.0, 0.0, 0.0]  # overwritten
    grads = gradients(k.roots, planes, {"total": 1.0})
    sums = [sum(np.sqrt(x - i) for i in range(int(x) + 1)) for x in planes["x"]]
    np.testing.assert_allclose(grads["p"], sum(sums), rtol=1e-15)
    assert grads["total"].tolist() == [1.0, 1.0, 1.0]


def test_the_step_limit() -> None:
    grads = gradients(k.halve, {"least": 0.1, "x": np.array([1.0, 0.15])}, {"x": 1.0}, 3)
    assert grads["x"].tolist() == [0.125, 0.5]
    assert grads["least"] == 0.0


@pytest.mark.parametrize("most", [0, 5])
def test_no_steps_no_change(most: int) -> None:
    """None allowed, or all done at the start."""
    seed = np.array([2.0, -0.0, 3.0])
    planes = {"least": 0.1, "x": np.ones(3), "done": np.full(3, most > 0)}
    grads = gradients(k.halve, planes, {"x": seed}, most)
    assert bits(grads["x"]) == bits(seed)
    assert bits(grads["least"]) == bits(np.float64(0.0))


def test_some_are_done_at_the_start() -> None:
    planes = {"least": 0.3, "x": np.ones(4), "done": np.array([False, True, False, True])}
    assert gradients(k.halve, planes, {"x": 1.0})["x"].tolist() == [0.25, 1.0, 0.25, 1.0]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_as_many_samples_as_components(n: int) -> None:
    x = np.tile(10.0 ** np.arange(n), (3, 1))
    grads = gradients(k.halve_rows, {"x": x}, {"x": 1.0})
    assert bits(grads["x"]) == bits(np.tile(0.5 ** np.array([1, 3, 6, 9])[:n], (3, 1)))


def test_an_empty_batch() -> None:
    grads = gradients(k.walk, walkers(0), {"p": 1.0, "energy": 1.0})
    assert grads["p"].shape == (2, 0)
    assert bits(grads["k"]) == bits(np.zeros(2))
    assert bits(grads["force"]) == bits(np.zeros(8))


@given(st.integers(1, 40), st.integers(0, 60))
def test_a_run_without_a_stop_rule(n: int, most: int) -> None:
    """x (1 - dt rate)^steps."""
    rate = np.linspace(0.1, 0.9, n)
    x = np.linspace(-1, 1, n)
    grads = gradients(k.decay, {"dt": 0.5, "rate": rate, "x": x}, {"x": 1.0}, most)
    factor = 1 - 0.5 * rate
    np.testing.assert_allclose(grads["x"], factor**most, rtol=1e-13)
    by_rate = most * factor ** max(most - 1, 0) * x
    np.testing.assert_allclose(grads["rate"], -0.5 * by_rate, rtol=1e-13)
    np.testing.assert_allclose(grads["dt"], np.sum(-rate * by_rate), rtol=1e-12, atol=1e-15)


# by hand


def reversed_by_hand(planes: dict[str, Any], most: int, bx: np.ndarray) -> dict[str, np.ndarray]:
    """The pendulum stepped and its adjoint stepped back, all samples at once."""
    dt, c = planes["dt"], planes["c"]
    x, v, t, live = planes["x"], planes["v"], planes["t"], np.ones(len(planes["x"]), bool)
    tape = []
    for _ in range(most):
        tape.append((x, v, live))
        new = x + dt * v, v + dt * (-np.sin(x) - c * v), t + dt
        x, v, t = (np.where(live, after, before) for after, before in zip(new, (x, v, t), strict=True))
        live = live & ~(t >= planes["t_final"])
    bv = np.zeros_like(bx)
    by_c, by_dt = np.zeros_like(bx), np.zeros_like(bx)
    for x, v, live in reversed(tape):
        by_c += np.where(live, bv * dt * -v, 0)
        by_dt += np.where(live, bx * v + bv * (-np.sin(x) - c * v), 0)
        back = bx + bv * dt * -np.cos(x), bx * dt + bv * (1 - dt * c)
        bx, bv = (np.where(live, after, before) for after, before in zip(back, (bx, bv), strict=True))
    return {"x": bx, "v": bv, "c": np.sum(by_c), "dt": np.sum(by_dt)}


@pytest.mark.parametrize("n", [1, 7, 1003])
def test_a_pendulum_reversed_by_hand(n: int) -> None:
    planes, seed = pendulums(n), np.linspace(0.5, 1.5, n)
    grads = gradients(k.pendulum, planes, {"x": seed}, 300)
    for name, expected in reversed_by_hand(planes, 300, seed).items():
        np.testing.assert_allclose(grads[name], expected, rtol=1e-11, atol=1e-13)
    assert (grads["t_final"] == 0).all()  # a stepped stop does not move
    assert (grads["t"] == 0).all()


def test_float32() -> None:
    planes = pendulums(50, "float32")
    grads = gradients(k.pendulum, planes, {"x": np.float32(1)}, 300, mode="float32")
    assert grads["x"].dtype == grads["c"].dtype == np.float32
    double = {name: np.asarray(a, np.float64) for name, a in planes.items()}
    for name, expected in reversed_by_hand(double, 300, np.ones(50)).items():
        np.testing.assert_allclose(grads[name], expected, rtol=2e-3, atol=1e-3)


# differences and forward mode


def test_differences() -> None:
    """Of everything that varies, along a random direction of each: also inner loops, branches and tables."""
    planes = walkers(12)
    rng = np.random.default_rng(1)
    seeds = {"p": rng.normal(size=(2, 12)), "energy": rng.normal(size=12)}
    grads = gradients(k.walk, planes, seeds, 25)
    there = ran(k.walk, planes, 25)

    def objective(changed: dict[str, Any]) -> float:
        result = ran(k.walk, planes | changed, 25)
        assert (result.steps == there.steps).all()  # the differences see no other stop
        assert (result.cell == there.cell).all()  # and no other elements of the table
        return float(sum(np.sum(result.state[name] * seed) for name, seed in seeds.items()))

    for name in ("dt", "k", "force", "p", "energy"):
        direction = rng.normal(size=np.shape(planes[name]))
        ends = [objective({name: planes[name] + sign * 1e-6 * direction}) for sign in (1, -1)]
        assert np.sum(grads[name] * direction) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=2e-6), name
    assert (grads["limit"] == 0).all()
    assert "trips" not in grads


def test_reverse_agrees_with_forward() -> None:
    """<u, J v> = <J^T u, v>, within rounding."""
    planes = walkers(300)
    sim = simulation(k.walk, planes, 60, record=True)
    sim.run()
    rng = np.random.default_rng(2)
    seeds = {"p": rng.normal(size=(2, 300)), "energy": rng.normal(size=300)}
    grads = eagle.diff.reverse(sim.record, seeds)
    for name in ("dt", "k", "force", "p"):
        direction = rng.normal(size=np.shape(planes[name]))
        moved = eagle.diff.forward(sim.record, {name: direction})
        terms = np.concatenate([(moved[output] * seed).ravel() for output, seed in seeds.items()])
        pulled = (grads[name] * direction).ravel()
        scale = np.abs(terms).sum() + np.abs(pulled).sum()
        assert abs(terms.sum() - pulled.sum()) < 1e-13 * scale, name


# sums


def test_the_gradient_of_a_param_is_the_canonical_sum() -> None:
    """Of what each sample gives by itself."""
    n = 300
    planes = pendulums(n)
    shared = {"dt", "c"}
    whole = gradients(k.pendulum, planes, {"x": 1.0}, 300)
    alone = [
        gradients(k.pendulum, {a: v if a in shared else v[i : i + 1] for a, v in planes.items()}, {"x": 1.0}, 300)
        for i in range(n)
    ]
    for name in ("dt", "c"):
        assert bits(whole[name]) == bits(ordered_sum(np.array([g[name] for g in alone])))
    for name in ("x", "v"):
        assert bits(whole[name]) == bits(np.concatenate([g[name] for g in alone]))


# what a reverse leaves alone


def test_a_reverse_changes_nothing_and_can_be_repeated() -> None:
    sim = simulation(k.walk, walkers(60), 60, record=True)
    result = sim.run()
    before = [a.copy() for a in (*sim.planes.values(), result.steps)]
    seeds = {"p": np.ones((2, 60)), "energy": np.linspace(0, 1, 60)}
    kept = {name: seed.copy() for name, seed in seeds.items()}
    grads = eagle.diff.reverse(sim.record, seeds)
    first = [np.array(g) for g in grads.values()]
    for array in (grads["p"], grads["force"], grads["k"]):
        array[...] = np.nan  # they are the caller's
    same_bits(eagle.diff.reverse(sim.record, seeds).values(), first)
    same_bits(seeds.values(), kept.values())
    same_bits((*sim.planes.values(), result.steps), before)


def test_strided_planes_and_seeds() -> None:
    planes = walkers(40)
    seeds = {"p": np.linspace(0, 1, 80).reshape(2, 40), "energy": np.linspace(1, 2, 40)}
    plain = gradients(k.walk, planes, seeds, 60)
    strided = dict(planes)
    for name in ("p", "energy", "cell", "limit"):
        wide = np.zeros((*planes[name].shape[:-1], 80), planes[name].dtype)
        wide[..., ::-2] = planes[name]
        strided[name] = wide[..., ::-2]
    sim = eagle.simulation(k.walk, max_steps=60, record=True, **strided)
    sim.run()
    seeds = {"p": np.asfortranarray(seeds["p"]), "energy": np.repeat(seeds["energy"], 2)[::2]}
    same_bits(eagle.diff.reverse(sim.record, seeds).values(), plain.values())


def test_a_step_of_several_kernels() -> None:
    planes = {"dt": 0.25, "x": np.array([0.0, 2.0, 3.0]), "q": np.full(3, 3.0)}
    grads = gradients([k.grow], planes, {"x": np.array([1.0, 10.0, 100.0])}, until=k.large)
    assert grads["x"].tolist() == [1.0, 10.0, 100.0]
    assert grads["dt"] == 12 + 4 * 10


def test_the_derivative_of_a_run_is_ir_like_any_other() -> None:
    """The jvp of a run's program, against its vjp, by hawk alone."""
    run = hawk.Kernel("run", Run(k.halve.definition))
    planes = {"x": np.array([1.0, 0.3]), "done": np.zeros(2, bool), "_steps": np.zeros(2, np.int32), "_limit": 9}
    tangent, adjoint = np.array([1.0, 2.0]), np.array([1.0, 2.0])
    hawk.Kernel("pushed", jvp(run, ["x"]))(least=0.1, dot_x=tangent, **planes)
    hawk.Kernel("pulled", vjp(run, ["x"]))(least=0.1, bar_x=adjoint, **planes)
    assert tangent.tolist() == adjoint.tolist() == [0.0625, 0.5]
