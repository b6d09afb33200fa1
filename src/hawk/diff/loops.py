"""Reversing a loop: its carried values are kept on tapes, all of them or as checkpoints.

A tape holds CAPACITY values. A loop of at most that many trips keeps every trip's start. A longer one keeps
every stride-th start while it runs; its reverse takes the segments last to first, runs each again from its
start onto a tape of the next level, and so on until every trip of a segment is kept. With L levels each
trip is computed at most L + 1 times and the memory is L tapes a carried value, whatever the number of trips
(multi-level checkpointing: Griewank & Walther, Evaluating Derivatives, 2nd ed., chapter 12).

The schedule is the same for all samples computed together (op ``most``), so that lanes read and write whole
rows; a sample with fewer trips sits out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from ..ir.program import Instr, Region, Value
from ..ir.types import Type
from .errors import DerivativeError

if TYPE_CHECKING:
    from .reverse import Reverse

_Body = Callable[[Value, list[Value]], list[Value]]  # (slot, state) -> new state

CAPACITY = 64
_MOST_LEVELS = 4
MOST_TRIPS = CAPACITY**_MOST_LEVELS


@dataclass(frozen=True, slots=True)
class Schedule:
    """How the one outermost loop of a run keeps its starts, with sizes given at each launch.

    `window` and `checkpoints` name I32 params. With both, every window-th start is kept while the run goes
    forward (there are `checkpoints` of them) and a window is run again onto a second tape; with the window
    alone every start is kept, `window` of them at most.
    """

    window: str
    checkpoints: str | None = None

    @property
    def params(self) -> tuple[str, ...]:
        return (self.window,) if self.checkpoints is None else (self.window, self.checkpoints)


@dataclass(frozen=True, slots=True)
class LoopTapes:
    """The tapes of one loop, by level and carried value, and what gave their sizes."""

    names: tuple[tuple[str, ...], ...]
    schedule: Schedule | None

    def stride(self, engine: Reverse, limit: Value) -> Value | None:
        """The trips between two starts on the first level (None: every start is kept); emits their computation.

        The loop and its reverse emit it each for itself: what one computes inside an `if`, the other cannot see.
        """
        if len(self.names) == 1:
            return None
        if self.schedule is not None:
            return engine.param(self.schedule.window)
        return _ceil_div(engine, engine.b("most", limit))


def primal_loop(engine: Reverse, instr: Instr) -> None:
    """Emit the loop, keeping what its reverse starts from."""
    b = engine.b
    (region,) = instr.regions
    limit, again = (engine.env[a] for a in instr.args[:2])
    b.frozen = False
    schedule = engine.schedule_of(instr)
    if schedule is None:
        sizes: tuple[int | str, ...] = (CAPACITY,) * _levels(engine, instr, limit)
    elif schedule.checkpoints is None:
        sizes = (schedule.window,)
    else:
        sizes = (schedule.checkpoints, schedule.window)
    names = tuple(tuple(engine.new_tape(p.type, size) for p in region.params[1:]) for size in sizes)
    engine.tapes_of[instr] = LoopTapes(names, schedule)
    stride = engine.tapes_of[instr].stride(engine, limit)
    b.frozen = instr.frozen
    params = tuple(Value(p.type) for p in region.params)
    engine.env.update(zip(region.params, params, strict=True))
    with b.block() as body:
        _keep(engine, names[0], params[0], stride, params[1:])
        engine.primal(region.body)
    yields = tuple(engine.env[y] for y in region.yields)
    b.span, b.frozen = instr.span, instr.frozen
    new = b.loop(limit, again, [engine.env[a] for a in instr.args[2:]], Region(params, tuple(body), yields))
    engine.env.update(zip(instr.results, new, strict=True))


def transpose_loop(engine: Reverse, instr: Instr) -> None:
    """Emit the loop's reverse and give its adjoints to what it read."""
    found = {k: engine.adjoints.pop(r) for k, r in enumerate(instr.results[1:]) if r in engine.adjoints}
    if not found and not engine.scatters(instr):
        return
    seeds = {k: adjoint.value for k, adjoint in found.items()}
    wheres = [adjoint.where for adjoint in found.values()]
    if engine.scatters(instr) or any(where is None for where in wheres):
        _LoopReverse(engine, instr).run(seeds)
        return
    # Nothing flows back outside these conditions: there the loop is not run back at all, whatever its slopes.
    somewhere = reduce(lambda a, b: engine.b("or", a, b), [w for w in wheres if w is not None])
    outer, engine.adjoints = engine.adjoints, {}
    with engine.b.block() as body:
        _LoopReverse(engine, instr).run(seeds)
    inner, engine.adjoints = engine.adjoints, outer
    engine.join(somewhere, [(body, inner), ([], {})])


