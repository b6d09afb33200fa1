"""A sample's bits are its own: whatever the batch, its place in it, the number of threads, the way it is run."""

import hashlib

import numpy as np
import pytest
from eagletest import kernels as k
from eagletest.graphs import gradients, recorded
from eagletest.kernels import plan
from eagletest.numpy_sums import bits, ordered_sum
from eagletest.processes import in_child

import eagle
from eagle.diff import Gradients, Reverse

SIZES = (0, 1, 7, 255, 256, 257, 1003)
POOL = max(SIZES)


class Mixture:
    """A graph with an in-place update, a branch and a loop, a vector and params; one sample's answer is short."""

    def __init__(self, inputs: dict[str, np.ndarray], mode: str = "float64") -> None:
        n = inputs["x"].shape[-1]
        real = np.dtype(mode)
        self.x, self.s = inputs["x"].astype(real), inputs["s"].astype(real)
        self.v = inputs["v"].astype(real)
        self.up, self.trips = inputs["up"].copy(), inputs["trips"].copy()
        self.y, self.out, self.z = np.zeros((3, n), real)
        self.w = np.zeros((2, n), real)
        self.count = np.zeros(n, np.int32)
        self.high, self.done = np.zeros((2, n), bool)
        matrix = np.broadcast_to(np.arange(6.0, dtype=real).reshape(2, 3, 1), (2, 3, n)).copy()
        climb = {
            "x": self.out, "gain": 0.7, "start": 2, "up": self.up, "trips": self.trips, "y": self.z,
            "count": self.count, "high": self.high, "done": self.done,
        }  # fmt: skip
        self.steps = (
            ("square", k.square, {"x": self.x, "a": 0.3, "y": self.y}),
            ("gather", k.gather, {"a": self.y, "s": self.s, "out": self.out}),
            ("climb", k.climb, climb),
            ("wave", k.wave, {"x": self.z, "y": self.z}),
            ("turn", k.turn, {"m": matrix, "v": self.v, "k": (0.5, 3.0), "w": self.w}),
        )
        self.graph = recorded(*self.steps, mode=mode)
        rng = np.random.default_rng(9)
        all_seeds = rng.standard_normal((4, POOL)).astype(real)[:, inputs["number"]]
        self.seeds = {"wave.y": all_seeds[0], "gather.s": all_seeds[1], "turn.w": all_seeds[2:]}

    PER_SAMPLE = ("x", "s", "v", "m")
    PARAMS = ("a", "gain", "k")

    @property
    def values(self) -> list[np.ndarray]:
        return [self.y, self.s, self.out, self.z, self.w, self.count, self.high, self.done]

    def gradients(self) -> Gradients:
        return gradients(self.graph, self.seeds)


def pool() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {
        "x": rng.standard_normal(POOL),
        "s": rng.standard_normal(POOL),
        "v": rng.standard_normal((3, POOL)),
        "up": rng.random(POOL) < 0.5,
        "trips": rng.integers(0, 60, POOL).astype(np.int32),
        "number": np.arange(POOL),
    }


def chosen(samples: np.ndarray) -> dict[str, np.ndarray]:
    return {name: np.ascontiguousarray(values[..., samples]) for name, values in pool().items()}


@pytest.fixture(scope="module")
def alone() -> list[tuple[list[np.ndarray], dict[str, np.ndarray]]]:
    """Values and gradients of each sample of the pool, in a batch of its own."""
    results = []
    for sample in range(POOL):
        mixture = Mixture(chosen(np.array([sample])))
        grads = mixture.gradients()
        results.append((mixture.values, dict(grads)))
    return results


def places(n: int) -> list[np.ndarray]:
    """The first samples, the last ones backwards, some at random; over again where there are not enough."""
    random = np.random.default_rng(n).permutation(POOL)
    return [np.resize(samples, n) for samples in (np.arange(POOL), np.arange(POOL)[::-1], random)]


@pytest.mark.parametrize("n", SIZES)
def test_a_sample_has_the_bits_that_it_has_alone(n: int, alone: list) -> None:
    for samples in places(n):
        mixture = Mixture(chosen(samples))
        grads = mixture.gradients()
        for place, sample in enumerate(samples):
            values, one = alone[sample]
            for mine, its in zip(mixture.values, values, strict=True):
                assert bits(mine[..., place]) == bits(its[..., 0])
            for key in mixture.PER_SAMPLE:
                assert bits(grads[key][..., place]) == bits(one[key][..., 0])


