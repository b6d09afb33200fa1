"""The canonical sum against its definition written again in Python, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagle._native import BLOCK, ordered_sum, tree_of_blocks

SIZES = [0, 1, 2, 3, 127, 128, 129, 255, 256, 257, 512, 513, 1000, 256 * 3, 256 * 7, 256 * 7 + 1, 16383]


def pairwise(values: np.ndarray) -> np.floating:
    """Neighbours in pairs, level by level; an odd one passes up."""
    while len(values) > 1:
        odd = values[len(values) & ~1 :]
        values = np.concatenate([values[: len(values) & ~1 : 2] + values[1::2], odd])
    return values[0]


def reference(values: np.ndarray) -> np.floating:
    if len(values) == 0:
        return values.dtype.type(0)
    blocks = -(-len(values) // 256)
    lanes = np.full(blocks * 256, -0.0, values.dtype)
    lanes[: len(values)] = values
    lanes = lanes.reshape(blocks, 256)
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    return pairwise(lanes[:, 0])


def samples(n: int, dtype: str, seed: int = 0) -> np.ndarray:
    """Numbers of very different sizes, so that every order of additions gives other bits."""
    rng = np.random.default_rng([seed, n])
    return (rng.standard_normal(n) * 10.0 ** rng.uniform(-6, 6, n)).astype(dtype)


def bits(value: float | np.floating, dtype: str) -> bytes:
    return np.asarray(value, dtype).tobytes()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", SIZES)
def test_follows_the_definition(n: int, dtype: str) -> None:
    values = samples(n, dtype)
    assert bits(ordered_sum(values), dtype) == bits(reference(values), dtype)


def test_order_matters_for_these_samples() -> None:
    values = samples(1000, "float64")
    assert ordered_sum(values) != ordered_sum(values[::-1].copy())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("step", [1, 3, -1, -2])
def test_strides(step: int, dtype: str) -> None:
    values = samples(3000, dtype)[::step]
    assert bits(ordered_sum(values), dtype) == bits(ordered_sum(values.copy()), dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_signed_zeros(dtype: str) -> None:
    assert bits(ordered_sum(np.zeros(0, dtype)), dtype) == bits(0.0, dtype)
    for n in (1, 256, 300, 769):
        assert bits(ordered_sum(np.full(n, -0.0, dtype)), dtype) == bits(-0.0, dtype)
        assert bits(ordered_sum(np.zeros(n, dtype)), dtype) == bits(0.0, dtype)


def test_blocks_are_added_in_pairs() -> None:
    assert tree_of_blocks(np.array([1e16, 1.0, 1.0])) == 1e16  # (1e16 + 1) + 1
    assert tree_of_blocks(np.array([1.0, 1.0, 1e16])) == 1e16 + 2  # (1 + 1) + 1e16
    assert tree_of_blocks(np.array([1e16, 1.0, 1.0, 1.0])) == 1e16 + 2  # (1e16 + 1) + (1 + 1)
    assert tree_of_blocks(np.array([])) == 0.0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@given(n=st.integers(1, 20_000), q=st.integers(0, 6))
def test_passes_of_a_power_of_two_blocks_are_subtrees(dtype: str, n: int, q: int) -> None:
    values = samples(n, dtype)
    step = BLOCK << q
    passes = [ordered_sum(values[first : first + step]) for first in range(0, n, step)]
    assert bits(tree_of_blocks(np.array(passes, dtype)), dtype) == bits(ordered_sum(values), dtype)


def test_a_sum_long_enough_to_release_the_lock() -> None:
    values = samples(1 << 17, "float64")
    assert bits(ordered_sum(values), "float64") == bits(reference(values), "float64")


def test_what_is_no_array_of_reals_is_refused() -> None:
    with pytest.raises(TypeError, match=r"format '[lq]': pass aligned float64 or float32"):
        ordered_sum(np.arange(3))
    with pytest.raises(ValueError, match="2 axes: pass one with 1 axis"):
        ordered_sum(np.zeros((3, 4)))
    with pytest.raises(TypeError, match="format '=d': pass aligned float64 or float32"):
        ordered_sum(np.zeros(4, np.dtype({"names": ["x"], "formats": ["f8"], "itemsize": 12}))["x"])
    with pytest.raises(TypeError, match="a list: pass an array"):
        ordered_sum([1.0, 2.0])  # type: ignore[arg-type]
