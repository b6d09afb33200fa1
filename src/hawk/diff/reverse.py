"""Reverse mode: the primal, then the transpose of its linearisation, last op first.

An `if` of the primal yields, beside its results, every value computed inside, so that its reverse (an `if`
on the same condition) recomputes nothing; what the reverse does not use is dropped by `drop_dead`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..ir.build import Builder
from ..ir.program import Instr, Region, Tape, Value, walk
from ..ir.types import Type
from .custom import custom_partials
from .errors import no_rule
from .loops import LoopTapes, Schedule, primal_loop, transpose_loop
from .partials import PARTIALS, Calculus, Gate, Linear, minus, note_constant, one, steep


class Adjoint(NamedTuple):
    """What flows back to a value. Outside `where` (None: everywhere) it is nothing, whatever slope it meets.

    So the side that a `select` did not choose contributes nothing, also when it is inf or NaN. The adjoints
    of a loop's state flow everywhere.
    """

    value: Value
    where: Value | None = None


class Reverse:
    """Emits a primal body, untouched (`primal`), then the adjoints of what it read (`transpose`).

    `env` maps primal values to emitted ones, `adjoints` the active primal values to the adjoint gathered so
    far. `tables` maps a table to the table sum of its adjoint. `tapes` are those its loops were given.
    A `schedule` is for the loop `scheduled`, that of a run; its params are looked up in `params`.
    """

    def __init__(
        self,
        kernel: str,
        builder: Builder,
        active: set[Value],
        tables: dict[str, str],
        schedule: Schedule | None = None,
        scheduled: Instr | None = None,
        params: dict[str, Value] | None = None,
    ) -> None:
        self.kernel = kernel
        self.b = builder
        self.active = active
        self._tables = tables
        self.constants: dict[Value, float] = {}
        self.env: dict[Value, Value] = {}
        self.adjoints: dict[Value, Adjoint] = {}
        self.tapes: list[Tape] = []
        self.tapes_of: dict[Instr, LoopTapes] = {}
        self._schedule = schedule
        self._params = params or {}
        self._scheduled = scheduled

    def schedule_of(self, loop: Instr) -> Schedule | None:
        """The schedule of a loop: the run's for its own, none for those of a step."""
        return self._schedule if loop is self._scheduled else None

    def param(self, name: str) -> Value:
        return self._params[name]

    def new_tape(self, type: Type, capacity: int | str) -> str:
        self.tapes.append(Tape(f"tape{len(self.tapes)}", type, capacity))
        return self.tapes[-1].name

    # the primal

    def primal(self, body: Sequence[Instr]) -> None:
        for instr in body:
            self.b.span, self.b.frozen = instr.span, instr.frozen
            if instr.op == "if":
                self._primal_if(instr)
            elif instr.op == "custom" or (instr.op == "loop" and not self._goes_back(instr)):
                self.replay((instr,))
            elif instr.op == "loop":
                primal_loop(self, instr)
            elif instr.op != "scatter":  # a derivative writes adjoints only, not the primal's outputs
                types = [r.type for r in instr.results]
                new = self.b.emit(instr.op, [self.env[a] for a in instr.args], types, instr.attr)
                self.env.update(zip(instr.results, new, strict=True))
                note_constant(self.constants, self.b.body[-1])
        self.b.frozen = False

    def _goes_back(self, loop: Instr) -> bool:
        """Whether a loop is transposed, so that its trips have to be kept."""
        varies = any(r in self.active for r in loop.results)
        return varies or self.schedule_of(loop) is not None or self.scatters(loop)

    def replay(self, body: Sequence[Instr]) -> None:
        """Emit a primal body that is only run again to advance: nothing is kept for a reverse of it."""
        for instr in body:
            self.b.span, self.b.frozen = instr.span, instr.frozen
            if instr.op == "scatter":
                continue
            regions = tuple(self._replayed(r) for r in instr.regions)
            self.b.span, self.b.frozen = instr.span, instr.frozen
            types = [r.type for r in instr.results]
            new = self.b.emit(instr.op, [self.env[a] for a in instr.args], types, instr.attr, regions)
            self.env.update(zip(instr.results, new, strict=True))
        self.b.frozen = False

    def _replayed(self, region: Region) -> Region:
        params = tuple(Value(p.type) for p in region.params)
        self.env.update(zip(region.params, params, strict=True))
        with self.b.block() as body:
            self.replay(region.body)
        return Region(params, tuple(body), tuple(self.env[y] for y in region.yields))

    def _primal_if(self, instr: Instr) -> None:
        bodies, insides = [], []
        for region in instr.regions:
            with self.b.block() as body:
                self.primal(region.body)
            bodies.append(body)
            insides.append(_defined(region.body))
        then, other = instr.regions
        regions = []
        for region, body, first in ((then, bodies[0], True), (other, bodies[1], False)):
            with self.b.block() as tail:
                exports = [self.env[v] if first else self.nothing(v.type) for v in insides[0]]
                exports += [self.nothing(v.type) if first else self.env[v] for v in insides[1]]
            yields = (*(self.env[y] for y in region.yields), *exports)
            regions.append(Region((), (*body, *tail), yields))
        self.b.span, self.b.frozen = instr.span, instr.frozen
        new = self.b.if_(self.env[instr.args[0]], *regions)
        self.env.update(zip((*instr.results, *insides[0], *insides[1]), new, strict=True))

    def nothing(self, type: Type) -> Value:
        return self.b.const(False if type is Type.BOOL else 0.0 if type.is_real else 0, type)

    # its transpose

    def give(self, value: Value, adjoint: Value, where: Value | None = None) -> None:
        """Add a contribution to the adjoint of `value`, if it is one that varies."""
        if value not in self.active:
            return
        known = self.adjoints.get(value)
        if known is not None:
            adjoint = self.b("add", known.value, adjoint)
            where = self.b("or", where, known.where) if where is not None and known.where is not None else None
        self.adjoints[value] = Adjoint(adjoint, where)

    def transpose(self, body: Sequence[Instr]) -> None:
        for instr in reversed(body):
            self.b.span = instr.span
            if instr.op == "if":
                self._transpose_if(instr)
            elif instr.op == "loop":
                transpose_loop(self, instr)
            elif instr.op == "custom":
                self._transpose_custom(instr)
            elif instr.op == "scatter":
                self._transpose_scatter(instr)
            elif instr.result in self.adjoints:
                self._transpose_scalar(instr, self.adjoints.pop(instr.result))

    def _transpose_scalar(self, instr: Instr, adjoint: Adjoint) -> None:
        if instr.op == "table":
            self.b.scatter(self._tables[str(instr.attr)], self.env[instr.args[0]], adjoint.value)
            return
        row = PARTIALS.get(instr.op)
        if row is None:
            raise no_rule(instr, self.kernel)
        args = tuple(self.env[a] for a in instr.args)
        linears = row(Calculus(self.b, self.constants), args, self.env[instr.result])
        for arg, linear in zip(instr.args, linears, strict=True):
            if linear is not None and arg in self.active:
                self.give(arg, *self._pulled(linear, adjoint))

    def _transpose_custom(self, instr: Instr) -> None:
        seeds = {r: self.adjoints.pop(r) for r in instr.results if r in self.adjoints}
        if not seeds:
            return
        for result, argument, partial in custom_partials(self.b, instr, self.env):
            if result in seeds and argument in self.active:
                self.give(argument, *self._pulled(steep(partial), seeds[result]))

    def _pulled(self, linear: Linear, adjoint: Adjoint) -> Adjoint:
        """An adjoint through a linear map, and still nothing outside its `where`."""
        b, where = self.b, adjoint.where
        value = linear(b, adjoint.value)
        if isinstance(linear, Gate):
            return Adjoint(value, linear.condition if where is None else b("and", where, linear.condition))
        if where is not None and linear not in (one, minus):
            value = b.select(where, value, b.const(0.0, value.type))
        return Adjoint(value, where)

    def _transpose_scatter(self, instr: Instr) -> None:
        """A scatter adds a value to a table sum; the value's adjoint is the seed at that index."""
        index, value = instr.args
        if value in self.active:
            seeds = self._tables[str(instr.attr)]
            self.give(value, self.b.table(seeds, self.env[index], value.type))

    def scatters(self, instr: Instr) -> bool:
        """Whether a structured instruction adds to a table sum, whose seeds are no adjoint of a result."""
        return any(i.op == "scatter" for r in instr.regions for i in walk(r.body))

    def _transpose_if(self, instr: Instr) -> None:
        seeds = {k: self.adjoints.pop(r) for k, r in enumerate(instr.results) if r in self.adjoints}
        if not seeds and not self.scatters(instr):
            return
        outer, found = self.adjoints, []
        for region in instr.regions:
            inside = _defined(region.body)
            with self.b.block() as body:
                self.adjoints = {}
                for k, seed in seeds.items():
                    self.give(region.yields[k], *seed)
                self.transpose(region.body)
            found.append((body, {v: a for v, a in self.adjoints.items() if v not in inside}))
        self.adjoints = outer
        self.b.span = instr.span
        self.join(self.env[instr.args[0]], found)

    def join(self, condition: Value, sides: Sequence[tuple[list[Instr], dict[Value, Adjoint]]]) -> None:
        """Give what the two sides of an `if` found for the values from outside."""
        gathered = [adjoints for _, adjoints in sides]
        values = list(dict.fromkeys(v for adjoints in gathered for v in adjoints))
        partly = [v for v in values if any(v in a and a[v].where is not None for a in gathered)]
        regions = []
        for body, adjoints in sides:
            with self.b.block() as tail:
                yields = [adjoints[v].value if v in adjoints else self.nothing(v.type) for v in values]
                for v in partly:
                    where = adjoints[v].where if v in adjoints else self.nothing(Type.BOOL)
                    yields.append(where if where is not None else self.b.const(True, Type.BOOL))
            regions.append(Region((), (*body, *tail), tuple(yields)))
        results = self.b.if_(condition, *regions)
        wheres = dict(zip(partly, results[len(values) :], strict=True))
        for value, adjoint in zip(values, results, strict=False):
            self.give(value, adjoint, wheres.get(value))


def _defined(body: Sequence[Instr]) -> list[Value]:
    """The values a block defines at its own level (what nested regions compute is exported to it)."""
    inside: dict[Value, None] = {}
    for instr in body:
        if instr.op == "if":
            for region in instr.regions:
                inside.update(dict.fromkeys(_defined(region.body)))
        inside.update(dict.fromkeys(instr.results))
    return list(inside)
