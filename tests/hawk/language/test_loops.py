"""for and while: unrolled or a loop of the IR, with break, continue, else and returns."""

import numpy as np
import pytest

from hawk import math as hm
from hawk.ir.interpret import interpret
from hawk.ir.passes import prepare
from hawk.ir.program import walk
from hawk.ir.types import Type
from hawk.language import Int32, KernelError, Mutable, Param, Scalar, UInt32, Vector, bounded, trace


def ops(function):
    return [i.op for i in walk(trace(function).body)]


def test_values_used_after_a_loop_with_a_bound_of_its_own(agree):
    def k(x: Scalar, s: Scalar, n: Int32) -> Scalar:
        b = x * x
        acc = 0
        for _ in range(n):
            acc += s
        return acc * b

    (out,) = agree(k, x=[3.0, 3.0, 3.0], s=[2.0, 2.0, 2.0], n=np.array([3, 0, -1], np.int32))
    np.testing.assert_array_equal(out, [54, 0, 0])


def test_continue_with_a_running_maximum(agree):
    c = (0, 3, -2, 1)

    def k(x: Scalar) -> Scalar:
        best = -1e20
        for i in range(4):
            if c[i] == 0:
                continue
            t = c[i] * x
            if t > best:
                best = t
        return best

    (out,) = agree(k, x=[2.0, -2.0])
    np.testing.assert_array_equal(out, [6, 4])


@pytest.mark.parametrize("trips", [10, 20])
def test_break_out_of_one_and_two_levels_and_early_return(agree, trips):
    def one(x: Scalar) -> Scalar:
        s = 0
        for _ in range(trips):
            s += x
            if s > 3:
                break
        return s * x

    def two(x: Scalar) -> Scalar:
        s, done = 0.0, False
        for _ in range(3):
            for _ in range(trips):
                s += x
                if s > 3:
                    done = True
                    break
            if done:
                break
        return s * x

    def early(x: Scalar) -> Scalar:
        s = 0.0
        for _ in range(trips):
            s += x
            if s > 3:
                return s * x
        return s * x

    x = [1.1, 2.0, 0.25]
    (first,) = agree(one, x=x)
    np.testing.assert_allclose(first, [3.63, 8, 0.0625 * min(trips, 13)], rtol=1e-15)
    agree(two, x=x)
    agree(early, x=x)


def test_a_vector_rebuilt_from_its_own_components(agree):
    def k(t: Scalar) -> Vector[2]:
        v = hm.vec(1, 0)
        for _ in range(3):
            v = hm.vec(hm.cos(t) * v[0] - hm.sin(t) * v[1], hm.sin(t) * v[0] + hm.cos(t) * v[1])
        return v

    (out,) = agree(k, t=[0.1])
    np.testing.assert_allclose(out[:, 0], [np.cos(0.3), np.sin(0.3)], rtol=1e-15)


def test_a_component_rewritten_from_its_old_value():
    def written(x: Scalar, out: Mutable[Scalar]):
        v = Vector[2](0, 0)
        v[0] = v[0] + 1 * x
        v[0] = v[0] + 2 * x
        v[0] = v[0] + 3 * x
        v[0] = v[0] + 4 * x
        out = v[0]

    def augmented(x: Scalar, out: Mutable[Scalar]):
        v = Vector[2](0, 0)
        for i in range(1, 5):
            v[0] += i * x
        out = v[0]

    def looped(x: Scalar, out: Mutable[Scalar]):
        v = Vector[2](0, 0)
        for i in range(20):
            v[0] += (1 + i % 4) * x
        out = v[0]

    for function, total in ((written, 10), (augmented, 10), (looped, 50)):
        out = interpret(trace(function), {"x": np.array([1.0, 2.0])})["out"]
        np.testing.assert_array_equal(out, [total, 2 * total])


@pytest.mark.parametrize(("bounds", "total"), [((0, 33, 2), 272), ((5, 0, -2), 9), ((0, 34, 2), 272), ((3, 3), 0)])
def test_ranges_with_steps(bounds, total):
    def k(x: Scalar, out: Mutable[Scalar]):
        s = 0
        for i in range(*bounds):
            s += i
        out = s + 0 * x

    assert interpret(trace(k), {"x": np.zeros(1)})["out"][0] == total


