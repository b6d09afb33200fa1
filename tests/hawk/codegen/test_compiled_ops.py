"""Every op, at every precision and lane width, compiled against the interpreter, bit for bit."""

import zlib

import numpy as np
import pytest
from hawktest.build import one_of_each
from hawktest.compiled import WIDTHS, assert_compiled_as_interpreted
from hawktest.samples import mixed, special_values

from hawk.elementary.real_ops import REAL_OPS
from hawk.ir.interpret import INTEGERS, Array
from hawk.ir.ops import ELEMENTARY, OPS
from hawk.ir.program import Program, Role
from hawk.ir.types import Type

N = 613  # not a multiple of any width
SPECIAL = 8  # of the special values, in all pairs


def arguments_of(op: str, type: Type) -> list[Type]:
    return [Type.BOOL, type, type] if op == "select" else [type] * OPS[op].arity


def programs(type: Type) -> dict[str, Program]:
    """The ops on one type, a few programs of many."""
    table = REAL_OPS if type.is_real else INTEGERS
    ops = [op for op in table if OPS[op].rule(tuple(arguments_of(op, type))) is not None]
    plain = {op: (op, arguments_of(op, type)) for op in ops if op not in ELEMENTARY}
    functions = {op: (op, arguments_of(op, type)) for op in ops if op in ELEMENTARY}
    return {name: one_of_each(calls) for name, calls in (("plain", plain), ("functions", functions)) if calls}


def samples(program: Program, n: int = N) -> dict[str, Array]:
    planes = {}
    for a in program.arguments:
        if a.role is Role.SAMPLE:
            planes[a.name] = mixed(a.type, n, np.random.default_rng(zlib.crc32(a.name.encode())))
    return planes


def pairs(program: Program) -> dict[str, Array]:
    """The first two arguments take every pair of special values."""
    planes = {}
    for a in program.arguments:
        if a.role is Role.SAMPLE:
            values = special_values(a.type)
            count = len(values)
            planes[a.name] = np.tile(values, count) if a.name.endswith("0") else np.repeat(values, count)
    n = max(map(len, planes.values()))
    return {name: np.resize(plane, n) for name, plane in planes.items()}


@pytest.mark.parametrize("type", [t for t in Type if t is not Type.REAL], ids=str)
def test_ops_on_one_type(type):
    for program in programs(type).values():
        assert_compiled_as_interpreted(program, samples(program), WIDTHS)
        assert_compiled_as_interpreted(program, pairs(program), (1, 8))
