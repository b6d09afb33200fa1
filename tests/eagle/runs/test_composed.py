"""Several kernels as one step, and stop rules of their own."""

import numpy as np
import pytest
from eagletest.numpy_sums import bits

import eagle
import hawk
from eagle.errors import ArgumentError
from eagle.plan import Plan
from hawk import Mutable, Param, Scalar, Terminated

from . import kernels as k


@hawk.kernel
def push(dt: Param, x: Scalar, v: Mutable[Scalar]):
    v = v - dt * x


@hawk.kernel
def drift(dt: Param, v: Scalar, x: Mutable[Scalar]):
    x = x + dt * v


@hawk.kernel
def both(dt: Param, x: Mutable[Scalar], v: Mutable[Scalar], done: Terminated):
    v = v - dt * x
    x = x + dt * v
    done = x > 2.0


@hawk.kernel
def far(x: Scalar, done: Terminated):
    done = x > 2.0


@hawk.kernel
def push_vector(dt: Param, x: hawk.Vector[2], v: Mutable[Scalar]):
    v = v - dt * x[0]


def planes(n: int = 7) -> dict[str, object]:
    return {"dt": 0.05, "x": np.linspace(0.5, 2.5, n), "v": np.ones(n)}


def test_a_list_of_kernels_is_their_launches_in_a_row() -> None:
    result = eagle.simulate([push, drift], max_steps=50, **planes())
    x, v = planes()["x"], planes()["v"]
    steps = [Plan(kernel, "float64") for kernel in (push, drift)]
    for _ in range(50):
        steps[0].bind(dt=0.05, x=x, v=v).launch()
        steps[1].bind(dt=0.05, x=x, v=v).launch()
    assert bits(result.x) == bits(x)
    assert bits(result.v) == bits(v)


def test_a_rule_of_its_own_is_asked_before_the_first_step() -> None:
    result = eagle.simulate([push, drift], until=far, max_steps=300, **planes())
    start = np.linspace(0.5, 2.5, 7)
    assert (result.steps[start > 2.0] == 0).all()
    np.testing.assert_array_equal(result.x[start > 2.0], start[start > 2.0])
    x, v, count = start.copy(), np.ones(7), np.zeros(7, int)
    for _ in range(300):
        going = ~(x > 2.0)
        moved = v - 0.05 * x
        v, count = np.where(going, moved, v), count + going
        x = np.where(going, x + 0.05 * v, x)
    np.testing.assert_array_equal(result.steps, count)
    np.testing.assert_allclose(result.x, x, rtol=1e-13)


def test_it_reverses_like_the_same_step_in_one_kernel() -> None:
    seeds = {"x": np.linspace(1.0, 2.0, 7)}
    found = []
    for kernels, options in (([push, drift], {"until": far}), (both, {})):
        below = planes() | {"x": np.linspace(0.5, 1.9, 7)}
        result = eagle.simulate(kernels, max_steps=60, record=True, **options, **below)
        found.append(eagle.diff.reverse(result.record, seeds))
    for name in ("x", "v", "dt"):
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=1e-12)


def test_a_sample_that_takes_no_step_has_the_identity_as_its_gradient() -> None:
    done = planes() | {"x": np.full(7, 3.0)}
    result = eagle.simulate([push, drift], until=far, max_steps=60, record=True, **done)
    grads = eagle.diff.reverse(result.record, {"x": np.arange(7.0)})
    np.testing.assert_array_equal(grads["x"], np.arange(7.0))
    assert (grads["v"] == 0).all()
    assert grads["dt"] == 0.0


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match=r"push_vector declares x as sample \(2,\) real|push_vector declares x"):
        eagle.simulation([drift, push_vector], max_steps=3, **planes())
    with pytest.raises(ArgumentError, match="until=push: a stop rule writes one Terminated and nothing else"):
        eagle.simulation([drift], until=push, max_steps=3, **planes())
    with pytest.raises(ArgumentError, match="both has a Terminated of its own"):
        eagle.simulation([both], until=far, max_steps=3, **planes())
    with pytest.raises(ArgumentError, match="empty list"):
        eagle.simulation([], max_steps=3, **planes())
    with pytest.raises(ArgumentError, match="found int"):
        eagle.simulation([push, 3], max_steps=3, **planes())  # type: ignore[list-item]
    plans = [Plan(push, "float64"), Plan(drift, "float32")]
    with pytest.raises(ArgumentError, match="one mode"):
        eagle.until_done(plans, max_steps=3, **planes())
    assert k.pendulum.name == "pendulum"