def test_traced_starts_stops_and_steps(agree):
    def k(a: Int32, b: Int32, c: Int32) -> tuple[Int32, Int32]:
        s, last = 0, -100
        for i in range(a, b, c):
            s = 3 * s + i
            last = i
        return s, last

    a, b, c = ([0, 5, 5, -3, 2, 7], [9, 0, 0, 4, 2, -8], [2, -2, 3, 1, 1, -7])
    agree(k, **{name: np.array(v, np.int32) for name, v in zip("abc", (a, b, c), strict=True)})


def test_a_traced_step_of_zero_runs_never_and_extreme_bounds_do_not_wrap():
    def k(a: Int32, b: Int32, c: Int32) -> Int32:
        trips = 0
        for _ in range(a, b, c):
            trips += 1
            if trips == 5:
                break
        return trips

    planes = {"a": [1, -(2**31), 2**31 - 1], "b": [9, 2**31 - 1, -(2**31)], "c": [0, 1, -(2**31)]}
    out = interpret(trace(k), {name: np.array(v, np.int32) for name, v in planes.items()})["out"]
    np.testing.assert_array_equal(out, [0, 5, 2])


def test_an_unsigned_bound(agree):
    def k(n: UInt32) -> Int32:
        s = 0
        for i in range(n):
            s += i
        return s

    agree(k, n=np.array([0, 1, 6], np.uint32))


def test_the_unroll_limit_and_long_loops():
    def of(trips):
        def k(x: Scalar, out: Mutable[Scalar]):
            s = 0.0
            for i in range(trips):
                if x > i:
                    s += x
            out = s

        return k

    assert "loop" not in ops(of(16))
    for trips in (17, 4000, 10**6):
        assert ops(of(trips)).count("loop") == 1
        assert len(ops(of(trips))) < 20


def test_a_loop_that_runs_once_for_certain_binds_its_names(agree):
    def k(x: Scalar) -> Scalar:
        for i in range(20):
            last = i * x
        return last + i

    agree(k, x=[0.5, 2.0])


def test_a_loop_that_may_run_no_trip_does_not():
    def k(x: Scalar, n: Int32) -> Scalar:
        for i in range(n):
            last = i * x
        return last

    with pytest.raises(
        KernelError, match="last is not bound on every path: it is assigned only inside the loop in line"
    ):
        trace(k)


def test_a_name_not_reached_because_of_a_break_is_missing():
    def k(x: Scalar) -> Scalar:
        for i in range(20):
            if x > i:
                break
            a = x
        return a

    with pytest.raises(KernelError, match="a is not bound on every path"):
        trace(k)


def test_a_name_not_bound_only_where_the_function_has_returned_is_bound(agree):
    def k(x: Scalar) -> Scalar:
        for i in range(20):
            if x > i + 100:
                return 0.0
            a = x + i
        return a

    agree(k, x=[1.0, 103.5, 1000.0])


def test_while_with_and_without_a_cap(agree):
    def k(x: Scalar) -> Scalar:
        count = 0
        while x < 100:
            x = 2 * x
            count += 1
        return count

    agree(k, x=[3.0, 99.0, 100.0])

    def capped(x: Scalar, most: Int32) -> Scalar:
        while bounded(x < 100, most):
            x = 2 * x
        return x

    out = interpret(trace(capped), {"x": np.full(3, 3.0), "most": np.array([0, 2, 100], np.int32)})["out"]
    np.testing.assert_array_equal(out, [3, 12, 192])


def test_while_true_left_by_break_or_return(agree):
    def k(x: Scalar, n: Int32) -> Scalar:
        i = 0
        while True:
            x = x * 1.5
            i += 1
            if i > n:
                break
            if x > 50:
                return -x
        return x

    def only_return(x: Scalar) -> Scalar:
        while True:
            x = x + 1
            if x > 3:
                return x

    agree(k, x=[1.0, 20.0, 1.0], n=np.array([3, 9, 20], np.int32))
    agree(only_return, x=[1.0, 20.0, 2.5])


def test_continue_in_while_and_else(agree):
    def k(x: Scalar, n: Int32) -> Scalar:
        i, s = 0, 0.0
        while i < n:
            i += 1
            if i % 3 == 0:
                continue
            s += i * x
            if s > 20:
                break
        else:
            s = -s
        for j in range(3):
            if s > j + 5:
                break
        else:
            s += 100
        return s

    agree(k, x=[1.0, 2.0, 0.5, 0.0], n=np.array([3, 9, 20, 0], np.int32))


