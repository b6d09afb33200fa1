"""Runs that stop inside their last step, where the stop rule begins to hold.

A stop rule is a comparison of reals, or comparisons joined by `and` and `or`. The difference of a comparison's
sides, taken so that it is below 0 where the comparison holds, is its guard g. From the state before the last
step, g(step(state, s dt)) is followed over the parts s of the step, from 0 to 1 (dt may be negative): its root is
bracketed and closed in on by regula falsi (the Illinois variant: Dowell & Jarratt, BIT 11, 1971), then by bisection,
until no number lies between its ends. A guard that crosses 0 and back again inside one step is not seen.

The search is not differentiated. From tau = s dt as it was found, two steps of the chord method,
tau - (g - [g]) / [g'] where brackets hold a value fixed, change no value and have the derivatives of the implicit
function theorem: d tau = -dg/g' after the first (Chen, Amos & Nickel, "Learning Neural Event Functions for Ordinary
Differential Equations", ICLR 2021), the second derivatives after the other. So the tolerance of the root does not
limit the accuracy of a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .diff.activity import active_values
from .diff.forward import Forward
from .ir.build import Builder
from .ir.definition import Definition
from .ir.passes import drop_dead, freeze, simplify
from .ir.program import Argument, Place, Program, Region, Role, Span, Value
from .ir.types import Type
from .run import STEPS, Loop, emit_loop, inline, run_program

STATUS = "_status"  # Mutable I32: how the stop was located
RULE = "_rule"  # Mutable I32: which comparison of the stop rule began to hold, counted from 0; -1 for none

EVENT, NO_CROSSING, GRAZING, TIE, JUMP = 2, 3, 4, 5, 6  # as eagle.Status numbers them

_FALSI = 24  # trips of regula falsi before bisection takes over
_TRIPS = 160  # enough to bisect any bracket of doubles to nothing
_HALVINGS = 40  # of the step, in search of a place where the guard has the sign of before the event
_NEAR = 64  # units in the last place of a step: closer than this, two times are one
_JUMP = 1e-3  # a guard that is, where it changes sign, farther from 0 than this share of its slope times dt, jumps


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


@dataclass(frozen=True, slots=True)
class _Crossing:
    """Where a rule begins to hold, as a part of the step: from 0 to 1; -inf if it held all along, inf if it does not
    hold at the end."""

    part: Value
    which: Value  # the comparison that makes it
    tied: Value  # whether another makes it at the same time


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
        _StopRule.of(step.program(step.precisions[0]), time_step)  # an unfit rule is an error here

    @property
    def precisions(self) -> tuple[Type, ...]:
        return self.step.precisions

    def __reduce__(self) -> tuple[Any, ...]:
        return EventRun, (self.step, self.time_step)

    def make(self, real: Type) -> Program:
        b = Builder()
        loop = emit_loop(b, self.step, real)
        status, rule = Value(Type.I32), Value(Type.I32)
        loop.inputs[Place(STATUS, 0)], loop.inputs[Place(RULE, 0)] = status, rule
        ends, status, rule = _Refinement(b, loop, self.time_step).run(status, rule)
        own = (Argument(STATUS, Role.MUTABLE, (), Type.I32), Argument(RULE, Role.MUTABLE, (), Type.I32))
        program = run_program(self.name, b, loop, ends, ((own[0], status), (own[1], rule)))
        return freeze(drop_dead(simplify(program, pins=False)))


@dataclass(frozen=True, slots=True)
class _StopRule:
    """A stop rule as a tree, and its comparisons, each turned so that it holds where left < right."""

    tree: _Rule
    comparisons: tuple[tuple[Value, Value], ...]

    @staticmethod
    def of(step: Program, time_step: str) -> _StopRule:
        """Raises NoSmoothCrossing, with the user's line, for a rule that is no crossing of reals."""
        flag = next((v for p, v in step.outputs if step.argument(p.argument).role is Role.TERMINATED), None)
        if flag is None:
            raise NoSmoothCrossing(step.name, "the kernel sets no Terminated", None)
        reader = _RuleReader(step)
        rule = _StopRule(reader.read(flag, False, None), tuple(reader.comparisons))
        moving = active_values(step.body, [v for p, v in step.inputs if p.argument == time_step], frozenset())
        if not any(side in moving for sides in rule.comparisons for side in sides):
            what = f"its comparisons do not depend on {time_step}, the length of the step that sets it"
            raise NoSmoothCrossing(step.name, what, reader.made[flag].span)
        return rule


