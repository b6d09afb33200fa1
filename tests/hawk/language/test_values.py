"""Arithmetic on traced numbers is Python's: promotion, literals, //, %, **, casts."""

# ruff: noqa: C417 - kernels assign to their outputs

import numpy as np
import pytest

from hawk import math as hm
from hawk.ir.interpret import interpret
from hawk.ir.program import walk
from hawk.ir.types import Type
from hawk.language import Bool, Int32, KernelError, Mutable, Param, Scalar, UInt32, trace

N = np.array([-7, -7, 7, 7, 0, 5, -1], np.int32)
M = np.array([2, -2, 2, -2, 3, 7, 1], np.int32)


def test_whole_division_and_remainder_of_ints_and_reals(agree):
    def ints(n: Int32, m: Int32) -> tuple[Int32, Int32, Int32, Int32]:
        quotient, rest = divmod(n, m)
        return n // m, n % m, quotient * m + rest, 7 // m - -7 % m

    def reals(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
        return x // y, x % y

    agree(ints, n=N, m=M)
    agree(reals, x=[-7.5, -7.5, 7.5, 5.5, -19.0], y=[2.0, -2.0, -2.0, 3.0, 3.0])


def test_division_by_zero_and_overflow_are_defined():
    def k(n: Int32, m: Int32) -> tuple[Int32, Int32]:
        return n // m, n % m

    lowest = -(2**31)
    out = interpret(trace(k), {"n": np.array([5, -5, lowest], np.int32), "m": np.array([0, 0, -1], np.int32)})
    np.testing.assert_array_equal(out["out0"], [0, 0, lowest])
    np.testing.assert_array_equal(out["out1"], [5, -5, 0])


def test_mixed_types_promote(agree):
    def k(x: Scalar, n: Int32) -> tuple[Scalar, Scalar, Int32, Scalar, Scalar]:
        return n / 2, n + x, 3 * n - n * n, n * 0.5, (n > 2) + (x > 1) * 2 + True

    agree(k, x=[0.5, 1.5, -2.0], n=np.array([1, 2, 5], np.int32))


def test_bit_operations(agree):
    def k(n: Int32, m: Int32) -> Int32:
        return ((n & m) ^ (n | 12)) + (n << 2) - (m >> 1) + ~n

    agree(k, n=N, m=M)


def test_unsigned_and_signed_meet_in_64_bits():
    def k(n: Int32, u: UInt32) -> Bool:
        return n < u

    program = trace(k)
    out = interpret(program, {"n": np.array([-1, 5], np.int32), "u": np.array([2**32 - 1, 3], np.uint32)})
    np.testing.assert_array_equal(out["out"], [True, False])
    assert [i.result.type for i in walk(program.body) if i.op == "cast"] == [Type.I64, Type.I64]


def test_a_large_literal_widens_an_int32(agree):
    def k(n: Int32) -> tuple[Scalar, Bool]:
        return n + 2**40, n < 2**40

    agree(k, n=N)


def test_powers_with_constant_exponents_are_products(agree):
    def k(x: Scalar, n: Int32) -> tuple[Scalar, Scalar, Int32]:
        return x**2 + x**3 - x**4 + x**1 + x**0 + x**2.0, x**-1, n**3 + n**5

    agree(k, x=[0.5, -2.0, 3.0], n=np.array([1, -2, 3], np.int32))
    assert not any(i.op == "pow" for i in walk(trace(k).body))


def test_other_powers(agree):
    def k(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        return hm.pow(x, y), hm.pow(2, y), hm.pow(x, 0.5)

    agree(k, x=[0.5, 2.0, 0.0], y=[1.5, -2.0, 0.0])

    def power(x: Scalar, out: Mutable[Scalar]):
        out = x**0.5

    assert [i.op for i in trace(power).body] == ["const", "pow"]


def test_casts(agree):
    def k(x: Scalar) -> tuple[Scalar, Int32, Scalar, Int32]:
        return int(x) * x, round(x), float(x > 0) + bool(x) * x, int(x > 1)

    agree(k, x=[2.7, -2.7, 2.5, 3.5, 0.0])

    def saturating(x: Scalar) -> tuple[Int32, UInt32]:
        return hm.int32(x), hm.uint32(x)

    out = interpret(trace(saturating), {"x": np.array([1e20, -1e20, np.nan])})
    np.testing.assert_array_equal(out["out0"], [2**31 - 1, -(2**31), 0])
    np.testing.assert_array_equal(out["out1"], [2**32 - 1, 0, 0])


def test_constants_are_exact():
    small = np.float32(0.1)

    def k(x: Scalar, out: Mutable[Scalar]):
        out = x * 0.1 + hm.pi * (1.0 + 5e-8) + small + 2**40

    numbers = [i.attr for i in trace(k).body if i.op == "const"]
    assert numbers == [0.1, np.pi * (1.0 + 5e-8), float(np.float32(0.1)), 2.0**40]


def test_builtins_on_traced_values(agree):
    def k(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar, Bool, Scalar]:
        values = [x, y, 1.5]
        doubled = list(map(lambda v: 2 * v, values))
        return max(x, y, 0) - min(values), abs(x) + sum(doubled), any(v > 2 for v in values), pow(x, 2) + len(values)

    agree(k, x=[0.5, -3.0, 9.0], y=[1.0, 2.0, 2.5])


def test_only_what_is_read_is_an_input():
    def k(x: Scalar, unused: Scalar, p: Param, y: Mutable[Scalar]):
        y = x

    assert [place.argument for place, _ in trace(k).inputs] == ["x"]


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        (Mutable[Scalar], "x > 0", ("y holds a real", "a bool", "hm.where")),
        (Mutable[Int32], "x", ("y holds an int32", "a real", "hm.int32")),
        (Mutable[Int32], "1.5", ("y holds an int32", "1.5")),
        (Mutable[Bool], "x", ("y holds a bool", "x != 0")),
        (Mutable[UInt32], "-1", ("y holds a uint32", "-1")),
        (Mutable[Int32], "2**40", ("y holds an int32", "1099511627776")),
        (Mutable[Scalar], "hm.vec(x, x)", ("y is a scalar", "a Vector[2]")),
        (Mutable[Scalar], "'text'", ("y is a real", "'text'")),
        (Mutable[Scalar], "None", ("y is a real", "None")),
    ],
)
def test_what_does_not_fit_an_output_is_refused(annotation, value, words):
    text = f"def k(x: Scalar, y: Out):\n    y = {value}\n"
    names = {"Scalar": Scalar, "Out": annotation, "hm": hm}
    exec(text, names)
    with pytest.raises(KernelError) as caught:
        trace(names["k"], source=text)
    for word in words:
        assert word in str(caught.value)


def test_ints_fit_reals_and_numbers_of_numpy_are_numbers(agree):
    count = np.int64(3)

    def k(x: Scalar, n: Int32) -> tuple[Scalar, Scalar]:
        return n, count * x + np.float64(0.5)

    agree(k, x=[1.0, 2.0], n=np.array([1, 2], np.int32))
