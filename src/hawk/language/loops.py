"""The loops of a kernel: unrolled when short and of known length, else `loop` in the IR."""

from __future__ import annotations

import ast
from typing import Any

from ..ir.types import Type
from .assignment import assign, iterate
from .builtin_calls import TracedRange
from .carry import MOST_TRIPS, Bounded, Plan, loop
from .errors import KernelError
from .frames import BROKEN, CONTINUED, Frame, Live, Missing, changed_names, own_nodes
from .tracer import Tracer, statement
from .values import Index, Traced, apply, cast, lift, operate, where

UNROLLED = 16  # a `for` of known length with at most this many trips is unrolled


@statement(ast.For)
def for_(t: Tracer, frame: Frame, node: ast.For) -> None:
    _check_else(node)
    over = t.evaluate(frame, node.iter)
    if isinstance(over, range) and len(over) > UNROLLED:
        _for_range(t, frame, node, over.start, len(over), over.step)
    elif isinstance(over, TracedRange):
        _for_range(t, frame, node, over.start, _trips(over), over.step)
    elif isinstance(over, range):
        _unroll(t, frame, node, [Index(i, t.builder) for i in over])
    else:
        _unroll(t, frame, node, iterate(t, over))


def _check_else(node: ast.For | ast.While) -> None:
    if any(isinstance(n, (ast.Break, ast.Continue)) for n in own_nodes(node.orelse)):
        raise KernelError("break or continue in the else of a loop", "use a flag and an if after the loop")


def _finish(t: Tracer, frame: Frame, node: ast.For | ast.While) -> None:
    """Run the loop's `else` on the paths that did not break, and let the others join."""
    stop = t.stop(frame)
    if stop is False:
        t.block(frame, node.orelse)
    elif stop is not True and node.orelse:
        t.guarded(frame, stop, lambda: t.block(frame, node.orelse))
    frame.reset(BROKEN)


def _targets(node: ast.For) -> list[str]:
    return [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)]


def _unroll(t: Tracer, frame: Frame, node: ast.For, items: list[Any]) -> None:
    changed = changed_names(node.body)

    def settle() -> None:
        for name in changed:
            value = frame.variables.get(name)
            if name in frame.variables and not isinstance(value, (Missing, Live)):
                frame.variables[name] = t.pinned(value, carried=True)

    def trip(item: Any) -> None:
        assign(t, frame, node.target, item)
        t.block(frame, node.body)
        frame.reset(CONTINUED)
        settle()

    t.loops += 1
    settle()
    for item in items:
        stop = t.stop(frame)
        if stop is True:
            break
        if stop is False:
            trip(item)
        else:
            t.guarded(frame, stop, lambda item=item: trip(item))  # type: ignore[misc]
    t.loops -= 1
    _finish(t, frame, node)


def _trips(over: TracedRange) -> Any:
    """How often a range runs, as int32; a step of 0 runs never."""
    if not isinstance(over.start, Traced) and not isinstance(over.step, Traced) and (over.start, over.step) == (0, 1):
        known = over.stop.type is Type.I32
        return over.stop if known else cast(apply("minimum", over.stop, MOST_TRIPS), Type.I32)
    start, stop, step = (
        cast(x, Type.I64) if isinstance(x, Traced) else int(x) for x in (over.start, over.stop, over.step)
    )
    span = operate("-", stop, start)
    span = where(operate(">", step, 0), span, operate("-", 0, span))
    size = apply("abs", step)
    trips = operate("//", operate("-", operate("+", span, size), 1), size)
    return cast(apply("maximum", apply("minimum", trips, MOST_TRIPS), 0), Type.I32)


def _for_range(t: Tracer, frame: Frame, node: ast.For, start: Any, trips: Any, step: Any) -> None:
    def begin(trip: Traced) -> None:
        moved = trip if _is(step, 1) else operate("*", trip, step)
        assign(t, frame, node.target, moved if _is(start, 0) else operate("+", start, moved))

    if not isinstance(trips, Traced) and trips > MOST_TRIPS:
        raise KernelError(f"a range of {trips} trips", f"a loop takes at most {MOST_TRIPS}")
    names = list(dict.fromkeys([*_targets(node), *changed_names(node.body)]))
    limit = lift(t.builder, trips, Type.I32)
    loop(t, frame, Plan(node, names, begin, limit=limit, runs=not isinstance(trips, Traced)))
    _finish(t, frame, node)


def _is(x: Any, number: int) -> bool:
    return not isinstance(x, Traced) and bool(x == number)


@statement(ast.While)
def while_(t: Tracer, frame: Frame, node: ast.While) -> None:
    _check_else(node)

    def condition() -> Bounded:
        test = t.evaluate(frame, node.test)
        if isinstance(test, Bounded):
            return Bounded(t.truth(test.condition), test.most)
        return Bounded(t.truth(test), MOST_TRIPS)

    loop(t, frame, Plan(node, changed_names(node.body), lambda trip: None, condition=condition))
    _finish(t, frame, node)