class _RuleReader:
    """Reads a stop rule from the instruction that makes it back to its comparisons."""

    def __init__(self, step: Program) -> None:
        self._name = step.name
        self.made = {r: i for i in step.body for r in i.results}
        self.comparisons: dict[tuple[Value, Value], int] = {}

    def read(self, value: Value, negated: bool, span: Span | None) -> _Rule:
        instr = self.made.get(value)
        if instr is None:
            raise NoSmoothCrossing(self._name, "it depends on a flag that the step reads", span)
        if instr.op == "not":
            return self.read(instr.args[0], not negated, instr.span)
        if instr.op in ("and", "or"):
            op = instr.op if not negated else {"and": "or", "or": "and"}[instr.op]
            return _Rule(op, tuple(self.read(a, negated, instr.span) for a in instr.args))
        if instr.op not in ("lt", "le", "gt", "ge"):
            raise NoSmoothCrossing(self._name, f"it depends on {_AS_WRITTEN.get(instr.op, instr.op)}", instr.span)
        if not instr.args[0].type.is_real:
            raise NoSmoothCrossing(self._name, f"it compares {instr.args[0].type.value} values", instr.span)
        less = (instr.op in ("lt", "le")) is not negated
        sides = instr.args if less else instr.args[::-1]
        return _Rule("comparison", (), self.comparisons.setdefault((sides[0], sides[1]), len(self.comparisons)))


_AS_WRITTEN = {
    "eq": "==", "ne": "!=", "xor": "the difference of two flags", "select": "a choice between two flags",
    "if": "what one branch of an `if` sets", "loop": "what a loop sets", "cast": "a number taken as a flag",
    "const": "a constant",
}  # fmt: skip


