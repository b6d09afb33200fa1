"""Two paths meet: what they left in each name becomes one value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, final

from ..ir.build import Builder
from ..ir.program import Instr, Region, Value
from ..ir.types import Type
from .errors import KernelError
from .frames import FLAGS, VALUE, Live, Missing
from .heap import Changes, Heap
from .structure import Tree, flatten, name_of, rebuild
from .values import Traced, common_type, lift

RESULT = "result"  # the hidden name of what an expression gives on each path
_ABSENT = Missing("")
_REQUIRED = (RESULT, VALUE)


@final
@dataclass(slots=True)
class Side:
    """One path: its instructions, what its names hold at the end, and when it is taken, in words."""

    when: str
    body: list[Instr] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)
    changes: Changes = field(default_factory=dict)

    @property
    def flags(self) -> frozenset[str]:
        """The ways it may have left."""
        return frozenset(flag for flag in FLAGS if self.variables[flag] is not False)

    @property
    def stopped(self) -> bool:
        """Whether it has left for certain."""
        return any(self.variables[flag] is True for flag in FLAGS)


@final
@dataclass(slots=True)
class _Slot:
    """The scalar that the paths give as `x` and `y`; None where a path has none and nobody will read it."""

    x: Any
    y: Any
    type: Type


def merge(builder: Builder, heap: Heap, condition: Traced, then: Side, other: Side) -> dict[str, Any]:
    """The variables after an `if`: emits it, or selects where neither side computes anything."""
    merger = _Merger(then, other)
    names = dict.fromkeys([*then.variables, *other.variables])
    plans = {name: merger.name(name) for name in names}
    lists = merger.lists()
    values = iter(_emit(builder, condition, then, other, merger.slots))
    merged = {name: _filled(plan, values, heap) for name, plan in plans.items()}
    for changed, plan in lists:
        heap.change(changed)
        changed[:] = _filled(plan, values, heap)
    return {name: value for name, value in merged.items() if value is not _ABSENT}


@final
@dataclass(frozen=True, slots=True)
class _Plan:
    """How to rebuild a merged value: its shape and its scalars, some of them still slots."""

    tree: Tree
    leaves: tuple[Any, ...]
    flags: frozenset[str] = frozenset()
    reason: str = ""


def _filled(plan: Any, values: Iterator[Any], heap: Heap) -> Any:
    if not isinstance(plan, _Plan):
        return plan
    leaves = [next(values) if isinstance(leaf, _Slot) else leaf for leaf in plan.leaves]
    value = heap.made(rebuild(plan.tree, iter(leaves)))
    return Live(value, plan.flags, plan.reason) if plan.flags else value


@final
class _Merger:
    def __init__(self, then: Side, other: Side) -> None:
        self._sides = (then, other)
        self.slots: list[_Slot] = []

    def name(self, name: str) -> Any:
        """A plan for one name, or what it holds on both sides if that is the same."""
        a, b = (side.variables.get(name, _ABSENT) for side in self._sides)
        if a is b:
            return a
        if name == VALUE and (a is _ABSENT or b is _ABSENT):
            return self._one_sided(b if a is _ABSENT else a, a is _ABSENT, frozenset(), "")
        if isinstance(a, Missing) or isinstance(b, Missing):
            return self._partial(a, b)
        flags = frozenset[str]()
        reason = ""
        for value in (a, b):
            if isinstance(value, Live):
                flags, reason = flags | value.flags, value.reason
        a, b = (v.value if isinstance(v, Live) else v for v in (a, b))
        plan = self._both(a, b, flags, reason)
        if isinstance(plan, Missing) and name in _REQUIRED:
            what = "two results" if name == RESULT else "returned values"
            raise KernelError(f"the {what} do not go together: {plan.reason}", "make both the same kind of value")
        return plan

    def lists(self) -> list[tuple[list[Any], _Plan]]:
        """Plans for the lists that a side has changed."""
        plans = []
        then, other = (side.changes for side in self._sides)
        for key in dict.fromkeys([*then, *other]):
            changed = (then.get(key) or other[key])[0]
            a, b = (changes[key][1] if key in changes else list(changed) for changes in (then, other))
            plan = self._both(a, b, frozenset(), "")
            if isinstance(plan, Missing):
                raise KernelError(f"a list is changed in ways that do not go together: {plan.reason}")
            plans.append((changed, plan))
        return plans

    def _partial(self, a: Any, b: Any) -> Any:
        """A name that one side does not bind: nobody misses it there if that side has left."""
        then, other = self._sides
        if isinstance(a, Missing) and isinstance(b, Missing):
            return a if b is _ABSENT else b
        missing, bound, side = (a, b, then) if isinstance(a, Missing) else (b, a, other)
        reason = missing.reason or f"nothing is assigned to it when {side.when}"
        if not side.stopped:
            return Missing(reason)
        flags = side.flags
        if isinstance(bound, Live):
            flags, bound = flags | bound.flags, bound.value
        return self._one_sided(bound, isinstance(a, Missing), flags, reason)

    def _one_sided(self, bound: Any, first_missing: bool, flags: frozenset[str], reason: str) -> _Plan:
        leaves: list[Any] = []
        tree = flatten(bound, leaves)
        for k, leaf in enumerate(leaves):
            if isinstance(leaf, Traced):
                x, y = (None, leaf) if first_missing else (leaf, None)
                leaves[k] = self._slot(x, y, leaf.type)
        return _Plan(tree, tuple(leaves), flags, reason)

    def _both(self, a: Any, b: Any, flags: frozenset[str], reason: str) -> Any:
        left: list[Any] = []
        right: list[Any] = []
        tree = flatten(a, left)
        if tree != flatten(b, right):
            return self._conflict(name_of(a), name_of(b))
        for x, y in zip(left, right, strict=True):
            if not _same(x, y) and _is_bool(x) != _is_bool(y):
                return self._conflict(name_of(x), name_of(y))
        pairs = zip(left, right, strict=True)
        leaves = [x if _same(x, y) else self._slot(x, y, common_type(x, y)) for x, y in pairs]
        return _Plan(tree, tuple(leaves), flags, reason)

    def _conflict(self, a: str, b: str) -> Missing:
        then, other = self._sides
        return Missing(f"it is {a} when {then.when}, but {b} when {other.when}")

    def _slot(self, x: Any, y: Any, type: Type) -> _Slot:
        self.slots.append(_Slot(x, y, type))
        return self.slots[-1]


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, Traced) and isinstance(y, Traced):
        return x.value is y.value
    if isinstance(x, Traced) or isinstance(y, Traced):
        return False
    if type(x) is not type(y) and (isinstance(x, (bool, float)) or isinstance(y, (bool, float))):
        return False
    return repr(x) == repr(y)  # which tells -0.0 from 0.0


def _is_bool(x: Any) -> bool:
    return x.type is Type.BOOL if isinstance(x, Traced) else isinstance(x, bool)


def _emit(builder: Builder, condition: Traced, then: Side, other: Side, slots: list[_Slot]) -> list[Traced]:
    if not then.body and not other.body:
        results = []
        for s in slots:
            results.append(_select(builder, condition.value, s))
    else:
        regions = [
            _region(builder, side, [s.x if side is then else s.y for s in slots], slots) for side in (then, other)
        ]
        if not slots:
            return []  # a kernel has no effects but its results: the branch does nothing
        results = list(builder.if_(condition.value, *regions))
    return [Traced(builder, value) for value in results]


def _select(builder: Builder, condition: Value, s: _Slot) -> Value:
    if s.x is True and s.y is False:
        return condition
    if s.x is False and s.y is True:
        return builder("not", condition)
    x, y = (lift(builder, 0 if v is None else v, s.type) for v in (s.x, s.y))
    return builder.select(condition, x, y)


def _region(builder: Builder, side: Side, values: list[Any], slots: list[_Slot]) -> Region:
    outer, builder.body = builder.body, side.body
    yields = tuple(lift(builder, 0 if v is None else v, s.type) for v, s in zip(values, slots, strict=True))
    builder.body = outer
    return Region((), tuple(side.body), yields)
