"""What a derivative is where calculus leaves a choice: kinks, ties, origins, ends of domains, sides not taken."""

import numpy as np
import pytest
from hawktest.derivatives import run, slopes

import hawk
from hawk import Bool, Int32, Kernel, Mutable, Param, Scalar, Table, Vector, kernel
from hawk import math as hm
from hawk.diff import jvp, vjp
from hawk.ir.types import Type

INF, NAN = np.inf, np.nan
LEAST = 5e-324


def assert_slopes(found: dict[str, np.ndarray], **expected: object) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-14, atol=0, err_msg=name)


# kinks and ties


@kernel
def larger_of_x_and_zero(x: Scalar) -> Scalar:
    return hm.maximum(x, 0.0)


@kernel
def clipped_at_zero(x: Scalar) -> Scalar:
    return hm.clip(x, 0.0, 9.0)


@kernel
def size(x: Scalar) -> Scalar:
    return hm.abs(x)


@kernel
def of_itself(x: Scalar) -> Scalar:
    return hm.maximum(x, x)


@kernel
def both_halves(x: Scalar) -> Scalar:
    return hm.maximum(x, 0.0) + hm.minimum(x, 0.0)


@kernel
def of_its_negative(x: Scalar) -> Scalar:
    return hm.maximum(x, -x)


