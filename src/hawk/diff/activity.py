"""Which values vary with the inputs one differentiates by."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.program import Instr, Region, Value
from .partials import FLAT


def active_values(body: tuple[Instr, ...], seeds: Iterable[Value], tables: frozenset[str]) -> set[Value]:
    """Every real value that depends on `seeds` or on an element of `tables` by differentiable ops."""
    active = {value for value in seeds if value.type.is_real}
    memory = set(tables)
    while True:  # what a loop carries, or a tape holds, may reach what stands before it
        before = len(active), len(memory)
        _block(body, active, memory)
        if (len(active), len(memory)) == before:
            return active


def _block(body: tuple[Instr, ...], active: set[Value], memory: set[str]) -> None:
    for instr in body:
        if instr.op == "if":
            for region in instr.regions:
                _block(region.body, active, memory)
            _join(instr.results, instr.regions, active)
        elif instr.op == "loop":
            _loop(instr, active, memory)
        elif instr.op in ("table", "load"):
            if instr.attr in memory and instr.result.type.is_real:
                active.add(instr.result)
        elif instr.op == "store":
            if instr.args[1] in active:
                memory.add(str(instr.attr))
        elif instr.op not in FLAT and any(a in active for a in instr.args):
            active.update(r for r in instr.results if r.type.is_real)


def _join(results: tuple[Value, ...], regions: tuple[Region, ...], active: set[Value]) -> None:
    for k, result in enumerate(results):
        if any(region.yields[k] in active for region in regions):
            active.add(result)


def _loop(instr: Instr, active: set[Value], memory: set[str]) -> None:
    """Carried values feed each other: `active_values` repeats until nothing is added."""
    (region,) = instr.regions
    carried = list(zip(region.params[1:], instr.args[2:], region.yields[1:], instr.results[1:], strict=True))
    active.update(param for param, start, _, _ in carried if start in active)
    _block(region.body, active, memory)
    active.update(param for param, _, following, _ in carried if following in active)
    active.update(result for param, _, _, result in carried if param in active)
