"""A loop of the IR: which names it carries, in which types, and what is bound after it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

from ..ir.program import Region, Value
from ..ir.types import Type
from .errors import KernelError
from .frames import BROKEN, CONTINUED, RETURNED, VALUE, Frame, Live, Missing, assigned_names
from .structure import Tree, flatten, name_of, rebuild
from .tracer import Tracer
from .values import Traced, apply, common_type, describe, lift, plain

MOST_TRIPS = 2**31 - 1
Types = dict[tuple[str | int, int], Type]  # of the k-th scalar of a name or list, where the loop must widen it


@final
@dataclass(frozen=True, slots=True)
class Bounded:
    """The condition of a `while` and the most trips it may take."""

    condition: Any
    most: Any


def bounded(condition: Any, most: Any) -> Bounded:
    """``while bounded(x > 0, 100):`` states that the loop ends after at most 100 trips, whatever `x` is.

    A reverse derivative keeps what each trip needs, so it needs such a cap. `most` is a whole number or an
    int32 that the kernel computes; the loop stops there as if its condition were false.
    """
    return Bounded(condition, most)


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """One loop: what a trip may change and begins with, how many there are or what decides on the next."""

    node: ast.For | ast.While
    names: list[str]
    begin: Callable[[Traced], None]
    limit: Value | None = None
    condition: Callable[[], Bounded] | None = None
    runs: bool = False  # at least one trip is certain


def loop(t: Tracer, frame: Frame, plan: Plan) -> None:
    """Emit the loop; the frame holds what it leaves.

    A name is carried in the type it has before the loop, unless a trip gives it a wider one; the lists that a
    trip changes are carried too. Both are known only when a trip has been traced: then it is traced again.
    """
    types: Types = {}
    lists: list[list[Any]] = []
    before, start = frame.variables, len(t.builder.body)
    t.loops += 1
    while True:
        frame.variables = dict(before)
        del t.builder.body[start:]
        attempt = _Loop(t, frame, plan, types, lists)
        attempt.trace()
        if not attempt.widened and not attempt.changed:
            break
        types |= attempt.widened
        lists += attempt.changed
    t.loops -= 1


@final
@dataclass(frozen=True, slots=True)
class _Carried:
    """A name, or a list in place, that the loop carries: its shape, and its scalars before the loop."""

    name: str
    list: list[Any] | None
    tree: Tree
    start: tuple[Traced, ...]

    @property
    def key(self) -> str | int:
        return self.name if self.list is None else id(self.list)


@final
class _Loop:
    """One attempt at tracing a loop."""

    def __init__(self, t: Tracer, frame: Frame, plan: Plan, types: Types, lists: list[list[Any]]) -> None:
        self._t = t
        self._b = t.builder
        self._frame = frame
        self._plan = plan
        self._types = types
        self._lists = lists
        self._before = dict(frame.variables)
        self._carried: list[_Carried] = []
        self._new: list[str] = []  # not bound to numbers before the loop
        self.widened: Types = {}
        self.changed: list[list[Any]] = []
        self._endless = plan.condition is not None and BROKEN not in plan.names  # a return is the only way out

    def trace(self) -> None:
        """Emit the loop, or note the types that must be wider and the lists that must be carried."""
        self._t.heap.open()
        for name in self._plan.names:
            self._enter(name)
        for held in self._lists:
            self._enter_list(held)
        first, limit = self._first()
        if first is False:
            self._t.heap.close()
            self._frame.variables = self._before
            return
        trip = Value(Type.I32)
        params = [[Value(x.type) for x in c.start] for c in self._carried]
        with self._b.block() as body:
            again, ends = self._trip(trip, params)
            fresh = self._fresh()
            yields = [lift(self._b, again, Type.BOOL), *(v for end in ends for v in end)]
            yields += [lift(self._b, x, common_type(x)) for _, _, leaves in fresh for x in leaves]
        changes = self._t.heap.close()
        self.changed = [held for key, (held, _) in changes.items() if key not in {c.key for c in self._carried}]
        if self.widened or self.changed:
            return
        added = [Value(common_type(x)) for _, _, leaves in fresh for x in leaves]
        region = Region((trip, *(p for ps in params for p in ps), *added), tuple(body), tuple(yields))
        starts = [x.value for c in self._carried for x in c.start]
        starts += [self._b.const(False if v.type is Type.BOOL else 0, v.type) for v in added]
        results = self._b.loop(limit, lift(self._b, first, Type.BOOL), starts, region)
        self._leave(list(results[1:]), fresh)
        if self._endless:
            self._frame.variables[RETURNED] = True

    def _enter(self, name: str) -> None:
        """Decide how a name enters the loop."""
        value = self._before.get(name)
        leaves: list[Any] = []
        tree = flatten(value, leaves)
        if isinstance(value, list) and name not in assigned_names(self._plan.node.body):
            return  # its items change, not the name: it is carried in place
        if name == VALUE and (value is None or tree.is_fixed):
            self._new.append(name)
            self._frame.variables.pop(name, None)
        elif name not in self._before or isinstance(value, (Missing, Live)):
            self._new.append(name)
            self._frame.variables[name] = Missing(
                f"it is first assigned inside the loop in line {self._plan.node.lineno}"
            )
        elif tree.is_fixed:
            self._new.append(name)
            where = f"before the loop in line {self._plan.node.lineno}"
            self._frame.variables[name] = Missing(f"it is {name_of(value)} {where}, which a loop cannot carry")
        else:
            self._carry(name, None, tree, leaves)

    def _enter_list(self, held: list[Any]) -> None:
        leaves: list[Any] = []
        tree = flatten(held, leaves)
        if tree.is_fixed or any(child.has_list for child in tree.children):
            raise KernelError(
                f"{name_of(held)} is changed in the loop, which cannot carry it", "keep only numbers in it"
            )
        self._carry("a list", held, tree, leaves)

    def _carry(self, name: str, held: list[Any] | None, tree: Tree, leaves: list[Any]) -> None:
        key = name if held is None else id(held)
        if held is None:
            self._t.heap.freeze(self._before[name])
        kinds = [self._types.get((key, k), common_type(leaf)) for k, leaf in enumerate(leaves)]
        start = [Traced(self._b, lift(self._b, leaf, kind)) for leaf, kind in zip(leaves, kinds, strict=True)]
        self._carried.append(_Carried(name, held, tree, tuple(start)))
        self._put(self._carried[-1], self._frame.variables, iter(start))

    def _put(self, c: _Carried, variables: dict[str, Any], leaves: Iterator[Any]) -> None:
        value = rebuild(c.tree, leaves)
        if c.list is None:
            variables[c.name] = self._t.heap.freeze(value)
        else:
            self._t.heap.change(c.list)
            c.list[:] = value

    def _first(self) -> tuple[Any, Value]:
        """Whether there is a first trip, and the most there are."""
        if self._plan.condition is None:
            assert self._plan.limit is not None
            return True, self._plan.limit
        test = self._condition()
        most = plain(test.most)
        whole = most.type.is_int if isinstance(most, Traced) else type(most) is int
        if not whole:
            raise KernelError(f"bounded(condition, most): most is a whole number, not {describe(most)}")
        return test.condition, lift(self._b, most, Type.I32)

    def _trip(self, trip: Value, params: list[list[Value]]) -> tuple[Any, list[list[Value]]]:
        """Trace one trip: whether there is another, and what it leaves in the carried names."""
        t, frame = self._t, self._frame
        for c, values in zip(self._carried, params, strict=True):
            self._put(c, frame.variables, (Traced(self._b, v) for v in values))
        for flag in (RETURNED, BROKEN):
            frame.variables[flag] = False
        self._plan.begin(Traced(self._b, trip))
        t.block(frame, self._plan.node.body)
        frame.reset(CONTINUED)
        again = self._again()
        return again, [self._end(c) for c in self._carried]

    def _again(self) -> Any:
        t, frame, stop = self._t, self._frame, self._t.stop(self._frame)
        if stop is True:
            return False
        if stop is False:
            return True if self._plan.condition is None else self._condition().condition
        if self._plan.condition is None:
            return apply("not", stop)

        def live() -> Any:
            frame.enter_live()
            return self._condition().condition

        def stopped() -> bool:
            frame.enter_stopped()
            return False

        return t.branch(frame, apply("not", stop), live, stopped, "the loop goes on")

    def _end(self, c: _Carried) -> list[Value]:
        """What a trip leaves in a carried name, in the types it entered with; notes those too narrow."""
        value = self._frame.variables[c.name] if c.list is None else c.list
        if isinstance(value, (Missing, Live)):
            raise KernelError(f"{c.name} is not bound at the end of a trip: {value.reason}", "bind it on every path")
        leaves: list[Any] = []
        if flatten(value, leaves) != c.tree:
            was = name_of(self._before[c.name] if c.list is None else rebuild(c.tree, iter(c.start)))
            raise KernelError(
                f"{c.name} is {was} before the loop and {name_of(value)} after a trip",
                "a loop carries one kind of value: give it the same from the start",
            )
        ends = []
        for k, (start, end) in enumerate(zip(c.start, leaves, strict=True)):
            wider = common_type(start, end)
            if (start.type is Type.BOOL) != (common_type(end) is Type.BOOL):
                raise KernelError(f"{c.name} is {describe(start)} before the loop and {describe(end)} after a trip")
            if wider is not start.type:
                self.widened[c.key, k] = wider
            ends.append(lift(self._b, end, wider))
        return ends

    def _fresh(self) -> list[tuple[str, Tree, list[Any]]]:
        """The names first bound in the loop that are bound after it too."""
        fresh = []
        for name in self._new:
            value = self._frame.variables.get(name)
            if isinstance(value, Missing) or not (self._plan.runs or name == VALUE):
                continue
            leaves: list[Any] = []
            tree = flatten(value.value if isinstance(value, Live) else value, leaves)
            if name in self._frame.variables and not tree.is_fixed:
                fresh.append((name, tree, leaves))
        return fresh

    def _leave(self, results: list[Value], fresh: list[tuple[str, Tree, list[Any]]]) -> None:
        """Bind the names to what the loop gives."""
        end, after = self._frame.variables, dict(self._before)
        values = (Traced(self._b, v) for v in results)
        for c in self._carried:
            self._put(c, after, values)
        for name in self._new:
            after[name] = self._unbound(name, end)
        for name, tree, _ in fresh:
            value = self._t.heap.freeze(rebuild(tree, values))
            was = end[name]
            after[name] = Live(value, was.flags, was.reason) if isinstance(was, Live) else value
        if VALUE in self._new and VALUE not in {name for name, _, _ in fresh}:
            after.pop(VALUE)
        self._frame.variables = after

    def _unbound(self, name: str, end: dict[str, Any]) -> Any:
        if name in self._before and end.get(name) is self._before[name]:
            return self._before[name]
        line = self._plan.node.lineno
        value = end.get(name)
        if isinstance(value, Missing):
            return value
        if self._plan.runs:
            return Missing(f"the loop in line {line} leaves {name_of(value)} in it, which a loop cannot carry")
        return Missing(f"it is assigned only inside the loop in line {line}, which may run no trip")

    def _condition(self) -> Any:
        """Evaluate the condition of a `while`, noting whether anything but a return can end the loop."""
        assert self._plan.condition is not None
        test = self._plan.condition()
        self._endless = self._endless and test.condition is True and test.most is MOST_TRIPS
        return test
