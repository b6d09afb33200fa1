"""Dead code: what no output needs goes, what acts stays."""

import pytest
from hawktest.build import Kit
from hawktest.compiled import assert_same_bits
from hawktest.random_programs import programs, samples
from hypothesis import given, settings

from hawk.ir.interpret import interpret
from hawk.ir.passes import drop_dead, specialise
from hawk.ir.printer import text
from hawk.ir.program import Program, Region, Role, Tape, Value, walk
from hawk.ir.types import Type
from hawk.ir.verify import verify


def ops(program: Program) -> list[str]:
    return [i.op for i in walk(program.body)]


def test_unused_instructions_and_inputs_go():
    kit = Kit()
    x, y = kit.read("x"), kit.read("y")
    kit.b("sin", kit.b("mul", x, y))
    kit.write("out", kit.b("neg", x))
    settled = verify(drop_dead(kit.program()))
    assert ops(settled) == ["neg"]
    assert [place.argument for place, _ in settled.inputs] == ["x"]
    assert [a.name for a in settled.arguments] == ["x", "y", "out"], "the arguments are the kernel's signature"


def test_unused_results_of_an_if_go_with_what_they_need():
    kit = Kit()
    x, c, b = kit.read("x"), kit.read("c", Type.BOOL), kit.b
    sides = []
    for op in ("sin", "cos"):
        with b.block() as body:
            used, unused = b("exp", x), b(op, x)
        sides.append(Region((), tuple(body), (unused, used)))
    _, used = b.if_(c, *sides)
    kit.write("out", used)
    assert ops(verify(drop_dead(kit.program()))) == ["if", "exp", "exp"]


def loop(kit: Kit, x: Value) -> tuple[Value, ...]:
    """Carries a, which needs b; b, which needs itself; and c, which nothing needs but itself."""
    b = kit.b
    params = (Value(Type.I32), *(Value(Type.F64) for _ in range(3)))
    with b.block() as body:
        new = (b("add", params[1], params[2]), b("sin", params[2]), b("cos", params[3]))
    always = b.const(True, Type.BOOL)
    return b.loop(b.const(3, Type.I32), always, [x, x, x], Region(params, tuple(body), (always, *new)))


@pytest.mark.parametrize(
    ("wanted", "left"),
    [(1, ["add", "sin"]), (2, ["sin"]), (3, ["cos"]), (0, [])],
    ids=["what needs another", "itself alone", "the last", "the trips"],
)
def test_carried_values_stay_while_something_needed_is_made_of_them(wanted, left):
    kit = Kit()
    results = loop(kit, kit.read("x"))
    kit.write("out", results[wanted])
    settled = verify(drop_dead(kit.program()))
    assert [op for op in ops(settled) if op not in ("const", "loop")] == left


def test_a_loop_that_nothing_needs_goes():
    kit = Kit()
    x = kit.read("x")
    loop(kit, x)
    kit.write("out", x)
    assert ops(drop_dead(kit.program())) == []


def test_a_scatter_stays_and_keeps_the_structure_around_it():
    kit = Kit()
    kit.table("sums", 3, role=Role.TABLE_SUM)
    x, c, b = kit.read("x"), kit.read("c", Type.BOOL), kit.b
    with b.block() as body:
        b.scatter("sums", b.const(1, Type.I32), b("sin", x))
        b("cos", x)
    b.if_(c, Region((), tuple(body), ()), Region((), (), ()))
    assert ops(verify(drop_dead(kit.program(effects=frozenset({"sums"}))))) == ["if", "const", "sin", "scatter"]


def test_a_store_stays_while_its_tape_is_loaded():
    def program(use: bool) -> Program:
        kit = Kit()
        x, b = kit.read("x"), kit.b
        zero = b.const(0, Type.I32)
        b.store("first", zero, b("sin", x))
        between = b.load("first", zero, Type.F64)
        b.store("second", zero, b("cos", between))
        loaded = b.load("second", zero, Type.F64)
        kit.write("out", loaded if use else x)
        return kit.program(tapes=[Tape("first", Type.F64, 2), Tape("second", Type.F64, 2)])

    kept = verify(drop_dead(program(True)))
    assert ops(kept) == ops(program(True))
    assert [t.name for t in kept.tapes] == ["first", "second"]
    dropped = verify(drop_dead(program(False)))
    assert ops(dropped) == []
    assert dropped.tapes == ()


@given(programs())
@settings(max_examples=40)
def test_a_random_program_keeps_its_bits_and_nothing_is_left_to_drop(program):
    plain = specialise(program, Type.F64)
    once = verify(drop_dead(plain))
    assert text(drop_dead(once)) == text(once)
    planes = samples(plain)
    assert_same_bits(interpret(once, planes), interpret(plain, planes))
