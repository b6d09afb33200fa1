"""Loops and their derivatives: trips of every count, breaks, nests, and the tapes that the reverse keeps."""

import numpy as np
import pytest
from hawktest.compiled import assert_compiled_as_interpreted
from hawktest.derivatives import Laws, kernel_of, run, slopes
from hawktest.random_programs import TAME, random_program

from hawk import Int32, Kernel, Mutable, Param, Scalar, Vector, bounded, kernel
from hawk import math as hm
from hawk.diff import DerivativeError, jvp, vjp
from hawk.diff.loops import CAPACITY, MOST_TRIPS
from hawk.ir.types import Type

EDGES = (0, 1, 16, 17, CAPACITY - 1, CAPACITY, CAPACITY + 1, CAPACITY**2 - 1, CAPACITY**2, CAPACITY**2 + 1)


def check(k: Kernel, by_differences: float = 1e-6, **planes: object) -> None:
    """The laws of derivatives, and compiled derivatives at widths 1, 8 and 16."""
    given = {name: np.asarray(plane) for name, plane in planes.items()}
    Laws(k, given).check(1e-12, by_differences)
    rng = np.random.default_rng(4)
    for derivative in (vjp(k), jvp(k)):
        program = derivative.program(Type.F64)
        count = max(np.shape(p)[-1] for p in given.values() if np.ndim(p))
        seeds = {a.name: rng.normal(size=(*a.shape, count) if a.role.value != "param" else a.shape)
                 for a in program.arguments if a.name not in given}  # fmt: skip
        assert_compiled_as_interpreted(program, given | seeds, (1, 8, 16))


# one loop, by the number of its trips


@kernel
def swirl(x: Scalar, y: Scalar, p: Param, n: Int32) -> Scalar:
    """Two reals, an integer and a bool are carried; the index and p are read."""
    a, b, k, up = x, y, 0, True
    for i in range(n):
        a, b = a + 0.1 * hm.sin(b) * p - 0.01 * a, b - 0.1 * hm.cos(a + 0.001 * i)
        if up:
            b = 0.999 * b
        k = (k + 3) % 7
        up = k > 2
    return a * b + k


def test_every_sample_has_a_trip_count_of_its_own():
    n = np.array([*EDGES, -5, 5, 5, 5, 5, 5, 5])
    rng = np.random.default_rng(0)
    check(swirl, x=rng.normal(size=len(n)), y=rng.normal(size=len(n)), p=0.7, n=n)


@pytest.mark.parametrize("trips", [0, 1, 16, 17, CAPACITY, CAPACITY + 1, CAPACITY**2, CAPACITY**2 + 1])
def test_all_samples_have_one_constant_trip_count(trips):
    @kernel
    def k(x: Scalar, p: Param) -> Scalar:
        a = x
        for i in range(trips):
            a = a + 0.01 * hm.sin(a * p) - 0.00001 * i
        return a

    check(k, x=[0.4, -2.0, 7.0], p=1.3)


@pytest.mark.parametrize("length", [1, 7, 40])
def test_a_sample_has_the_same_bits_whatever_the_trips_of_others(length):
    """The schedule is the longest sample's: what each keeps and runs again must not show."""
    n = np.array([3, 70, 4097, 12, 0, 4096, 65])
    planes = {"x": np.linspace(-1, 1, 7), "y": np.linspace(2, 1, 7), "p": 0.7, "n": n}
    together = run(vjp(swirl), planes, {"out": np.ones(7)})
    rolled = {name: np.resize(np.roll(plane, 2), length) if np.ndim(plane) else plane for name, plane in planes.items()}
    apart = run(vjp(swirl), rolled, {"out": np.ones(length)})
    for name in ("x", "y", "p"):
        np.testing.assert_array_equal(apart[name], np.resize(np.roll(together[name], 2), length))


