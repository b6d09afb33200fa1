"""The text of a program reads back as the same program."""

import math

import numpy as np
import pytest
from hawktest.build import Kit
from hawktest.compiled import assert_same_bits
from hawktest.random_programs import Taste, programs, samples
from hypothesis import given, settings
from hypothesis import strategies as st

import hawk
from hawk import Int32, Mutable, Param, Scalar, Table, Vector, samples_first
from hawk import math as hm
from hawk.diff import jvp, vjp
from hawk.ir.definition import Traced
from hawk.ir.interpret import interpret
from hawk.ir.parse import ParseError, parse
from hawk.ir.passes import freeze, specialise
from hawk.ir.printer import text
from hawk.ir.program import Instr, Program, Region, Role, Tape, walk
from hawk.ir.types import Type
from hawk.ir.verify import verify


def read_back(program: Program) -> Program:
    """What `program` reads back as, having checked that the text and all but the spans are the same."""
    again = parse(text(program))
    assert text(again) == text(program)
    assert again.arguments == program.arguments
    assert again.effects == program.effects
    assert again.tapes == program.tapes
    assert again.returns == program.returns
    for new, old in zip(walk(again.body), walk(program.body), strict=True):
        assert (new.op, new.frozen) == (old.op, old.frozen)
        assert repr(new.attr) == repr(old.attr)
        assert type(new.attr) is type(old.attr)
    return verify(again)


# programs of every kind


@given(programs())
@settings(max_examples=60)
def test_random_programs_keep_their_text_and_bits(program):
    read_back(program)
    settled = specialise(program, Type.F32)
    planes = samples(settled)
    assert_same_bits(interpret(read_back(settled), planes), interpret(settled, planes))


@given(programs(Taste(tame=True)))
@settings(max_examples=25)
def test_derivatives_of_random_programs_keep_their_text(program):
    kernel = hawk.Kernel("k", Traced(program))
    for real in (Type.F64, Type.F32):
        read_back(kernel.definition.program(real))
        read_back(vjp(kernel).program(real))
        read_back(jvp(kernel).program(real))


@hawk.kernel
def everything(
    x: samples_first(Vector[3]), n: Int32, k: Param[Vector[2]], w: Table["row":4, "column":2], s: Mutable[Scalar]
) -> Scalar:
    for i in range(40):
        if x[0] > s:
            s = s + w.at(row=n + i, column=1) * hm.exp(-x[1]) * k[0]
        if s > 1e6:
            break
    return s * w.at(row=0, column=0) + k[1] * x[2]


def test_a_kernel_of_tables_loops_and_sums():
    traced = everything.definition.traced
    assert {a.role for a in traced.arguments} == {Role.SAMPLE, Role.PARAM, Role.TABLE, Role.MUTABLE}
    for program in (traced, everything.program("float64"), everything.program("float32")):
        read_back(program)


def test_a_reverse_with_tapes_and_sums():
    reverse = vjp(everything).program(Type.F64)
    assert reverse.tapes
    assert {Role.SUM, Role.TABLE_SUM} <= {a.role for a in reverse.arguments}
    rng = np.random.default_rng(0)
    planes = {}
    for a in reverse.arguments:
        shape = a.shape if a.role in (Role.PARAM, Role.TABLE) else (*a.shape, 9)
        planes[a.name] = rng.normal(size=shape) if a.type.is_real else rng.integers(0, 4, shape)
    assert_same_bits(interpret(read_back(reverse), planes), interpret(reverse, planes))
    read_back(jvp(hawk.Kernel("first", vjp(everything))).program(Type.F32))


# its parts


def constant(number: object, type: Type) -> Program:
    kit = Kit()
    kit.write("y", kit.b.const(number, type))
    return kit.program()


def is_same(number: object, other: object) -> bool:
    if isinstance(number, float) and math.isnan(number):
        return isinstance(other, float) and math.isnan(other) and math.copysign(1, number) == math.copysign(1, other)
    return repr(number) == repr(other)


EDGES = [0.0, -0.0, 0, True, False, math.inf, -math.inf, math.nan, -math.nan, 5e-324, 1e22, 2**70, -(2**63), 1e300]


@pytest.mark.parametrize("number", EDGES, ids=repr)
def test_constants_are_exact(number):
    (instr,) = read_back(constant(number, Type.REAL)).body
    assert is_same(instr.attr, number)


@given(st.floats() | st.integers())
def test_any_constant_is_exact(number):
    (instr,) = parse(text(constant(number, Type.REAL))).body
    assert is_same(instr.attr, number)


def test_numpy_constants_print_as_python_ones():
    assert text(constant(np.float64(0.1), Type.F64)) == text(constant(0.1, Type.F64))


