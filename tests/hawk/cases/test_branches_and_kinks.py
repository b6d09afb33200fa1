"""Sides that are not taken, kinks, origins and ends of domains, as compiled: alone, among other samples, in a graph."""

import numpy as np
import pytest
from everywhere import everywhere

import hawk
from eagle.plan import Plan
from eagle.testing import check_grads
from hawk import Bool, Int32, Mutable, Scalar, Table, Vector, kernel
from hawk import math as hm
from hawk.diff import jvp, vjp

MODES = ("float64", "float32")


def spelled(*functions):
    """The kernels of functions that should mean the same."""
    return pytest.mark.parametrize("k", [kernel(f) for f in functions], ids=[f.__name__ for f in functions])


def slope(k, mode="float64", **given):
    return everywhere(k, given, mode=mode).slopes


# sides that are not taken


def root_by_where(x: Scalar) -> Scalar:
    return hm.where(x < 1, x, hm.sqrt(x))


def root_by_if(x: Scalar) -> Scalar:
    if x < 1:
        return x
    return hm.sqrt(x)


def root_by_ternary(x: Scalar) -> Scalar:
    return x if x < 1 else hm.sqrt(x)


@pytest.mark.parametrize("mode", MODES)
@spelled(root_by_where, root_by_if, root_by_ternary)
def test_an_infinite_slope_that_is_not_chosen(k, mode):
    assert slope(k, mode, x=0.0) == {"x": 1.0}
    assert slope(k, mode, x=-3.0) == {"x": 1.0}
    assert slope(k, mode, x=4.0) == {"x": 0.25}
    assert np.isnan(everywhere(k, {"x": np.nan}, mode=mode).values["out"])


def positive_root_by_where(x: Scalar) -> Scalar:
    return hm.where(x > 0, hm.sqrt(x), 0.0)


def positive_root_by_if(x: Scalar) -> Scalar:
    y = 0.0
    if x > 0:
        y = hm.sqrt(x)
    return y


def positive_root_by_ternary(x: Scalar) -> Scalar:
    return hm.sqrt(x) if x > 0 else 0.0


@pytest.mark.parametrize("mode", MODES)
@spelled(positive_root_by_where, positive_root_by_if, positive_root_by_ternary)
def test_nan_that_is_not_chosen(k, mode):
    assert [slope(k, mode, x=x)["x"] for x in (-1.0, 0.0, 1.0)] == [0.0, 0.0, 0.5]


def elu_by_where(x: Scalar) -> Scalar:
    return hm.where(x > 0, x, hm.exp(x) - 1)


def elu_by_if(x: Scalar) -> Scalar:
    if x > 0:
        return x
    return hm.exp(x) - 1


def elu_by_ternary(x: Scalar) -> Scalar:
    return x if x > 0 else hm.exp(x) - 1


@spelled(elu_by_where, elu_by_if, elu_by_ternary)
def test_an_overflow_that_is_not_chosen(k):
    assert slope(k, x=710.0) == {"x": 1.0}
    assert slope(k, "float32", x=89.0) == {"x": 1.0}


@spelled(root_by_where, root_by_if, root_by_ternary)
def test_second_derivatives_beside_a_side_that_is_not_chosen(k):
    pushed = hawk.Kernel("pushed", jvp(k))
    assert slope(pushed, x=0.0, dot_x=1.0) == {"x": 0.0, "dot_x": 1.0}
    assert slope(pushed, x=4.0, dot_x=1.0) == {"x": -1 / 32, "dot_x": 0.25}
    check_grads(k, {"x": [0.5, 4.0]}, order=2, quiet=True)


def reciprocal_by_ternary(x: Scalar) -> Scalar:
    return 1 / x if x > 1 else 0.0


def reciprocal_by_if(x: Scalar) -> Scalar:
    y = 0.0
    if x > 1:
        y = 1 / x
    return y


def reciprocal_by_where(x: Scalar) -> Scalar:
    return hm.where(x > 1, 1 / x, 0.0)


@pytest.mark.parametrize("mode", MODES)
@spelled(reciprocal_by_ternary, reciprocal_by_if, reciprocal_by_where)
def test_a_division_by_zero_that_is_not_chosen(k, mode):
    assert [slope(k, mode, x=x)["x"] for x in (0.0, 0.5, 2.0)] == [0.0, 0.0, -0.25]


