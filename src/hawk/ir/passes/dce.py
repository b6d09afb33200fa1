"""Remove what no output needs."""

from __future__ import annotations

from collections.abc import Iterable

from ..program import Instr, Program, Region, Value, walk


def drop_dead(program: Program) -> Program:
    """`program` without unused instructions, inputs, `if` results and carried values. No value changes."""
    live: set[Value] = {value for _, value in program.outputs}
    body = _block(program.body, live)
    return program.with_(body=body, inputs=tuple((p, v) for p, v in program.inputs if v in live))


def _block(body: tuple[Instr, ...], live: set[Value]) -> tuple[Instr, ...]:
    kept = []
    for instr in reversed(body):
        new = _instr(instr, live)
        if new is not None:
            live.update(new.args)
            kept.append(new)
    return tuple(reversed(kept))


def _instr(instr: Instr, live: set[Value]) -> Instr | None:
    acts = instr.op == "scatter" or any(i.op == "scatter" for r in instr.regions for i in walk(r.body))
    if not acts and live.isdisjoint(instr.results):
        return None
    if instr.op == "if":
        return _if(instr, live)
    if instr.op == "loop":
        return _loop(instr, live)
    return instr


def _if(instr: Instr, live: set[Value]) -> Instr:
    keep = [k for k, r in enumerate(instr.results) if r in live]
    regions = tuple(_pruned(r, (), [r.yields[k] for k in keep], live) for r in instr.regions)
    return Instr(instr.op, instr.args, _pick(instr.results, keep), None, regions, instr.span, instr.frozen)


def _pruned(region: Region, params: tuple[Value, ...], yields: Iterable[Value], live: set[Value]) -> Region:
    yields = tuple(yields)
    live.update(yields)
    return Region(params, _block(region.body, live), yields)


def _loop(instr: Instr, live: set[Value]) -> Instr:
    """A carried value is needed if its result is, or if a needed yield is computed from it."""
    (region,) = instr.regions
    needed = {k for k, r in enumerate(instr.results[1:]) if r in live}
    while True:
        inside = set(live) | {region.yields[0]} | {region.yields[1 + k] for k in needed}
        _block(region.body, inside)
        more = {k for k, p in enumerate(region.params[1:]) if p in inside}
        if more <= needed:
            break
        needed |= more
    keep = sorted(needed)
    params = (region.params[0], *(region.params[1 + k] for k in keep))
    yields = (region.yields[0], *(region.yields[1 + k] for k in keep))
    args = (*instr.args[:2], *(instr.args[2 + k] for k in keep))
    results = (instr.results[0], *(instr.results[1 + k] for k in keep))
    body = _pruned(region, params, yields, live)
    return Instr(instr.op, args, results, None, (body,), instr.span, instr.frozen)


def _pick(values: tuple[Value, ...], keep: list[int]) -> tuple[Value, ...]:
    return tuple(values[k] for k in keep)
