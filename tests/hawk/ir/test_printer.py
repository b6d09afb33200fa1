"""The text of a program: the key of compiled objects, so equal means equal and different means different."""

from dataclasses import replace

import pytest
from hawktest.build import Kit
from hawktest.random_programs import WILD, random_program

from hawk.diff import vjp
from hawk.ir.definition import Traced
from hawk.ir.passes import freeze, prepare
from hawk.ir.printer import text
from hawk.ir.program import Argument, Place, Program, Region, Role, Span, Tape, Value
from hawk.ir.types import Type
from hawk.kernel import Kernel


def example(number: float | int = 1.5, type: Type = Type.F64, op: str = "add") -> Program:
    kit = Kit()
    x, c, n = kit.read("x", type), kit.read("c", Type.BOOL), kit.read("n", Type.I32)
    kit.table("t", 6)
    b = kit.b
    constant = b.const(number, type)
    with b.block() as body:
        inner = b(op, x, constant)
    (joined,) = b.if_(c, Region((), tuple(body), (inner,)), Region((), (), (x,)))
    trip, a = Value(Type.I32), Value(type)
    with b.block() as body:
        b.store("kept", trip, a)
        following = b("neg", a)
    region = Region((trip, a), tuple(body), (c, following))
    trips, out = b.loop(n, c, [joined], region)
    kit.write("out", out)
    kit.write("trips", trips)
    return kit.program(tapes=[Tape("kept", type, 8)])


def test_the_text_of_a_program():
    assert text(example()) == (
        "kernel k\n"
        "  sample x: scalar f64\n"
        "  sample c: scalar bool\n"
        "  sample n: scalar i32\n"
        "  table t: 6 f64\n"
        "  mutable out: scalar f64\n"
        "  mutable trips: scalar i32\n"
        "  tape kept: 8 f64\n"
        "  %0 = read x[0] : f64\n"
        "  %1 = read c[0] : bool\n"
        "  %2 = read n[0] : i32\n"
        "  %3 = const 1.5 : f64\n"
        "  %5 = if %1 : f64\n"
        "  {\n"
        "    %4 = add %0 %3 : f64\n"
        "    yield %4\n"
        "  }\n"
        "  {\n"
        "    yield %0\n"
        "  }\n"
        "  %9, %10 = loop %2 %1 %5 : i32, f64\n"
        "  (%6 i32, %7 f64) {\n"
        "    store kept %6 %7\n"
        "    %8 = neg %7 : f64\n"
        "    yield %1, %8\n"
        "  }\n"
        "  write out[0] = %10\n"
        "  write trips[0] = %9"
    )


def test_equal_programs_print_equal_text():
    assert text(example()) == text(example())
    assert text(random_program(5, 40, WILD)) == text(random_program(5, 40, WILD))
    twice = [vjp(Kernel("k", Traced(random_program(6, 40, WILD)))).program(Type.F32) for _ in range(2)]
    assert text(twice[0]) == text(twice[1])


def test_where_it_comes_from_is_not_in_the_text():
    program = example()
    span = Span("file.py", 3, 1, "x + 1.5")
    assert text(program.with_(body=tuple(replace(i, span=span) for i in program.body))) == text(program)


EXAMPLE = example()


def changed_argument(**changes: object) -> Program:
    table = EXAMPLE.argument("t")
    return EXAMPLE.with_(arguments=tuple(replace(a, **changes) if a is table else a for a in EXAMPLE.arguments))


DIFFERENT = {
    "as it is": EXAMPLE,
    "-0.0": example(-0.0),
    "0.0": example(0.0),
    "0": example(0),
    "False": example(False),
    "the next number": example(1.5000000000000002),
    "inf": example(float("inf")),
    "-inf": example(float("-inf")),
    "nan": example(float("nan")),
    "float32": example(type=Type.F32),
    "another op": example(op="sub"),
    "another name": EXAMPLE.with_(name="l"),
    "a table's name": changed_argument(name="u"),
    "a table's shape": changed_argument(shape=(2, 3)),
    "a table's type": changed_argument(type=Type.F32),
    "a table's axes": changed_argument(axes=("row",)),
    "a role": changed_argument(role=Role.TABLE_SUM),
    "samples first": changed_argument(samples_first=True),
    "a tape's size": EXAMPLE.with_(tapes=(Tape("kept", Type.F64, 9),)),
    "a tape's size by param": EXAMPLE.with_(tapes=(Tape("kept", Type.F64, "n"),)),
    "what returns": EXAMPLE.with_(returns=("out",)),
    "effects": EXAMPLE.with_(effects=frozenset({"t"})),
    "frozen": freeze(EXAMPLE),
    "in part frozen": EXAMPLE.with_(body=freeze(EXAMPLE).body[:1] + EXAMPLE.body[1:]),
    "fewer outputs": EXAMPLE.with_(outputs=EXAMPLE.outputs[:1]),
    "another input": EXAMPLE.with_(inputs=(*EXAMPLE.inputs, (Place("t", 2), Value(Type.F64)))),
    "another argument": EXAMPLE.with_(arguments=(*EXAMPLE.arguments, Argument("z", Role.PARAM, (), Type.F64))),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_programs_print_different_text(name):
    others = [text(program) for other, program in DIFFERENT.items() if other != name]
    assert text(DIFFERENT[name]) not in others


def test_the_precisions_of_a_program_print_different_text():
    program = random_program(7, 30, WILD)
    assert len({text(program), text(prepare(program, Type.F64)), text(prepare(program, Type.F32))}) == 3
