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
from .structure import Tree, flatten, is_named, name_of, rebuild
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
    merger = _Merger(heap, then, other)
    names = dict.fromkeys([*then.variables, *other.variables])
    plans = {name: merger.name(name) for name in names}
    lists = merger.lists()
    values = iter(_emit(builder, condition, then, other, merger.slots))
    merged = {name: _filled(plan, values, heap) for name, plan in plans.items()}
    for plan in lists:
        _filled(plan, values, heap)
    return {name: value for name, value in merged.items() if value is not _ABSENT}


@final
@dataclass(frozen=True, slots=True)
class _Plan:
    """How to rebuild a merged value: its shape and its scalars, some of them still slots."""

    tree: Tree
    leaves: tuple[Any, ...]


@final
@dataclass(frozen=True, slots=True)
class _Sequence:
    """How to rebuild a merged list or tuple from its parts: in place if `held` is given."""

    kind: Any
    parts: tuple[Any, ...]
    held: list[Any] | None = None


@final
@dataclass(frozen=True, slots=True)
class _Partial:
    """How to rebuild a value that is bound on the paths that have not left."""

    plan: Any
    flags: frozenset[str]
    reason: str


def _filled(plan: Any, values: Iterator[Any], heap: Heap) -> Any:
    """The merged value; what is no plan is a value already."""
    if isinstance(plan, _Partial):
        return Live(_filled(plan.plan, values, heap), plan.flags, plan.reason)
    if isinstance(plan, _Plan):
        leaves = [next(values) if isinstance(leaf, _Slot) else leaf for leaf in plan.leaves]
        return rebuild(plan.tree, iter(leaves))
    if not isinstance(plan, _Sequence):
        return plan
    parts = [_filled(part, values, heap) for part in plan.parts]
    if plan.held is not None:
        if heap.made_inside(plan.held):
            heap.made(plan.held)
        else:
            heap.change(plan.held)
        plan.held[:] = parts
        return plan.held
    return heap.freeze(plan.kind._make(parts) if is_named(plan.kind) else plan.kind(parts))


@final
class _Merger:
    def __init__(self, heap: Heap, then: Side, other: Side) -> None:
        self._heap = heap
        self._sides = (then, other)
        self._adopted: set[int] = set()
        self.slots: list[_Slot] = []

    def name(self, name: str) -> Any:
        """A plan for one name, or what it holds on both sides if that is the same."""
        a, b = (side.variables.get(name, _ABSENT) for side in self._sides)
        if a is b:
            return a
        if name == VALUE and (a is _ABSENT or b is _ABSENT):
            return self._one_sided(b if a is _ABSENT else a, a is _ABSENT)
        if isinstance(a, Missing) or isinstance(b, Missing):
            return self._partial(a, b)
        flags, reason = frozenset[str](), ""
        for value in (a, b):
            if isinstance(value, Live):
                flags, reason = flags | value.flags, value.reason
        plan = self._both(*(v.value if isinstance(v, Live) else v for v in (a, b)))
        if isinstance(plan, Missing) and name in _REQUIRED:
            what = "two results" if name == RESULT else "returned values"
            raise KernelError(f"the {what} do not go together: {plan.reason}", "make both the same kind of value")
        return _Partial(plan, flags, reason) if flags and not isinstance(plan, Missing) else plan

    def lists(self) -> list[_Sequence]:
        """Plans for the lists that a side has changed."""
        plans = []
        then, other = (side.changes for side in self._sides)
        for key in dict.fromkeys([*then, *other]):
            held = (then.get(key) or other[key])[0]
            a, b = (changes[key][1] if key in changes else list(held) for changes in (then, other))
            parts = self._parts(a, b)
            if isinstance(parts, Missing):
                raise KernelError(f"a list is changed in ways that do not go together: {parts.reason}")
            plans.append(_Sequence(list, parts, held))
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
        return _Partial(self._one_sided(bound, isinstance(a, Missing)), flags, reason)

    def _one_sided(self, bound: Any, first_missing: bool) -> Any:
        """A value that one side alone gives: a list stays the list it is."""
        if isinstance(bound, list):
            if not self._heap.made_inside(bound) or id(bound) in self._adopted:
                return bound
            self._adopted.add(id(bound))
        if isinstance(bound, (list, tuple)):
            parts = tuple(self._one_sided(part, first_missing) for part in bound)
            return _Sequence(type(bound), parts, bound if isinstance(bound, list) else None)
        leaves: list[Any] = []
        tree = flatten(bound, leaves)
        for k, leaf in enumerate(leaves):
            if isinstance(leaf, Traced):
                x, y = (None, leaf) if first_missing else (leaf, None)
                leaves[k] = self._slot(x, y, leaf.type)
        return _Plan(tree, tuple(leaves))

    def _both(self, a: Any, b: Any) -> Any:
        if a is b:
            return a
        if isinstance(a, (list, tuple)) and type(a) is type(b):
            parts = self._parts(a, b)
            self._heap.freeze((a, b))
            return parts if isinstance(parts, Missing) else _Sequence(type(a), parts)
        left: list[Any] = []
        right: list[Any] = []
        tree = flatten(a, left)
        if tree != flatten(b, right):
            return self._conflict(name_of(a), name_of(b))
        for x, y in zip(left, right, strict=True):
            if not _same(x, y) and _is_bool(x) != _is_bool(y):
                return self._conflict(name_of(x), name_of(y))
        pairs = zip(left, right, strict=True)
        return _Plan(tree, tuple(x if _same(x, y) else self._slot(x, y, common_type(x, y)) for x, y in pairs))

    def _parts(self, a: Any, b: Any) -> Any:
        """Plans for the items of two sequences, or what they do not have in common."""
        if len(a) != len(b):
            return self._conflict(name_of(a), name_of(b))
        parts = tuple(self._both(x, y) for x, y in zip(a, b, strict=True))
        return next((part for part in parts if isinstance(part, Missing)), parts)

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