def test_the_types_of_carried_names_widen(agree):
    def k(x: Scalar, n: Int32) -> Scalar:
        a, b, c = 0, 1, 2
        for i in range(n):
            a, b, c = b, c, c + x * i
        return a + 10 * b + 100 * c

    agree(k, x=[1.0, 2.0, 0.5], n=np.array([0, 2, 7], np.int32))


def test_nested_loops_with_bounds_of_the_outer_index(agree):
    def k(x: Scalar, n: Int32) -> Scalar:
        s = 0.0
        for i in range(n):
            for j in range(i):
                if j == 2:
                    continue
                s = s * 0.5 + x * j
            while s > 4:
                s = s / 2
        return s

    agree(k, x=[1.0, 2.0, 0.5], n=np.array([0, 5, 9], np.int32))


def test_loops_over_sequences_and_vectors(agree):
    def k(x: Scalar, v: Vector[3]) -> Scalar:
        s = 0
        for weight, (name, component) in zip([1, 2.5, x], enumerate(v), strict=True):
            s += weight * component * name
        for component in v:
            if component > 1:
                continue
            s += component
        return s + sum(c * c for c in v if len(v) > 2)

    agree(k, x=[1.0, 2.0], v=np.array([[0.5, 2], [1, 3], [-1, 0]]))


def test_lists_built_in_unrolled_loops(agree):
    def k(x: Scalar) -> Scalar:
        powers = [1.0]
        for _ in range(5):
            powers.append(powers[-1] * x)
        powers += [x + 1]
        return powers[3] + sum(powers)

    agree(k, x=[1.5, 2.0])


def test_lists_changed_in_a_long_loop_are_carried(agree):
    def step(state, i):
        state[0] += 0.5 * state[1]
        if state[0] > 10 + i:
            state[1] = -state[1]

    def k(x: Scalar, n: Int32) -> Scalar:
        state = [0, x]
        other = state
        seen = [0, 0, 0]
        for i in range(n):
            step(state, i)
            seen[i % 3] += 1 if other[0] > 3 else 0
        return other[0] + 100 * other[1] + seen[0] - seen[1] * 3 + seen[2] * 5

    agree(k, x=[1.0, 2.0, 9.0], n=np.array([0, 30, 100], np.int32))


def test_a_list_that_grows_in_a_long_loop_is_refused():
    def k(x: Scalar) -> Scalar:
        a = []
        for _ in range(100):
            a.append(x)
        return a[0]

    with pytest.raises(KernelError, match="a list of 0 before the loop and a list of 1 after a trip"):
        trace(k)


def test_a_name_that_changes_its_shape_is_refused():
    def k(x: Scalar, n: Int32) -> Scalar:
        v = hm.vec(x, x)
        for _ in range(n):
            v = (v[0], v[1])
        return v[0]

    with pytest.raises(KernelError, match=r"v is a Vector\[2\] before the loop and a tuple of 2 after a trip"):
        trace(k)


def test_a_value_that_no_loop_can_carry_is_named():
    def k(x: Scalar, n: Int32) -> Scalar:
        best = None
        for i in range(n):
            if best is None:
                best = x * i
        return x

    with pytest.raises(KernelError, match="best is not bound on every path: it is None before the loop"):
        trace(k)


@pytest.mark.parametrize("real", [Type.F64, Type.F32])
@pytest.mark.parametrize("trips", [1, 2, 16])
def test_the_same_bits_unrolled_and_not(trips, real):
    def body(x, y, count):
        a, b = 0.1, x * y
        acc = x * x
        for i in range(count):
            t = x * (0.3 * i) if i > 2 else y * y
            acc = acc + t
            if i == 4:
                t = acc * 0.7
            a = a * 1.1 + x * i / 3
            acc = acc * 0.3 + b + hm.sin(0.1 * i) * t
            b = b + a * x**2
            if acc > 40:
                break
        return acc + a * b

    def unrolled(x: Scalar, y: Scalar, n: Param[Int32]) -> Scalar:
        return body(x, y, trips)

    def looped(x: Scalar, y: Scalar, n: Param[Int32]) -> Scalar:
        return body(x, y, n)

    rng = np.random.default_rng(1)
    planes = {"x": rng.standard_normal(50), "y": rng.standard_normal(50), "n": np.int32(trips)}
    first, second = (interpret(prepare(trace(f), real), planes, real)["out"] for f in (unrolled, looped))
    np.testing.assert_array_equal(first, second)