@kernel
def three_ways(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    return hm.maximum(hm.maximum(x, y), z)


@pytest.mark.parametrize(
    ("k", "at_zero", "above", "below"),
    [
        (larger_of_x_and_zero, 0.5, 1, 0),
        (clipped_at_zero, 0.5, 1, 0),
        (size, 0, 1, -1),
        (of_itself, 1, 1, 1),
        (both_halves, 1, 1, 1),
        (of_its_negative, 0, 1, -1),
    ],
    ids=lambda k: getattr(k, "name", ""),
)
def test_a_tie_is_split_in_halves_and_the_least_number_is_no_tie(k, at_zero, above, below):
    found = slopes(k, x=[0.0, -0.0, LEAST, -LEAST, 2.0, -2.0])
    assert_slopes(found, x=[at_zero, at_zero, above, below, above, below])


def test_a_chain_of_two_way_ties_gives_halves_of_halves():
    assert_slopes(slopes(three_ways, x=[1.0], y=[1.0], z=[1.0]), x=[0.25], y=[0.25], z=[0.5])


@kernel
def smaller(x: Scalar, y: Scalar) -> Scalar:
    return hm.minimum(x, y)


@pytest.mark.parametrize("real", [Type.F64, Type.F32], ids=str)
def test_nan_in_a_minimum_is_nan_in_its_slopes(real):
    found = slopes(smaller, real, x=[NAN, 1.0, NAN, 1.0], y=[1.0, NAN, NAN, 2.0])
    assert_slopes(found, x=[NAN, NAN, NAN, 1], y=[NAN, NAN, NAN, 0])


@kernel
def steps(x: Scalar) -> Scalar:
    return hm.sign(x) + hm.floor(x) + hm.ceil(x) + hm.trunc(x) + hm.round(x) + x // 0.7


def test_steps_have_slope_zero_also_where_they_step():
    assert_slopes(slopes(steps, x=[0.0, 0.5, 2.5, -1.5, 3.0]), x=[0] * 5)


@kernel
def through_an_integer(x: Scalar) -> Scalar:
    return hm.int32(x) * x


@kernel
def through_a_bool(x: Scalar) -> Scalar:
    return hm.real(x != 0) * x


def test_a_number_taken_through_an_integer_or_a_bool_is_a_constant():
    assert_slopes(slopes(through_an_integer, x=[2.7, -2.7, 0.3]), x=[2, -2, 0])
    assert_slopes(slopes(through_a_bool, x=[2.7, 0.0]), x=[1, 0])


# origins


@kernel
def length(v: Vector[2]) -> Scalar:
    return hm.norm(v)


@kernel
def length_squared(v: Vector[2]) -> Scalar:
    return hm.norm(v) ** 2


@kernel
def angle(y: Scalar, x: Scalar) -> Scalar:
    return hm.atan2(y, x)


@kernel
def angle_away_from_the_origin(y: Scalar, x: Scalar) -> Scalar:
    return hm.atan2(y, x) if x * x + y * y > 0 else 0.0


def test_a_norm_has_slope_zero_at_the_origin_and_is_scaled_elsewhere():
    v = np.array([[0.0, 3.0, 1e-200, 1e200, LEAST], [0.0, 4.0, -1e-200, 1e200, 0.0]])
    half = np.sqrt(0.5)
    assert_slopes(slopes(length, v=v), v=[[0, 0.6, half, half, 1], [0, 0.8, -half, half, 0]])
    assert_slopes(slopes(length_squared, v=v[:, :2]), v=2 * v[:, :2])


def test_atan2_has_slope_zero_at_the_origin_and_is_scaled_elsewhere():
    found = slopes(angle, y=[0.0, -0.0, 1e-200, 1e200], x=[0.0, -0.0, 1e-200, 1e200])
    assert_slopes(found, y=[0, 0, 5e199, 5e-201], x=[0, 0, -5e199, -5e-201])
    assert_slopes(slopes(angle_away_from_the_origin, y=[0.0, 1.0], x=[0.0, 1.0]), y=[0, 0.5], x=[0, -0.5])


def test_atan2_near_the_origin_in_single_precision():
    y, x = np.float32([1e-13, 1e-25]), np.float32([5.6843e-14, 1e-25])
    found = slopes(angle, Type.F32, y=y, x=x)
    np.testing.assert_allclose(found["y"], [4.29616e12, 5e24], rtol=2e-6)
    np.testing.assert_allclose(found["x"], [-7.55794e12, -5e24], rtol=2e-6)


# ends of domains


@kernel
def root(x: Scalar) -> Scalar:
    return hm.sqrt(x)


@kernel
def x_root_x(x: Scalar) -> Scalar:
    return x * x**0.5


@kernel
def ends(x: Scalar, by: Scalar) -> Scalar:
    return by * (hm.log(x) + hm.cbrt(x) + hm.rsqrt(x) + hm.asin(1.0 - x) + hm.acosh(1.0 + x) + hm.log1p(x - 1.0))


def test_the_slope_of_a_root_at_zero_is_infinite_and_times_nothing_nothing():
    assert_slopes(slopes(root, x=[0.0, 4.0]), x=[INF, 0.25])
    assert_slopes(slopes(x_root_x, x=[0.0, 4.0]), x=[0, 3])
    reverse, forward = vjp(ends, ("x",)), jvp(ends, ("x",))
    planes = {"x": [0.0], "by": [0.0]}
    np.testing.assert_array_equal(run(reverse, planes, {"out": [1.0]})["x"], [0])
    np.testing.assert_array_equal(run(reverse, {"x": [0.0], "by": [1.0]}, {"out": [0.0]})["x"], [0])
    np.testing.assert_array_equal(run(forward, {"x": [0.0], "by": [1.0]}, {"x": [0.0]})["out"], [0])


@pytest.mark.parametrize("f", ["sqrt", "log", "cbrt", "rsqrt", "log2", "log10", "log1p", "atanh", "asin", "acos"])
def test_a_steep_derivative_is_itself_differentiated_where_its_variation_is_zero(f):
    """J v is linear in v, so its slope by v is J, at v = 0 too."""
    function = getattr(hm, f)

    @kernel
    def k(x: Scalar) -> Scalar:
        return function(x)

    x = np.array([0.25, 0.5])
    slope = run(vjp(k), {"x": x}, {"out": np.ones(2)})["x"]
    pushed = Kernel("pushed", jvp(k))
    transposed = run(vjp(pushed, ("dot_x",)), {"x": x, "dot_x": np.zeros(2)}, {"dot_out": np.ones(2)})["dot_x"]
    np.testing.assert_allclose(transposed, slope, rtol=1e-15)
    pulled = Kernel("pulled", vjp(k))
    again = run(jvp(pulled, ("bar_out",)), {"x": x, "bar_out": np.zeros(2)}, {"bar_out": np.ones(2)})["bar_x"]
    np.testing.assert_allclose(again, slope, rtol=1e-15)


# powers


@kernel
def power(x: Scalar, b: Scalar) -> Scalar:
    return x**b


def literal_power(exponent: float) -> Kernel:
    @kernel
    def k(x: Scalar) -> Scalar:
        return x**exponent

    return k


BASE_ZERO = {2.0: 0, 1.0: 1, 0.0: 0, 1.5: 0, 0.5: INF, -1.0: -INF}


def test_powers_of_zero():
    exponents = np.array(list(BASE_ZERO))
    found = slopes(power, x=np.zeros(6), b=exponents)
    np.testing.assert_array_equal(found["x"], list(BASE_ZERO.values()))
    np.testing.assert_array_equal(found["b"][exponents > 0], 0)


@pytest.mark.parametrize("exponent", BASE_ZERO)
def test_literal_powers_of_zero(exponent):
    assert_slopes(slopes(literal_power(exponent), x=[0.0]), x=[BASE_ZERO[exponent]])


def test_powers_of_a_negative_number_have_a_slope_by_the_base():
    found = slopes(power, x=[-2.0, -2.0], b=[2.0, 3.0])
    np.testing.assert_allclose(found["x"], [-4, 12], rtol=1e-15)
    assert np.isnan(found["b"]).all()
    for exponent, expected in ((2, -4), (3, 12), (2.0, -4), (-1.0, -0.25)):
        assert_slopes(slopes(literal_power(exponent), x=[-2.0]), x=[expected])


@pytest.mark.parametrize("k", [power, literal_power(2.0), literal_power(2)], ids=["scalar", "float", "int"])
def test_the_second_derivative_of_a_square_at_zero_is_two(k):
    planes = {"x": np.array([0.0, -3.0])} | ({"b": np.full(2, 2.0)} if k is power else {})
    pushed = Kernel("pushed", jvp(k, ("x",)))
    over = run(vjp(pushed, ("x",)), planes | {"dot_x": np.ones(2)}, {"dot_out": np.ones(2)})["x"]
    pulled = Kernel("pulled", vjp(k, ("x",)))
    under = run(jvp(pulled, ("x",)), planes | {"bar_out": np.ones(2)}, {"x": np.ones(2)})["bar_x"]
    np.testing.assert_array_equal(over, [2, 2])
    np.testing.assert_array_equal(under, [2, 2])


def test_a_constant_exponent_takes_no_logarithm():
    assert "log" not in str(Kernel("g", vjp(literal_power(3.0))))
    assert "log" in str(Kernel("g", vjp(power)))


# remainders


@kernel
def python_remainder(x: Scalar, y: Scalar) -> Scalar:
    return x % y


@kernel
def c_remainder(x: Scalar, y: Scalar) -> Scalar:
    return hm.fmod(x, y)


def test_slopes_of_remainders():
    assert_slopes(slopes(python_remainder, x=[-19.0, 19.0, 7.5], y=[3.0, -3.0, 2.0]), x=[1, 1, 1], y=[7, 7, -3])
    assert_slopes(slopes(c_remainder, x=[-19.0, 19.0, 7.5], y=[3.0, -3.0, 2.0]), x=[1, 1, 1], y=[6, 6, -3])


# sides that are not taken


@kernel
def where_root(x: Scalar) -> Scalar:
    return hm.where(x < 1, x, hm.sqrt(x))


@kernel
def where_root_or_zero(x: Scalar) -> Scalar:
    return hm.where(x > 0, hm.sqrt(x), 0.0)


@kernel
def where_exp(x: Scalar) -> Scalar:
    return hm.where(x > 0, x, hm.exp(x) - 1)


@kernel
def where_reciprocal(x: Scalar) -> Scalar:
    y = 1 / x
    z = y * y * hm.cos(y)
    return hm.where(x > 1, y, hm.where(x < -1, z, 0.0))


@kernel
def if_root(x: Scalar) -> Scalar:
    y = x
    if x >= 1:
        y = hm.sqrt(x)
    return y


@kernel
def if_root_or_zero(x: Scalar) -> Scalar:
    return hm.sqrt(x) if x > 0 else 0.0


@kernel
def if_exp(x: Scalar) -> Scalar:
    return x if x > 0 else hm.exp(x) - 1


@kernel
def if_reciprocal(x: Scalar) -> Scalar:
    y = 0.0
    if x > 1:
        y = 1 / x
    elif x < -1:
        y = hm.cos(1 / x) / (x * x)
    return y


@pytest.mark.parametrize("k", [where_root, if_root], ids=["where", "if"])
def test_a_root_that_is_not_chosen(k):
    assert_slopes(slopes(k, x=[0.0, -1.0, 4.0]), x=[1, 1, 0.25])


@pytest.mark.parametrize("k", [where_root_or_zero, if_root_or_zero], ids=["where", "if"])
def test_a_root_of_a_negative_number_that_is_not_chosen(k):
    assert_slopes(slopes(k, x=[-1.0, 0.0, 1.0]), x=[0, 0, 0.5])


@pytest.mark.parametrize("k", [where_exp, if_exp], ids=["where", "if"])
def test_an_overflow_that_is_not_chosen(k):
    assert_slopes(slopes(k, x=[710.0, 1e4, -1.0]), x=[1, 1, np.exp(-1)])
    assert_slopes(slopes(k, Type.F32, x=np.float32([89.0, 1e4])), x=[1, 1])
    assert np.isnan(slopes(k, x=[NAN])["x"]).all()


@pytest.mark.parametrize("k", [where_reciprocal, if_reciprocal], ids=["where", "if"])
def test_a_division_by_zero_that_is_not_chosen(k):
    slope = (2 * np.cos(0.5) - 0.5 * np.sin(0.5)) / 8
    assert_slopes(slopes(k, x=[0.0, 0.5, 2.0, -2.0]), x=[0, 0, -0.25, slope])


def test_a_side_computed_before_an_if_that_does_not_choose_it():
    @kernel
    def k(x: Scalar, f: Bool) -> Scalar:
        y = 1 / x
        z = 0.0
        if f:
            z = hm.where(x > 1, hm.exp(y), 3.0)
        return z

    found = slopes(k, x=[0.0, 0.0, 2.0], f=[True, False, True])
    np.testing.assert_allclose(found["x"], [0, 0, -np.exp(0.5) / 4], rtol=1e-15)


def test_a_choice_within_a_choice_that_was_not_chosen():
    @kernel
    def k(x: Scalar) -> Scalar:
        return hm.where(x > 1, hm.where(x < 5, 1 / x, hm.exp(x)), 3 * x)

    assert_slopes(slopes(k, x=[0.0, 2.0, 6.0, 800.0]), x=[3, -0.25, np.exp(6.0), INF])


def test_a_value_chosen_in_one_branch_and_used_as_it_is_in_the_other():
    @kernel
    def k(x: Scalar, f: Bool) -> Scalar:
        y = 1 / x
        if f:
            z = hm.where(x > 1, y, 0.0)
            out = 2 * z
        else:
            out = 3 * y
        return out

    found = slopes(k, x=[0.0, 2.0, 2.0, 0.5], f=[True, True, False, False])
    assert_slopes(found, x=[0, -0.5, -0.75, -12])


def test_a_value_chosen_once_and_used_as_it_is_once_more():
    @kernel
    def k(x: Scalar) -> Scalar:
        y = 1 / x
        return hm.where(x > 1, y, 0.0) + 3 * y

    assert_slopes(slopes(k, x=[2.0, 0.5]), x=[-1, -12])


def test_both_sides_of_a_choice_that_read_one_argument():
    @kernel
    def k(a: Scalar, t: Scalar, f: Bool) -> Scalar:
        return a / t if f else a

    assert_slopes(slopes(k, a=[5.0], t=[0.0], f=[False]), a=[1], t=[0])


def test_a_safe_normalise_of_the_zero_vector_among_others():
    @kernel
    def k(v: Vector[2], at: Int32, t: Table["row":3]) -> Scalar:
        n = hm.norm(v)
        unit = v / n + t.at(at) if n > 0 else 0.0 * v
        return unit[0] + 2 * unit[1]

    v = np.tile([[3.0], [4.0]], 8)
    v[:, 3] = 0.0
    at = np.zeros(8, np.int32)
    at[3] = 10**9
    planes = {"v": v, "at": at, "t": np.zeros(3)}
    found = run(vjp(k, ("v",)), planes, {"out": np.ones(8)})["v"]
    projected = (np.eye(2) - np.outer([0.6, 0.8], [0.6, 0.8])) @ [1, 2] / 5
    expected = np.tile(projected[:, None], 8)
    expected[:, 3] = 0.0
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-17)


