"""The invariants of a program, checked between passes in tests and once on every traced program."""

from __future__ import annotations

from .ops import OPS
from .program import Argument, Instr, Program, Region, Role, Value
from .types import Type

_READ = frozenset({Role.SAMPLE, Role.PARAM, Role.MUTABLE, Role.TERMINATED, Role.TABLE})
_WRITTEN = frozenset({Role.MUTABLE, Role.TERMINATED, Role.SUM})


class VerifyError(AssertionError):
    """A program breaks an invariant: a fault of hawk, never of the user."""


def verify(program: Program) -> Program:
    """Return `program`, or raise VerifyError naming the first broken invariant."""
    _Verifier(program).run()
    return program


class _Verifier:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._arguments = {a.name: a for a in program.arguments}
        self._tapes = {t.name: t for t in program.tapes}
        self._defined: set[Value] = set()  # in scope
        self._seen: set[Value] = set()

    def run(self) -> None:
        p = self._program
        self._need(len(self._arguments) == len(p.arguments), "two arguments share a name")
        self._need(len(self._tapes) == len(p.tapes), "two tapes share a name")
        for name in sorted(p.effects):
            known = name in self._arguments and self._arguments[name].role is Role.TABLE_SUM
            self._need(known, f"effects name {name}, which is no table sum")
        for place, value in p.inputs:
            self._place(place.argument, place.component, value, _READ)
            self._define(value)
        self._need(len({place for place, _ in p.inputs}) == len(p.inputs), "a place is read twice")
        self._block(p.body)
        written = [place for place, _ in p.outputs]
        self._need(len(set(written)) == len(written), "a place is written twice")
        for place, value in p.outputs:
            self._place(place.argument, place.component, value, _WRITTEN)
            self._use(value)
        for a in p.arguments:
            if a.role in _WRITTEN:
                count = sum(place.argument == a.name for place in written)
                self._need(count == a.size, f"{a.name} has {a.size} components, {count} are written")
        for name in p.returns:
            self._need(name in p.writes(), f"returns {name}, which is not written")

    def _need(self, holds: bool, what: str) -> None:
        if not holds:
            raise VerifyError(f"{self._program.name}: {what}")

    def _place(self, name: str, component: int, value: Value, roles: frozenset[Role]) -> None:
        argument: Argument | None = self._arguments.get(name)
        self._need(argument is not None, f"no argument {name}")
        assert argument is not None
        self._need(argument.role in roles, f"{name} is {argument.role.value}: it cannot stand here")
        self._need(0 <= component < argument.size, f"{name} has no component {component}")
        self._need(value.type is argument.type, f"{name} is {argument.type}, the value is {value.type}")

    def _define(self, value: Value) -> None:
        self._need(value not in self._seen, "a value is defined twice")
        self._seen.add(value)
        self._defined.add(value)

    def _use(self, value: Value) -> None:
        self._need(value in self._defined, "a value is used before it is defined, or outside its region")

    def _block(self, body: tuple[Instr, ...]) -> None:
        for instr in body:
            self._instr(instr)
            for result in instr.results:
                self._define(result)

    def _instr(self, instr: Instr) -> None:
        spec = OPS.get(instr.op)
        self._need(spec is not None, f"unknown op {instr.op}")
        assert spec is not None
        for arg in instr.args:
            self._use(arg)
        types = tuple(a.type for a in instr.args)
        if instr.op == "if":
            self._if(instr)
        elif instr.op == "loop":
            self._loop(instr)
        elif instr.op == "custom":
            self._custom(instr)
        else:
            self._need(not instr.regions, f"{instr.op} takes no region")
            silent = instr.op in ("scatter", "store")
            self._need(len(instr.results) == (0 if silent else 1), f"{instr.op} has {'no' if silent else 'one'} result")
            self._need(len(types) == spec.arity, f"{instr.op} takes {spec.arity} arguments, got {len(types)}")
            self._scalar(instr, types)

    def _scalar(self, instr: Instr, types: tuple[Type, ...]) -> None:
        if instr.op == "const":
            self._constant(instr.attr, instr.result.type)
        elif instr.op == "cast":
            pass  # from any type to any other
        elif instr.op == "sample":
            self._need(instr.result.type is Type.I64, "sample is an i64")
        elif instr.op in ("table", "scatter"):
            argument = self._arguments.get(str(instr.attr))
            role = Role.TABLE if instr.op == "table" else Role.TABLE_SUM
            self._need(argument is not None and argument.role is role, f"{instr.op}: no such table {instr.attr}")
            assert argument is not None
            self._need(types[0] is Type.I32, f"{instr.op} takes an i32 index")
            held = instr.result.type if instr.op == "table" else types[1]
            self._need(held is argument.type, f"{instr.op}: {argument.name} holds {argument.type}, not {held}")
            if instr.op == "scatter":
                self._need(argument.name in self._program.effects, f"{argument.name} is not among the effects")
        elif instr.op in ("load", "store"):
            tape = self._tapes.get(str(instr.attr))
            self._need(tape is not None, f"{instr.op}: no such tape {instr.attr}")
            assert tape is not None
            if isinstance(tape.capacity, str):
                rows = self._arguments.get(tape.capacity)
                given = rows is not None and rows.role is Role.PARAM and rows.type is Type.I32
                self._need(given, f"tape {tape.name}: its capacity {tape.capacity} is no i32 param")
            held = types[1] if instr.op == "store" else instr.result.type
            self._need(types[0] is Type.I32 and held is tape.type, f"{instr.op}: wrong types for tape {tape.name}")
        else:
            expected = OPS[instr.op].rule(types)
            self._need(expected is not None, f"{instr.op} cannot take {types}")
            self._need(instr.result.type is expected, f"{instr.op} gives {expected}, not {instr.result.type}")

    def _constant(self, number: object, type: Type) -> None:
        self._need(isinstance(number, (bool, int, float)), "a const needs a number")
        fits = type.is_real or isinstance(number, bool if type is Type.BOOL else int)
        self._need(fits, f"a const of {type} cannot be {number!r}")

    def _region(self, region: Region, what: str, types: tuple[Type, ...]) -> None:
        outer = set(self._defined)
        for param in region.params:
            self._define(param)
        self._block(region.body)
        for value in region.yields:
            self._use(value)
        found = tuple(v.type for v in region.yields)
        self._need(found == types, f"a region of {what} yields {found}, expected {types}")
        self._defined = outer

    def _if(self, instr: Instr) -> None:
        self._need(len(instr.args) == 1 and instr.args[0].type is Type.BOOL, "if takes one condition")
        self._need(len(instr.regions) == 2 and not any(r.params for r in instr.regions), "if has two plain regions")
        for region in instr.regions:
            self._region(region, "if", tuple(r.type for r in instr.results))

    def _loop(self, instr: Instr) -> None:
        types = tuple(a.type for a in instr.args)
        self._need(types[:2] == (Type.I32, Type.BOOL), "loop takes (limit, again, *carried)")
        self._need(tuple(r.type for r in instr.results) == (Type.I32, *types[2:]), "loop gives (trips, *carried)")
        self._need(len(instr.regions) == 1, "loop has one region")
        (region,) = instr.regions
        self._need(tuple(p.type for p in region.params) == (Type.I32, *types[2:]), "loop: wrong region parameters")
        self._region(region, "loop", (Type.BOOL, *types[2:]))

    def _custom(self, instr: Instr) -> None:
        count = len(instr.results)
        types = tuple(a.type for a in instr.args)
        values, given = types[:count], types[count:]
        self._need(count > 0 and all(t.is_real for t in values), "custom gives reals")
        self._need(tuple(r.type for r in instr.results) == values, "custom gives its first arguments")
        (region,) = instr.regions
        self._need(tuple(p.type for p in region.params) == given + values, "custom: wrong region parameters")
        outer, self._defined = self._defined, set()
        self._region(region, "custom", values[:1] * (count * sum(t.is_real for t in given)))
        self._defined = outer
