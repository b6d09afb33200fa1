"""NumPy lanes: every operation rounds once, as IEEE 754 says."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hawk.elementary.numpy_lanes import NumpyLanes

LANES = {64: NumpyLanes(64), 32: NumpyLanes(32)}
REAL = {64: np.float64, 32: np.float32}

# (smallest exponent, bits of the significand, largest finite value)
FORMAT = {64: (-1074, 53, Fraction(2**1024 - 2**971)), 32: (-149, 24, Fraction(2**128 - 2**104))}


def rounded(value: Fraction, bits: int) -> float:
    """`value` to the nearest number of the format, ties to even, by integer arithmetic alone."""
    least, digits, largest = FORMAT[bits]
    size = abs(value)
    if size == 0:
        return 0.0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent += size >= Fraction(2) ** exponent  # now size < 2**exponent
    step = Fraction(2) ** max(exponent - digits, least)
    nearest = round(size / step) * step
    result = math.inf if nearest > largest else float(nearest)
    return -result if value < 0 else result


def exact_fma(x: float, y: float, z: float, bits: int) -> float:
    if not (math.isfinite(x) and math.isfinite(y)):
        return float(np.float64(x) * np.float64(y) + np.float64(z))
    if not math.isfinite(z):
        return z
    value = Fraction(x) * Fraction(y) + Fraction(z)
    if value == 0:  # the sign of an exact zero: that of its two zero or cancelling terms
        product = math.copysign(1, x) * math.copysign(1, y)
        return -0.0 if z == 0 and product < 0 and math.copysign(1, z) < 0 and 0 in (x, y) else 0.0
    return rounded(value, bits)


def nasty(bits: int) -> np.ndarray:
    info = np.finfo(REAL[bits])
    least, tiny, largest = float(info.smallest_subnormal), float(info.tiny), float(info.max)
    eps = float(info.eps)
    values = [0.0, 1.0, 1 + eps, 1 - eps / 2, 3.0, eps, least, 3 * least, tiny, tiny - least, tiny * (1 + eps)]
    values += [largest, largest / 2, math.sqrt(tiny), math.sqrt(largest), largest * eps, math.inf]
    values = [float(REAL[bits](v)) for v in values]
    return np.array([s * v for v in values for s in (1, -1)] + [math.nan], REAL[bits])


def check_fma(x: np.ndarray, y: np.ndarray, z: np.ndarray, bits: int) -> None:
    got = LANES[bits].fma(x, y, z)
    with np.errstate(all="ignore"):
        expected = np.array(
            [exact_fma(float(a), float(b), float(c), bits) for a, b, c in zip(x, y, z, strict=True)], REAL[bits]
        )
    np.testing.assert_array_equal(got, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(expected[number]))


@pytest.mark.parametrize("bits", [64, 32])
def test_fma_of_nasty_numbers(bits: int) -> None:
    values = nasty(bits)
    check_fma(*(a.ravel() for a in np.meshgrid(values, values, values)), bits)


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("spread", [1, 30, 2000])
def test_fma_of_random_numbers(bits: int, spread: int) -> None:
    rng = np.random.default_rng(spread)
    top = np.finfo(REAL[bits]).maxexp
    spread = min(spread, top)
    n = 3000

    def draw() -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.ldexp(rng.uniform(-1, 1, n).astype(REAL[bits]), rng.integers(-spread, spread, n))

    x, y, z = draw(), draw(), draw()
    check_fma(x, y, z, bits)
    with np.errstate(all="ignore"):
        near = -(x * y)  # the product cancels all but its rounding error
    check_fma(x, y, near, bits)
    check_fma(x, y, np.nextafter(near, REAL[bits](0)), bits)


@pytest.mark.parametrize("bits", [64, 32])
def test_fma_rounds_ties_to_even_and_just_beside_them(bits: int) -> None:
    eps = float(np.finfo(REAL[bits]).eps)
    x = np.array([1.0, 1 + eps, 1.0, 1 + eps, 1.0, 1 + eps], REAL[bits])
    half = np.array([eps / 2] * 6, REAL[bits])
    scale = np.array([1, 1, 1 + eps, 1 + eps, 1 - eps, 1 - eps], REAL[bits])
    check_fma(half, scale, x, bits)


@pytest.mark.parametrize("bits", [64, 32])
def test_integers_wrap_and_shift(bits: int) -> None:
    m = LANES[bits]
    least = m.int(1 << (bits - 1))
    assert least == -(1 << (bits - 1))
    i = np.array([-1, 1, 5, int(least)], m.int(0).dtype)
    assert m.iadd(i, least).tolist() == [(1 << (bits - 1)) - 1, int(least) + 1, int(least) + 5, 0]
    assert m.lshr(i, m.int(bits - 1)).tolist() == [1, 0, 0, 1]
    assert m.ashr(i, m.int(bits - 1)).tolist() == [-1, 0, 0, -1]
    assert m.shl(i, m.int(bits - 1)).tolist() == [int(least), int(least), int(least), 0]
    assert m.imul(i, i).tolist() == [1, 1, 25, 0]


@pytest.mark.parametrize("bits", [64, 32])
def test_bits_of_reals(bits: int) -> None:
    m = LANES[bits]
    x = nasty(bits)
    np.testing.assert_array_equal(m.from_bits(m.to_bits(x)), x)
    assert m.to_bits(m.real(-0.0)) == m.int(1 << (bits - 1))
    assert m.to_int(np.array([-1.75, 2.5], REAL[bits])).tolist() == [-1, 2]
    assert m.rint(np.array([0.5, 1.5, -2.5], REAL[bits])).tolist() == [0, 2, -2]
    m.to_int(x)  # unspecified for what does not fit, but never a trap or a warning


def test_rare_is_skipped_when_no_lane_needs_it() -> None:
    m = LANES[64]
    x = np.arange(3.0)
    calls: list[int] = []

    def slow() -> np.ndarray:
        calls.append(1)
        return x + 10

    assert m.rare(x > 5, x, slow).tolist() == [0, 1, 2]
    assert not calls
    assert m.rare(x > 1, x, slow).tolist() == [0, 1, 12]


def test_other_widths_are_refused() -> None:
    with pytest.raises(ValueError, match="bits=16: lanes are 64 or 32 bits wide"):
        NumpyLanes(16)