def test_an_argument_of_the_side_not_taken_has_adjoint_zero():
    @kernel
    def k(a: Scalar, x: Scalar, b: Param) -> Scalar:
        return a * x if x > 0 else b

    found = slopes(k, a=[2.0, 3.0], x=[1.0, 4.0], b=0.5)
    assert_slopes(found, a=[1, 4], x=[2, 3], b=[0, 0])


def test_a_constant_arm_does_not_silence_the_other():
    @kernel
    def k(x: Scalar, c: Int32) -> Scalar:
        return hm.sin(x) if c == 0 else 0.0

    assert_slopes(slopes(k, x=[0.5, 0.5], c=[0, 1]), x=[np.cos(0.5), 0])


# values read before they are overwritten


def test_a_component_rewritten_from_its_old_value_counts_each_weight_once():
    @kernel
    def k(x: Scalar) -> Scalar:
        v = Vector[2](0, 0)
        v[0] = v[0] + 1 * x
        v[0] = v[0] + 2 * x
        v[0] += 3 * x
        v[0] = v[0] + 4 * x
        return v[0]

    assert_slopes(slopes(k, x=[1.0]), x=[10])


def test_a_product_uses_the_value_from_before_the_overwrite():
    @kernel
    def k(x: Scalar, b: Mutable[Scalar]) -> Scalar:
        loss = x * b
        b = b + 100
        return loss

    for seed, expected in ((0.0, 1.0), (1.0, 2.0)):
        found = run(vjp(k), {"x": [1.0], "b": [10.0]}, {"out": [1.0], "b": [seed]})
        np.testing.assert_array_equal(found["x"], [10])
        np.testing.assert_array_equal(found["b"], [expected])


def test_a_mutable_squared_in_place():
    @kernel
    def k(s: Mutable[Scalar]):
        s = s * s

    np.testing.assert_array_equal(run(vjp(k), {"s": [3.0]}, {"s": [1.0]})["s"], [6])


def test_an_exported_name_of_the_package_is_the_one_used_here():
    assert hawk.Kernel is Kernel
