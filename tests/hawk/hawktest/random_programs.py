"""Random programs: straight lines, ifs and loops over reals, integers and bools.

All have the same arguments: ``x y`` reals and ``s`` a Mutable real, ``p`` a param, ``i`` an i32, ``u`` a u32,
``flag`` a bool, ``tab`` a table; they write the vector ``out``, ``s``, the integer ``k``, the bool ``b`` and the sum
``total``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from hawk.codegen.frame import slots
from hawk.ir.build import Builder
from hawk.ir.interpret import Array
from hawk.ir.program import PER_SAMPLE, Argument, Instr, Place, Program, Region, Role, Value
from hawk.ir.types import Type
from hawk.ir.verify import verify

from .samples import mixed

T = TypeVar("T")
TABLE_SIZE, OUTPUTS = 5, 6
REAL, I32, U32, BOOL = Type.REAL, Type.I32, Type.U32, Type.BOOL

_ARGUMENTS = (
    Argument("x", Role.SAMPLE, (), REAL),
    Argument("y", Role.SAMPLE, (), REAL),
    Argument("s", Role.MUTABLE, (), REAL),
    Argument("p", Role.PARAM, (), REAL),
    Argument("i", Role.SAMPLE, (), I32),
    Argument("u", Role.SAMPLE, (), U32),
    Argument("flag", Role.SAMPLE, (), BOOL),
    Argument("tab", Role.TABLE, (TABLE_SIZE,), REAL),
    Argument("out", Role.MUTABLE, (OUTPUTS,), REAL),
    Argument("k", Role.MUTABLE, (), I32),
    Argument("b", Role.MUTABLE, (), BOOL),
    Argument("total", Role.SUM, (), REAL),
)

_WILD = {
    1: "neg abs sqrt sign floor ceil trunc round sin cos exp log tanh cbrt pin".split(),
    2: "add sub mul div minimum maximum mod floordiv hypot atan2".split(),
    3: ["fma"],
}
# Ops that keep reals of moderate size smooth and of moderate size, written as small expressions.
_TAME: dict[str, Callable[[Builder, Value, Value], Value]] = {
    "add": lambda b, x, y: b("add", x, y),
    "sub": lambda b, x, y: b("sub", x, y),
    "half": lambda b, x, y: b("mul", b.const(0.5, REAL), x),
    "product": lambda b, x, y: b("mul", b("sin", x), y),
    "fma": lambda b, x, y: b("fma", b("tanh", x), b("cos", y), x),
    "quotient": lambda b, x, y: b("div", x, b("add", b("abs", y), b.const(1.5, REAL))),
    "root": lambda b, x, y: b("hypot", x, b.const(0.75, REAL)),
    "bell": lambda b, x, y: b("exp", b("neg", b("mul", x, x))),
    "angle": lambda b, x, y: b("atan2", x, b("add", b.const(2.0, REAL), b("cos", y))),
    "log": lambda b, x, y: b("log1p", b("mul", x, x)),
}
_KINKED: dict[str, Callable[[Builder, Value, Value], Value]] = {
    "abs": lambda b, x, y: b("abs", x),
    "minimum": lambda b, x, y: b("minimum", x, y),
    "maximum": lambda b, x, y: b("maximum", x, b("sin", y)),
    "floor": lambda b, x, y: b("sub", x, b("floor", x)),
    "mod": lambda b, x, y: b("mod", x, b.const(1.25, REAL)),
    "where": lambda b, x, y: b.select(b("lt", x, y), x, b("mul", b.const(0.5, REAL), y)),
}
_INTEGERS = {1: "neg abs not".split(), 2: "add sub mul floordiv mod minimum maximum and or xor shl shr".split()}
_COMPARISONS = "lt le gt ge eq ne".split()


@dataclass(frozen=True)
class Taste:
    """What a random program may hold: any op, or tame ones; branches on reals, or on the rest alone."""

    tame: bool = False
    kinks: bool = True  # of a tame program
    run: bool = False  # one loop at the top, which samples leave one by one, and no sum


WILD, TAME, SMOOTH, RUN = Taste(), Taste(tame=True), Taste(tame=True, kinks=False), Taste(run=True)


class _Writer:
    """Emits random instructions; `pools` holds the values in scope by type."""

    def __init__(self, seed: int, size: int, taste: Taste) -> None:
        self._random = Random(seed)
        self._taste = taste
        self._left = size
        self._unused: set[Value] = set()
        self.b = Builder()
        self.pools: dict[Type, list[Value]] = {t: [] for t in (REAL, I32, U32, BOOL)}

    def number(self, most: int) -> int:
        return self._random.randint(0, most)

    def pick(self, options: Sequence[T]) -> T:
        return self._random.choice(options)

    def value(self, type: Type) -> Value:
        """One in scope; mostly one that nothing has used yet, so that little of a program is dead."""
        pool = self.pools[type]
        unused = [v for v in pool if v in self._unused]
        chosen = self.pick(unused if unused and self.number(3) else pool)
        self._unused.discard(chosen)
        return chosen

    def add(self, value: Value) -> None:
        self.pools[value.type].append(value)
        self._unused.add(value)

    @contextmanager
    def scope(self) -> Iterator[list[Instr]]:
        outer = self.pools
        self.pools = {t: list(pool) for t, pool in outer.items()}
        try:
            with self.b.block() as body:
                yield body
        finally:
            self.pools = outer

    def block(self, depth: int) -> None:
        """Statements: all that are left at the top, a few inside."""
        for _ in range(self._left if depth == 0 else 1 + self.number(4)):
            if self._left > 0:
                self._left -= 1
                self._statement(depth)

    def more(self, size: int) -> None:
        self._left = size
        self.block(0)

    def _statement(self, depth: int) -> None:
        kind = self.number(11)
        if kind == 0 and depth < 3:
            self._if(depth)
        elif kind == 1 and depth < 2 and (depth > 0 or not self._taste.run):
            self.loop(depth)
        elif kind <= 3:
            self.add(self._integer(self.pick((I32, U32))))
        elif kind == 4:
            self.add(self._bool())
        else:
            self.add(self._tame() if self._taste.tame else self._wild())

    def _wild(self) -> Value:
        b, kind = self.b, self.number(9)
        if kind == 0:
            return b.cast(self.value(self.pick((I32, U32, BOOL))), REAL)
        if kind == 1:
            return b.select(self.value(BOOL), self.value(REAL), self.value(REAL))
        if kind == 2:
            return b.table("tab", self.value(I32), REAL)
        if kind == 3:
            return b.const(self.pick((0.0, -0.0, 1.0, -1.0, 0.5, 0.1, 3.0, 1e30)), REAL)
        arity = self.pick((1, 2, 2, 3))
        return b(self.pick(_WILD[arity]), *(self.value(REAL) for _ in range(arity)))

    def _tame(self) -> Value:
        b, kind = self.b, self.number(9)
        if kind == 0:
            return b.select(self.value(BOOL), self.value(REAL), self.value(REAL))
        if kind == 1:
            return b.table("tab", self.value(I32), REAL)
        kinked = self._taste.kinks and kind <= 3
        ops = _KINKED if kinked else _TAME
        return ops[self.pick(list(ops))](b, self.value(REAL), self.value(REAL))

    def _integer(self, type: Type) -> Value:
        b, kind = self.b, self.number(9)
        if kind == 0 and self._reals_decide:
            return b.cast(self.value(REAL), type)
        if kind == 1:
            return b.cast(b.cast(self.value(self.pick((I32, U32, BOOL))), Type.I64), type)
        if kind == 2:
            return b.const(self.pick((0, 1, -1, 3, 2**31 - 1)) if type is I32 else self.pick((0, 1, 7)), type)
        arity = self.pick((1, 2, 2))
        return b(self.pick(_INTEGERS[arity]), *(self.value(type) for _ in range(arity)))

    @property
    def _reals_decide(self) -> bool:
        return not self._taste.tame or self._taste.kinks

    def _bool(self) -> Value:
        b, kind = self.b, self.number(5)
        if kind == 0:
            return b("not", self.value(BOOL))
        if kind == 1:
            return b(self.pick(("and", "or", "xor")), self.value(BOOL), self.value(BOOL))
        type = self.pick((REAL, REAL, I32, U32)) if self._reals_decide else self.pick((I32, U32))
        return b(self.pick(_COMPARISONS), self.value(type), self.value(type))

    def _if(self, depth: int) -> None:
        types = [self.pick((REAL, REAL, I32, BOOL)) for _ in range(1 + self.number(2))]
        condition, regions = self.value(BOOL), []
        for _ in range(2):
            with self.scope() as body:
                self.block(depth + 1)
                yields = tuple(self.value(t) for t in types)
            regions.append(Region((), tuple(body), yields))
        for result in self.b.if_(condition, *regions):
            self.add(result)

    def loop(self, depth: int) -> None:
        types = [self.pick((REAL, REAL, I32, BOOL)) for _ in range(1 + self.number(2))]
        starts = [self.value(t) for t in types]
        limit, start = self._limit(), self.b.const(True, BOOL) if self.number(1) else self.value(BOOL)
        params = (Value(I32), *(Value(t) for t in types))
        with self.scope() as body:
            for param in params:
                self.add(param)
            self.block(depth + 1)
            leaves = self.number(1) or (depth == 0 and self._taste.run)
            again = self._bool() if leaves else self.b.const(True, BOOL)
            yields = (again, *(self.value(t) for t in types))
        for result in self.b.loop(limit, start, starts, Region(params, tuple(body), yields)):
            self.add(result)

    def _limit(self) -> Value:
        b, kind = self.b, self.number(4)
        if kind == 0:
            return b("and", self.value(I32), b.const(3, I32))
        if kind == 1:
            return b("sub", b("mod", self.value(I32), b.const(5, I32)), b.const(1, I32))
        return b.const(self.pick((0, 1, 3)) if kind < 4 else 6, I32)


def _inputs(writer: _Writer) -> tuple[tuple[Place, Value], ...]:
    inputs = tuple((Place(a.name, 0), Value(a.type)) for a in _ARGUMENTS[:7])
    for _, value in inputs:
        writer.add(value)
    return inputs


def random_program(seed: int, size: int, taste: Taste) -> Program:
    """A verified program of about `size` instructions, its reals not yet of any precision."""
    writer = _Writer(seed, size, taste)
    inputs = _inputs(writer)
    writer.block(0)
    if taste.run:
        writer.loop(0)
        writer.more(size // 3)
    arguments = tuple(a for a in _ARGUMENTS if not taste.run or a.role is not Role.SUM)
    kinds = {a.name: a for a in arguments if a.role in (Role.MUTABLE, Role.SUM)}
    places = [Place(a.name, k) for a in kinds.values() for k in range(a.size)]
    outputs = tuple((place, writer.value(kinds[place.argument].type)) for place in places)
    return verify(Program("k", arguments, inputs, tuple(writer.b.body), outputs))


def programs(taste: Taste = WILD) -> st.SearchStrategy[Program]:
    return st.builds(random_program, st.integers(0, 2**32), st.integers(8, 50), st.just(taste))


def samples(program: Program, count: int = 41, seed: int = 3, special: float = 0.5) -> dict[str, Array]:
    """Planes for a program at one precision; this part of the reals is special values, the rest moderate."""
    rng = np.random.default_rng(seed)
    planes = {}
    for a in (slot.argument for slot in slots(program) if not slot.writes):
        shape = (*a.shape, count) if a.role in PER_SAMPLE else a.shape
        plane = mixed(a.type, int(np.prod(shape)), rng).reshape(shape)
        if a.type.is_real:
            plane = np.where(rng.random(shape) < special, plane, rng.normal(0.0, 2.0, shape)).astype(a.type.dtype)
        planes[a.name] = plane
    return planes
