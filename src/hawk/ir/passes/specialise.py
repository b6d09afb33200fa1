"""Choose the precision: REAL becomes F64 or F32 and every constant is rounded once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..program import Instr, Program
from ..types import Type
from .rewrite import Rewriter


def specialise(program: Program, real: Type) -> Program:
    """`program` with every REAL turned into `real`; constants are rounded once, to nearest."""
    arguments = tuple(replace(a, type=real) if a.type is Type.REAL else a for a in program.arguments)
    return _Specialise(real).program(program).with_(arguments=arguments)


class _Specialise(Rewriter):
    def __init__(self, real: Type) -> None:
        super().__init__()
        self._real = real

    def type_of(self, type: Type) -> Type:
        return self._real if type is Type.REAL else type

    def instr(self, instr: Instr) -> None:
        if instr.op == "const":
            self.keep(instr, attr=rounded(instr.attr, self.type_of(instr.result.type)))
        else:
            self.keep(instr)


def rounded(number: object, type: Type) -> float | int | bool:
    """A constant as its type holds it: a Python float exact in it, a wrapped int, or a bool."""
    with np.errstate(over="ignore"):
        if type.is_real:
            if isinstance(number, int) and abs(number) < 2**63:  # not by way of float64
                return float(np.int64(number).astype(type.dtype))
            return float(type.dtype.type(number))
        if type is Type.BOOL:
            return bool(number)
        return int(np.array(int(number), np.int64).astype(type.dtype))  # type: ignore[call-overload]
