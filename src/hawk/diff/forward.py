"""Forward mode: every primal op followed by its tangent."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.build import Builder
from ..ir.program import Instr, Region, Value
from ..ir.types import Type
from .custom import custom_partials
from .errors import no_rule
from .partials import PARTIALS, STEEP, Calculus, Linear, Scale, note_constant, steep

Tangents = dict[Value, Value]
_SUMS = frozenset({"add", "sub", "neg", "pin"})


class Forward:
    """Emits a primal body, untouched, and its tangents.

    `env` maps primal values to emitted ones; `tangents` maps the active primal values to theirs (an active
    value without an entry has tangent zero). `tables` maps a table to the table of its tangent, and a tape
    to the tape of its tangents; `stored` gathers the tapes whose tangents are kept.
    """

    def __init__(self, kernel: str, builder: Builder, active: set[Value], tables: dict[str, str]) -> None:
        self._kernel = kernel
        self._b = builder
        self._active = active
        self._tables = tables
        self._constants: dict[Value, float] = {}
        self.env: dict[Value, Value] = {}
        self.tangents: Tangents = {}
        self.stored: set[str] = set()
        self._steep: set[Value] = set()  # whose tangent may be infinite

    def block(self, body: Sequence[Instr]) -> None:
        for instr in body:
            self._b.span = instr.span
            if instr.op == "if":
                self._if(instr)
            elif instr.op == "loop":
                self._loop(instr)
            elif instr.op == "custom":
                self._custom(instr)
            else:
                self._scalar(instr)

    def tangent(self, value: Value) -> Value:
        """The tangent of a primal value, a constant zero if it has none."""
        found = self.tangents.get(value)
        return found if found is not None else self._b.const(0.0, value.type)

    def _clone(self, instr: Instr) -> None:
        b = self._b
        b.frozen = instr.frozen
        types = [r.type for r in instr.results]
        new = b.emit(instr.op, [self.env[a] for a in instr.args], types, instr.attr, instr.regions)
        b.frozen = False
        self.env.update(zip(instr.results, new, strict=True))
        note_constant(self._constants, b.body[-1])

    def _custom(self, instr: Instr) -> None:
        self._clone(instr)
        if self.tangents.keys().isdisjoint(instr.args):
            return
        for result, argument, partial in custom_partials(self._b, instr, self.env):
            if argument in self.tangents:
                factors = partial, self.tangents[argument]
                slope, variation = reversed(factors) if argument in self._steep else factors
                term, total = steep(slope)(self._b, variation), self.tangents.get(result)
                self.tangents[result] = term if total is None else self._b("add", total, term)
                self._steep.add(result)

    def _scalar(self, instr: Instr) -> None:
        if instr.op == "scatter":  # a derivative writes tangents only, not the primal's outputs
            if instr.args[1] in self.tangents:
                target = self._tables[str(instr.attr)]
                self._b.scatter(target, self.env[instr.args[0]], self.tangents[instr.args[1]])
            return
        self._clone(instr)
        if instr.op == "store":
            if instr.args[1].type.is_real:
                self.stored.add(str(instr.attr))
                tape = self._tables[str(instr.attr)]
                self._b.store(tape, self.env[instr.args[0]], self.tangent(instr.args[1]))
            return
        if instr.op in ("table", "load"):
            if instr.result in self._active:
                read = self._b.table if instr.op == "table" else self._b.load
                source = self._tables[str(instr.attr)]
                self.tangents[instr.result] = read(source, self.env[instr.args[0]], instr.result.type)
            return
        if instr.result not in self._active or self.tangents.keys().isdisjoint(instr.args):
            return
        self.tangents[instr.result] = self._pushed(instr)

    def _pushed(self, instr: Instr) -> Value:
        row = PARTIALS.get(instr.op)
        if row is None:
            raise no_rule(instr, self._kernel)
        args = tuple(self.env[a] for a in instr.args)
        linears = row(Calculus(self._b, self._constants), args, self.env[instr.result])
        total: Value | None = None
        if instr.op in STEEP or self._stays_steep(instr):
            self._steep.add(instr.result)
        for arg, linear in zip(instr.args, linears, strict=True):
            if linear is not None and arg in self.tangents:
                term = self._term(linear, arg)
                total = term if total is None else self._b("add", total, term)
        return total if total is not None else self._b.const(0.0, instr.result.type)

    def _stays_steep(self, instr: Instr) -> bool:
        """Whether it is a sum or a multiple of a value whose tangent may be infinite.

        Products of two values are not followed further: few meet their factor again, and all would pay for it.
        """
        if self._steep.isdisjoint(instr.args):
            return False
        by_constant = any(self.env[a] in self._constants for a in instr.args[:2])
        return instr.op in _SUMS or (instr.op in ("mul", "fma") and (by_constant or instr.args[-1] in self._steep))

    def _term(self, linear: Linear, arg: Value) -> Value:
        """A tangent through a linear map; one that may be infinite, times a factor of exactly 0, is nothing."""
        tangent = self.tangents[arg]
        if isinstance(linear, Scale) and arg in self._steep:
            return steep(tangent)(self._b, linear.factor)
        return linear(self._b, tangent)

    def _if(self, instr: Instr) -> None:
        moving = [k for k, r in enumerate(instr.results) if r in self._active]
        regions = []
        for region in instr.regions:
            with self._b.block() as body:
                self.block(region.body)
                yields = [self.env[y] for y in region.yields] + [self.tangent(region.yields[k]) for k in moving]
            regions.append(Region((), tuple(body), tuple(yields)))
        self._b.span, self._b.frozen = instr.span, instr.frozen
        new = self._b.if_(self.env[instr.args[0]], *regions)
        self._b.frozen = False
        self._bind(instr.results, moving, new)

    def _loop(self, instr: Instr) -> None:
        (region,) = instr.regions
        moving = [k for k, p in enumerate(region.params[1:]) if p in self._active]
        starts = [self.env[a] for a in instr.args[2:]] + [self.tangent(instr.args[2 + k]) for k in moving]
        params = [Value(Type.I32), *(Value(v.type) for v in starts)]
        count = len(region.params)
        self.env.update(zip(region.params, params[:count], strict=True))
        self.tangents.update((region.params[1 + k], p) for k, p in zip(moving, params[count:], strict=True))
        with self._b.block() as body:
            self.block(region.body)
            yields = [self.env[y] for y in region.yields]
            yields += [self.tangent(region.yields[1 + k]) for k in moving]
        self._b.span, self._b.frozen = instr.span, instr.frozen
        limit, again = (self.env[a] for a in instr.args[:2])
        new = self._b.loop(limit, again, starts, Region(tuple(params), tuple(body), tuple(yields)))
        self._b.frozen = False
        self._bind(instr.results, [1 + k for k in moving], new)

    def _bind(self, results: Sequence[Value], moving: Sequence[int], new: Sequence[Value]) -> None:
        self.env.update(zip(results, new[: len(results)], strict=True))
        self.tangents.update((results[k], t) for k, t in zip(moving, new[len(results) :], strict=True))
