"""Annotations become the arguments of the program, as strings too."""

from __future__ import annotations

import numpy as np
import pytest

import hawk.language as hl
from hawk.ir.interpret import interpret
from hawk.ir.printer import text
from hawk.ir.program import Role
from hawk.ir.types import Type
from hawk.language import (
    Bool,
    Int32,
    KernelError,
    Matrix,
    Mutable,
    Param,
    Scalar,
    Table,
    Terminated,
    UInt32,
    Vector,
    samples_first,
    trace,
)  # fmt: skip


def test_every_role_shape_and_type():
    rows = 2  # known only here: the annotations below are strings

    def k(
        a: Scalar, b: hl.Param, c: Param[Vector[3]], d: Mutable[samples_first(Matrix[rows, 3])], e: UInt32,
        f: Table["h":rows, "i":4], g: Terminated, h: Mutable[Bool], i: Param[Int32], j: samples_first(Vector[2]),
    ):  # fmt: skip
        d[0, 1] = a
        g = False
        h = a > b

    arguments = {x.name: x for x in trace(k).arguments}
    described = {n: (x.role, x.shape, x.type, x.samples_first) for n, x in arguments.items()}
    assert described == {
        "a": (Role.SAMPLE, (), Type.REAL, False),
        "b": (Role.PARAM, (), Type.REAL, False),
        "c": (Role.PARAM, (3,), Type.REAL, False),
        "d": (Role.MUTABLE, (2, 3), Type.REAL, True),
        "e": (Role.SAMPLE, (), Type.U32, False),
        "f": (Role.TABLE, (2, 4), Type.REAL, False),
        "g": (Role.TERMINATED, (), Type.BOOL, False),
        "h": (Role.MUTABLE, (), Type.BOOL, False),
        "i": (Role.PARAM, (), Type.I32, False),
        "j": (Role.SAMPLE, (2,), Type.REAL, True),
    }
    assert arguments["f"].axes == ("h", "i")


def test_returned_values_are_outputs_of_their_own():
    def one(x: Scalar) -> Vector[2]:
        return [x, 1]

    def several(x: Scalar, out0: Mutable[Scalar]) -> tuple[Scalar, Bool]:
        out0 = -x
        return 2 * x, x > 0

    def none(x: Scalar, y: Mutable[Scalar]) -> None:
        y = x

    assert trace(one).returns == ("out",)
    assert trace(none).returns == ()
    program = trace(several)
    assert program.returns == ("out0_", "out1")
    out = interpret(program, {"x": np.array([1.0, -2.0])})
    assert {name: values.tolist() for name, values in out.items()} == {
        "out0": [-1, 2], "out0_": [2, -4], "out1": [True, False],
    }  # fmt: skip


def test_one_returned_value_may_be_annotated_as_a_tuple():
    def k(x: Scalar) -> tuple[Scalar]:
        return (2 * x,)

    assert interpret(trace(k), {"x": np.array([1.5])})["out0"].tolist() == [3.0]


def test_keyword_only_arguments_and_another_name():
    def k(x: Scalar, /, *, y: Mutable[Scalar]):
        y = x

    assert trace(k, name="other").name == "other"
    assert [a.name for a in trace(k).arguments] == ["x", "y"]


def test_equal_functions_print_equal_text():
    def make(number):
        def k(x: Scalar, y: Mutable[Scalar]):
            y = number * x

        return k

    assert text(trace(make(2.0))) == text(trace(make(2.0))) != text(trace(make(3.0)))


def test_what_is_returned_must_be_what_is_annotated():
    def short(x: Scalar) -> tuple[Scalar, Scalar]:
        return x

    def wide(x: Scalar) -> Vector[2]:
        return x

    def unknown(x: Scalar) -> missing:
        return x

    def role(x: Scalar) -> Param:
        return x

    for function, words in (
        (short, "short is annotated to return 2 values, and returns a real"),
        (wide, r"out is a Vector\[2\], and is assigned a scalar"),
        (unknown, "the return annotation: 'missing' cannot be evaluated"),
        (role, r"Param\[Scalar\] cannot be returned"),
    ):
        with pytest.raises(KernelError, match=words):
            trace(function)
