"""Kernels called like functions on arrays: what may be given, what comes back, what is refused."""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from eagletest.kernels import plan

import hawk
from eagle.errors import ArgumentError, PlaneError
from hawk import Bool, Int32, Matrix, Mutable, Param, Scalar, Table, Vector, samples_first
from hawk import math as hm


@hawk.kernel
def scale(x: Scalar, a: Param, b: Param) -> Scalar:
    """a x + b"""
    return a * x + b


@hawk.kernel
def polar(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    return hm.hypot(x, y), hm.atan2(y, x)


@hawk.kernel
def turn(v: Vector[2], m: Param[Matrix[2, 2]], w: Mutable[Vector[2]], length: Mutable[Scalar]):
    w = m @ v
    length = hm.norm(w)


@hawk.kernel
def turn_samples_first(v: samples_first(Vector[2]), m: Param[Matrix[2, 2]], w: Mutable[samples_first(Vector[2])],
                       length: Mutable[Scalar]):  # fmt: skip
    w = m @ v
    length = hm.norm(w)


@hawk.kernel
def count(i: Int32, up: Bool, n: Mutable[Int32], odd: Mutable[Bool]):
    n = i + 1 if up else i - 1
    odd = n % 2 == 1


@hawk.kernel
def collect(x: Scalar, s: Mutable[Scalar], last: Mutable[Scalar]):
    last = s
    s = s + x


@hawk.kernel
def log_it(x: Scalar, half: Mutable[Scalar]) -> Scalar:
    half = 0.5 * x
    return hm.log(x)


@hawk.kernel
def pick(i: Int32, table: Table["row":2, "column":3]) -> Vector[2]:
    return hm.vec(table.at(row=0, column=i), table.at(row=1, column=i))


X = np.linspace(-1.0, 2.0, 300)
QUARTER = np.array([[0.0, -1.0], [1.0, 0.0]])


def same(found: object, expected: object) -> None:
    """The same values, dtype and shape."""
    assert type(found) is type(expected)
    np.testing.assert_array_equal(found, expected, strict=True)  # type: ignore[arg-type]


# what comes back


def test_a_returned_scalar() -> None:
    y = scale(X, 2.0, 1.0)
    same(y, 2.0 * X + 1.0)
    same(scale(X, b=1.0, a=2.0), y)
    same(scale(a=2.0, x=X, b=1.0), y)


def test_a_returned_tuple() -> None:
    r, angle = polar(X, X[::-1])
    bound_r, bound_angle = np.zeros(300), np.zeros(300)
    plan(polar).bind(x=X, y=X[::-1], out0=bound_r, out1=bound_angle).launch()
    same(r, bound_r)
    same(angle, bound_angle)


def test_a_tuple_of_one() -> None:
    @hawk.kernel
    def one(x: Scalar) -> tuple[Scalar]:
        return (x,)

    found = one(X)
    assert isinstance(found, tuple)
    (y,) = found
    same(y, X)


def test_outputs_that_are_not_given_are_allocated() -> None:
    v = np.stack([X, X**2])
    w, length = turn(v, QUARTER)
    same(w, np.stack([-(X**2), X]))
    bound = np.zeros((2, 300)), np.zeros(300)
    plan(turn).bind(v=v, m=QUARTER, w=bound[0], length=bound[1]).launch()
    same(w, bound[0])
    same(length, bound[1])


def test_samples_first() -> None:
    v = np.stack([X, X**2])
    w, length = turn_samples_first(v.T.copy(), QUARTER)
    expected_w, expected_length = turn(v, QUARTER)
    assert w.shape == (300, 2)
    same(np.ascontiguousarray(w), np.ascontiguousarray(expected_w.T))
    same(length, expected_length)


def test_a_given_output_is_written_in_place_and_not_returned() -> None:
    v, length = np.stack([X, X]), np.zeros((300, 2))
    w = turn(v, QUARTER, length=length[:, 1])
    same(w, np.stack([-X, X]))
    same(length[:, 1].copy(), turn(v, QUARTER)[1])
    assert not length[:, 0].any()
    given = np.zeros((2, 300))
    same(turn(v, QUARTER, given), length[:, 1].copy())
    same(given, w)
    assert turn(v, QUARTER, given, length[:, 0]) is None
    np.testing.assert_array_equal(length[:, 0], length[:, 1])


def test_what_is_returned_may_be_written_in_place_too() -> None:
    y = np.zeros(600)
    found = scale(X, 2.0, 1.0, out=y[::2])
    assert found.base is y
    same(y[::2].copy(), 2.0 * X + 1.0)
    assert not y[1::2].any()


def test_returned_values_and_outputs() -> None:
    x, half = np.abs(X) + 0.1, np.zeros(300)
    same(log_it(x, half), log_it(x))
    same(half, 0.5 * x)


def test_what_is_read_before_it_is_written_is_given() -> None:
    s = np.ones(300)
    same(collect(X, s), np.ones(300))
    same(s, 1.0 + X)
    with pytest.raises(ArgumentError) as refusal:
        collect(X)
    assert str(refusal.value) == (
        "collect: s is Mutable[Scalar] and read before it is written, so it is not allocated: pass an array, s=..., "
        "which is written in place"
    )


def test_results_are_the_callers_own() -> None:
    first = scale(X, 2.0, 1.0)
    kept = first.copy()
    second = scale(X, 3.0, 1.0)
    second[:] = 0
    same(first, kept)


# what may be given


@pytest.mark.parametrize(
    "x",
    [
        [1, 2, 3], (1.0, 2.0, 3.0), np.array([1, 2, 3]), np.array([1, 2, 3], np.uint8), np.array([1, 2, 3], ">f8"),
        np.array([1, 2, 3], np.float16), np.array([1.0, 0, 2, 0, 3, 0])[::2], np.array([3.0, 2.0, 1.0])[::-1],
        np.array([[1.0, 2.0], [2.0, 2.0], [3.0, 2.0]])[:, 0], range(1, 4),
    ],
)  # fmt: skip
def test_numbers_of_any_kind_become_a_plane(x: object) -> None:
    same(scale(x, 2, 1), np.array([3.0, 5.0, 7.0]))


def test_no_input_is_changed() -> None:
    x = X.copy()
    x.flags.writeable = False
    y = scale(x, 2.0, 1.0)
    assert y.flags.writeable
    same(x.copy(), X)


def test_params_of_any_kind() -> None:
    for a in (2, 2.0, np.float32(2), np.array(2.0), np.int64(2)):
        same(scale(X, a, 1), 2.0 * X + 1.0)


def test_one_value_for_all_samples() -> None:
    r, angle = polar(X, 1.0)
    expected_r, expected_angle = polar(X, np.ones(300))
    same(r, expected_r)
    same(angle, expected_angle)
    given = np.zeros((2, 3))
    same(turn([3.0, 4.0], QUARTER, given), np.full(3, 5.0))
    same(given, np.array([[-4.0] * 3, [3.0] * 3]))


def test_a_vector_for_all_samples_beside_planes() -> None:
    @hawk.kernel
    def along(v: samples_first(Vector[2]), x: Scalar) -> samples_first(Vector[2]):
        return x * v

    found = along([2.0, 3.0], X)
    same(np.ascontiguousarray(found), np.stack([2 * X, 3 * X], axis=-1))


def test_one_sample_alone() -> None:
    """No input has a sample axis, so no output has one."""
    same(scale(3, 2, 1), np.float64(7.0))
    same(scale(np.float32(3), 2, 1), np.float64(7.0))
    r, angle = polar(0.0, 2.0)
    same(r, np.float64(2.0))
    same(angle, np.float64(np.pi / 2))
    w, length = turn([3.0, 4.0], QUARTER)
    same(w, np.array([-4.0, 3.0]))
    same(length, np.float64(5.0))
    w, length = turn_samples_first(np.array([3.0, 4.0]), QUARTER)
    same(w, np.array([-4.0, 3.0]))
    n, odd = count(4, True)
    same(n, np.int32(5))
    same(odd, np.True_)


def test_integers_and_bools() -> None:
    n, odd = count([1, 2, 3], [True, False, True])
    same(n, np.array([2, 1, 4], np.int32))
    same(odd, np.array([False, True, False]))
    n, _ = count(np.array([2**31 - 2]), True)
    same(n, np.array([2**31 - 1], np.int32))


def test_tables() -> None:
    table = np.arange(6).reshape(3, 2).T
    same(pick([0, 2, 1], table), np.array([[0.0, 4.0, 2.0], [1.0, 5.0, 3.0]]))
    same(pick(2, table.tolist()), np.array([4.0, 5.0]))
    assert pick([0, 1], table.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 1003])