def test_both_sides_read_one_argument():
    @kernel
    def k(a: Scalar, t: Scalar, f: Bool) -> Scalar:
        return a / t if f else a

    assert slope(k, a=5.0, t=0.0, f=False) == {"a": 1.0, "t": 0.0}
    assert slope(k, a=5.0, t=2.0, f=True) == {"a": 0.5, "t": -1.25}


def test_the_zero_vector_in_one_lane_of_eight():
    @kernel
    def normalise(v: Vector[2], at: Int32, t: Table["row":3], y: Mutable[Vector[2]]):
        n = hm.norm(v)
        y = v / n + t.at(at) if n > 0 else 0.0 * v

    v = np.tile([[3.0], [4.0]], 8)
    v[:, 3] = 0.0
    at = np.zeros(8, np.int32)
    at[3] = np.iinfo(np.int32).max
    seeds, found = np.array([[1.0], [2.0]]) * np.ones(8), np.zeros((2, 8))
    back = Plan(hawk.Kernel("back", vjp(normalise, ("v",))), "float64")
    back.bind(v=v, at=at, t=np.zeros(3), bar_y=seeds, bar_v=found).launch()
    unit = np.array([0.6, 0.8])
    expected = np.tile(((np.eye(2) - np.outer(unit, unit)) / 5 @ [1, 2])[:, None], 8)
    expected[:, 3] = 0.0
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-17)


def test_a_side_that_no_sample_takes_gives_zeros_and_not_nothing():
    @kernel
    def k(a: Scalar, x: Scalar, b: Scalar) -> Scalar:
        return a * x if x > 0 else b

    assert slope(k, a=2.0, x=1.0, b=9.0) == {"a": 1.0, "x": 2.0, "b": 0.0}
    assert slope(k, a=2.0, x=-1.0, b=9.0) == {"a": 0.0, "x": 0.0, "b": 1.0}


def test_a_constant_side_does_not_silence_the_other():
    @kernel
    def k(x: Scalar, c: Int32) -> Scalar:
        return hm.sin(x) if c == 0 else 0

    assert slope(k, x=0.5, c=0)["x"] == pytest.approx(np.cos(0.5), rel=1e-15)
    assert slope(k, x=0.5, c=1)["x"] == 0.0


# kinks


def larger(x: Scalar) -> Scalar:
    return hm.maximum(x, 0.0)


def clamped(x: Scalar) -> Scalar:
    return hm.clip(x, 0.0, 9.0)


def itself(x: Scalar) -> Scalar:
    return hm.maximum(x, x)


def in_two_halves(x: Scalar) -> Scalar:
    return hm.maximum(x, 0.0) + hm.minimum(x, 0.0)


def size(x: Scalar) -> Scalar:
    return abs(x)


def of_its_negative(x: Scalar) -> Scalar:
    return hm.maximum(x, -x)


@pytest.mark.parametrize(
    ("function", "tie", "above", "below"),
    [(larger, 0.5, 1, 0), (clamped, 0.5, 1, 0), (itself, 1, 1, 1), (in_two_halves, 1, 1, 1), (size, 0, 1, -1),
     (of_its_negative, 0, 1, -1)],
)  # fmt: skip
@pytest.mark.parametrize(("mode", "least"), [("float64", 5e-324), ("float32", 1e-45)])
def test_ties_are_exact_and_the_smallest_number_is_none(function, tie, above, below, mode, least):
    """Nothing is flushed to zero."""
    k = kernel(function)
    found = [slope(k, mode, x=x)["x"] for x in (0.0, -0.0, least, -least)]
    assert found == [tie, tie, above, below]


# origins, powers, remainders