def _levels(engine: Reverse, instr: Instr, limit: Value) -> int:
    number = engine.constants.get(limit)
    if number is None:
        return _MOST_LEVELS
    for level in range(1, _MOST_LEVELS + 1):
        if number <= CAPACITY**level:
            return level
    raise DerivativeError(
        f"{engine.kernel}: this loop may run {int(number)} trips, and a derivative can go back through at most "
        f"{MOST_TRIPS}. State a smaller cap: while hawk.bounded(condition, most)",
        instr.span,
    )


def _int(engine: Reverse, number: int) -> Value:
    return engine.b.const(number, Type.I32)


def _ceil_div(engine: Reverse, trips: Value) -> Value:
    """The stride that lets `trips` trips fit on one tape; at least 1."""
    b = engine.b
    more = b("floordiv", b("sub", trips, _int(engine, 1)), _int(engine, CAPACITY))
    return b("add", b("maximum", more, _int(engine, 0)), _int(engine, 1))


def _keep(engine: Reverse, tapes: Sequence[str], trip: Value, stride: Value | None, state: Sequence[Value]) -> None:
    """Store a trip's start if it is the first of its segment."""
    b = engine.b
    if stride is None:
        for tape, value in zip(tapes, state, strict=True):
            b.store(tape, trip, value)
        return
    slot = b("floordiv", trip, stride)
    with b.block() as body:
        for tape, value in zip(tapes, state, strict=True):
            b.store(tape, slot, value)
    b.if_(b("eq", b("mul", slot, stride), trip), Region((), tuple(body), ()), Region((), (), ()))


