"""Every op is in every table, or on that table's own list of exceptions: nothing defaults."""

import pytest

from hawk.codegen import integers
from hawk.diff.partials import BY_NAME, FLAT, PARTIALS
from hawk.elementary import FUNCTIONS
from hawk.elementary.real_ops import REAL_OPS
from hawk.ir import interpret
from hawk.ir.ops import COMPARISONS, ELEMENTARY, OPS, STRUCTURED
from hawk.ir.types import Type

# Ops that each interpretation treats by name: their result type is given, or they touch memory or other samples.
TREATED_BY_NAME = frozenset("const cast table scatter load store most sample if loop custom".split())
TABLED = sorted(OPS.keys() - TREATED_BY_NAME)
REALS, INTEGERS = (Type.F64, Type.F32), (Type.I64, Type.I32, Type.U32)


def takes(op: str, type: Type) -> bool:
    """Whether an op accepts arguments of this type (after the condition, for a select)."""
    types = [type] * OPS[op].arity
    if op == "select":
        types[0] = Type.BOOL
    return OPS[op].rule(tuple(types)) is not None


def test_the_tables_of_real_ops_are_exactly_the_ops_that_take_reals():
    assert set(REAL_OPS) == {op for op in TABLED if any(takes(op, t) for t in REALS)}


@pytest.mark.parametrize("table", [interpret.INTEGERS, integers.INTEGERS], ids=["interpret", "lanes"])
def test_the_tables_of_integer_ops_are_exactly_the_ops_that_take_integers_or_bools(table):
    assert set(table) == {op for op in TABLED if any(takes(op, t) for t in (*INTEGERS, Type.BOOL))}


def test_an_op_takes_both_precisions_or_neither():
    for op in TABLED:
        assert takes(op, Type.F64) == takes(op, Type.F32) == takes(op, Type.REAL)


def test_every_op_has_a_partial_or_is_flat_or_is_treated_by_name():
    tables = [set(PARTIALS), set(FLAT), set(BY_NAME)]
    assert set().union(*tables) == set(OPS)
    assert sum(map(len, tables)) == len(OPS), "an op is in two of the tables"


def test_a_real_function_of_reals_is_flat_only_if_it_is_a_step_or_asked_to_be():
    varying = {op for op in TABLED if takes(op, Type.F64)} - COMPARISONS
    assert varying & FLAT == {"sign", "floor", "ceil", "trunc", "round", "floordiv", "detach"}


def test_the_lists_of_names_are_of_ops():
    assert set(FUNCTIONS) == ELEMENTARY
    assert set(OPS) >= ELEMENTARY | COMPARISONS | STRUCTURED
    assert set(OPS) == set(TABLED) | TREATED_BY_NAME
    assert all(name == op.name and op.doc for name, op in OPS.items())


@pytest.mark.parametrize("op", TABLED)
def test_a_rule_refuses_mixed_types(op):
    if OPS[op].arity >= 2:
        types = [Type.F64] * OPS[op].arity
        types[-1] = Type.F32
        assert OPS[op].rule(tuple(types)) is None
        types[-1] = Type.I32
        assert OPS[op].rule(tuple(types)) is None
    else:
        assert takes(op, Type.BOOL) == (op in ("not", "pin", "detach"))
