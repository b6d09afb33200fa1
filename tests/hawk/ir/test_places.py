"""Table elements at constant indices."""

import numpy as np
from hawktest.build import Kit
from hawktest.compiled import assert_same_bits

from hawk.ir.interpret import interpret
from hawk.ir.passes import constant_places
from hawk.ir.program import Program, Region, walk
from hawk.ir.types import Type
from hawk.ir.verify import verify


def example() -> Program:
    """Reads t[1] three times, once in a region, t[9] (the last) and t[i]."""
    kit = Kit()
    kit.table("t", 4)
    i, c, b = kit.read("i", Type.I32), kit.read("c", Type.BOOL), kit.b
    one = b.const(1, Type.I32)
    first, last = b.table("t", one, Type.F64), b.table("t", b.const(9, Type.I32), Type.F64)
    moving = b.table("t", i, Type.F64)
    with b.block() as body:
        again = b("add", b.table("t", one, Type.F64), moving)
    (joined,) = b.if_(c, Region((), tuple(body), (again,)), Region((), (), (last,)))
    kit.write("out", b("add", b("mul", first, b.table("t", one, Type.F64)), joined))
    return kit.program()


def test_each_element_becomes_one_input_and_the_others_stay_reads():
    settled = verify(constant_places(example()))
    assert [(p.argument, p.component) for p, _ in settled.inputs] == [("i", 0), ("c", 0), ("t", 1), ("t", 3)]
    assert sum(i.op == "table" for i in walk(settled.body)) == 1
    planes = {"t": np.array([1.0, 2.0, 3.0, 4.0]), "i": [0, 3, -7], "c": [True, False, True]}
    assert_same_bits(interpret(settled, planes), interpret(example(), planes))


def test_a_second_pass_finds_nothing_new():
    once = constant_places(example())
    assert [p for p, _ in constant_places(once).inputs] == [p for p, _ in once.inputs]