def test_any_number_of_samples(n: int) -> None:
    x = np.arange(n) / 8
    same(scale(x, 2.0, 1.0), 2.0 * x + 1.0)
    same(scale(np.repeat(x, 2)[::2], 2.0, 1.0), 2.0 * x + 1.0)
    same(scale(x.tolist(), 2.0, 1.0), 2.0 * x + 1.0)


# precision


def test_the_arrays_say_the_precision() -> None:
    single = X.astype(np.float32)
    y = scale(single, 2.0, 1.0)
    bound = np.zeros(300, np.float32)
    plan(scale, "float32").bind(x=single, a=2.0, b=1.0, out=bound).launch()
    same(y, bound)
    same(polar(single, [0.0] * 300)[0], np.abs(single))
    same(polar(single, 0.0)[0], np.abs(single))
    same(polar(single, np.zeros(300, int))[0], np.abs(single))
    same(polar([3.0], 4.0, out0=(r := np.zeros(1, np.float32)))[0], r)
    assert scale(X, np.float32(2), np.float32(1)).dtype == np.float64


def test_two_precisions_in_one_call() -> None:
    with pytest.raises(PlaneError) as refusal:
        polar(X, X.astype(np.float32))
    assert str(refusal.value) == (
        "polar: x is float64 and y is float32; a call computes in one precision: pass x.astype(np.float32) or "
        "y.astype(np.float64)"
    )
    with pytest.raises(PlaneError, match=r"scale: x is float64 and out is float32"):
        scale(X, 2.0, 1.0, out=np.zeros(300, np.float32))


