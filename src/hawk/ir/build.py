"""Building IR: one `Builder` appends typed instructions and opens regions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .ops import OPS
from .program import Instr, Region, Span, Value
from .types import Type


class Builder:
    """Appends instructions. ``b("sin", x)`` emits an op whose type its rule gives.

    `span` is attached to everything emitted until it is changed; `frozen` likewise.
    """

    def __init__(self, span: Span | None = None) -> None:
        self.body: list[Instr] = []
        self.span = span
        self.frozen = False

    def __call__(self, op: str, *args: Value) -> Value:
        """Emit `op`; TypeError, naming the types, if its rule does not accept them."""
        spec = OPS[op]
        if len(args) != spec.arity:
            raise TypeError(f"{op} takes {spec.arity} arguments, got {len(args)}")
        result = spec.rule(tuple(a.type for a in args))
        if result is None:
            raise TypeError(f"{op} cannot take ({', '.join(a.type.value for a in args)})")
        return self.emit(op, args, (result,))[0]

    def emit(
        self,
        op: str,
        args: Sequence[Value],
        types: Sequence[Type],
        attr: object = None,
        regions: Sequence[Region] = (),
    ) -> tuple[Value, ...]:
        results = tuple(Value(t) for t in types)
        self.body.append(Instr(op, tuple(args), results, attr, tuple(regions), self.span, self.frozen))
        return results

    def const(self, number: float | int | bool, type: Type) -> Value:
        return self.emit("const", (), (type,), attr=number)[0]

    def cast(self, value: Value, type: Type) -> Value:
        return value if value.type is type else self.emit("cast", (value,), (type,))[0]

    def select(self, condition: Value, chosen: Value, other: Value) -> Value:
        return self("select", condition, chosen, other)

    def table(self, argument: str, index: Value, type: Type) -> Value:
        """Element `index` (flat, I32) of a table."""
        return self.emit("table", (index,), (type,), attr=argument)[0]

    def scatter(self, argument: str, index: Value, value: Value) -> None:
        self.emit("scatter", (index, value), (), attr=argument)

    def load(self, tape: str, index: Value, type: Type) -> Value:
        return self.emit("load", (index,), (type,), attr=tape)[0]

    def store(self, tape: str, index: Value, value: Value) -> None:
        self.emit("store", (index, value), (), attr=tape)

    @contextmanager
    def block(self) -> Iterator[list[Instr]]:
        """Collect what is emitted inside into a list of its own, to become a region."""
        outer, self.body = self.body, []
        try:
            yield self.body
        finally:
            self.body = outer

    def if_(self, condition: Value, then: Region, other: Region) -> tuple[Value, ...]:
        return self.emit("if", (condition,), [v.type for v in then.yields], regions=(then, other))

    def loop(self, limit: Value, again: Value, carried: Sequence[Value], region: Region) -> tuple[Value, ...]:
        """Results are (trips as I32, *carried)."""
        types = [Type.I32, *(v.type for v in carried)]
        return self.emit("loop", (limit, again, *carried), types, regions=(region,))
