"""How the op `custom` varies: as its own region says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..ir.build import Builder
from ..ir.passes.rewrite import Rewriter
from ..ir.program import Instr, Value


def custom_partials(b: Builder, instr: Instr, env: Mapping[Value, Value]) -> Iterator[tuple[Value, Value, Value]]:
    """Emit the partials: each result and real argument of the primal op, with the partial of the one by the other.

    It need not be finite.
    """
    count = len(instr.results)
    (region,) = instr.regions
    copy = Rewriter()
    copy.out = b.body
    copy.env.update(zip(region.params, (env[v] for v in (*instr.args[count:], *instr.results)), strict=True))
    copy.block(region.body)
    partials = iter([copy.env[y] for y in region.yields])
    for result in instr.results:
        for argument in instr.args[count:]:
            if argument.type.is_real:
                yield result, argument, next(partials)
