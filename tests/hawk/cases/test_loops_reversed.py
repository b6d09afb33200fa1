"""Loops run backwards: values used after them, exits on the way, what they carry."""

import math

import numpy as np
import pytest
from everywhere import everywhere

import hawk
from eagle.testing import check_grads
from hawk import Int32, Mutable, Scalar, Vector, kernel
from hawk import math as hm

MODES = ("float64", "float32")

# values used after a loop whose length the kernel computes


@kernel
def summed_then_scaled(x: Scalar, s: Scalar, a0: Scalar, n: Int32, out: Mutable[Scalar]):
    b = x * x
    acc = a0
    for _ in range(n):
        acc += s
    out = acc * b


def reciprocal_of_sum(x, n):
    acc = 0.5
    for _ in range(n):
        acc += x
    return 1 / acc


@kernel
def reciprocal(x: Scalar, n: Int32, out: Mutable[Scalar]):
    out = reciprocal_of_sum(x, n)


@kernel
def reciprocal_unrolled(x: Scalar, out: Mutable[Scalar]):
    out = reciprocal_of_sum(x, 3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("a0", "value", "by_x", "by_s"), [(0.0, 54, 36, 27), (5.0, 99, 66, 27)])
def test_a_sum_used_after_its_loop(mode, a0, value, by_x, by_s):
    found = everywhere(summed_then_scaled, {"x": 3.0, "s": 2.0, "a0": a0, "n": 3}, mode=mode)
    assert found.values["out"] == value
    assert found.slopes == {"x": by_x, "s": by_s, "a0": 9.0}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("k", "more"), [(reciprocal, {"n": 3}), (reciprocal_unrolled, {})], ids=["loop", "unrolled"])
def test_a_sum_returned_through_a_division(mode, k, more):
    found = everywhere(k, {"x": 0.5} | more, mode=mode)
    assert found.values["out"] == 0.5
    assert found.slopes["x"] == -0.75


def test_no_trips_at_all():
    found = everywhere(summed_then_scaled, {"x": 3.0, "s": 2.0, "a0": 5.0, "n": 0})
    assert found.values["out"] == 45
    assert found.slopes == {"x": 30.0, "s": 0.0, "a0": 9.0}


# continue, with a running maximum

WEIGHTS = (0, 3, -2, 1)


@kernel
def best_with_continue(x: Scalar, out: Mutable[Scalar]):
    best = -1e20
    for i in range(4):
        if WEIGHTS[i] == 0:
            continue
        t = WEIGHTS[i] * x
        if t > best:
            best = t
    out = best


@kernel
def best_with_else(x: Scalar, n: Int32, out: Mutable[Scalar]):
    best = -1e20
    c = Vector[4](0, 3, -2, 1)
    for i in range(n):
        if c[i] != 0:
            t = c[i] * x
            best = t if t > best else best
    out = best


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("k", "more"), [(best_with_continue, {}), (best_with_else, {"n": 4})], ids=["continue", "if"])
@pytest.mark.parametrize(("x", "value", "slope"), [(2.0, 6, 3), (-2.0, 4, -2)])
def test_each_sample_takes_the_trip_that_won(mode, k, more, x, value, slope):
    found = everywhere(k, {"x": x} | more, mode=mode)
    assert found.values["out"] == value
    assert found.slopes["x"] == slope


# break


@kernel
def left_by_break(x: Scalar, out: Mutable[Scalar]):
    s = 0.0
    for _ in range(10):
        s += x
        if s > 3:
            break
    out = s * x


@kernel
def left_by_flag(x: Scalar, out: Mutable[Scalar]):
    s = 0.0
    done = False
    for _ in range(3):
        for _ in range(4):
            s += x
            if s > 3 or s >= 9.5 * x:
                done = True
                break
        if done:
            break
    out = s * x


@kernel
def left_by_return(x: Scalar) -> Scalar:
    s = 0.0
    for _ in range(10):
        s += x
        if s > 3:
            return s * x
    return s * x


@kernel
def left_by_its_condition(x: Scalar, out: Mutable[Scalar]):
    s = 0.0
    trips = 0
    while hm.bounded(s <= 3 and trips < 10, 10):
        s += x
        trips += 1
    out = s * x


