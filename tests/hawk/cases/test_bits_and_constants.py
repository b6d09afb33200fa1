"""The bits of a value: the same in every place and in every derivative, from constants rounded once."""

import numpy as np
import pytest
from everywhere import everywhere

import hawk
from eagle.plan import Plan
from hawk import Int32, Mutable, Param, Scalar, kernel
from hawk import math as hm
from hawk.diff import jvp, vjp

MODES = ("float64", "float32")
RNG = np.random.default_rng(3)


def launched(target, mode: str, planes: dict[str, object], *outputs: str) -> list[np.ndarray]:
    """A kernel or derivative on planes; reals in the precision of the mode."""
    k = target if isinstance(target, hawk.Kernel) else hawk.Kernel("derived", target)
    plan = Plan(k, mode)
    n = max(np.shape(v)[-1] for v in planes.values() if np.ndim(v))
    types = {a.name: a.type.dtype for a in plan.program.arguments}
    bound = {name: np.asarray(v, types[name]) for name, v in planes.items()}
    bound |= {name: np.zeros(n, types[name]) for name in plan.program.writes()}
    plan.bind(**bound).launch()
    return [bound[name] for name in outputs]


def mixed(x, y):
    """Elementary functions, a product to be fused, and 200 steps of a chaotic map."""
    z = hm.exp(x) * hm.sin(y) + x * y
    c = 0.5 + 0.25 * hm.sin(z)
    for _ in range(200):
        c = 3.99 * c * (1 - c)
    return z + c


@kernel
def chaotic(x: Scalar, y: Scalar, out: Mutable[Scalar]):
    out = mixed(x, y)


@pytest.mark.parametrize("mode", MODES)
def test_a_sample_has_the_same_bits_at_every_place_of_every_small_batch(mode):
    (alone,) = launched(chaotic, mode, {"x": [0.7], "y": [1.3]}, "out")
    for n in range(1, 34):
        x, y = RNG.normal(size=(2, n))
        for place in range(n):
            moved, also = x.copy(), y.copy()
            moved[place], also[place] = 0.7, 1.3
            (found,) = launched(chaotic, mode, {"x": moved, "y": also}, "out")
            assert found[place] == alone[0]


@pytest.mark.parametrize("mode", MODES)
def test_in_batches_in_a_graph_and_reversed_twice(mode):
    """Its slopes are of the size 4**200, and inf in single precision: compared where the map is short."""

    @kernel
    def short(x: Scalar, y: Scalar, out: Mutable[Scalar]):
        z = hm.exp(x) * hm.sin(y) + x * y
        for _ in range(20):
            z = hm.sin(z * y) + 0.1 * z
        out = z

    everywhere(short, {"x": 0.7, "y": 1.3}, mode=mode)


@kernel
def weighted(x: Scalar, y: Scalar, w: Scalar, out: Mutable[Scalar]):
    out = w * mixed(x, y)


@pytest.mark.parametrize("mode", MODES)
def test_derivatives_compute_the_value_with_its_own_bits(mode):
    """The slope by a weight is the value that the derivative has computed."""
    x, y = RNG.normal(size=(2, 50))
    (value,) = launched(chaotic, mode, {"x": x, "y": y}, "out")
    planes = {"x": x, "y": y, "w": np.ones(50)}
    (pulled,) = launched(vjp(weighted), mode, planes | {"bar_out": np.ones(50)}, "bar_w")
    (pushed,) = launched(jvp(weighted, ("w",)), mode, planes | {"dot_w": np.ones(50)}, "dot_out")
    np.testing.assert_array_equal(pulled, value)
    np.testing.assert_array_equal(pushed, value)


@kernel
def state_at(x: Scalar, at: Int32, out: Mutable[Scalar]):
    c, out = x, 0.0
    for i in range(5000):
        out = c if i == at else out
        c = 3.99 * c * (1 - c)


@kernel
def weighted_state_at(x: Scalar, at: Int32, w: Scalar, out: Mutable[Scalar]):
    c, out = x, 0.0
    for i in range(5000):
        out += w * c if i == at else 0.0
        c = 3.99 * c * (1 - c)


@pytest.mark.parametrize("mode", MODES)
def test_trips_run_again_from_checkpoints_have_the_bits_of_the_first_run(mode):
    at = np.array([0, 1, 63, 64, 65, 127, 128, 4095, 4096, 4097, 4999, 2048, 2049, 77, 78, 79], np.int32)
    x = RNG.uniform(0.1, 0.9, at.size)
    (value,) = launched(state_at, mode, {"x": x, "at": at}, "out")
    planes = {"x": x, "at": at, "w": np.ones(at.size), "bar_out": np.ones(at.size)}
    (recomputed,) = launched(vjp(weighted_state_at, ("w",)), mode, planes, "bar_w")
    np.testing.assert_array_equal(recomputed, value)
    assert len(set(value)) == at.size


# constants

SINGLE = np.float32(0.1)


def test_constants_of_a_float64_kernel_are_doubles():
    @kernel
    def k(x: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]:
        return x * 0.1, x * hm.pi, x * (1.0 + 5e-8), x * SINGLE, x * 2**40, x / 255

    found = [float(v[0]) for v in k(np.ones(1))]
    assert found == [0.1, 3.141592653589793, 1.0 + 5e-8, 0.10000000149011612, 1099511627776.0, 1 / 255]


def test_constants_of_a_float32_kernel_are_rounded_once():
    @kernel
    def k(x: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        return x * 0.1, x * hm.pi, x * (1.0 + 6e-8), x * 2**40

    found = [v[0] for v in k(np.ones(1, np.float32))]
    assert found == [np.float32(0.1), np.float32(np.pi), np.float32(1.0 + 6e-8), np.float32(2**40)]
    assert all(v.dtype == np.float32 for v in found)


@pytest.mark.parametrize("mode", MODES)
def test_a_division_by_a_constant_is_a_division(mode):
    @kernel
    def by_255(x: Scalar, y: Mutable[Scalar]):
        y = x / 255

    @kernel
    def by_a_param(x: Scalar, d: Param, y: Mutable[Scalar]):
        y = x / d

    x = np.arange(256.0)
    (found,) = launched(by_255, mode, {"x": x}, "y")
    (also,) = launched(by_a_param, mode, {"x": x, "d": 255.0}, "y")
    np.testing.assert_array_equal(found, x.astype(mode) / np.dtype(mode).type(255))
    np.testing.assert_array_equal(found, also)
    if mode == "float32":
        assert [f"{v:.9f}" for v in found[[3, 13]]] == ["0.011764706", "0.050980393"]


@pytest.mark.parametrize("number", [3, 6, 7, 13])
def test_a_quotient_of_two_constants_is_the_one_that_would_be_computed(number):
    @kernel
    def folded(x: Scalar, y: Mutable[Scalar]):
        y = x * (hm.real(number) / 255)

    @kernel
    def computed(x: Scalar, y: Mutable[Scalar]):
        y = x * ((number + 0 * x) / 255)

    (found,) = launched(folded, "float32", {"x": [1.0]}, "y")
    (also,) = launched(computed, "float32", {"x": [1.0]}, "y")
    assert found == also == np.float32(number) / np.float32(255)
