"""Loops whose reverses must not see each other: neighbouring samples, branches, a run's own schedule."""

import numpy as np
import pytest
from hawktest.compiled import assert_compiled_as_interpreted

import eagle
import hawk
from eagle.testing import check_grads
from hawk import Int32, Mutable, Param, Scalar, Terminated
from hawk import math as hm


@hawk.kernel
def two_loops(n: Int32, c: Scalar, x: Scalar, y: Mutable[Scalar]):
    s = 1.0
    if c > 0.0:
        for i in range(n):
            s = s + 0.01 * hm.sin(x * s)
    r = 1.0
    for j in range(n):
        r = r + 0.01 * hm.cos(x * r)
    y = s + r


@hawk.kernel
def masked_loop(x: Scalar, y: Mutable[Scalar]):
    s = 0.0
    for i in range(20):
        s = s + 1.0 / x
    y = hm.where(x > 0.0, s, 0.0)


@hawk.kernel
def left_early(n: Int32, x: Scalar, y: Mutable[Scalar]):
    s = 1.0
    for i in range(n):
        s = s + 0.01 * hm.sin(x * s)
        if i == 300:
            break
    y = s


@hawk.kernel
def collatz(n: Int32, trips: Mutable[Int32]):
    trips = 0
    m = n
    while hawk.bounded(m > 1, 1000):
        m = 3 * m + 1 if m % 2 == 1 else m // 2
        trips = trips + 1


@hawk.kernel(time="t", time_step="dt")
def inner_loop(k: Param, dt: Param, done: Terminated, x: Mutable[Scalar], t: Mutable[Scalar]):
    s = x
    for i in range(40):
        s = s + dt * 0.01 * k * s
    x = s + dt
    t = t + dt
    done = x > 2.0


def vjp(kernel: hawk.Kernel) -> hawk.Kernel:
    return hawk.Kernel(f"{kernel.name}_vjp", hawk.diff.vjp(kernel))


def test_a_gradient_does_not_depend_on_the_samples_beside_it() -> None:
    """The checkpoints of a loop inside an `if` are spaced by the samples that are in it, on both ways."""
    n, c = np.array([100, 5000, 100, 5000], np.int32), np.array([1.0, -1.0, 1.0, -1.0])
    x, ones = np.linspace(0.5, 1.0, 4), np.ones(4)
    _, together = vjp(two_loops)(n, c, x, ones)
    for k in range(4):
        one = slice(k, k + 1)
        _, alone = vjp(two_loops)(n[one], c[one], x[one], ones[one])
        assert together[k] == alone[0]
    check_grads(two_loops, {"n": n, "c": c, "x": x}, quiet=True)


def test_a_loop_that_is_not_chosen_is_not_run_back() -> None:
    x = np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(vjp(masked_loop)(x, np.ones(3)), [0.0, -20.0, -5.0])
    np.testing.assert_array_equal(hawk.Kernel("j", hawk.diff.jvp(masked_loop))(x, np.ones(3)), [0.0, -20.0, -5.0])


@pytest.mark.parametrize("limit", [301, 2**31 - 63, 2**31 - 1])
def test_a_limit_near_the_largest_integer(limit: int) -> None:
    x = np.array([0.7, 0.9])
    expected = vjp(left_early)(np.full(2, 301, np.int32), x, np.ones(2))
    np.testing.assert_array_equal(vjp(left_early)(np.full(2, limit, np.int32), x, np.ones(2)), expected)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32, 64])
def test_lanes_take_turns_at_every_width(width: int) -> None:
    n = np.arange(1, 200, dtype=np.int32)
    assert_compiled_as_interpreted(collatz.program(), {"n": n}, (width,))


def test_the_loop_of_a_step_keeps_its_own_schedule_in_a_refined_run() -> None:
    def end(k: float, x: np.ndarray) -> np.ndarray:
        planes = {"k": k, "dt": 0.3, "x": x.copy(), "t": np.zeros(3)}
        return eagle.simulate(inner_loop, max_steps=50, events="refine", **planes).t

    x, h = np.array([0.5, 0.7, 0.9]), 1e-6
    planes = {"k": 1.5, "dt": 0.3, "x": x.copy(), "t": np.zeros(3)}
    result = eagle.simulate(inner_loop, max_steps=50, events="refine", record=True, **planes)
    grads = eagle.diff.reverse(result.record, {"t": np.ones(3)})
    np.testing.assert_allclose(grads["x"], (end(1.5, x + h) - end(1.5, x - h)) / (2 * h), rtol=1e-7)
    np.testing.assert_allclose(grads["k"], np.sum(end(1.5 + h, x) - end(1.5 - h, x)) / (2 * h), rtol=1e-7)
