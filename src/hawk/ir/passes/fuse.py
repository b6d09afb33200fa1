"""Multiply-adds become `fma`, by a rule that looks only at the data flow.

* ``a*b + c`` is ``fma(a, b, c)``; of two products the first is fused.
* ``a*b - c`` is ``fma(a, b, -c)`` and ``c - a*b`` is ``fma(-a, b, c)``; a difference of two products is
  left alone, so that ``x*x - y*y`` stays exactly 0 where x equals y.
* A product of static numbers (constants and loop indices) is left alone: an unrolled loop computes it
  while tracing.

The rule does not ask how often a product is used nor in which region it stands, so that spelling a loop
differently, unrolling it or sharing a subexpression cannot change a bit. Nothing frozen is fused.
"""

from __future__ import annotations

from ..program import Instr, Program, Value
from .rewrite import Rewriter


def fuse(program: Program) -> Program:
    """`program` with its multiply-adds fused; products no longer used are left for `drop_dead`."""
    return _Fuse().program(program)


class _Fuse(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self._trips: set[Value] = set()  # old values: the indices of loops
        self._products: dict[Value, Instr] = {}  # by new value
        self._static: set[Value] = set()  # new values known from constants and loop indices alone

    def instr(self, instr: Instr) -> None:
        if instr.op in ("add", "sub") and instr.result.type.is_real and not instr.frozen and self._fused(instr):
            return
        if instr.op == "loop":
            self._trips.add(instr.regions[0].params[0])
        new = self.keep(instr)
        if instr.op == "mul" and not self._is_static(new):
            self._products[new.result] = new
        if (
            not new.regions
            and instr.op not in ("table", "sample", "scatter", "load", "store", "most")
            and self._is_static(new)
        ):
            self._static.update(new.results)

    def fresh(self, value: Value) -> Value:
        new = super().fresh(value)
        if value in self._trips:
            self._static.add(new)
        return new

    def _is_static(self, instr: Instr) -> bool:
        return all(a in self._static for a in instr.args)

    def _fused(self, instr: Instr) -> bool:
        x, y = (self.env[a] for a in instr.args)
        left, right = self._products.get(x), self._products.get(y)
        if left is None and right is None:
            return False
        if instr.op == "add":
            product, other = (left, y) if left is not None else (right, x)
            assert product is not None
            self._emit(instr, (*product.args, other))
            return True
        if left is not None and right is not None:
            return False
        if left is not None:
            a, b = left.args
            self._emit(instr, (a, b, self._negated(instr, y)))
        else:
            assert right is not None
            a, b = right.args
            self._emit(instr, (self._negated(instr, a), b, x))
        return True

    def _negated(self, instr: Instr, value: Value) -> Value:
        negative = Value(value.type)
        self.out.append(Instr("neg", (value,), (negative,), span=instr.span))
        return negative

    def _emit(self, instr: Instr, args: tuple[Value, ...]) -> None:
        self.out.append(Instr("fma", args, (self.fresh(instr.result),), span=instr.span))
