"""Seeds: what is one, and what is refused, by its text."""

import numpy as np
import pytest
from eagletest import kernels as k
from eagletest.graphs import Chain, gradients, recorded
from eagletest.numpy_sums import bits

from eagle.diff import Reverse, reverse
from eagle.errors import SeedError

N = 300


def chain() -> Chain:
    return Chain(np.linspace(-2, 2, N))


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        (
            {"x": np.ones(N)},
            "seeds['x']: x is an input. A seed is dJ/d(output); the gradient with respect to x is grads['x'] in what "
            "reverse returns",
        ),
        (
            {"square.a": 1.0},
            "seeds['square.a']: square.a is an input. A seed is dJ/d(output); the gradient with respect to square.a is "
            "grads['square.a'] in what reverse returns",
        ),
        ({"y": np.ones(N)}, "seeds['y'] names several outputs: square.y, wave.y; name one of them"),
        (
            {"z": np.ones(N)},
            "seeds['z']: no node writes a plane of that name; the outputs are square.y, wave.y",
        ),
        ({3: np.ones(N)}, "seeds[3]: no node writes a plane of that name; the outputs are square.y, wave.y"),
        (
            {"wave.y": np.ones(3)},
            "the seed of wave.y is dJ/d(wave.y), one value per sample: expected shape (300,), found (3,)",
        ),
        ({"wave.y": 1.0}, "the seed of wave.y is dJ/d(wave.y), one value per sample: expected shape (300,), found ()"),
        (
            {"wave.y": np.ones((1, N))},
            "the seed of wave.y is dJ/d(wave.y), one value per sample: expected shape (300,), found (1, 300)",
        ),
        ({"wave.y": "ones"}, "the seed of wave.y is no array of real numbers: found str"),
        ({"wave.y": None}, "the seed of wave.y is no array of real numbers: found NoneType"),
        ({"wave.y": [[1.0], []]}, "the seed of wave.y is no array of real numbers: found list"),
        (
            {"wave.y": np.ones(N, complex)},
            "the seed of wave.y is no array of real numbers: found an array of complex128",
        ),
        (["wave.y"], 'seeds maps outputs to arrays, {"y": dJ_dy}, found list'),
        (np.ones(N), 'seeds maps outputs to arrays, {"y": dJ_dy}, found ndarray'),
    ],
)
def test_seeds_that_are_none(seeds: object, message: str) -> None:
    c = chain()
    c.graph.launch()
    rev = Reverse(c.graph)
    rev(c.graph.record, c.ones)
    for call in (lambda: reverse(c.graph.record, seeds), lambda: rev(c.graph.record, seeds)):  # type: ignore[arg-type]
        with pytest.raises(SeedError) as refusal:
            call()
        assert str(refusal.value) == message


def test_one_output_seeded_by_two_names() -> None:
    x, y = np.ones((2, N))
    graph = recorded(("wave", k.wave, {"x": x, "y": y}))
    graph.launch()
    with pytest.raises(SeedError) as refusal:
        reverse(graph.record, {"y": np.ones(N), "wave.y": np.ones(N)})
    assert str(refusal.value) == "seeds['wave.y'] and seeds['y'] are the same output"


@pytest.mark.parametrize(("name", "dtype"), [("count", "int32"), ("high", "bool"), ("climb.done", "bool")])
def test_an_output_that_is_not_real_has_no_seed(name: str, dtype: str) -> None:
    graph = recorded(("climb", k.climb, climb_planes()))
    graph.launch()
    label = f"climb.{name.removeprefix('climb.')}"
    with pytest.raises(SeedError) as refusal:
        reverse(graph.record, {name: np.ones(N)})
    assert str(refusal.value) == f"seeds[{name!r}]: {label} holds {dtype} values and has no derivative"


def climb_planes() -> dict[str, object]:
    return {
        "x": np.ones(N), "gain": 1.0, "start": 0, "up": np.ones(N, bool), "trips": np.full(N, 3, np.int32),
        "y": np.zeros(N), "count": np.zeros(N, np.int32), "high": np.zeros(N, bool), "done": np.zeros(N, bool),
    }  # fmt: skip


@pytest.mark.parametrize(
    "seed",
    [
        np.ones(N, np.float32),
        np.ones(N, np.int64),
        np.ones(N, bool),
        [1.0] * N,
        np.broadcast_to(1.0, N),
        np.ones(2 * N)[::2],
        np.ones(N, ">f8"),
        np.frombuffer(b"\0" + np.ones(N).tobytes(), np.uint8)[1:].view(np.float64),
    ],
)
def test_any_array_of_numbers_is_a_seed(seed: object) -> None:
    c = chain()
    expected = gradients(c.graph, c.ones)
    grads = reverse(c.graph.record, {"wave.y": seed})
    assert bits(grads["x"]) == bits(expected["x"])
    assert bits(grads["a"]) == bits(expected["a"])


def test_no_seed_at_all_is_an_objective_of_nothing() -> None:
    c = chain()
    grads = gradients(c.graph, {})
    np.testing.assert_array_equal(grads["x"], np.zeros(N))
    assert grads["a"] == 0.0
