"""Choosing a precision: types, and constants rounded once."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hawktest.build import Kit
from hawktest.exact import rounded
from hawktest.random_programs import programs
from hypothesis import given, settings

from hawk import Param, Scalar, kernel
from hawk.ir.interpret import interpret
from hawk.ir.passes import prepare, specialise
from hawk.ir.program import Program, walk
from hawk.ir.types import Type
from hawk.ir.verify import verify

REALS = pytest.mark.parametrize("real", [Type.F64, Type.F32], ids=str)


def constants(program: Program) -> list[object]:
    return [i.attr for i in walk(program.body) if i.op == "const"]


def constant(number: float | int, type: Type, real: Type) -> object:
    """A constant of a program not yet at a precision, once it is."""
    kit = Kit()
    kit.write("out", kit.b.const(number, type))
    return constants(verify(specialise(kit.program(), real)))[0]


@REALS
@pytest.mark.parametrize(
    "number",
    [
        0.1,
        math.pi,
        1e-45,
        5e-324,
        1e300,
        1.0 + 2.0**-24,
        2**40,
        2**24 + 1,
        2**53 + 1,
        2**60 + 2**36 + 1,
        -(2**62) + 1,
        3,
    ],
    ids=repr,
)
def test_a_real_constant_is_rounded_once(real, number):
    assert constant(number, Type.REAL, real) == rounded(Fraction(number), real)


@REALS
@pytest.mark.parametrize("number", [0.0, -0.0, math.inf, -math.inf, math.nan], ids=repr)
def test_a_special_number_stays_what_it_is(real, number):
    assert repr(constant(number, Type.REAL, real)) == repr(number)


@REALS
def test_integers_wrap_and_bools_are_bools(real):
    assert constant(2**31 + 5, Type.I32, real) == -(2**31) + 5
    assert constant(-1, Type.U32, real) == 2**32 - 1
    assert constant(2**40, Type.I64, real) == 2**40
    assert constant(True, Type.BOOL, real) is True


@given(programs())
@settings(max_examples=20)
def test_no_value_is_left_without_a_precision(program):
    for real, other in ((Type.F64, Type.F32), (Type.F32, Type.F64)):
        settled = verify(prepare(program, real))
        types = {r.type for i in walk(settled.body) for r in i.results} | {a.type for a in settled.arguments}
        assert not types & {Type.REAL, other}


def test_the_constants_of_a_kernel():
    single = np.float32(0.7)

    @kernel
    def k(x: Scalar, p: Param) -> Scalar:
        return x * 0.1 + (3.0 + 5e-8) * p + single + 2**40

    assert set(constants(k.program("float64"))) == {0.1, 3.0 + 5e-8, float(single), 2.0**40}
    assert set(constants(k.program("float32"))) == {float(np.float32(c)) for c in (0.1, 3.0 + 5e-8, 0.7, 2.0**40)}


def test_a_division_by_a_constant_is_a_division():
    @kernel
    def k(x: Scalar) -> Scalar:
        return x / 255

    x = np.float32([3, 6, 7, 13])
    np.testing.assert_array_equal(interpret(k.program("float32"), {"x": x})["out"], x / np.float32(255))
