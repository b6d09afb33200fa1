"""Runs that stop inside their last step, where the stop rule begins to hold.

A stop rule is a comparison of reals, or comparisons joined by `and` and `or`. The difference of a comparison's
sides, taken so that it falls below 0 where the comparison holds, is its guard g. From the state before the last
step, g(step(state, tau)) is followed over tau in (0, dt]: its root is bracketed and closed in on by regula falsi
(the Illinois variant: Dowell & Jarratt, BIT 11, 1971), then by bisection, until no number lies inside.

The root itself is not differentiated. Its last Newton step is: tau - g/g', with tau and g' held fixed, has the
value of the root and the derivative of the implicit function theorem, d tau = -dg/g' (Chen, Amos & Nickel,
"Learning Neural Event Functions for Ordinary Differential Equations", ICLR 2021). So the tolerance of the root
does not limit the accuracy of a gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

from .diff.activity import active_values
from .diff.forward import Forward
from .ir.build import Builder
from .ir.definition import Definition
from .ir.passes import drop_dead, freeze, simplify
from .ir.program import Argument, Instr, Place, Program, Region, Role, Span, Value
from .ir.types import Type
from .run import Loop, emit_loop, inline, run_program

STATUS = "_status"  # Mutable I32: how the stop was located
RULE = "_rule"  # Mutable I32: which comparison of the stop rule began to hold, counted from 0; -1 for none

EVENT, NO_CROSSING, GRAZING, TIE = 2, 3, 4, 5  # as eagle.Status numbers them

_FALSI = 24  # trips of regula falsi before bisection takes over
_TRIPS = 160  # enough to bisect any bracket of doubles to nothing
_HALVINGS = 40  # of the step, in search of a place where the guard has the sign of before the event
_FLAT = 1e-10  # a slope that would change the guard by less than this share over the step is none
_SAME = 1e-14  # of the step: closer than this, two crossings are at one time


class NoSmoothCrossing(ValueError):
    """A stop rule whose beginning cannot be found: names the kernel, what it found, and the line."""

    def __init__(self, kernel: str, what: str, span: Span | None) -> None:
        where = f"\n  {span}\n    {span.text}" if span is not None else ""
        super().__init__(
            f"{kernel}: its stop rule has no smooth crossing: {what}. With events='refine' it is a comparison of reals "
            f"(<, <=, >, >=), or several joined by `and` and `or`{where}"
        )


@dataclass(frozen=True, slots=True)
class _Rule:
    """A comparison (by number), or two rules joined by "and" or "or"."""

    op: str
    parts: tuple[_Rule, ...] = ()
    number: int = -1


@final
class EventRun(Definition):
    """The run of a step, each sample stopped where its stop rule begins to hold.

    `time_step` names the Param that is the step of time. Beside a run's arguments it has ``_status`` and
    ``_rule``, which a sample that stops in this launch sets.
    """

    def __init__(self, step: Definition, time_step: str) -> None:
        super().__init__(f"{step.name}_event_run")
        self.step = step
        self.time_step = time_step
        _stop_rule(step.program(step.precisions[0]))  # an unfit rule is an error here

    @property
    def precisions(self) -> tuple[Type, ...]:
        return self.step.precisions

    def __reduce__(self) -> tuple[Any, ...]:
        return EventRun, (self.step, self.time_step)

    def make(self, real: Type) -> Program:
        step = self.step.program(real)
        b = Builder()
        loop = emit_loop(b, step)
        status, rule = Value(Type.I32), Value(Type.I32)
        loop.inputs[Place(STATUS, 0)], loop.inputs[Place(RULE, 0)] = status, rule
        ends, status, rule = _Refinement(b, loop, self.time_step).run(status, rule)
        own = (Argument(STATUS, Role.MUTABLE, (), Type.I32), Argument(RULE, Role.MUTABLE, (), Type.I32))
        program = run_program(self.name, b, loop, ends, ((own[0], status), (own[1], rule)))
        return freeze(drop_dead(simplify(program, pins=False)))


def _stop_rule(step: Program) -> tuple[_Rule, list[Instr]]:
    """The stop rule as a tree and its comparisons, each turned so that it holds where left < right."""
    made = {r: i for i in step.body for r in i.results}
    flag = next((v for p, v in step.outputs if step.argument(p.argument).role is Role.TERMINATED), None)
    comparisons: list[Instr] = []

    def read(value: Value, negated: bool) -> _Rule:
        instr = made.get(value)
        if instr is None:
            raise NoSmoothCrossing(step.name, "it is read from a plane or carried", None)
        if instr.op == "not":
            return read(instr.args[0], not negated)
        if instr.op in ("and", "or"):
            op = instr.op if not negated else {"and": "or", "or": "and"}[instr.op]
            return _Rule(op, tuple(read(a, negated) for a in instr.args))
        if instr.op not in ("lt", "le", "gt", "ge"):
            raise NoSmoothCrossing(step.name, f"it is made by {instr.op!r}", instr.span)
        if not instr.args[0].type.is_real:
            raise NoSmoothCrossing(step.name, f"it compares {instr.args[0].type.value} values", instr.span)
        less = (instr.op in ("lt", "le")) is not negated
        left, right = instr.args if less else (instr.args[1], instr.args[0])
        comparisons.append(Instr("lt", (left, right), instr.results, span=instr.span))
        return _Rule("comparison", (), len(comparisons) - 1)

    if flag is None:
        raise NoSmoothCrossing(step.name, "the kernel has no Terminated", None)
    return read(flag, False), comparisons


class _Refinement:
    """What follows the loop: for the samples that stopped, find where, and step to there instead."""

    def __init__(self, b: Builder, loop: Loop, time_step: str) -> None:
        self._b = b
        self._loop = loop
        self._step = loop.step
        self._dt_place = Place(time_step, 0)
        if self._dt_place not in loop.inputs:
            raise NoSmoothCrossing(loop.step.name, f"the step does not depend on its time step {time_step}", None)
        self._dt = loop.inputs[self._dt_place]
        self._rule, self._comparisons = _stop_rule(loop.step)

    def _real(self, number: float) -> Value:
        return self._b.const(number, self._dt.type)

    def _int(self, number: int) -> Value:
        return self._b.const(number, Type.I32)

    def _stepped(self, tau: Value) -> tuple[dict[Place, Value], dict[Value, Value]]:
        """The last step again, `tau` long."""
        return inline(self._b, self._step, self._loop.inputs | self._loop.previous | {self._dt_place: tau})

    def _guards(self, tau: Value) -> list[Value]:
        """g of every comparison after a step of `tau`: below 0 where it holds."""
        _, env = self._stepped(tau)
        return [self._guard(env, c) for c in self._comparisons]

    def _guard(self, env: dict[Value, Value], comparison: Instr) -> Value:
        left, right = (env.get(a, a) for a in comparison.args)
        return self._b("sub", left, right)

    def run(self, status: Value, rule: Value) -> tuple[dict[Place, Value], Value, Value]:
        """The state at the events, the statuses and the rules; samples that go on keep what they have."""
        b, loop = self._b, self._loop
        assert loop.done is not None
        stopped = b("and", loop.ends[loop.done], b("not", loop.inputs[loop.done]))
        places = [p for p in loop.ends if p != loop.done]
        with b.block() as body:
            inside = self._located(places)
        plain = (*(loop.ends[p] for p in places), status, rule)
        found = b.if_(stopped, Region((), tuple(body), tuple(inside)), Region((), (), plain))
        ends = dict(zip(places, found, strict=False)) | {loop.done: loop.ends[loop.done]}
        return {p: ends[p] for p in loop.ends}, found[-2], found[-1]

    def _located(self, places: list[Place]) -> list[Value]:
        """For a sample that has stopped: its state at the event, its status, its rule."""
        b = self._b
        at_start, at_end = self._guards(self._real(0.0)), self._guards(self._dt)
        times = [self._crossing(k, g0, g1) for k, (g0, g1) in enumerate(zip(at_start, at_end, strict=True))]
        tau, winner = self._combined(self._rule, times)
        crossed = b("and", b("gt", tau, self._real(0.0)), b("le", tau, self._dt))
        change = b("sub", self._picked(at_start, winner), self._picked(at_end, winner))
        with b.block() as body:
            newton, flat = self._newton(b("detach", tau), winner, change)
            outcome = b.select(self._tied(times, tau), self._int(TIE), self._int(EVENT))
            outcome = b.select(flat, self._int(GRAZING), outcome)
        nowhere = (self._dt, self._int(NO_CROSSING), self._int(-1))
        found = b.if_(crossed, Region((), tuple(body), (newton, outcome, winner)), Region((), (), nowhere))
        length, status, which = found
        ends, _ = self._stepped(length)
        return [*(ends.get(p, self._loop.ends[p]) for p in places), status, which]

    def _newton(self, tau: Value, winner: Value, change: Value) -> tuple[Value, Value]:
        """The root after one more Newton step from `tau`, with its derivative; and whether the guard is flat there."""
        b = self._b
        g, slope = self._slope(tau, winner)
        flat = b("le", b("abs", b("mul", slope, self._dt)), b("mul", self._real(_FLAT), b("abs", change)))
        steep = b("detach", b.select(flat, self._real(math.inf), slope))
        return b("sub", tau, b("div", g, steep)), flat

    def _crossing(self, k: int, at_start: Value, at_end: Value) -> Value:
        """When comparison k begins to hold: in (0, dt]; 0 if it held all along, infinity if it does not hold."""
        b, zero = self._b, self._real(0.0)
        holds = b("le", at_end, zero)
        with b.block() as body:
            first, g_first = self._above(k, at_start)
            root = self._root(k, first, g_first, at_end)
            began = b.select(b("gt", g_first, zero), root, zero)
        other = self._real(math.inf)
        return b.if_(holds, Region((), tuple(body), (began,)), Region((), (), (other,)))[0]

    def _above(self, k: int, at_start: Value) -> tuple[Value, Value]:
        """A time with the guard above 0, and the guard there. Where it is 0 at the start (the event before this
        one), shorter and shorter steps are tried."""
        b, zero = self._b, self._real(0.0)
        trip, part, found = Value(Type.I32), Value(self._dt.type), Value(self._dt.type)
        with b.block() as body:
            half = b("mul", part, self._real(0.5))
            g = self._guards(half)[k]
            again = b("not", b("gt", g, zero))
        region = Region((trip, part, found), tuple(body), (again, half, g))
        unknown = b("eq", at_start, zero)
        trips, where, g = b.loop(self._int(_HALVINGS), unknown, [self._dt, at_start], region)
        return b.select(b("gt", trips, self._int(0)), where, zero), g

    def _root(self, k: int, low: Value, g_low: Value, g_high: Value) -> Value:
        """The root of guard k between `low` (above 0) and dt (not above 0), at the end where it holds."""
        b, zero, half = self._b, self._real(0.0), self._real(0.5)
        trip = Value(Type.I32)
        a, ga, c, gc = state = [Value(self._dt.type) for _ in range(4)]
        side = Value(Type.I32)
        with b.block() as body:
            middle = b("add", b("mul", half, a), b("mul", half, c))
            falsi = b("sub", c, b("div", b("mul", gc, b("sub", c, a)), b("sub", gc, ga)))
            fits = b("and", b("lt", a, falsi), b("lt", falsi, c))
            early = b("lt", trip, self._int(_FALSI))
            at = b.select(b("and", fits, early), falsi, middle)
            inside = b("and", b("lt", a, at), b("lt", at, c))
            g = self._guards(at)[k]
            up = b("gt", g, zero)  # the root lies beyond: the low end moves up
            moved = [b.select(up, at, a), b.select(up, g, ga), b.select(up, c, at), b.select(up, gc, g)]
            # Illinois: an end that stays twice in a row counts half
            stays = b("eq", side, b.select(up, self._int(1), self._int(-1)))
            new_ga = b.select(b("and", stays, b("not", up)), b("mul", half, moved[1]), moved[1])
            new_gc = b.select(b("and", stays, up), b("mul", half, moved[3]), moved[3])
            following = [
                b.select(inside, moved[0], a), b.select(inside, new_ga, ga),
                b.select(inside, moved[2], c), b.select(inside, new_gc, gc),
            ]  # fmt: skip
            again = b("and", inside, b("ne", g, zero))
            new_side = b.select(up, self._int(1), self._int(-1))
        region = Region((trip, *state, side), tuple(body), (again, *following, new_side))
        start = [low, g_low, self._dt, g_high, self._int(0)]
        return b.loop(self._int(_TRIPS), b("ne", g_high, zero), start, region)[3]

    def _combined(self, rule: _Rule, times: list[Value]) -> tuple[Value, Value]:
        """When the rule begins to hold, and the comparison that makes it: the first of an `or`, the last of an
        `and`."""
        b = self._b
        if rule.op == "comparison":
            return times[rule.number], self._int(rule.number)
        (x, kx), (y, ky) = (self._combined(part, times) for part in rule.parts)
        takes_second = b("lt", y, x) if rule.op == "or" else b("gt", y, x)
        return b.select(takes_second, y, x), b.select(takes_second, ky, kx)

    def _tied(self, times: list[Value], tau: Value) -> Value:
        """Whether another comparison begins to hold at the same time."""
        b = self._b
        near = b("mul", self._real(_SAME), self._dt)
        count = self._int(0)
        for time in times:
            same = b("le", b("abs", b("sub", time, tau)), near)
            count = b("add", count, b.cast(same, Type.I32))
        return b("gt", count, self._int(1))

    def _picked(self, values: list[Value], winner: Value) -> Value:
        found = values[0]
        for k, value in enumerate(values[1:], 1):
            found = self._b.select(self._b("eq", winner, self._int(k)), value, found)
        return found

    def _slope(self, tau: Value, winner: Value) -> tuple[Value, Value]:
        """The winner's guard after a step of `tau`, and its derivative by tau."""
        b, step = self._b, self._step
        inputs = self._loop.inputs | self._loop.previous | {self._dt_place: tau}
        own = {place: value for place, value in step.inputs}
        engine = Forward(step.name, b, active_values(step.body, [own[self._dt_place]], frozenset()), {})
        engine.env.update({value: inputs[place] for place, value in step.inputs})
        engine.tangents[own[self._dt_place]] = self._real(1.0)
        engine.block(step.body)
        guards, slopes = [], []
        for comparison in self._comparisons:
            left, right = comparison.args
            guards.append(b("sub", engine.env[left], engine.env[right]))
            slopes.append(b("sub", engine.tangent(left), engine.tangent(right)))
        return self._picked(guards, winner), self._picked(slopes, winner)