class _Refinement:
    """What follows the loop: for the samples that stopped, find where, and step to there instead."""

    def __init__(self, b: Builder, loop: Loop, time_step: str) -> None:
        self._b = b
        self._loop = loop
        self._step = loop.step
        self._rule = _StopRule.of(loop.step, time_step)
        self._dt_place = Place(time_step, 0)
        self._dt = loop.inputs[self._dt_place]
        self._eps = float(np.finfo(self._dt.type.dtype).eps)

    def _real(self, number: float) -> Value:
        return self._b.const(number, self._dt.type)

    def _int(self, number: int) -> Value:
        return self._b.const(number, Type.I32)

    def _false(self) -> Value:
        return self._b.const(False, Type.BOOL)

    def _stepped(self, tau: Value) -> tuple[dict[Place, Value], dict[Value, Value]]:
        """The last step again, `tau` long."""
        return inline(self._b, self._step, self._loop.inputs | self._loop.previous | {self._dt_place: tau})

    def _tau(self, part: Value) -> Value:
        return self._b("mul", part, self._dt)

    def _guards(self, tau: Value) -> list[Value]:
        """g of every comparison after a step of `tau`: below 0 where it holds."""
        _, env = self._stepped(tau)
        return [self._b("sub", env[left], env[right]) for left, right in self._rule.comparisons]

    def run(self, status: Value, rule: Value) -> tuple[dict[Place, Value], Value, Value]:
        """The state at the events, the statuses and the rules; samples that go on keep what they have."""
        b, loop = self._b, self._loop
        assert loop.done is not None
        stepped = b("gt", loop.steps, loop.inputs[Place(STEPS, 0)])
        stopped = b("and", loop.ends[loop.done], stepped)
        places = [p for p in loop.ends if p != loop.done]
        with b.block() as body:
            inside = self._located(places)
        plain = (*(loop.ends[p] for p in places), status, rule)
        found = b.if_(stopped, Region((), tuple(body), tuple(inside)), Region((), (), plain))
        ends = dict(zip(places, found, strict=False)) | {loop.done: loop.ends[loop.done]}
        return {p: ends[p] for p in loop.ends}, found[-2], found[-1]

    def _located(self, places: list[Place]) -> list[Value]:
        """For a sample that has stopped: its state at the event, its status, its rule."""
        b, zero = self._b, self._real(0.0)
        sides = list(zip(self._guards(zero), self._guards(self._dt), strict=True))
        parts = [self._crossing(k, *ends) for k, ends in enumerate(sides)]
        first = self._combined(self._rule.tree, parts)
        crossed = b("and", b("ge", first.part, zero), b("le", first.part, self._real(1.0)))
        with b.block() as body:
            length, smooth = self._root_and_derivatives(b("detach", self._tau(first.part)), first.which)
            outcome = b.select(first.tied, self._int(TIE), smooth)
        nowhere = (self._dt, self._int(NO_CROSSING), self._int(-1))
        found = b.if_(crossed, Region((), tuple(body), (length, outcome, first.which)), Region((), (), nowhere))
        length, status, which = found
        ends, _ = self._stepped(length)
        return [*(ends.get(p, self._loop.ends[p]) for p in places), status, which]

    def _root_and_derivatives(self, root: Value, which: Value) -> tuple[Value, Value]:
        """`root`, by the value of which nothing changes, as a function of all that its guard depends on; and how
        it was found: EVENT, GRAZING or JUMP."""
        b = self._b
        g, slope = self._slope(root, which)
        size = b("abs", slope)
        reach = b("abs", b("mul", b("mul", self._real(_JUMP), size), self._dt))
        near = b("and", b("le", b("abs", g), reach), b("lt", size, self._real(math.inf)))
        _, beside = self._slope(b("add", root, self._tau(self._real(_NEAR * self._eps))), which)
        bend = b("abs", b("sub", beside, slope))
        steep = b("lt", bend, b("mul", self._real(0.5), size))
        how = b.select(near, b.select(steep, self._int(EVENT), self._int(GRAZING)), self._int(JUMP))
        fixed = b("detach", b.select(b("and", near, steep), slope, self._real(math.inf)))
        for _ in range(2):
            root = b("sub", root, b("div", b("sub", g, b("detach", g)), fixed))
            g = self._picked(self._guards(root), which)
        return root, how

    def _crossing(self, k: int, at_start: Value, at_end: Value) -> Value:
        """When comparison k begins to hold, as in `_Crossing`."""
        b, zero = self._b, self._real(0.0)
        with b.block() as body:
            start, g_start = self._above(k, at_start)
            found = self._root(k, start, g_start, at_end)
            at_once = b.select(b("eq", at_start, zero), zero, self._real(-math.inf))
            began = b.select(self._is_above(g_start), found, at_once)
        otherwise = Region((), (), (self._real(math.inf),))
        return b.if_(b("le", at_end, zero), Region((), tuple(body), (began,)), otherwise)[0]

    def _is_above(self, g: Value) -> Value:
        """Whether a guard is above 0, and a number."""
        b = self._b
        return b("and", b("gt", g, self._real(0.0)), b("lt", g, self._real(math.inf)))

    def _above(self, k: int, at_start: Value) -> tuple[Value, Value]:
        """A part of the step after which the guard is above 0, and the guard there. The start is none where the
        event before this one was at it: then shorter and shorter steps are tried."""
        b = self._b
        trip, part, found = Value(Type.I32), Value(self._dt.type), Value(self._dt.type)
        with b.block() as body:
            half = b("mul", part, self._real(0.5))
            g = self._guards(self._tau(half))[k]
            again = b("not", self._is_above(g))
        region = Region((trip, part, found), tuple(body), (again, half, g))
        unknown = b("not", self._is_above(at_start))
        trips, where, g = b.loop(self._int(_HALVINGS), unknown, [self._real(1.0), at_start], region)
        return b.select(b("gt", trips, self._int(0)), where, self._real(0.0)), g

    def _root(self, k: int, low: Value, g_low: Value, g_high: Value) -> Value:
        """The root of guard k between the parts `low` (above 0) and 1 (not above 0), at the end where it holds."""
        b, zero = self._b, self._real(0.0)
        trip, side = Value(Type.I32), Value(Type.I32)
        a, ga, c, gc = state = [Value(self._dt.type) for _ in range(4)]
        with b.block() as body:
            at = self._between(a, ga, c, gc, b("lt", trip, self._int(_FALSI)))
            inside = b("and", b("lt", a, at), b("lt", at, c))
            g = self._guards(self._tau(at))[k]
            up = b("gt", g, zero)  # the root lies beyond: the low end moves up
            this_side = b.select(up, self._int(1), self._int(-1))
            twice = b("eq", side, this_side)  # Illinois: the end that stays put again counts half
            kept_a, kept_c = (b.select(twice, b("mul", self._real(0.5), end), end) for end in (ga, gc))
            new = [b.select(up, at, a), b.select(up, g, kept_a), b.select(up, c, at), b.select(up, kept_c, g)]
            following = [b.select(inside, v, old) for v, old in zip(new, state, strict=True)]
            again = b("and", inside, b("ne", g, zero))
        region = Region((trip, *state, side), tuple(body), (again, *following, this_side))
        start = [low, g_low, self._real(1.0), g_high, self._int(0)]
        return b.loop(self._int(_TRIPS), b("ne", g_high, zero), start, region)[3]

    def _between(self, a: Value, ga: Value, c: Value, gc: Value, early: Value) -> Value:
        """Where to look next: the secant's root, kept a little off both ends so that each of them moves; later,
        or where there is none, the middle."""
        b, off = self._b, self._real(self._eps)
        secant = b("sub", c, b("div", b("mul", gc, b("sub", c, a)), b("sub", gc, ga)))
        secant = b("minimum", b("maximum", secant, b("add", a, off)), b("sub", c, off))
        fits = b("and", b("lt", a, secant), b("lt", secant, c))
        middle = b("add", b("mul", self._real(0.5), a), b("mul", self._real(0.5), c))
        return b.select(b("and", fits, early), secant, middle)

    def _combined(self, rule: _Rule, parts: Sequence[Value]) -> _Crossing:
        """When the rule begins to hold: with the first of an `or`, the last of an `and`."""
        b = self._b
        if rule.op == "comparison":
            return _Crossing(parts[rule.number], self._int(rule.number), self._false())
        x, y = (self._combined(r, parts) for r in rule.parts)
        second = b("lt" if rule.op == "or" else "gt", y.part, x.part)
        apart = b("abs", b("sub", x.part, y.part))
        near = b("and", b("le", apart, self._real(_NEAR * self._eps)), b("ne", x.which, y.which))
        return _Crossing(
            b.select(second, y.part, x.part),
            b.select(second, y.which, x.which),
            b("or", near, b.select(second, y.tied, x.tied)),
        )

    def _picked(self, values: Sequence[Value], winner: Value) -> Value:
        found = values[0]
        for k, value in enumerate(values[1:], 1):
            found = self._b.select(self._b("eq", winner, self._int(k)), value, found)
        return found

    def _slope(self, tau: Value, which: Value) -> tuple[Value, Value]:
        """A guard after a step of `tau`, and its derivative by tau."""
        b, step = self._b, self._step
        inputs = self._loop.inputs | self._loop.previous | {self._dt_place: tau}
        own = dict(step.inputs)
        engine = Forward(step.name, b, active_values(step.body, [own[self._dt_place]], frozenset()), {})
        engine.env.update({value: inputs[place] for place, value in step.inputs})
        engine.tangents[own[self._dt_place]] = self._real(1.0)
        engine.block(step.body)
        guards, slopes = [], []
        for left, right in self._rule.comparisons:
            guards.append(b("sub", engine.env[left], engine.env[right]))
            slopes.append(b("sub", engine.tangent(left), engine.tangent(right)))
        return self._picked(guards, which), self._picked(slopes, which)
