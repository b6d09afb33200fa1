"""Runs until done, as programs: a step in a loop that each sample leaves when it is done.

The step's frozen ops are embedded untouched, so a run has the bits of its steps launched one by one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

from .ir.build import Builder
from .ir.definition import Definition
from .ir.passes import drop_dead, freeze
from .ir.program import Argument, Instr, Place, Program, Region, Role, Value
from .ir.types import Type

STEPS = "_steps"  # Mutable I32: the steps a sample has taken
LIMIT = "_limit"  # Param I32: it takes no step beyond this many


@final
class Run(Definition):
    """The run of a step: until its Terminated is set, or `_limit` steps are taken.

    Every Mutable of the step is state: read at the start, written at the end. Beside the step's arguments a
    run has ``_steps`` (counted on from what it holds, so that a run can be taken up again) and ``_limit``.
    """

    def __init__(self, step: Definition) -> None:
        super().__init__(f"{step.name}_run")
        self.step = step

    @property
    def precisions(self) -> tuple[Type, ...]:
        return self.step.precisions

    def __reduce__(self) -> tuple[Any, ...]:
        return Run, (self.step,)

    def make(self, real: Type) -> Program:
        return freeze(drop_dead(_run(self.name, self.step.program(real))))


def _run(name: str, step: Program) -> Program:
    b = Builder()
    state = [a for a in step.arguments if a.role in (Role.MUTABLE, Role.TERMINATED)]
    places = [Place(a.name, k) for a in state for k in range(a.size)]
    kinds = {a.name: a.type for a in state}
    done_place = next((Place(a.name, 0) for a in state if a.role is Role.TERMINATED), None)
    start = {place: Value(kinds[place.argument]) for place in places}
    taken, limit = Value(Type.I32), Value(Type.I32)
    inputs = [(place, value) for place, value in step.inputs if place.argument not in kinds]
    inputs += [*start.items(), (Place(STEPS, 0), taken), (Place(LIMIT, 0), limit)]

    rest = b("sub", limit, taken)
    again = b.const(True, Type.BOOL) if done_place is None else b("not", start[done_place])
    trip, carried = Value(Type.I32), {place: Value(kinds[place.argument]) for place in places}
    env = {value: carried[place] for place, value in step.inputs if place.argument in kinds}
    with b.block() as body:
        b.body += [_rebound(i, env) for i in step.body]
        new = {place: env.get(value, value) for place, value in step.outputs}
        more = b.const(True, Type.BOOL) if done_place is None else b("not", new[done_place])
    region = Region((trip, *carried.values()), tuple(body), (more, *(new[p] for p in places)))
    trips, *ends = b.loop(rest, again, list(start.values()), region)
    total = b("add", taken, trips)
    outputs = (*zip(places, ends, strict=True), (Place(STEPS, 0), total))
    arguments = tuple(replace(a, role=Role.MUTABLE) if a.role is Role.TERMINATED else a for a in step.arguments)
    own = (Argument(STEPS, Role.MUTABLE, (), Type.I32), Argument(LIMIT, Role.PARAM, (), Type.I32))
    return Program(name, (*arguments, *own), tuple(inputs), tuple(b.body), tuple(outputs))


def _rebound(instr: Instr, env: dict[Value, Value]) -> Instr:
    """An instruction of the step with its state inputs replaced by the carried values."""

    def region(r: Region) -> Region:
        body = tuple(_rebound(i, env) for i in r.body)
        return Region(r.params, body, tuple(env.get(y, y) for y in r.yields))

    args = tuple(env.get(a, a) for a in instr.args)
    return replace(instr, args=args, regions=tuple(region(r) for r in instr.regions))