def test_nan_of_either_sign_has_a_text_of_its_own():
    assert text(constant(math.nan, Type.F64)) != text(constant(-math.nan, Type.F64))


def test_the_first_line_says_that_all_is_frozen():
    program = constant(1.0, Type.F64)
    assert text(program).splitlines()[0] == "kernel k"
    assert text(freeze(program)).splitlines()[0] == "kernel k frozen"
    read_back(freeze(program))


def test_frozen_instructions_among_others_are_marked():
    kit = Kit()
    x = kit.read("x")
    kit.b.frozen = True
    square = kit.b("mul", x, x)
    kit.b.frozen = False
    kit.write("y", kit.b("add", square, x))
    program = kit.program()
    assert "  %1 = mul! %0 %0 : f64" in text(program)
    assert [i.frozen for i in read_back(program).body] == [True, False]


def test_effects_tapes_and_regions_without_values():
    kit = Kit()
    x = kit.read("x")
    kit.table("bar_t", 3, role=Role.TABLE_SUM)
    kit.read("rows", Type.I32, Role.PARAM)
    first = kit.b.const(0, Type.I32)
    with kit.b.block() as then:
        kit.b.scatter("bar_t", first, x)
        kit.b.store("tape0", first, x)
    negative = kit.b("lt", x, kit.b.const(0.0, Type.F64))
    kit.b.if_(negative, Region((), tuple(then), ()), Region((), (), ()))
    kit.write("y", kit.b.load("tape1", first, Type.F64))
    tapes = (Tape("tape0", Type.F64, 7), Tape("tape1", Type.F64, "rows"))
    read_back(kit.program(tapes=tapes, effects=frozenset({"bar_t"})))


def test_returns_and_a_last_newline():
    kit = Kit()
    kit.write("y", kit.read("x"))
    program = kit.program(returns=("y",))
    assert parse(text(program) + "\n").returns == ("y",)
    read_back(program)


# text that is no program

LINES = """\
kernel k
  sample x: 3 f64
  mutable y: scalar f64
  %0 = read x[2] : f64
  %1 = const 1.5 : f64
  %2 = lt %0 %1 : bool
  %3 = if %2 : f64
  {
    yield %0
  }
  {
    yield %1
  }
  write y[0] = %3
"""


def test_the_example_is_a_program():
    assert text(verify(parse(LINES))) + "\n" == LINES


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kernel k", "kernal k", "line 1: expected kernel NAME, found 'kernal k'"),
        ("3 f64", "3 f65", "line 2: 'f65' is no type"),
        ("sample x", "simple x", "line 2: expected an instruction, a write, or the end, found '  simple x"),
        ("read x[2]", "read x", "line 4: 'read' is no op"),
        ("const 1.5", "const one", "line 5: 'one' is no number, found '  %1 = const one : f64'"),
        ("const 1.5", "const 1.50", "line 5: expected '  %1 = const 1.5 : f64'"),
        ("const 1.5", "const", "line 5: const needs a number"),
        ("lt %0 %1", "less %0 %1", "line 6: 'less' is no op"),
        ("lt %0 %1", "lt %0", "line 6: lt takes 2 values, not 1"),
        ("lt %0 %1", "lt %0 %9", "line 6: %9 is not defined"),
        ("%2 = lt", "%1 = lt", "line 6: %1 is defined twice"),
        ("%2 = lt %0 %1 : bool", "lt %0 %1", "line 6: results of lt: 1, not 0"),
        ("%1 : bool", "%1 : bool, bool", "line 6: 1 results and 2 types"),
        ("  {\n    yield %0", "    yield %0", "line 8: expected a region"),
        ("yield %0\n  }", "yield %0\n", "line 10: expected }"),
        ("yield %0", "yield %8", "line 9: %8 is not defined"),
        ("write y[0] = %3\n", "write y[0] = %3\n  %4 = const 1.0 : f64\n", "line 15: expected an instruction"),
        ("  write", " write", "line 14: expected '  write y[0] = %3', found ' write y[0] = %3'"),
        ("    yield %1\n  }\n  write y[0] = %3\n", "    yield %1\n", "line 13: expected }, found the end of the text"),
        ("%3", "%4", "line 7: expected '  %3 = if %2 : f64'"),
    ],
)
def test_errors_say_where_and_what(old, new, message):
    assert old in LINES
    with pytest.raises(ParseError) as error:
        parse(LINES.replace(old, new))
    assert message in str(error.value)


@pytest.mark.parametrize("source", ["", "\n", "kernel", "}", "kernel k\n\n  write"])
def test_fragments(source):
    with pytest.raises(ParseError, match=r"line [12]:"):
        parse(source)


def test_instructions_carry_no_span():
    assert all(isinstance(i, Instr) and i.span is None for i in walk(read_back(everything.program()).body))
