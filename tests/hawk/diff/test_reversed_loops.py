"""Loops and their derivatives: trips of every count, breaks, nests, and the tapes that the reverse keeps."""

from functools import partial

import numpy as np
import pytest
from hawktest.compiled import assert_compiled_as_interpreted, assert_same_bits, launch
from hawktest.derivatives import Laws, run, slopes

from hawk import Int32, Kernel, Mutable, Param, Scalar, Vector, bounded, kernel
from hawk import math as hm
from hawk.codegen.frame import slots
from hawk.diff import DerivativeError, jvp, vjp
from hawk.diff.loops import CAPACITY, MOST_TRIPS
from hawk.ir.program import Program
from hawk.ir.types import Type

EDGES = (0, 1, 16, 17, CAPACITY - 1, CAPACITY, CAPACITY + 1, CAPACITY**2 - 1, CAPACITY**2, CAPACITY**2 + 1)


def planes_for(program: Program, given: dict[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
    """`given`, and random seeds for the rest of what a derivative reads."""
    rng = np.random.default_rng(4)
    missing = [s.argument for s in slots(program) if not s.writes and s.argument.name not in given]
    return given | {a.name: rng.normal(size=(*a.shape, count)) for a in missing}


def check(k: Kernel, by_differences: float = 1e-6, interpreted: bool = True, **planes: object) -> None:
    """The laws of derivatives, by compiled code; at widths 1, 8 and 16 it gives the interpreter's bits, or its own.

    The interpreter is slow on long loops.
    """
    given = {name: np.asarray(plane) for name, plane in planes.items()}
    Laws(k, given, execute=partial(launch, width=8)).check(1e-12, by_differences)
    for derivative in (vjp(k), jvp(k)):
        program = derivative.program(Type.F64)
        every = planes_for(program, given, given["x"].shape[-1])
        if interpreted:
            assert_compiled_as_interpreted(program, every, (1, 8, 16))
        else:
            expected = launch(program, every, 8)
            for width in (1, 16):
                assert_same_bits(launch(program, every, width), expected)


# one loop, by the number of its trips


@kernel
def swing(x: Scalar, y: Scalar, p: Scalar, n: Int32) -> Scalar:
    """A pendulum of sorts: no trip damps what the others did. An integer and a bool are carried too."""
    a, b, k, up = x, y, 0, True
    for i in range(n):
        a = a + 0.1 * p * b
        b = b - 0.1 * a / (1 + 0.1 * a * a)
        if up:
            b = b + 1e-5 * i * p
        k = (k + 3) % 7
        up = k > 2
    return a * b + k


def swing_planes(n: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    x, y, p = (rng.normal(size=len(n)) for _ in range(3))
    return {"x": x, "y": y, "p": 1 + 0.1 * p, "n": n}


def test_every_sample_has_a_trip_count_of_its_own():
    check(swing, interpreted=False, **swing_planes(np.array([*EDGES, -5, *range(2, 9)])))


def test_every_sample_has_a_short_trip_count_of_its_own():
    check(swing, **swing_planes(np.array([0, 1, 16, 17, CAPACITY - 1, CAPACITY, CAPACITY + 1, -5, 2])))


@pytest.mark.parametrize("trips", EDGES)
def test_all_samples_have_one_constant_trip_count(trips):
    @kernel
    def k(x: Scalar, p: Scalar) -> Scalar:
        a, b = x, p
        for i in range(trips):
            a = a + 0.1 * b
            b = b - 0.1 * a / (1 + 0.1 * a * a) + 1e-5 * i * p
        return a

    check(k, interpreted=trips < 100, x=np.array([0.4, -2.0, 3.0]), p=np.array([1.3, 1.0, 0.9]))


@pytest.mark.parametrize("length", [1, 7, 40])
def test_a_sample_has_the_same_bits_whatever_the_trips_of_others(length):
    """The schedule is the longest sample's: what each keeps and runs again must not show."""
    execute = partial(launch, width=8)
    planes = swing_planes(np.array([3, 70, 4097, 12, 0, 4096, 65]))
    together = run(vjp(swing), planes, {"out": np.ones(7)}, execute=execute)
    rolled = {name: np.resize(np.roll(plane, 2), length) for name, plane in planes.items()}
    apart = run(vjp(swing), rolled, {"out": np.ones(length)}, execute=execute)
    assert_same_bits(apart, {name: np.resize(np.roll(plane, 2), length) for name, plane in together.items()})


def test_a_bound_that_turns_out_beyond_what_can_be_gone_back_through_gives_nan():
    @kernel
    def k(x: Scalar, n: Int32) -> Scalar:
        s = x
        for _ in range(n):
            s = s + 1e-6 * s * s - 1e-6 * s
        return s

    execute = partial(launch, width=8)
    planes = {"x": np.array([0.999999, 0.5]), "n": np.array([MOST_TRIPS, 70])}
    pulled = run(vjp(k), planes, {"out": np.ones(2)}, execute=execute)["x"]
    pushed = run(jvp(k), planes, {"x": np.ones(2)}, execute=execute)["out"]
    np.testing.assert_allclose(pulled, pushed, rtol=1e-10)
    planes["n"] = np.array([MOST_TRIPS + 1, 70])
    beyond = run(vjp(k), planes, {"out": np.ones(2)}, execute=execute)["x"]
    np.testing.assert_allclose(beyond, [np.nan, pulled[1]], rtol=1e-10)


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
    np.testing.assert_array_equal(slopes(halved, x=x)["x"], 2 * (x * 0.5**steps) * 0.5**steps)


# what loops carry and hold


def test_a_rotation_of_a_carried_vector():
    @kernel
    def k(t: Scalar, n: Int32) -> Vector[2]:
        v = Vector[2](1.0, 0.0)
        for _ in range(n):
            v = Vector[2](hm.cos(t) * v[0] - hm.sin(t) * v[1], hm.sin(t) * v[0] + hm.cos(t) * v[1])
        return v

    planes = {"t": np.array([0.1, 0.1]), "n": np.array([3, 3])}
    found = run(vjp(k), planes, {"out": np.eye(2)})["t"]
    np.testing.assert_allclose(found, [-3 * np.sin(0.3), 3 * np.cos(0.3)], rtol=1e-14)


@kernel
def nested(x: Scalar, y: Scalar, n: Int32, m: Int32) -> Scalar:
    """The trips of the inner loop vary with those of the outer; an if around a loop, a loop in either side."""
    a, b = x, y
    for i in range(n):
        for j in range(i % 3 + m):
            a = a + 0.05 * b + 0.01 * j * a
            if a > 1:
                b = b - 0.1 * a * x
                break
        if i % 2 == 0:
            c = b
            for _ in range(m + 1):
                c = 0.9 * c + 0.01 * a * c
            b = c
        else:
            for _ in range(70):
                b = b + 0.001 * b * y
    return a * b


def test_nested_loops_with_ifs_and_breaks():
    rng = np.random.default_rng(3)
    n, m = np.arange(9) % 4, np.arange(9) % 4 - 1
    check(nested, x=rng.normal(size=9), y=rng.normal(size=9), n=n, m=m)


def test_a_loop_inside_an_if_whose_bound_is_computed_there():
    @kernel
    def k(x: Scalar, n: Int32) -> Scalar:
        a = x
        if n > 2:
            for i in range(2 * n - 1):
                a = a + 0.01 * a * x - 0.001 * i
        return a

    check(k, x=np.linspace(-2, 2, 12), n=np.arange(12) * 7 % 40)


def test_a_loop_that_changes_a_mutable_and_reads_a_component_by_its_index():
    @kernel
    def k(x: Mutable[Scalar], w: Vector[3], n: Int32):
        for i in range(n):
            x = x + 0.1 * x * (w[0] if i % 3 == 0 else w[1] if i % 3 == 1 else w[2])

    rng = np.random.default_rng(6)
    check(k, x=rng.normal(size=8), w=rng.normal(size=(3, 8)), n=np.arange(8) * 11)


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
    planes = swing_planes(np.array([0, 1, 17, 65, 130, 4097]))
    ones, execute = np.ones(6), partial(launch, width=8)
    tangents = {"dot_x": ones, "dot_y": -ones, "dot_p": 0.1 * ones}
    Laws(Kernel("tangents", jvp(swing)), planes | tangents, execute=execute).check(1e-11, 1e-5)
    pulled = Laws(Kernel("adjoints", vjp(swing)), planes | {"bar_out": ones}, execute=execute)
    for name, expected in pulled.differences().items():
        np.testing.assert_allclose(pulled.tangents[name], expected, rtol=1e-5, atol=1e-5)


def test_the_vjp_of_a_vjp_with_tapes_is_refused_by_name_and_says_what_to_take():
    with pytest.raises(DerivativeError, match=r"swing_vjp runs loops back on tapes.*jvp\(vjp\(kernel\)\)"):
        vjp(Kernel("g", vjp(swing)))