@pytest.mark.parametrize("n", [*SIZES, 20_011])
def test_the_gradient_of_a_param_is_the_canonical_sum(n: int, alone: list) -> None:
    """Of what each sample gives by itself, added as the blocks and the tree say, again in NumPy."""
    for samples in places(n):
        mixture = Mixture(chosen(samples))
        grads = mixture.gradients()
        for key in mixture.PARAMS:
            shares = np.array([alone[sample][1][key] for sample in samples]).reshape(n, *np.shape(grads[key]))
            if shares.ndim == 1:
                assert bits(grads[key]) == bits(ordered_sum(shares))
            else:
                assert [bits(g) for g in grads[key]] == [bits(ordered_sum(column)) for column in shares.T]


def test_the_order_of_a_sum_matters_here() -> None:
    """Else the test above would show nothing."""
    forwards, backwards = (Mixture(chosen(samples)).gradients() for samples in places(POOL)[:2])
    assert bits(backwards["k"]) != bits(forwards["k"])


def test_an_empty_batch_has_empty_gradients_and_params_of_zero() -> None:
    mixture = Mixture(chosen(np.arange(0)))
    grads = mixture.gradients()
    assert grads["v"].shape == (3, 0)
    assert bits(grads["a"]) == bits(np.float64(0.0))
    assert bits(grads["k"]) == bits(np.zeros(2))


def test_an_empty_batch_of_views_of_one_empty_array() -> None:
    """They all have the same address, and are planes apart."""
    x, b, loss, y = np.zeros((4, 0))
    graph = recorded(
        ("spend", k.spend, {"x": x, "b": b, "loss": loss}),
        ("wave", k.wave, {"x": loss, "y": y}),
    )
    grads = gradients(graph, {"wave.y": np.zeros(0), "spend.b": np.zeros(0)})
    assert {key: grads[key].shape for key in grads} == {"x": (0,), "b": (0,)}


@pytest.mark.parametrize("mode", ["float64", "float32"])
@pytest.mark.parametrize("n", [7, POOL])
def test_a_graph_is_a_loop_of_launches(n: int, mode: str) -> None:
    in_graph, one_by_one = (Mixture(chosen(np.arange(n)), mode) for _ in range(2))
    in_graph.graph.launch()
    for _, kernel, planes in one_by_one.steps:
        plan(kernel, mode).bind(**planes).launch()
    for mine, its in zip(in_graph.values, one_by_one.values, strict=True):
        assert bits(mine) == bits(its)
    built = eagle.Graph()
    third = Mixture(chosen(np.arange(n)), mode)
    for name, kernel, planes in third.steps:
        built.add(plan(kernel, mode).bind(**planes), name=name)
    built.build().launch()
    for mine, its in zip(in_graph.values, third.values, strict=True):
        assert bits(mine) == bits(its)


def test_a_reverse_used_again_gives_the_bits_of_a_new_one() -> None:
    mixture = Mixture(chosen(np.arange(257)))
    start = mixture.s.copy()
    rev = Reverse(mixture.graph)
    for _ in range(3):
        mixture.s[:] = start
        mixture.graph.launch()
        grads = rev(mixture.graph.record, mixture.seeds)
        fresh = eagle.diff.reverse(mixture.graph.record, mixture.seeds)
        assert [bits(grads[key]) for key in grads] == [bits(fresh[key]) for key in fresh]


# threads


def digest(n: int, mode: str = "float64") -> str:
    """Of all that a forward and a reverse give for `n` samples, the pool over and over."""
    mixture = Mixture(chosen(places(n)[0]), mode)
    grads = mixture.gradients()
    results = [*mixture.values, *(grads[key] for key in grads)]
    return hashlib.sha256(b"".join(map(bits, results))).hexdigest()


def print_digests() -> None:
    print(eagle._native.threads(), *(digest(n) for n in (300, 20_011, 100_003)), digest(20_011, "float32"))


def test_the_same_bits_for_every_number_of_threads() -> None:
    count, *digests = in_child(print_digests, 1)
    assert count == "1"
    assert len(set(digests)) == 4
    for threads in (2, 3):
        assert in_child(print_digests, threads) == [str(threads), *digests]
