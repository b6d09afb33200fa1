"""Runs until done, as programs: a step in a loop that each sample leaves when it is done.

The step's frozen ops are embedded untouched, so a run has the bits of its steps launched one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
        b = Builder()
        loop = emit_loop(b, self.step, real)
        return freeze(drop_dead(run_program(self.name, b, loop, loop.ends, ())))


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """The loop of a run as it was emitted: what it reads, and values by place of the state."""

    step: Program
    inputs: dict[Place, Value]
    done: Place | None  # the stop flag
    ends: dict[Place, Value]  # after the last step
    previous: dict[Place, Value]  # before the last step
    steps: Value  # taken in all


def state_arguments(step: Program) -> list[Argument]:
    """What a run carries from step to step: every Mutable of the step, and its stop flag."""
    return [a for a in step.arguments if a.role in (Role.MUTABLE, Role.TERMINATED)]


def emit_loop(b: Builder, definition: Definition, real: Type) -> Loop:
    """Emit the loop of a run. Carried values that nothing uses are left to `drop_dead`."""
    step, entry = definition.program(real), definition.entry_rule
    state = state_arguments(step)
    kinds = {Place(a.name, k): a.type for a in state for k in range(a.size)}
    done = next((Place(a.name, 0) for a in state if a.role is Role.TERMINATED), None)
    inputs = {place: Value(value.type) for place, value in step.inputs if place not in kinds}
    inputs |= {place: Value(kind) for place, kind in kinds.items()}
    taken = inputs[Place(STEPS, 0)] = Value(Type.I32)
    limit = inputs[Place(LIMIT, 0)] = Value(Type.I32)
    start = [inputs[place] for place in kinds]

    trip, now, before = Value(Type.I32), *({p: Value(k) for p, k in kinds.items()} for _ in range(2))
    with b.block() as body:
        new, _ = inline(b, step, inputs | now)
        after = {place: new.get(place, now[place]) for place in kinds}
        more = b.const(True, Type.BOOL) if done is None else b("not", after[done])
    region = Region((trip, *now.values(), *before.values()), tuple(body), (more, *after.values(), *now.values()))
    again = b.const(True, Type.BOOL) if done is None else b("not", inputs[done])
    asked = None
    if entry is not None and done is not None:
        asked = inline(b, entry.program(real), inputs)[0][done]
        again = b("and", again, b("not", asked))
    trips, *found = b.loop(b("sub", limit, taken), again, [*start, *start], region)
    ends, previous = (dict(zip(kinds, part, strict=True)) for part in (found[: len(kinds)], found[len(kinds) :]))
    if asked is not None and done is not None:
        ends[done] = b("or", ends[done], asked)
    return Loop(step, inputs, done, ends, previous, b("add", taken, trips))


def run_program(
    name: str, b: Builder, loop: Loop, ends: Mapping[Place, Value], more: tuple[tuple[Argument, Value], ...]
) -> Program:
    """The program of a run that leaves `ends` in its state, and writes the values of `more` arguments."""
    plain = [replace(a, role=Role.MUTABLE) if a.role is Role.TERMINATED else a for a in loop.step.arguments]
    own = [Argument(STEPS, Role.MUTABLE, (), Type.I32), Argument(LIMIT, Role.PARAM, (), Type.I32)]
    outputs = [*ends.items(), (Place(STEPS, 0), loop.steps), *((Place(a.name, 0), v) for a, v in more)]
    arguments = (*plain, *own, *(a for a, _ in more))
    return Program(name, arguments, tuple(loop.inputs.items()), tuple(b.body), tuple(outputs))


def inline(b: Builder, step: Program, inputs: Mapping[Place, Value]) -> tuple[dict[Place, Value], dict[Value, Value]]:
    """Emit the ops of a step, as they are, on other inputs: its outputs by place, and the values it made."""
    env = {value: inputs[place] for place, value in step.inputs}
    b.body += [_renamed(instr, env) for instr in step.body]
    return {place: env[value] for place, value in step.outputs}, env


def _renamed(instr: Instr, env: dict[Value, Value]) -> Instr:
    """An instruction with its arguments looked up and its results new."""

    def new(value: Value) -> Value:
        env[value] = Value(value.type)
        return env[value]

    def region(r: Region) -> Region:
        params = tuple(new(p) for p in r.params)
        body = tuple(_renamed(i, env) for i in r.body)
        return Region(params, body, tuple(env[y] for y in r.yields))

    args, regions = tuple(env[a] for a in instr.args), tuple(region(r) for r in instr.regions)
    return replace(instr, args=args, regions=regions, results=tuple(new(r) for r in instr.results))
