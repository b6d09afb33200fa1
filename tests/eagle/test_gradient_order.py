"""Adjoints that meet in one plane are added in one order: the seed first, then the readers as they were added."""

import itertools

import numpy as np
import pytest
from eagletest import kernels as k
from eagletest.graphs import gradients, recorded
from eagletest.numpy_sums import bits

from eagle.diff import reverse

N = 257
FACTORS = (0.3, -7.0, 11.0, 0.001)


def wide(rng: np.random.Generator, mode: str) -> np.ndarray:
    """Numbers of many magnitudes, so that the order of three additions shows."""
    scale = 8 if mode == "float64" else 3
    return (rng.standard_normal(N) * 10.0 ** rng.uniform(-scale, scale, N)).astype(mode)


def in_order(terms: list[np.ndarray]) -> np.ndarray:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def reader_share(x: np.ndarray, factor: float, seed: np.ndarray, mode: str) -> np.ndarray:
    """What one reader adds to the adjoint of its input, alone in a graph."""
    graph = recorded(("alone", k.square, {"x": x, "a": factor, "y": np.zeros_like(x)}), mode=mode)
    return gradients(graph, {"y": seed})["x"]


def differs_in_other_orders(terms: list[np.ndarray]) -> bool:
    """Whether each other order gives other bits; swapping the first two changes nothing."""
    right = bits(in_order(terms))
    orders = [list(order) for order in itertools.permutations(range(len(terms))) if order[0] < order[1]]
    return all(bits(in_order([terms[i] for i in order])) != right for order in orders[1:])


@pytest.mark.parametrize("mode", ["float64", "float32"])
def test_a_plane_between_nodes_is_added_up_seed_first_then_its_readers(mode: str) -> None:
    rng = np.random.default_rng(1)
    x, y = np.linspace(-1, 1, N).astype(mode), np.zeros(N, mode)
    outputs = {f"reader{i}": np.zeros(N, mode) for i in range(len(FACTORS))}
    graph = recorded(
        ("wave", k.wave, {"x": x, "y": y}),
        *(
            (name, k.square, {"x": y, "a": a, "y": out})
            for a, (name, out) in zip(FACTORS, outputs.items(), strict=True)
        ),
        mode=mode,
    )
    seeds = {f"{name}.y": wide(rng, mode) for name in outputs}
    own = wide(rng, mode)
    grads = gradients(graph, {**seeds, "wave.y": own})

    shares = [reader_share(y, a, seed, mode) for a, seed in zip(FACTORS, seeds.values(), strict=True)]
    terms = [own, *shares]
    assert differs_in_other_orders(terms)
    last = recorded(("wave", k.wave, {"x": x, "y": np.zeros(N, mode)}), mode=mode)
    assert bits(grads["x"]) == bits(gradients(last, {"y": in_order(terms)})["x"])
    assert grads["x"].dtype == np.dtype(mode)

    readers_alone = reverse(graph.record, seeds)
    assert bits(readers_alone["x"]) == bits(gradients(last, {"y": in_order(shares)})["x"])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_an_input_is_added_up_in_the_order_of_its_readers(order: tuple[int, ...]) -> None:
    """Whatever the order of the seeds."""
    rng = np.random.default_rng(2)
    x = np.linspace(-1, 1, N)
    own = [wide(rng, "float64") for _ in order]
    graph = recorded(*((f"reader{i}", k.square, {"x": x, "a": FACTORS[i], "y": np.zeros(N)}) for i in order))
    seeds = {f"reader{i}.y": own[i] for i in range(3)}
    terms = [reader_share(x, FACTORS[i], own[i], "float64") for i in order]
    assert differs_in_other_orders(terms)
    assert bits(gradients(graph, seeds)["x"]) == bits(in_order(terms))


def test_a_diamond_joins_its_two_sides() -> None:
    """x feeds two nodes, and a third reads both."""
    rng = np.random.default_rng(3)
    x, y, z, out = np.linspace(0.1, 1, N), *np.zeros((3, N))
    graph = recorded(
        ("left", k.wave, {"x": x, "y": y}),
        ("right", k.square, {"x": x, "a": 5.0, "y": z}),
        ("both", k.product, {"a": y, "b": z, "y": out}),
    )
    seed = wide(rng, "float64")
    grads = gradients(graph, {"both.y": seed})
    both = recorded(("both", k.product, {"a": y, "b": z, "y": np.zeros(N)}))
    sides = gradients(both, {"y": seed})
    left = recorded(("left", k.wave, {"x": x, "y": np.zeros(N)}))
    expected = gradients(left, {"y": sides["a"]})["x"] + reader_share(x, 5.0, sides["b"], "float64")
    assert bits(grads["x"]) == bits(expected)


def test_vectors_are_joined_component_by_component() -> None:
    rng = np.random.default_rng(4)
    v = rng.standard_normal((3, N))
    m = rng.standard_normal((3, 2, 3, N))
    names = ("one", "two", "three")
    planes = {name: {"m": m[i], "v": v, "k": (1.0, 2.0), "w": np.zeros((2, N))} for i, name in enumerate(names)}
    seeds = {f"{name}.w": np.stack([wide(rng, "float64"), wide(rng, "float64")]) for name in names}
    together = gradients(recorded(*((name, k.turn, planes[name]) for name in names)), seeds)
    terms = [gradients(recorded(("alone", k.turn, planes[n])), {"w": seeds[f"{n}.w"]})["v"] for n in names]
    assert differs_in_other_orders(terms)
    assert bits(together["v"]) == bits(in_order(terms))
    assert together["v"].shape == (3, N)


def test_every_node_that_reads_a_table_adds_to_its_gradient_in_order() -> None:
    rng = np.random.default_rng(5)
    table = rng.standard_normal(4)
    index = rng.integers(0, 4, N).astype(np.int32)
    x = np.stack([wide(rng, "float64") for _ in range(3)])
    names = ("one", "two", "three")
    steps = [
        (name, k.look_up, {"i": index, "x": x[i], "values": table, "y": np.zeros(N)}) for i, name in enumerate(names)
    ]
    seeds = {f"{name}.y": np.ones(N) for name in names}
    together = gradients(recorded(*steps), seeds)
    terms = [gradients(recorded(step), {"y": np.ones(N)})["values"] for step in steps]
    assert bits(together["values"]) == bits(in_order(terms))


def test_outputs_that_are_not_seeded_contribute_nothing() -> None:
    """Exactly nothing, also where their derivative is infinite or NaN."""
    x = np.array([0.5, np.inf, np.nan])
    y, z = np.zeros((2, 3))
    graph = recorded(
        ("one", k.wave, {"x": x, "y": y}),  # sin(inf), sin(nan)
        ("two", k.product, {"a": np.ones(3), "b": x, "y": z}),
    )
    grads = gradients(graph, {"two.y": np.full(3, 2.0)})
    assert set(grads) == {"x", "a", "b"}
    np.testing.assert_array_equal(grads["b"], [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(grads["x"], [0.0, 0.0, 0.0])
