"""Remove what no output needs."""

from __future__ import annotations

from collections.abc import Iterable

from ..program import Instr, Program, Region, Value, walk


def drop_dead(program: Program) -> Program:
    """`program` without unused instructions, inputs, tapes, `if` results and carried values.

    No value changes. A store counts as used while its tape is loaded; dropping a load can make more stores
    dead, so the sweep is repeated until nothing is dropped.
    """
    while True:
        loaded = {i.attr for i in walk(program.body) if i.op == "load"}
        body, live = _Sweep(loaded).run(program)
        kept = tuple(t for t in program.tapes if t.name in loaded)
        sizes = {t.capacity for t in kept}  # params that a tape is as long as
        inputs = tuple((p, v) for p, v in program.inputs if v in live or p.argument in sizes)
        program = program.with_(body=body, inputs=inputs, tapes=kept)
        if loaded == {i.attr for i in walk(body) if i.op == "load"}:
            return program


class _Sweep:
    def __init__(self, loaded: set[object]) -> None:
        self._loaded = loaded
        self._acting: dict[int, bool] = {}

    def run(self, program: Program) -> tuple[tuple[Instr, ...], set[Value]]:
        live: set[Value] = {value for _, value in program.outputs}
        return self._block(program.body, live), live

    def _acts(self, instr: Instr) -> bool:
        """Whether it does something beside its results."""
        if instr.op == "scatter" or (instr.op == "store" and instr.attr in self._loaded):
            return True
        if not instr.regions:
            return False
        key = id(instr)
        if key not in self._acting:
            self._acting[key] = any(self._acts(i) for r in instr.regions for i in r.body)
        return self._acting[key]

    def _block(self, body: tuple[Instr, ...], live: set[Value]) -> tuple[Instr, ...]:
        kept = []
        for instr in reversed(body):
            if not self._acts(instr) and live.isdisjoint(instr.results):
                continue
            if instr.op == "if":
                instr = self._if(instr, live)
            elif instr.op == "loop":
                instr = self._loop(instr, live)
            live.update(instr.args)
            kept.append(instr)
        return tuple(reversed(kept))

    def _pruned(self, region: Region, params: tuple[Value, ...], yields: Iterable[Value], live: set[Value]) -> Region:
        yields = tuple(yields)
        live.update(yields)
        return Region(params, self._block(region.body, live), yields)

    def _if(self, instr: Instr, live: set[Value]) -> Instr:
        keep = [k for k, r in enumerate(instr.results) if r in live]
        regions = tuple(self._pruned(r, (), [r.yields[k] for k in keep], live) for r in instr.regions)
        results = tuple(instr.results[k] for k in keep)
        return Instr(instr.op, instr.args, results, None, regions, instr.span, instr.frozen)

    def _loop(self, instr: Instr, live: set[Value]) -> Instr:
        """A carried value is needed if its result is, or if a needed yield is computed from it."""
        (region,) = instr.regions
        needed = {k for k, r in enumerate(instr.results[1:]) if r in live}
        while True:
            inside = set(live) | {region.yields[0]} | {region.yields[1 + k] for k in needed}
            self._block(region.body, inside)
            more = {k for k, p in enumerate(region.params[1:]) if p in inside}
            if more <= needed:
                break
            needed |= more
        keep = sorted(needed)
        params = (region.params[0], *(region.params[1 + k] for k in keep))
        yields = (region.yields[0], *(region.yields[1 + k] for k in keep))
        args = (*instr.args[:2], *(instr.args[2 + k] for k in keep))
        results = (instr.results[0], *(instr.results[1 + k] for k in keep))
        body = self._pruned(region, params, yields, live)
        return Instr(instr.op, args, results, None, (body,), instr.span, instr.frozen)
