"""The elementary functions: errors in ulp, special values, symmetries and exact cases."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mpmath as mp
import numpy as np
import pytest
from ulp_reference import DTYPE, any_number, exact_values, samples, ulp_errors

from hawk.elementary import FUNCTIONS, MAX_ULP, NumpyLanes
from hawk.ir.ops import ELEMENTARY

INF, NAN, PI = math.inf, math.nan, math.pi
LANES = {64: NumpyLanes(64), 32: NumpyLanes(32)}
TWO_ARGUMENTS = ("hypot", "pow", "atan2", "fmod")
ONE_ARGUMENT = sorted(ELEMENTARY - set(TWO_ARGUMENTS))
each_precision = pytest.mark.parametrize("bits", [64, 32])


def call(name: str, bits: int, *arguments: Sequence[float]) -> np.ndarray:
    with np.errstate(all="ignore"):
        arrays = [np.asarray(a, DTYPE[bits]) for a in arguments]
    result = FUNCTIONS[name](LANES[bits], *arrays)
    assert result.dtype == DTYPE[bits]
    assert result.shape == np.broadcast_shapes(*(a.shape for a in arrays))
    return result


def assert_same_bits(got: np.ndarray, expected: np.ndarray) -> None:
    """Equal, zeros by their sign too, and NaN where NaN is expected (any NaN)."""
    np.testing.assert_array_equal(got, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(expected[number]))


def test_every_op_has_a_function_and_a_bound() -> None:
    assert set(FUNCTIONS) == ELEMENTARY
    assert set(MAX_ULP) == ELEMENTARY
    assert all(set(bounds) == {64, 32} for bounds in MAX_ULP.values())
    assert all(bound <= 1 for bounds in MAX_ULP.values() for bound in bounds.values())


@each_precision
@pytest.mark.parametrize("name", sorted(ELEMENTARY))
def test_error_is_within_the_stated_bound(name: str, bits: int) -> None:
    arguments = samples(name, bits, 2000)
    got = FUNCTIONS[name](LANES[bits], *arguments)
    errors = ulp_errors(got, exact_values(name, arguments), bits)
    worst = int(np.argmax(errors))
    assert errors[worst] <= MAX_ULP[name][bits], [float(a[worst]) for a in arguments]


@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_single_precision_over_all_exponents(name: str) -> None:
    """Against double precision, whose error does not matter here, at a prime stride through all bit patterns."""
    x = np.arange(0, 1 << 32, 199_999, dtype=np.uint64).astype(np.uint32).view(np.float32)
    got = call(name, 32, x)
    exact = call(name, 64, x)
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        step = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 24, -149))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    check = np.isfinite(rounded) & np.isfinite(got)
    same = np.isnan(exact) | (got == rounded)
    largest = np.finfo(np.float32).max
    edge = (np.abs(exact) >= largest) & ((got == rounded) | (np.abs(got) >= largest))
    assert np.all(check | same | edge)
    error = np.abs(got[check].astype(np.float64) - exact[check]) / step[check]
    assert error.max() <= MAX_ULP[name][32], x[check][error.argmax()]


# name: (arguments, the exact result) for arguments whose result a rounding cannot blur
SPECIAL: dict[str, list[tuple[float, ...]]] = {
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (-INF, NAN), (4.0, 0.5), (0.25, 2.0)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (27.0, 3.0), (-8.0, -2.0)],
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e4, INF), (-1e4, 0.0), (1e30, INF), (-1e30, 0.0)],
    "exp2": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (2e3, INF), (-2e3, 0.0), (3.0, 8.0), (-1.0, 0.5)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (1e4, INF), (-1e4, -1.0), (-1e30, -1.0)],
    "log": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    "log2": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN), (8.0, 3.0), (0.5, -1.0)],
    "log10": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (-INF, NAN), (1000.0, 3.0)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-1.5, NAN), (-INF, NAN)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.0, PI / 2), (-1.0, -PI / 2), (1.5, NAN), (INF, NAN), (-INF, NAN)],
    "acos": [(1.0, 0.0), (-1.0, PI), (0.0, PI / 2), (-0.0, PI / 2), (1.5, NAN), (-1.5, NAN), (INF, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INF, PI / 2), (-INF, -PI / 2), (1.0, PI / 4), (-1.0, -PI / 4), (1e30, PI / 2)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e4, INF), (-1e4, -INF)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (1e4, INF), (-1e4, INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (1e30, 1.0), (-30.0, -1.0)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "acosh": [(1.0, 0.0), (INF, INF), (0.5, NAN), (-1.0, NAN), (-INF, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN), (-INF, NAN)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (10.0, 1.0), (-1e30, -1.0)],
    "erfc": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (30.0, 0.0), (-30.0, 2.0), (1e30, 0.0)],
    "hypot": [(3.0, 4.0, 5.0), (0.0, -0.0, 0.0), (INF, NAN, INF), (NAN, -INF, INF), (INF, 1.0, INF), (0.0, -2.0, 2.0)],
    "atan2": [
        *[(0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (0.0, -1.0, PI), (-0.0, -1.0, -PI), (0.0, INF, 0.0), (-0.0, -INF, -PI)],
        *[(0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (0.0, -0.0, PI), (-0.0, -0.0, -PI), (2.0, INF, 0.0), (2.0, -INF, PI)],
        *[(1.0, 0.0, PI / 2), (1.0, -0.0, PI / 2), (-1.0, 0.0, -PI / 2), (INF, 3.0, PI / 2), (-INF, -3.0, -PI / 2)],
        *[(INF, INF, PI / 4), (-INF, INF, -PI / 4), (INF, -INF, 3 * PI / 4), (-INF, -INF, -3 * PI / 4)],
        *[(1.0, 1.0, PI / 4), (-1.0, -1.0, -3 * PI / 4), (NAN, 0.0, NAN), (INF, NAN, NAN)],
    ],
    "fmod": [
        *[(7.5, 2.0, 1.5), (-7.5, 2.0, -1.5), (7.5, -2.0, 1.5), (-6.0, 3.0, -0.0), (0.0, 1.0, 0.0), (-0.0, 1.0, -0.0)],
        *[(1.0, 0.0, NAN), (0.0, 0.0, NAN), (INF, 2.0, NAN), (-INF, INF, NAN), (5.0, INF, 5.0), (-5.0, -INF, -5.0)],
    ],
    "pow": [
        # C99 F.9.4.4, in its order
        *[(0.0, -3.0, INF), (-0.0, -3.0, -INF), (-0.0, -2.0, INF), (0.0, -1.5, INF), (-0.0, -1.5, INF)],
        *[(-0.0, 3.0, -0.0), (0.0, 3.0, 0.0), (-0.0, 2.0, 0.0), (0.0, 0.5, 0.0), (-0.0, 0.5, 0.0)],
        *[(-1.0, INF, 1.0), (-1.0, -INF, 1.0), (1.0, NAN, 1.0), (1.0, INF, 1.0), (NAN, 0.0, 1.0), (NAN, -0.0, 1.0)],
        *[(0.0, 0.0, 1.0), (INF, 0.0, 1.0), (-2.0, 0.5, NAN), (-2.0, -1.5, NAN)],
        *[(0.5, -INF, INF), (-0.5, -INF, INF), (2.0, -INF, 0.0), (-2.0, -INF, 0.0)],
        *[(0.5, INF, 0.0), (-0.5, INF, 0.0), (2.0, INF, INF), (-2.0, INF, INF), (0.0, -INF, INF), (0.0, INF, 0.0)],
        *[(-INF, -3.0, -0.0), (-INF, -2.0, 0.0), (-INF, -1.5, 0.0), (-INF, 3.0, -INF), (-INF, 2.0, INF)],
        *[(-INF, 1.5, INF), (INF, -1.0, 0.0), (INF, 0.5, INF), (INF, INF, INF), (INF, -INF, 0.0)],
        # and more
        *[(-2.0, 2.0, 4.0), (-2.0, 3.0, -8.0), (3.0, 2.0, 9.0), (2.0, 0.5, math.sqrt(2)), (10.0, -1e30, 0.0)],
        *[(-1.0, 1e30, 1.0), (-1.0, 3.0, -1.0), (-1.0, NAN, NAN), (NAN, 1.0, NAN), (2.0, NAN, NAN), (-3.0, 1e30, INF)],
    ],
}


@each_precision
@pytest.mark.parametrize("name", sorted(ELEMENTARY))
def test_special_values(name: str, bits: int) -> None:
    *arguments, expected = (np.array(column) for column in zip(*SPECIAL[name], strict=True))
    with np.errstate(over="ignore"):
        assert_same_bits(call(name, bits, *arguments), expected.astype(DTYPE[bits]))


@each_precision
@pytest.mark.parametrize("name", sorted(ELEMENTARY))
def test_nan_in_nan_out(name: str, bits: int) -> None:
    nan, minus_nan = np.array([NAN]), np.array([-NAN])
    if name not in TWO_ARGUMENTS:
        assert np.isnan(call(name, bits, [NAN, -NAN, 1.0])).tolist()[:2] == [True, True]
        return
    number = np.array([2.5])
    for x, y in ((nan, number), (number, nan), (nan, nan), (minus_nan, -number), (-number, minus_nan)):
        assert np.isnan(call(name, bits, x, y)).all()


@each_precision
def test_odd_and_even_functions(bits: int) -> None:
    x = any_number(np.random.default_rng(5), bits, 2000)
    for name in ["cbrt", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf"]:
        assert_same_bits(call(name, bits, -x), -call(name, bits, x))
    for name in ("cos", "cosh"):
        assert_same_bits(call(name, bits, -x), call(name, bits, x))


@each_precision
def test_exact_cases_are_exact(bits: int) -> None:
    top = 1023 if bits == 64 else 127
    least = -1074 if bits == 64 else -149
    n = np.arange(least, top + 1)
    powers = np.ldexp(DTYPE[bits](1), n)
    assert_same_bits(call("exp2", bits, n), powers)
    assert_same_bits(call("log2", bits, powers), n.astype(DTYPE[bits]))
    assert_same_bits(call("pow", bits, np.full(n.size, 2.0), n), powers)
    tens = np.arange(0, 23 if bits == 64 else 11)
    assert_same_bits(call("log10", bits, [10.0 ** int(k) for k in tens]), tens.astype(DTYPE[bits]))
    small = np.arange(-200, 201).astype(DTYPE[bits])
    assert_same_bits(call("cbrt", bits, small**3), small)
    assert_same_bits(call("pow", bits, small, np.full(small.size, 2.0)), small**2)
    assert_same_bits(call("pow", bits, small, np.full(small.size, 3.0)), small**3)
    assert_same_bits(call("pow", bits, small, np.ones(small.size)), small)
    assert_same_bits(call("hypot", bits, 3 * small, 4 * small), 5 * np.abs(small))
    roots = np.ldexp(DTYPE[bits](1), np.arange(-(-least // 2), top // 2))
    assert_same_bits(call("rsqrt", bits, roots**2), 1 / roots)


@each_precision
def test_fmod_is_exact(bits: int) -> None:
    x, y = samples("fmod", bits, 4000, seed=1)
    expected = np.array([math.fmod(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)], DTYPE[bits])
    assert_same_bits(call("fmod", bits, x, y), expected)


@each_precision
@pytest.mark.parametrize("name", sorted(ELEMENTARY))
def test_shapes_and_lane_neighbours_change_nothing(name: str, bits: int) -> None:
    arguments = samples(name, bits, 60, seed=2)
    expected = call(name, bits, *arguments)
    folded = call(name, bits, *(a[:24].reshape(2, 3, 4) for a in arguments))
    assert_same_bits(folded, expected[:24].reshape(2, 3, 4))
    for k in range(0, expected.size, 7):
        alone = FUNCTIONS[name](LANES[bits], *(a[k] for a in arguments))  # NumPy scalars
        assert_same_bits(np.atleast_1d(alone), expected[k : k + 1])


def test_the_hardest_double_for_argument_reduction() -> None:
    """No double is nearer to a multiple of pi/2, relative to its size (Muller, "Elementary functions", 9.5.1)."""
    x = math.ldexp(6381956970095103, 797)
    with mp.workdps(700):
        cosine = float(mp.cos(mp.mpf(x)))
    assert call("cos", 64, [x])[0] == cosine
    assert abs(call("sin", 64, [x])[0]) == 1