# derivatives


def test_a_vjp_is_called_with_inputs_and_seeds() -> None:
    back = hawk.Kernel("scale_back", hawk.diff.vjp(scale))
    seed = np.arange(300.0)
    bar_x, bar_a, bar_b = back(X, 2.0, 1.0, seed)
    bound = {"bar_x": np.zeros(300), "bar_a": np.zeros(()), "bar_b": np.zeros(())}
    plan_of_back = back.program()
    assert [a.name for a in plan_of_back.arguments] == ["x", "a", "b", "bar_out", *bound]
    same(bar_x, 2.0 * seed)
    assert type(bar_a) is np.float64
    np.testing.assert_allclose(bar_a, seed @ X, rtol=1e-13)
    same(bar_b, np.float64(seed.sum()))
    one = back(3.0, 2.0, 1.0, 1.0)
    assert one == (2.0, 3.0, 1.0)


def test_a_jvp_is_called_with_inputs_and_tangents() -> None:
    along = hawk.Kernel("scale_along", hawk.diff.jvp(scale))
    same(along(X, 2.0, 1.0, np.ones(300), 0.0, 0.0), np.full(300, 2.0))
    same(along(X, 2.0, 1.0, 0.0, 1.0, 0.0), X.copy())


def test_the_adjoint_of_a_table() -> None:
    back = hawk.Kernel("pick_back", hawk.diff.vjp(pick))
    found = back([0, 2, 2], np.zeros((2, 3)), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    same(found, np.array([[1.0, 0.0, 5.0], [4.0, 0.0, 11.0]]))


# what is refused

REFUSED: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: scale(X), ArgumentError, "scale: missing a, b; it is scale(x, a, b)"),
    (lambda: scale(), ArgumentError, "scale: missing x, a, b; it is scale(x, a, b)"),
    (lambda: scale(X, 1, 2, 3), ArgumentError, "scale takes 3 arguments, 4 were given; it is scale(x, a, b)"),
    (lambda: scale(X, 1, 2, a=3), ArgumentError, "scale: a is given twice, in place 2 and by name"),
    (lambda: scale(X, 1, 2, c=3), ArgumentError, "scale has no argument c; it is scale(x, a, b)"),
    (lambda: scale("three", 1, 2), ArgumentError, "scale: x is Scalar: expected numbers that fit float64, found str"),
    (lambda: scale(None, 1, 2), ArgumentError,
     "scale: x is Scalar: expected numbers that fit float64, found NoneType"),
    (lambda: scale([[1.0], [2.0, 3.0]], 1, 2), ArgumentError,
     "scale: x is Scalar: expected numbers that fit float64, found list"),
    (lambda: scale(X * 1j, 1, 2), ArgumentError,
     "scale: x is Scalar: expected numbers that fit float64, found complex128 values"),
    (lambda: scale(np.ma.masked_array(X), 1, 2), ArgumentError,
     "scale: x is Scalar: expected numbers that fit float64, found MaskedArray"),
    (lambda: scale(X.astype(np.longdouble), 1, 2), PlaneError,
     f"scale: x is Scalar: found {np.dtype(np.longdouble)} values that may not fit float64; pass "
     "x.astype(np.float64) if that is meant"),
    (lambda: scale(X.reshape(3, 100), 1, 2), PlaneError, "scale: x is Scalar: expected shape (n,), found (3, 100)"),
    (lambda: scale(X, X, 2), PlaneError,
     "scale: a is Param, one value for the whole batch: expected shape (), found (300,) (for one value per sample, "
     "declare it Scalar)"),
    (lambda: polar(X, X[1:]), PlaneError,
     "polar: x has 300 samples and y has 299; every plane of a launch has the same number"),
    (lambda: turn(np.zeros((3, 2)), QUARTER), PlaneError,
     "turn: v is Vector[2]: expected shape (2, n), found (3, 2). The sample axis comes last: pass "
     "np.moveaxis(v, 0, -1), a view that needs no copy, or mark it hawk.samples_first(...) in the kernel"),
    (lambda: collect(X, [0.0] * 300), ArgumentError,
     "collect: s is Mutable[Scalar]: expected a NumPy array of float64 with shape (n,), found list"),
    (lambda: collect(X, np.zeros(300, int)), PlaneError,
     "collect: s is Mutable[Scalar]: found dtype int64, expected float64. Nothing is converted silently: pass "
     "s.astype(np.float64)"),
    (lambda: collect(X, np.broadcast_to(0.0, 300)), PlaneError,
     "collect: s is Mutable[Scalar]: the kernel writes it, and some of its elements are the same memory (shape (300,), "
     "strides (0,)); pass an array whose elements are apart"),
    (lambda: collect(X, (s := np.zeros(301))[1:], s[:-1]), PlaneError,
     "collect: last and collect: s overlap in memory, but are not the same view of it, and one is written; pass the "
     "same array or separate ones"),
    (lambda: count([1.0], True), ArgumentError,
     "count: i is Int32: expected numbers that fit int32, found float64 values"),
    (lambda: count([2**31], True), PlaneError,
     "count: i is Int32: found int64 values that may not fit int32; pass i.astype(np.int32) if that is meant"),
    (lambda: count([1], [1]), ArgumentError, "count: up is Bool: expected numbers that fit bool, found int64 values"),
    (lambda: pick([0], np.zeros((3, 2))), PlaneError,
     "pick: table is Table[2, 3]: expected shape (2, 3), found (3, 2)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as refusal:
        call()
    assert str(refusal.value) == message


# the runtime behind it


DOUBLE = """
import sys
import hawk

@hawk.kernel
def double(x: hawk.Scalar) -> hawk.Scalar:
    return 2 * x

assert "eagle" not in sys.modules
print(double([1, 2]).tolist())
"""


def test_a_call_imports_the_runtime_when_it_needs_it(tmp_path: Path) -> None:
    script = tmp_path / "double.py"
    script.write_text(DOUBLE)
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, script], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[2.0, 4.0]\n"


def test_a_kernel_that_was_called_can_be_pickled() -> None:
    expected = scale(X, 2.0, 1.0)
    again = pickle.loads(pickle.dumps(scale))
    same(again(X, 2.0, 1.0), expected)


def test_calls_from_many_threads_at_once() -> None:
    @hawk.kernel
    def fresh(x: Scalar, a: Param) -> Scalar:
        return hm.exp(a * x)

    start, found = threading.Barrier(8), {}

    def work(k: int) -> None:
        start.wait()
        found[k] = [fresh(X[: 300 - (k + j) % 3], k) for j in range(20)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(8):
        expected = fresh(X, k)
        for j, y in enumerate(found[k]):
            same(y, expected[: 300 - (k + j) % 3].copy())


def test_a_call_has_the_bits_of_a_launch_whatever_went_before() -> None:
    for n in (5, 700, 5, 256, 300):
        x, y = np.linspace(0.0, 1.0, n), np.zeros(n)
        plan(scale).bind(x=x, a=1.7, b=0.3, out=y).launch()
        same(scale(x, 1.7, 0.3), y)
