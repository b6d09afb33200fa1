"""Each invariant of a program, broken once."""

from collections.abc import Callable

import pytest
from hawktest.build import Kit
from hawktest.random_programs import programs
from hypothesis import given, settings

from hawk.ir.program import Argument, Instr, Place, Program, Region, Role, Tape, Value
from hawk.ir.types import Type
from hawk.ir.verify import VerifyError, verify

F64, I32, BOOL = Type.F64, Type.I32, Type.BOOL


def broken_instr(op: str, args: tuple[Type, ...], results: tuple[Type, ...], attr: object = None,
                 regions: tuple[Region, ...] = ()) -> Program:  # fmt: skip
    """A program with one instruction, on arguments of these types."""
    kit = Kit()
    kit.table("t", 4)
    kit.table("sums", 4, role=Role.TABLE_SUM)
    given = tuple(kit.read(f"a{k}", type) for k, type in enumerate(args))
    kit.b.body.append(Instr(op, given, tuple(map(Value, results)), attr, regions))
    return kit.program(tapes=[Tape("tape", F64, 8), Tape("sized", F64, "rows")], effects=frozenset({"sums"}))


def plain(**changes: object) -> Program:
    """x + 1, with something changed."""
    kit = Kit()
    x = kit.read("x")
    kit.write("y", kit.b("add", x, kit.b.const(1.0, F64)))
    return kit.program(**changes)


def region(*yields: Type, params: tuple[Type, ...] = ()) -> Region:
    values = tuple(Value(t) for t in yields)
    body = tuple(Instr("const", (), (v,), {F64: 0.0, I32: 0, BOOL: True}[v.type]) for v in values)
    return Region(tuple(map(Value, params)), body, values)


def two_arguments() -> Program:
    p = plain()
    return p.with_(arguments=(*p.arguments, p.arguments[0]))


def read_twice() -> Program:
    p = plain()
    return p.with_(inputs=(*p.inputs, (Place("x", 0), Value(F64))))


def written_twice() -> Program:
    p = plain()
    return p.with_(outputs=(*p.outputs, *p.outputs))


def written_in_part() -> Program:
    p = plain()
    return p.with_(arguments=(p.arguments[0], Argument("y", Role.MUTABLE, (2,), F64)))


def defined_twice() -> Program:
    p = plain()
    return p.with_(body=(*p.body, p.body[-1]))


def defined_in_both_sides() -> Program:
    kit = Kit()
    kit.read("x")
    side = region(F64)
    kit.b.if_(kit.b.const(True, BOOL), side, side)
    return kit.program()


def used_before_it_is_defined() -> Program:
    p = plain()
    return p.with_(body=tuple(reversed(p.body)))


def used_outside_its_region() -> Program:
    kit = Kit()
    kit.read("x")
    side = region(F64)
    kit.b.if_(kit.b.const(True, BOOL), side, region(F64))
    kit.write("y", side.yields[0])
    return kit.program()


def one_place(argument: Argument, component: int = 0, type: Type = F64, write: bool = False) -> Program:
    value = Value(type)
    body = (Instr("const", (), (value,), 0.0),) if write else ()
    places = ((Place(argument.name, component), value),)
    return Program("k", (argument,), () if write else places, body, places if write else ())


def no_such_argument() -> Program:
    return one_place(Argument("x", Role.SAMPLE, (), F64)).with_(arguments=())


SAMPLE, SUM = Argument("x", Role.SAMPLE, (2,), F64), Argument("total", Role.SUM, (), F64)

