"""Rebuilding a program instruction by instruction: the frame that the passes share."""

from __future__ import annotations

from collections.abc import Iterable

from ..program import Instr, Program, Region, Value
from ..types import Type


class Rewriter:
    """Copies a program through `instr`; a pass overrides that and `type_of`.

    `env` maps old values to new ones. Subclasses append to `out` (with `keep` or directly) and bind results.
    """

    def __init__(self) -> None:
        self.env: dict[Value, Value] = {}
        self.out: list[Instr] = []

    def program(self, program: Program) -> Program:
        inputs = tuple((place, self.fresh(value)) for place, value in program.inputs)
        self.block(program.body)
        outputs = tuple((place, self.env[value]) for place, value in program.outputs)
        return program.with_(inputs=inputs, body=tuple(self.out), outputs=outputs)

    def type_of(self, type: Type) -> Type:
        return type

    def fresh(self, value: Value) -> Value:
        new = Value(self.type_of(value.type))
        self.env[value] = new
        return new

    def block(self, body: Iterable[Instr]) -> None:
        for instr in body:
            self.instr(instr)

    def instr(self, instr: Instr) -> None:
        self.keep(instr)

    def keep(self, instr: Instr, **changes: object) -> Instr:
        """Append `instr` with its arguments, regions and results renamed."""
        args = tuple(self.env[a] for a in instr.args)
        regions = tuple(self.region(r) for r in instr.regions)
        results = tuple(self.fresh(r) for r in instr.results)
        fields = dict(op=instr.op, attr=instr.attr, span=instr.span, frozen=instr.frozen) | changes
        new = Instr(args=args, results=results, regions=regions, **fields)  # type: ignore[arg-type]
        self.out.append(new)
        return new

    def region(self, region: Region) -> Region:
        outer, self.out = self.out, []
        params = tuple(self.fresh(p) for p in region.params)
        self.block(region.body)
        yields = tuple(self.env[y] for y in region.yields)
        body, self.out = tuple(self.out), outer
        return Region(params, body, yields)
