"""Several kernels as one step: each reads what the ones before it wrote, by the names of their planes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

from .ir.build import Builder
from .ir.definition import Definition
from .ir.passes import drop_dead, freeze
from .ir.program import Argument, Place, Program, Role, Value
from .ir.types import Type
from .run import inline

_WRITTEN = frozenset({Role.MUTABLE, Role.TERMINATED})


@final
class Composed(Definition):
    """The step that runs other steps in a row. Their ops are embedded as they are, so the bits are those of
    launching them one after the other.

    `until` is a kernel that only says, by its Terminated, whether a sample is done: it comes last, and a run
    asks it before its first step too.

    Raises ValueError for an argument that two of them declare differently.
    """

    def __init__(self, steps: Sequence[Definition], until: Definition | None = None) -> None:
        super().__init__("_".join(s.name for s in steps))
        self.steps = (*steps, until) if until is not None else tuple(steps)
        self.entry_rule = until
        self.program(self.precisions[0])  # what does not fit together is an error here

    @property
    def precisions(self) -> tuple[Type, ...]:
        return tuple(t for t in self.steps[0].precisions if all(t in s.precisions for s in self.steps))

    def __reduce__(self) -> tuple[Any, ...]:
        steps = self.steps if self.entry_rule is None else self.steps[:-1]
        return Composed, (steps, self.entry_rule)

    def make(self, real: Type) -> Program:
        programs = [s.program(real) for s in self.steps]
        arguments = _merged(programs)
        b = Builder()
        inputs: dict[Place, Value] = {}
        now: dict[Place, Value] = {}
        for program in programs:
            for place, value in program.inputs:
                if place not in now:
                    now[place] = inputs[place] = Value(value.type)
            outputs, _ = inline(b, program, now)
            now |= outputs
        written = [a.name for a in arguments if a.role in _WRITTEN]
        ends = tuple((place, value) for place, value in now.items() if place.argument in written)
        order = {a.name: k for k, a in enumerate(arguments)}
        ends = tuple(sorted(ends, key=lambda e: (order[e[0].argument], e[0].component)))
        return freeze(drop_dead(Program(self.name, arguments, tuple(inputs.items()), tuple(b.body), ends)))


def _merged(programs: Sequence[Program]) -> tuple[Argument, ...]:
    """The arguments of all, each once; a plane that one writes is written."""
    found: dict[str, Argument] = {}
    for program in programs:
        for a in program.arguments:
            known = found.setdefault(a.name, a)
            if known == a:
                continue
            if (known.shape, known.type, known.samples_first) != (a.shape, a.type, a.samples_first) or not _agree(
                known, a
            ):
                raise ValueError(
                    f"{program.name} declares {a.name} as {a.role.value} {a.shape} {a.type.value}, a step before it "
                    f"as {known.role.value} {known.shape} {known.type.value}; steps of one run agree on their planes"
                )
            found[a.name] = replace(known, role=known.role if known.role in _WRITTEN else a.role)
    return tuple(found.values())


def _agree(a: Argument, b: Argument) -> bool:
    """Whether one role can stand for both: a plane may be read by one step and written by another."""
    planes = _WRITTEN | {Role.SAMPLE}
    return a.role is b.role or (a.role in planes and b.role in planes)