BROKEN: list[tuple[Callable[[], Program], str]] = [
    # arguments and places
    (two_arguments, "two arguments share a name"),
    (no_such_argument, "no argument x"),
    (lambda: one_place(SAMPLE, 2), "x has no component 2"),
    (lambda: one_place(SAMPLE, -1), "x has no component -1"),
    (lambda: one_place(SAMPLE, type=I32), "x is f64, the value is i32"),
    (lambda: one_place(SUM), "total is sum: it cannot stand here"),
    (lambda: one_place(SAMPLE, write=True), "x is sample: it cannot stand here"),
    (read_twice, "a place is read twice"),
    (written_twice, "a place is written twice"),
    (written_in_part, "y has 2 components, 1 are written"),
    (lambda: plain(returns=("z",)), "returns z, which is not written"),
    (lambda: plain(effects=frozenset({"y"})), "effects name y, which is no table sum"),
    (lambda: plain(tapes=[Tape("t", F64, 1), Tape("t", F64, 2)]), "two tapes share a name"),
    # values
    (defined_twice, "a value is defined twice"),
    (defined_in_both_sides, "a value is defined twice"),
    (used_before_it_is_defined, "a value is used before it is defined, or outside its region"),
    (used_outside_its_region, "a value is used before it is defined, or outside its region"),
    # instructions
    (lambda: broken_instr("plus", (F64,), (F64,)), "unknown op plus"),
    (lambda: broken_instr("add", (F64,), (F64,)), "add takes 2 arguments, got 1"),
    (lambda: broken_instr("add", (F64, I32), (F64,)), "add cannot take (f64, i32)"),
    (lambda: broken_instr("add", (F64, F64), (I32,)), "add gives f64, not i32"),
    (lambda: broken_instr("lt", (F64, F64), (F64,)), "lt gives bool, not f64"),
    (lambda: broken_instr("add", (F64, F64), (F64, F64)), "add has one result"),
    (lambda: broken_instr("add", (F64, F64), (F64,), regions=(region(),)), "add takes no region"),
    (lambda: broken_instr("const", (), (F64,)), "a const needs a number"),
    (lambda: broken_instr("const", (), (F64,), "one"), "a const needs a number"),
    (lambda: broken_instr("const", (), (BOOL,), 1.0), "a const of bool cannot be 1.0"),
    (lambda: broken_instr("const", (), (I32,), 1.5), "a const of i32 cannot be 1.5"),
    (lambda: broken_instr("cast", (F64,), ()), "cast has one result"),
    (lambda: broken_instr("sample", (), (I32,)), "sample is an i64"),
    # memory
    (lambda: broken_instr("table", (I32,), (F64,), "u"), "table: no such table u"),
    (lambda: broken_instr("table", (I32,), (F64,), "sums"), "table: no such table sums"),
    (lambda: broken_instr("table", (F64,), (F64,), "t"), "table takes an i32 index"),
    (lambda: broken_instr("table", (I32,), (I32,), "t"), "table: t holds f64, not i32"),
    (lambda: broken_instr("scatter", (I32, F64), (), "t"), "scatter: no such table t"),
    (lambda: broken_instr("scatter", (F64, F64), (), "sums"), "scatter takes an i32 index"),
    (lambda: broken_instr("scatter", (I32, I32), (), "sums"), "scatter: sums holds f64, not i32"),
    (lambda: broken_instr("scatter", (I32, F64), (F64,), "sums"), "scatter has no result"),
    (lambda: broken_instr("scatter", (I32, F64), (), "sums").with_(effects=frozenset()),
     "sums is not among the effects"),
    (lambda: broken_instr("load", (I32,), (F64,), "other"), "load: no such tape other"),
    (lambda: broken_instr("load", (I32,), (I32,), "tape"), "load: wrong types for tape tape"),
    (lambda: broken_instr("store", (F64, F64), (), "tape"), "store: wrong types for tape tape"),
    (lambda: broken_instr("store", (I32, F64), (F64,), "tape"), "store has no result"),
    (lambda: broken_instr("load", (I32,), (F64,), "sized"), "tape sized: its capacity rows is no i32 param"),
    # structure
    (lambda: broken_instr("if", (F64,), (), regions=(region(), region())), "if takes one condition"),
    (lambda: broken_instr("if", (BOOL,), (), regions=(region(),)), "if has two plain regions"),
    (lambda: broken_instr("if", (BOOL,), (), regions=(region(), region(params=(F64,)))), "if has two plain regions"),
    (lambda: broken_instr("if", (BOOL,), (F64,), regions=(region(F64), region(I32))),
     "a region of if yields (i32,), expected (f64,)"),
    (lambda: broken_instr("loop", (I32,), (I32,), regions=(region(BOOL),)), "loop takes (limit, again, *carried)"),
    (lambda: broken_instr("loop", (I32, BOOL, F64), (F64,), regions=(region(BOOL, F64, params=(I32, F64)),)),
     "loop gives (trips, *carried)"),
    (lambda: broken_instr("loop", (I32, BOOL), (I32,), regions=(region(BOOL),)), "loop: wrong region parameters"),
    (lambda: broken_instr("loop", (I32, BOOL), (I32,)), "loop has one region"),
    (lambda: broken_instr("loop", (I32, BOOL, F64), (I32, F64), regions=(region(BOOL, I32, params=(I32, F64)),)),
     "a region of loop yields (bool, i32), expected (bool, f64)"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), BROKEN, ids=[f"{k} {message}" for k, (_, message) in enumerate(BROKEN)])
def test_a_broken_invariant_is_named(make, message):
    with pytest.raises(VerifyError) as caught:
        verify(make())
    assert str(caught.value) == f"k: {message}"


def test_a_sound_program_is_returned_as_it_is():
    program = plain(returns=("y",))
    assert verify(program) is program


@given(programs())
@settings(max_examples=5)
def test_random_programs_are_sound(program):
    assert verify(program) is program