class _LoopReverse:
    """The nest of segment loops around one adjoint step.

    The state threaded through all of them is the adjoints of the carried values that vary, then the
    adjoints gathered so far for what the body reads from outside.
    """

    def __init__(self, engine: Reverse, instr: Instr) -> None:
        self._engine = engine
        self._instr = instr
        (self._region,) = instr.regions
        self._tapes = engine.tapes_of[instr]
        self._varying = [k for k, p in enumerate(self._region.params[1:]) if p in engine.active]
        self._captured = _captured(self._region, engine.active)

    def run(self, seeds: dict[int, Value]) -> None:
        engine, instr = self._engine, self._instr
        state = [seeds.get(k) or engine.nothing(self._region.params[1 + k].type) for k in self._varying]
        state += [engine.nothing(v.type) for v in self._captured]
        trips = engine.env[instr.results[0]]
        stride = self._tapes.stride(engine, engine.env[instr.args[0]])
        found = self._level(0, _int(engine, 0), trips, stride, state)
        found = self._refused_beyond(trips, found)
        for k, adjoint in zip(self._varying, found, strict=False):
            engine.give(instr.args[2 + k], adjoint)
        for value, adjoint in zip(self._captured, found[len(self._varying) :], strict=True):
            engine.give(value, adjoint)

    def _refused_beyond(self, trips: Value, adjoints: list[Value]) -> list[Value]:
        """NaN instead of adjoints where a limit only known at launch let more trips run than tapes can hold."""
        engine, b = self._engine, self._engine.b
        limit = engine.env[self._instr.args[0]]
        if self._tapes.schedule is not None or limit in engine.constants:
            return adjoints
        beyond = b("gt", trips, _int(engine, MOST_TRIPS))
        return [b.select(beyond, b.const(math.nan, a.type), a) for a in adjoints]

    def _backwards(self, count: Value, state: list[Value], body_of: _Body) -> list[Value]:
        """A loop over slots count-1 ... 0; a sample with fewer passes its state on."""
        b = self._engine.b
        bound = b("most", count)
        trip = Value(Type.I32)
        params = [Value(v.type) for v in state]
        with b.block() as body:
            slot = b("sub", b("sub", bound, trip), _int(self._engine, 1))
            with b.block() as inside:
                new = body_of(slot, params)
            takes_part = b("lt", slot, count)
            mixed = b.if_(takes_part, Region((), tuple(inside), tuple(new)), Region((), (), tuple(params)))
            again = b.const(True, Type.BOOL)
        region = Region((trip, *params), tuple(body), (again, *mixed))
        return list(b.loop(bound, b.const(True, Type.BOOL), state, region)[1:])

    def _level(self, level: int, base: Value, length: Value, stride: Value | None, state: list[Value]) -> list[Value]:
        """Reverse `length` trips from trip `base` on, whose starts lie on the tapes of `level`."""
        b, engine = self._engine.b, self._engine
        tapes = self._tapes.names[level]
        if stride is None:
            return self._backwards(length, state, lambda slot, s: self._step(tapes, slot, b("add", base, slot), s))
        count = b("add", b("floordiv", b("sub", length, _int(engine, 1)), stride), _int(engine, 1))
        last = level + 2 == len(self._tapes.names)

        def segment(slot: Value, state: list[Value]) -> list[Value]:
            first = b("mul", slot, stride)
            rest = b("maximum", b("minimum", b("sub", length, first), stride), _int(engine, 0))
            start = b("add", base, first)
            finer = None if last else _ceil_div(engine, b("most", rest))
            self._advance(tapes, slot, self._tapes.names[level + 1], start, rest, finer)
            return self._level(level + 1, start, rest, finer, state)

        return self._backwards(count, state, segment)

    def _loaded(self, tapes: Sequence[str], slot: Value) -> list[Value]:
        kinds = [p.type for p in self._region.params[1:]]
        return [self._engine.b.load(t, slot, kind) for t, kind in zip(tapes, kinds, strict=True)]

    def _advance(
        self, tapes: Sequence[str], slot: Value, onto: Sequence[str], base: Value, trips: Value, stride: Value | None
    ) -> None:
        """Run a segment again from its start, keeping starts for the next level."""
        engine, b, region = self._engine, self._engine.b, self._region
        starts = self._loaded(tapes, slot)
        trip, carried = Value(Type.I32), [Value(v.type) for v in starts]
        with b.block() as body:
            _keep(engine, onto, trip, stride, carried)
            engine.env[region.params[0]] = b("add", base, trip)
            engine.env.update(zip(region.params[1:], carried, strict=True))
            engine.replay(region.body)
            again = b.const(True, Type.BOOL)
        yields = (again, *(engine.env[y] for y in region.yields[1:]))
        b.loop(trips, b.const(True, Type.BOOL), starts, Region((trip, *carried), tuple(body), yields))

    def _step(self, tapes: Sequence[str], slot: Value, trip: Value, state: list[Value]) -> list[Value]:
        """The adjoint of one trip: recompute it from its start, then transpose it."""
        engine, region = self._engine, self._region
        engine.env[region.params[0]] = trip
        engine.env.update(zip(region.params[1:], self._loaded(tapes, slot), strict=True))
        engine.primal(region.body)
        outer, engine.adjoints = engine.adjoints, {}
        for k, adjoint in zip(self._varying, state, strict=False):
            engine.give(region.yields[1 + k], adjoint)
        engine.transpose(region.body)
        inner, engine.adjoints = {v: a.value for v, a in engine.adjoints.items()}, outer
        new = [inner.get(region.params[1 + k]) or engine.nothing(region.params[1 + k].type) for k in self._varying]
        for value, gathered in zip(self._captured, state[len(self._varying) :], strict=True):
            share = inner.get(value)
            new.append(gathered if share is None else engine.b("add", gathered, share))
        return new


def _captured(region: Region, active: set[Value]) -> list[Value]:
    """The varying values from outside that a region reads or yields."""
    inside: set[Value] = set()
    found: dict[Value, None] = {}

    def visit(region: Region) -> None:
        inside.update(region.params)
        for instr in region.body:
            found.update(dict.fromkeys(instr.args))
            inside.update(instr.results)
            for inner in instr.regions:
                visit(inner)
        found.update(dict.fromkeys(region.yields))

    visit(region)
    return [v for v in found if v in active and v not in inside]
