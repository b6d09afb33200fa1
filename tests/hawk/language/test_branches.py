"""if, conditional expressions, and/or/not, comparisons: what each path leaves in each name."""

# ruff: noqa: SIM108 - kernels assign to their outputs

import numpy as np
import pytest

from hawk import math as hm
from hawk.ir.interpret import interpret
from hawk.ir.program import walk
from hawk.language import Int32, KernelError, Mutable, Scalar, Vector, trace

X = np.array([-2.0, -0.5, 0.0, 0.5, 3.0])


def test_each_sample_takes_its_own_side(agree):
    def k(x: Scalar) -> Scalar:
        if x > 1:
            y = x * x
        elif x > 0:
            y = -x
        else:
            y = 0
        return y

    agree(k, x=X)


def test_vectors_and_tuples_merge(agree):
    def k(x: Scalar) -> tuple[Vector[2], Scalar]:
        pair = (1, x)
        v = hm.vec(x, 1)
        if x > 0:
            v = 2 * v
            pair = (x, x)
        return v, pair[0] + pair[1]

    agree(k, x=X)


def test_an_int_meets_a_float_as_a_real(agree):
    def k(x: Scalar) -> Scalar:
        a = 2 if x > 0 else 2.5
        if x > 1:
            b = 1
        else:
            b = 0.25
        return a * b / 2

    agree(k, x=X)


def test_early_returns_at_any_depth(agree):
    def k(x: Scalar) -> Scalar:
        if x > 0:
            if x > 1:
                return 1.0
            y = x
        else:
            if x < -1:
                return -1
            z = 2 * x
            y = z
        return y + 0.5

    agree(k, x=X)


def test_a_name_bound_where_the_function_goes_on_is_bound(agree):
    def k(x: Scalar) -> Scalar:
        if x > 0:
            a = 1.0
        else:
            return 0.0
        if x > 1:
            b = a
        else:
            if x > 0.4:
                return x
            b = 7
        return a + b

    agree(k, x=X)


def test_and_or_not_and_chains(agree):
    def k(x: Scalar) -> Scalar:
        count = 0
        if -1 < x <= 0.5 != x:
            count += 1
        if not (x > 0 and x < 1) or x == 3:
            count += 10
        if x > 0 or x < -1:
            count += 100
        return count

    agree(k, x=X)


def test_both_sides_of_and_are_plain_logic():
    """An event needs to see the comparisons: no branch is made for operands that cannot hang."""

    def k(x: Scalar, y: Mutable[Scalar]):
        y = 1.0 if x > 0 and x * x < 2 else 0.0

    ops = [i.op for i in walk(trace(k).body)]
    assert "and" in ops
    assert "if" not in ops


def test_the_operands_of_and_are_evaluated_once(agree):
    def bump(seen, x):
        seen.append(x)
        return x

    def k(x: Scalar) -> Scalar:
        seen = []
        y = 1.0 if 0 < bump(seen, x) < 2 else 2.0
        return y + len(seen)

    agree(k, x=X)


def test_a_walrus_on_one_path_only(agree):
    def k(x: Scalar) -> Scalar:
        s = 1.0
        if x > 0 and (s := x + 1) > 2:
            s = s * 2
        return s

    agree(k, x=X)


def test_truth_of_a_number_is_not_zero(agree):
    def k(x: Scalar, n: Int32) -> Scalar:
        y = 0.0
        if x:
            y = 1.0
        if not n:
            y = y + 10
        return y

    agree(k, x=X, n=np.array([0, 1, 2, 0, -1], np.int32))


def test_a_side_with_nothing_to_compute_is_a_select():
    def k(x: Scalar, y: Mutable[Scalar]):
        y = x if x > 0 else 0.0

    assert [i.op for i in trace(k).body] == ["const", "gt", "const", "select"]


def test_a_condition_known_while_tracing_takes_one_side():
    flag = False

    def k(x: Scalar, y: Mutable[Scalar]):
        if flag:
            y = missing(x)
        else:
            y = x

    assert not trace(k).body


def test_lists_change_on_the_paths_that_change_them(agree):
    def k(x: Scalar) -> Scalar:
        a = [x, 1.0]
        b = a
        if x > 0:
            a[0] = 5.0
        else:
            a[1] += x
        return b[0] * 10 + b[1]

    agree(k, x=X)


def test_a_list_that_grows_on_one_path_is_refused():
    def k(x: Scalar) -> Scalar:
        a = [x]
        if x > 0:
            a.append(x)
        return a[0]

    with pytest.raises(KernelError, match=r"a list of 2 when `x > 0`.*but a list of 1"):
        trace(k)


def test_a_name_bound_on_some_paths_only():
    def k(x: Scalar) -> Scalar:
        if x > 0:
            a = 1.0
        return a

    with pytest.raises(KernelError) as caught:
        trace(k)
    text = str(caught.value)
    assert "a is not bound on every path: nothing is assigned to it when `x > 0`" in text
    assert "is false" in text
    assert "    return a\n" in text
    assert caught.value.lineno == k.__code__.co_firstlineno + 3
    assert caught.value.text == "return a"


def test_a_name_of_two_kinds_is_an_error_only_where_it_is_read(agree):
    def fine(x: Scalar) -> Scalar:
        if x > 0:
            t = (x, x)
            y = t[0]
        else:
            t = x
            y = t
        return y

    agree(fine, x=X)

    def k(x: Scalar) -> Scalar:
        if x > 0:
            t = hm.vec(1, 2)
        else:
            t = x
        return t

    with pytest.raises(KernelError, match=r"it is a Vector\[2\] when `x > 0`.*but a real when"):
        trace(k)


def test_a_bool_and_a_number_do_not_merge():
    def k(x: Scalar) -> Scalar:
        return 1.0 if x > 0 else x < -1

    with pytest.raises(KernelError, match="do not go together"):
        trace(k)


def test_a_function_that_ends_on_some_paths_without_a_value():
    def k(x: Scalar) -> Scalar:
        if x > 0:
            return x

    with pytest.raises(KernelError, match="returns a value on some paths and nothing on others"):
        trace(k)


def test_mutables_keep_their_value_on_the_other_paths():
    def k(x: Scalar, s: Mutable[Scalar], v: Mutable[Vector[3]]):
        if x > 0:
            s = x
            if x > 1:
                return
        v[1] = s

    program = trace(k)
    s, v = np.full(5, 7.0), np.arange(15.0).reshape(3, 5)
    out = interpret(program, {"x": X, "s": s, "v": v})
    np.testing.assert_array_equal(out["s"], [7, 7, 7, 0.5, 3])
    np.testing.assert_array_equal(out["v"], [v[0], [7, 7, 7, 0.5, 9], v[2]])