@pytest.mark.parametrize("k", [left_by_break, left_by_flag, left_by_return, left_by_its_condition])
@pytest.mark.parametrize(("x", "trips"), [(1.1, 3), (2.0, 2), (0.25, 10)])
def test_a_loop_left_when_the_data_says_so(k, x, trips):
    found = everywhere(k, {"x": x})
    assert found.values["out"] == pytest.approx(trips * x * x, rel=1e-15)
    assert found.slopes["x"] == pytest.approx(2 * trips * x, rel=1e-15)


def test_all_spellings_of_an_exit_have_the_same_bits():
    """Of the value. Slopes are sums, which a loop adds up apart from what comes after it."""
    kernels = (left_by_break, left_by_flag, left_by_return, left_by_its_condition)
    for x in (1.1, 0.3, 2.7182):
        found = [everywhere(k, {"x": x}) for k in kernels]
        assert len({f.values["out"].tobytes() for f in found}) == 1
        np.testing.assert_allclose([f.slopes["x"] for f in found], found[0].slopes["x"], rtol=4e-16)


# carried vectors


def turned(v, t):
    c, s = hm.cos(t), hm.sin(t)
    return hm.vec(c * v[0] - s * v[1], s * v[0] + c * v[1])


@kernel
def rotation(t: Scalar, v: Mutable[Vector[2]]):
    w = hm.vec(1, 0)
    for _ in range(3):
        w = turned(w, t)
    v = w


@kernel
def rotation_looped(t: Scalar, n: Int32, v: Mutable[Vector[2]]):
    w = hm.vec(1, 0)
    for _ in range(n):
        w = turned(w, t)
    v = w


@kernel
def rotation_of_scalars(t: Scalar, v: Mutable[Vector[2]]):
    x, y = 1.0, 0.0
    for _ in range(3):
        x, y = hm.cos(t) * x - hm.sin(t) * y, hm.sin(t) * x + hm.cos(t) * y
    v = hm.vec(x, y)


@pytest.mark.parametrize(
    ("k", "more"),
    [(rotation, {}), (rotation_looped, {"n": 3}), (rotation_of_scalars, {})],
    ids=["unrolled", "loop", "scalars"],
)
def test_a_vector_rebuilt_from_its_own_components(k, more):
    for seed, slope in (([1.0, 0.0], -3 * math.sin(0.3)), ([0.0, 1.0], 3 * math.cos(0.3))):
        found = everywhere(k, {"t": 0.1} | more, {"v": seed})
        np.testing.assert_allclose(found.values["v"], [math.cos(0.3), math.sin(0.3)], rtol=1e-15)
        np.testing.assert_allclose(found.slopes["t"], slope, rtol=1e-14)


def test_by_differences():
    check_grads(
        summed_then_scaled, {"x": [3.0] * 4, "s": [2.0] * 4, "a0": [0.0, 5.0] * 2, "n": [3, 3, 0, 9]}, quiet=True
    )
    check_grads(rotation_looped, {"t": [0.1, 1.0], "n": [3, 50]}, quiet=True)
    check_grads(rotation, {"t": [0.1, 1.0]}, order=2, quiet=True)
    check_grads(best_with_continue, {"x": [2.0, -2.0]}, quiet=True)
    for k in (left_by_break, left_by_flag, left_by_return, left_by_its_condition):
        check_grads(k, {"x": [1.1, 2.0, 0.25]}, quiet=True)


def test_a_loop_in_a_loop_longer_than_what_is_kept():
    """Trips beyond the capacity of a tape are run again from checkpoints."""

    @kernel
    def k(x: Scalar, n: Int32, out: Mutable[Scalar]):
        s = x
        for i in range(n):
            for j in range(3 + i % 2):
                s = s + 0.001 * hm.sin(s * x) / (j + 1)
        out = s

    n = np.array([0, 1, 63, 64, 65, 700])
    check_grads(k, {"x": np.linspace(0.5, 2, 6), "n": n}, quiet=True)


def test_the_derivative_of_a_while_needs_a_cap():
    @kernel
    def k(x: Scalar, out: Mutable[Scalar]):
        s = x
        while s < 100:
            s = s * 1.5
        out = s

    with pytest.raises(hawk.diff.DerivativeError, match=r"State a smaller cap: while hawk.bounded\(condition, most\)"):
        hawk.diff.vjp(k)