def test_a_loop_with_more_trips_than_can_be_gone_back_through_is_refused_by_name():
    @kernel
    def endless(x: Scalar) -> Scalar:
        a = x
        for _ in range(MOST_TRIPS + 1):
            a = 0.5 * a + x
        return a

    with pytest.raises(DerivativeError) as caught:
        vjp(endless)
    message = str(caught.value)
    assert message.startswith(f"endless: this loop may run {MOST_TRIPS + 1} trips")
    assert f"at most {MOST_TRIPS}" in message
    assert "hawk.bounded(condition, most)" in message
    assert "for _ in range(MOST_TRIPS + 1):" in message
    assert caught.value.span is not None
    jvp(endless)  # forward mode keeps nothing


# ways out of a loop


def test_values_used_after_a_loop():
    @kernel
    def k(x: Scalar, s: Scalar, a0: Scalar, n: Int32) -> Scalar:
        b = x * x
        acc = a0
        for _ in range(n):
            acc += s
        return acc * b

    found = slopes(k, x=[3.0, 3.0], s=[2.0, 2.0], a0=[0.0, 5.0], n=[3, 3])
    np.testing.assert_allclose(found["x"], [36, 66])
    np.testing.assert_allclose(found["s"], [27, 27])
    np.testing.assert_allclose(found["a0"], [9, 9])


def test_a_quotient_by_what_a_helper_accumulates():
    def helper(x, n):
        acc = 0.5
        for _ in range(n):
            acc += x
        return 1 / acc

    @kernel
    def k(x: Scalar, n: Int32) -> Scalar:
        return helper(x, n)

    np.testing.assert_allclose(slopes(k, x=[0.5], n=[3])["x"], [-0.75])


def test_continue_with_a_running_maximum():
    c = (0, 3, -2, 1)

    @kernel
    def unrolled(x: Scalar) -> Scalar:
        best = -1e20
        for i in range(4):
            if c[i] == 0:
                continue
            t = c[i] * x
            if t > best:
                best = t
        return best

    @kernel
    def looped(x: Scalar, n: Int32) -> Scalar:
        best = -1e20
        for i in range(n):
            w = 3 * hm.real(i == 1) - 2 * hm.real(i == 2) + hm.real(i == 3)
            if w == 0:
                continue
            t = w * x
            if t > best:
                best = t
        return best

    np.testing.assert_array_equal(slopes(unrolled, x=[2.0, -2.0])["x"], [3, -2])
    np.testing.assert_array_equal(slopes(looped, x=[2.0, -2.0], n=[4, 4])["x"], [3, -2])


def broken_out_of_one(trips: int) -> Kernel:
    @kernel
    def k(x: Scalar) -> Scalar:
        s = 0.0
        for _ in range(trips):
            s += x
            if s > 3:
                break
        return s * x

    return k


def broken_out_of_two(trips: int) -> Kernel:
    @kernel
    def k(x: Scalar) -> Scalar:
        s, done = 0.0, False
        for _ in range(3):
            for _ in range(trips):
                s += x
                if s > 3 or s == 10 * x:
                    done = True
                    break
            if done:
                break
        return s * x

    return k


def returned_from(trips: int) -> Kernel:
    @kernel
    def k(x: Scalar) -> Scalar:
        s = 0.0
        for i in range(trips):
            s += x
            if s > 3 or i == 9:
                return s * x
        return s * x

    return k


@pytest.mark.parametrize("k", [broken_out_of_one(10), broken_out_of_two(10), broken_out_of_two(90), returned_from(10),
                               returned_from(90)], ids=["one", "two", "two long", "return", "return long"])  # fmt: skip
def test_a_break_that_depends_on_the_data(k):
    np.testing.assert_allclose(slopes(k, x=[1.1, 2.0, 0.25])["x"], [6.6, 8, 5])


def test_a_while_with_a_stated_cap():
    @kernel
    def halved(x: Scalar) -> Scalar:
        a = x
        while bounded(a >= 1.0, 5000):
            a = 0.5 * a
        return a * a

    x = np.array([0.5, 1.0, 3.0, 1e300])
    steps = np.array([0, 1, 2, 997])
    np.testing.assert_array_equal(slopes(halved, x=x)["x"], 2 * x * 0.25**steps)


# what loops carry and hold


