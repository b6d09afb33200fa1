"""Planes that are read and then overwritten: the gradient is by the value that was read."""

import numpy as np
import pytest
from eagletest import kernels as k
from eagletest.graphs import gradients, recorded

from eagle.diff import reverse

N = 257
PLACES = (1, 7, 1003)


def among_others(case: float, n: int, place: int) -> np.ndarray:
    """A case first, in the middle or last among unrelated samples."""
    samples = np.random.default_rng(n).uniform(-1, 1, n)
    samples[place] = case
    return samples


@pytest.fixture(params=[(n, place) for n in PLACES for place in sorted({0, n // 2, n - 1})], ids=str)
def spot(request: pytest.FixtureRequest) -> tuple[int, int]:
    return request.param


def test_three_squarings_in_place(spot: tuple[int, int]) -> None:
    n, place = spot
    s = among_others(3.0, n, place)
    graph = recorded(*((f"step{i}", k.squared, {"s": s}) for i in range(3)))
    grads = gradients(graph, {"step2.s": np.ones(n)})
    assert s[place] == 6561.0
    assert list(grads) == ["s"]
    assert grads["s"][place] == 8 * 3.0**7


def test_adding_one_in_place_has_derivative_one(spot: tuple[int, int]) -> None:
    n, place = spot
    s = among_others(3.0, n, place)
    grads = gradients(recorded(*((f"step{i}", k.raised, {"s": s}) for i in range(3))), {"step2.s": np.ones(n)})
    assert s[place] == 6.0
    np.testing.assert_array_equal(grads["s"], np.ones(n))


def test_a_value_that_is_read_and_then_overwritten(spot: tuple[int, int]) -> None:
    """The gradient is by the value that was read, 10, not by the one in the plane after, 110."""
    n, place = spot
    x, b = among_others(1.0, n, place), among_others(10.0, n, place)
    loss = np.zeros(n)
    graph = recorded(("spend", k.spend, {"x": x, "b": b, "loss": loss}))
    seeds = {"loss": np.ones(n)}
    one = gradients(graph, seeds)
    assert (loss[place], b[place]) == (10.0, 110.0)
    assert (one["x"][place], one["b"][place]) == (10.0, 1.0)
    two = reverse(graph.record, {**seeds, "b": np.ones(n)})
    assert (two["x"][place], two["b"][place]) == (10.0, 2.0)


def test_one_array_in_two_slots_has_a_gradient_for_each() -> None:
    w = np.array([1.0, 2.0, 3.0])
    grads = gradients(recorded(("product", k.product, {"a": w, "b": w, "y": np.zeros(3)})), {"y": np.ones(3)})
    np.testing.assert_array_equal(grads["a"], w)
    np.testing.assert_array_equal(grads["b"], w)


def test_one_array_read_in_one_slot_and_written_in_another() -> None:
    """A launch reads its planes as they were: out = a (s + a) with the old value in both."""
    w, out = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    old = w.copy()
    graph = recorded(("gather", k.gather, {"a": w, "s": w, "out": out}))
    grads = gradients(graph, {"out": np.ones(3)})
    np.testing.assert_array_equal(out, 2 * old * old)
    np.testing.assert_array_equal(w, 2 * old)
    np.testing.assert_array_equal(grads["a"], old + 2 * old)  # by a: (s + a) + a
    np.testing.assert_array_equal(grads["s"], old)


def test_a_plane_that_is_assigned_on_one_path_only() -> None:
    x, best = np.array([3.0, -1.0, 2.0]), np.array([1.0, 5.0, 2.0])
    graph = recorded(("keep", k.keep_larger, {"x": x, "best": best}))
    grads = gradients(graph, {"best": np.full(3, 10.0)})
    np.testing.assert_array_equal(best, [9.0, 5.0, 2.0])
    np.testing.assert_array_equal(grads["x"], [60.0, 0.0, 0.0])
    np.testing.assert_array_equal(grads["best"], [0.0, 10.0, 10.0])


def test_an_input_overwritten_by_a_later_node() -> None:
    x, y = np.full(N, 0.3), np.zeros(N)
    graph = recorded(
        ("out", k.wave, {"x": x, "y": y}),
        ("back", k.square, {"x": y, "a": 2.0, "y": x}),
        ("out again", k.wave, {"x": x, "y": y}),
    )
    grads = gradients(graph, {"out again.y": np.ones(N)})
    inner = 2 * np.sin(0.3) ** 2
    np.testing.assert_allclose(y, np.sin(inner), rtol=1e-15)
    np.testing.assert_allclose(grads["x"], np.cos(inner) * 4 * np.sin(0.3) * np.cos(0.3), rtol=1e-14)
    assert list(grads) == ["x", "a"]


def test_a_chain_of_a_hundred_in_place_steps() -> None:
    """The logistic map, against the product of its slopes."""
    x = np.linspace(0.1, 0.9, N)
    steps = []
    values = [x.copy()]
    for i in range(100):
        steps.append((f"step{i}", k.logistic, {"x": x, "r": 3.7}))
        values.append(3.7 * values[-1] * (1 - values[-1]))
    grads = gradients(recorded(*steps), {"step99.x": np.ones(N)})
    slopes = [3.7 * (1 - 2 * v) for v in values[:-1]]
    np.testing.assert_allclose(grads["x"], np.prod(slopes, axis=0), rtol=1e-11)
    assert len(grads) == 101
