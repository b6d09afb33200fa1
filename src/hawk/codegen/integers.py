"""Integers, bools and conversions in lanes: what `hawk.elementary.real_ops` is for reals.

The tables follow `hawk.ir.interpret`: two's complement that wraps, Python's division, shifts modulo the width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.types import Type
from .llvm_lanes import LlvmLanes, suffix
from .text import Operand

ELEMENTS = {
    Type.F64: "double",
    Type.F32: "float",
    Type.I64: "i64",
    Type.I32: "i32",
    Type.U32: "i32",
    Type.BOOL: "i1",
}
IntLowering = Callable[[LlvmLanes, Type, Sequence[Operand]], Operand]


def _simple(op: str) -> IntLowering:
    return lambda m, t, a: m.binary(op, a[0], a[1])


def _compare(signed: str, unsigned: str) -> IntLowering:
    return lambda m, t, a: m.compare(f"icmp {unsigned if t in (Type.U32, Type.BOOL) else signed}", a[0], a[1])


def literal(m: LlvmLanes, t: Type, number: int) -> Operand:
    """An integer constant in every lane."""
    return m.splat(ELEMENTS[t], str(number))


def _shift(signed: str, unsigned: str) -> IntLowering:
    def lower(m: LlvmLanes, t: Type, a: Sequence[Operand]) -> Operand:
        width = 63 if t is Type.I64 else 31
        return m.binary(unsigned if t is Type.U32 else signed, a[0], m.binary("and", a[1], literal(m, t, width)))

    return lower


def _negative(m: LlvmLanes, t: Type, a: Sequence[Operand]) -> Operand:
    return m.binary("sub", literal(m, t, 0), a[0])


def _absolute(m: LlvmLanes, t: Type, a: Sequence[Operand]) -> Operand:
    if t is Type.U32:
        return a[0]
    return m.f.call(a[0].type, f"llvm.abs.{suffix(a[0].type)}", [a[0], Operand("i1", "false")])


def _divide(m: LlvmLanes, t: Type, a: Sequence[Operand], remainder: bool) -> Operand:
    """Python's floor division and modulo; a divisor of 0 or -1 never reaches the machine's division."""
    x, y = a
    zero, one = literal(m, t, 0), literal(m, t, 1)
    by_zero = m.compare("icmp eq", y, zero)
    if t is Type.U32:
        safe = m.select(by_zero, one, y)
        if remainder:
            return m.select(by_zero, x, m.binary("urem", x, safe))
        return m.select(by_zero, zero, m.binary("udiv", x, safe))
    by_minus = m.compare("icmp eq", y, literal(m, t, -1))
    safe = m.select(m.either(by_zero, by_minus), one, y)
    r = m.binary("srem", x, safe)
    opposite = m.compare("icmp slt", m.binary("xor", r, safe), zero)
    moved = m.both(m.compare("icmp ne", r, zero), opposite)
    if remainder:
        result = m.select(moved, m.binary("add", r, safe), r)
        return m.select(by_zero, x, m.select(by_minus, zero, result))
    quotient = m.binary("sdiv", x, safe)
    result = m.select(moved, m.binary("sub", quotient, one), quotient)
    return m.select(by_zero, zero, m.select(by_minus, _negative(m, t, [x]), result))


def _extremum(signed: str, unsigned: str) -> IntLowering:
    compare = _compare(signed, unsigned)
    return lambda m, t, a: m.select(compare(m, t, a), a[0], a[1])


def _inverse(m: LlvmLanes, t: Type, a: Sequence[Operand]) -> Operand:
    return m.binary("xor", a[0], m.splat("i1", "true") if t is Type.BOOL else literal(m, t, -1))


# How lanes compute an op on integers and bools; the type is that of the arguments.
INTEGERS: dict[str, IntLowering] = {
    "add": _simple("add"),
    "sub": _simple("sub"),
    "mul": _simple("mul"),
    "neg": _negative,
    "pin": lambda m, t, a: a[0],
    "detach": lambda m, t, a: a[0],
    "abs": _absolute,
    "floordiv": lambda m, t, a: _divide(m, t, a, remainder=False),
    "mod": lambda m, t, a: _divide(m, t, a, remainder=True),
    "minimum": _extremum("slt", "ult"),
    "maximum": _extremum("sgt", "ugt"),
    "lt": _compare("slt", "ult"),
    "le": _compare("sle", "ule"),
    "gt": _compare("sgt", "ugt"),
    "ge": _compare("sge", "uge"),
    "eq": _compare("eq", "eq"),
    "ne": _compare("ne", "ne"),
    "and": _simple("and"),
    "or": _simple("or"),
    "xor": _simple("xor"),
    "not": _inverse,
    "shl": _shift("shl", "shl"),
    "shr": _shift("ashr", "lshr"),
    "select": lambda m, t, a: m.select(a[0], a[1], a[2]),
}


def convert(m: LlvmLanes, x: Operand, source: Type, target: Type) -> Operand:
    """The op `cast`."""
    kind = m.vector(ELEMENTS[target])
    if source is target:
        return x
    if target is Type.BOOL:
        zero = Operand(x.type, "zeroinitializer")
        return m.compare("fcmp une" if source.is_real else "icmp ne", x, zero)
    if source.is_real and target.is_real:
        return m.convert("fpext" if source is Type.F32 else "fptrunc", x, kind)
    if source.is_real:
        name = "fptoui" if target is Type.U32 else "fptosi"
        return m.f.call(kind, f"llvm.{name}.sat.{suffix(kind)}.{suffix(x.type)}", [x])
    if target.is_real:
        return m.convert("sitofp" if source in (Type.I32, Type.I64) else "uitofp", x, kind)
    if target is Type.I64:
        return m.convert("sext" if source is Type.I32 else "zext", x, kind)
    if source is Type.I64:
        return m.convert("trunc", x, kind)
    return m.convert("zext", x, kind) if source is Type.BOOL else x