def test_a_rotation_of_a_carried_vector():
    @kernel
    def k(t: Scalar, n: Int32):
        v = Vector[2](1.0, 0.0)
        for _ in range(n):
            v = Vector[2](hm.cos(t) * v[0] - hm.sin(t) * v[1], hm.sin(t) * v[0] + hm.cos(t) * v[1])
        return v[0], v[1]

    first, second = k.program().returns
    planes = {"t": np.array([0.1, 0.1]), "n": np.array([3, 3])}
    seeds = {first: np.array([1.0, 0.0]), second: np.array([0.0, 1.0])}
    np.testing.assert_allclose(run(vjp(k), planes, seeds)["t"], [-0.886560619984, 2.86600946738], rtol=1e-11)


@kernel
def nested(x: Scalar, y: Scalar, n: Int32, m: Int32) -> Scalar:
    """The trips of the inner loop vary with those of the outer; an if around a loop, a loop in either side."""
    a, b = x, y
    for i in range(n):
        for j in range(i % 3 + m):
            a = a + 0.05 * hm.sin(b + 0.1 * j)
            if a > 1:
                b = b - 0.1 * a * x
                break
        if i % 2 == 0:
            c = b
            for _ in range(m + 1):
                c = 0.9 * c + 0.01 * a
            b = c
        else:
            for _ in range(70):
                b = b + 0.001 * hm.cos(b) * y
    return a * b


def test_nested_loops_with_ifs_and_breaks():
    rng = np.random.default_rng(3)
    check(nested, x=rng.normal(size=9), y=rng.normal(size=9), n=np.arange(9) % 5, m=np.arange(9) % 4 - 1)


def test_a_loop_inside_an_if_whose_bound_is_computed_there():
    @kernel
    def k(x: Scalar, n: Int32) -> Scalar:
        a = x
        if n > 2:
            for i in range(2 * n - 1):
                a = a + 0.1 * hm.sin(a * x + i)
        return a

    check(k, x=np.linspace(-2, 2, 12), n=np.arange(12) * 11 % 90)


def test_a_loop_that_changes_a_mutable_and_reads_a_table_at_its_index():
    @kernel
    def k(s: Mutable[Scalar], w: Vector[3], n: Int32):
        for i in range(n):
            s = s + 0.1 * s * (w[0] if i % 3 == 0 else w[1] if i % 3 == 1 else w[2])

    rng = np.random.default_rng(6)
    check(k, s=rng.normal(size=8), w=rng.normal(size=(3, 8)), n=np.arange(8) * 13)


def test_an_argument_that_the_loop_only_reads_gathers_over_the_trips():
    @kernel
    def k(x: Scalar, p: Param, n: Int32) -> Scalar:
        a = x
        for _ in range(n):
            a = a * p
        return a

    n = np.array([0, 1, 5, 200])
    found = slopes(k, x=np.ones(4), p=1.01, n=n)
    np.testing.assert_allclose(found["p"], n * 1.01 ** (n - 1.0), rtol=1e-13)
    np.testing.assert_allclose(found["x"], 1.01**n, rtol=1e-13)


# second derivatives


def test_second_derivatives_of_loops():
    n = np.array([0, 1, 17, 65, 130])
    planes = {"x": np.linspace(-1, 1, 5), "y": np.linspace(2, 1, 5), "p": 0.7, "n": n}
    Laws(Kernel("tangents", jvp(swirl)), {"dot_x": np.ones(5), "dot_y": -np.ones(5), "dot_p": 0.3} | planes).check(1e-11)
    pulled = Laws(Kernel("adjoints", vjp(swirl, ("x", "y"))), {"bar_out": np.ones(5)} | planes, ("x", "y", "bar_out"))
    for name, expected in pulled.differences().items():
        np.testing.assert_allclose(pulled.tangents[name], expected, rtol=1e-6, atol=1e-6)


def test_the_vjp_of_a_vjp_with_tapes_is_refused_by_name_and_says_what_to_take():
    with pytest.raises(DerivativeError, match=r"g runs loops back on tapes.*jvp\(vjp\(kernel\)\)"):
        vjp(Kernel("g", vjp(swirl)))


@pytest.mark.parametrize("seed", range(8))
def test_random_loops_longer_than_a_tape(seed):
    """The random programs' loops, with every bound multiplied."""
    program = random_program(seed, 45, TAME)
    k = kernel_of(program)
    assert k.program().name == "k"