def test_lengths_and_angles_at_and_near_the_origin():
    @kernel
    def length(v: Vector[2]) -> Scalar:
        return hm.norm(v)

    @kernel
    def squared(v: Vector[2]) -> Scalar:
        return hm.norm(v) ** 2

    @kernel
    def angle(y: Scalar, x: Scalar) -> Scalar:
        return hm.atan2(y, x)

    np.testing.assert_array_equal(slope(length, v=[0.0, 0.0])["v"], [0, 0])
    np.testing.assert_array_equal(slope(squared, v=[0.0, 0.0])["v"], [0, 0])
    assert slope(angle, y=0.0, x=0.0) == {"y": 0.0, "x": 0.0}
    assert everywhere(angle, {"y": 0.0, "x": 0.0}).values["out"] == 0.0
    found = slope(angle, "float32", y=1e-13, x=5.6843e-14)
    np.testing.assert_allclose([found["y"], found["x"]], [4.29616e12, -7.55794e12], rtol=2e-6)
    np.testing.assert_allclose(slope(angle, "float32", y=1e-25, x=1e-25)["y"], 5e24, rtol=2e-6)
    np.testing.assert_allclose(slope(angle, y=1e-200, x=1e-200)["y"], 5e199, rtol=1e-14)
    np.testing.assert_allclose(slope(angle, y=1e200, x=1e200)["y"], 5e-201, rtol=1e-14)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("b", "by_x"), [(2.0, 0), (1.0, 1), (0.0, 0), (1.5, 0), (0.5, np.inf), (-1.0, -np.inf)])
def test_powers_of_zero(mode, b, by_x):
    @kernel
    def power(x: Scalar, b: Scalar) -> Scalar:
        return x**b

    @kernel
    def literal(x: Scalar) -> Scalar:
        return x**b

    found = everywhere(power, {"x": 0.0, "b": b}, mode=mode, wrt=("x",))
    assert found.slopes["x"] == by_x
    assert found.values["out"] == np.power(0.0, b) if b >= 0 else found.values["out"] == np.inf
    assert slope(literal, mode, x=0.0)["x"] == by_x
    if b > 0:
        assert slope(power, mode, x=0.0, b=b)["b"] == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_root_times_nothing_is_nothing_in_both_modes(mode):
    @kernel
    def k(x: Scalar) -> Scalar:
        return x * x**0.5

    @kernel
    def shifted(x: Scalar) -> Scalar:
        return x * (1 - 2 * hm.sqrt(x))

    assert slope(k, mode, x=0.0) == {"x": 0.0}
    assert slope(shifted, mode, x=0.0) == {"x": 1.0}


def test_remainders_of_integers_and_reals():
    @kernel
    def whole(a: Int32, b: Int32) -> tuple[Int32, Int32]:
        return a // b, a % b

    @kernel
    def real(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
        return x % y, hm.fmod(x, y)

    low = np.iinfo(np.int32).min
    a = np.array([-7, 7, -7, 7, 5, 0, low, low], np.int32)
    b = np.array([2, -2, -2, 2, 0, 0, -1, 1], np.int32)
    quotient, rest = whole(a, b)
    np.testing.assert_array_equal(quotient[:4], [-4, -4, 3, 3])
    np.testing.assert_array_equal(rest[:4], [1, -1, -1, 1])
    np.testing.assert_array_equal(quotient * b + rest, a)
    for seed, by_y in (({"out0": 1.0, "out1": 0.0}, 7.0), ({"out0": 0.0, "out1": 1.0}, 6.0)):
        assert everywhere(real, {"x": -19.0, "y": 3.0}, seed).slopes == {"x": 1.0, "y": by_y}
    assert everywhere(real, {"x": -7.5, "y": 2.0}).values["out0"] == 0.5


def test_casts_and_steps():
    @kernel
    def truncated(x: Scalar) -> Scalar:
        return int(x) * x

    @kernel
    def steps(x: Scalar) -> Scalar:
        return hm.sign(x) + hm.floor(x) + hm.round(x)

    @kernel
    def rounded(x: Scalar) -> Scalar:
        return hm.round(x)

    assert [slope(truncated, x=x)["x"] for x in (2.7, -2.7)] == [2.0, -2.0]
    assert [slope(steps, x=x)["x"] for x in (0.0, 2.5, -1.2)] == [0.0, 0.0, 0.0]
    assert [everywhere(rounded, {"x": x}).values["out"] for x in (2.5, 3.5, -0.5)] == [2.0, 4.0, 0.0]
