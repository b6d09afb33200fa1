"""Table elements at constant indices become inputs, read once beside the params."""

from __future__ import annotations

from ..program import Instr, Place, Program, Value
from .rewrite import Rewriter


def constant_places(program: Program) -> Program:
    """`program` with every `table` at a constant index turned into an input place of the table.

    Such an element is the same for all samples and all trips: it is loaded before the loop over samples, and
    its adjoint is a canonical sum like a param's.
    """
    pass_ = _Places(program)
    new = pass_.program(program)
    return new.with_(inputs=(*new.inputs, *pass_.found.items()))


class _Places(Rewriter):
    def __init__(self, program: Program) -> None:
        super().__init__()
        self._sizes = {a.name: a.size for a in program.arguments}
        self._known = dict(program.inputs)
        self._constants: dict[Value, int] = {}
        self.found: dict[Place, Value] = {}

    def instr(self, instr: Instr) -> None:
        if instr.op == "const" and isinstance(instr.attr, int):
            self._constants[instr.result] = instr.attr
        if instr.op == "table" and instr.args[0] in self._constants:
            name = str(instr.attr)
            index = min(max(self._constants[instr.args[0]], 0), self._sizes[name] - 1)
            self.env[instr.result] = self._element(Place(name, index), instr)
        else:
            self.keep(instr)

    def _element(self, place: Place, instr: Instr) -> Value:
        if place in self._known:
            return self.env[self._known[place]]
        if place not in self.found:
            self.found[place] = Value(instr.result.type)
        return self.found[place]
