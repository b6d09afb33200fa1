"""Simplify by rewrites that keep every bit: folding, common subexpressions, neutral elements, signs.

Nothing here reassociates or distributes. What IEEE 754 does not promise for every input is not done:
``x + 0.0`` stays (it turns -0.0 into 0.0), ``x * 0.0`` stays (NaN, inf, signs), ``x - x`` stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...elementary.numpy_lanes import NumpyLanes
from ...elementary.real_ops import REAL_OPS
from ..interpret import INTEGERS, cast
from ..program import Instr, Program, Region, Value
from ..types import Type
from .rewrite import Rewriter
from .specialise import rounded

_COMMUTATIVE = frozenset({"add", "mul", "eq", "ne", "and", "or", "xor"})


def simplify(program: Program, pins: bool = True) -> Program:
    """`program` with the same outputs, bit for bit (but for the payload of a NaN).

    With ``pins=False`` the pins, which only guide `fuse`, are dropped.
    """
    return _Simplify(pins).program(program)


class _Simplify(Rewriter):
    def __init__(self, pins: bool) -> None:
        super().__init__()
        self._pins = pins
        self._made: dict[Value, Instr] = {}  # the instruction that defines a new value
        self._known: list[dict[object, Value]] = [{}]  # common subexpressions, one dict a region
        self._order: dict[Value, int] = {}

    def instr(self, instr: Instr) -> None:
        if instr.op == "if":
            self._if(instr)
        elif instr.op == "loop":
            self._loop(instr)
        elif instr.op == "custom":  # nothing outside is seen from its region
            outer, self._known = self._known, [{}]
            self.keep(instr)
            self._known = outer
        elif instr.op in ("scatter", "store", "load", "most"):  # memory: what is read depends on when
            self.keep(instr)
        else:
            self.env[instr.result] = self._scalar(instr)

    def region(self, region: Region) -> Region:
        self._known.append({})
        new = super().region(region)
        self._known.pop()
        return new

    def _if(self, instr: Instr) -> None:
        condition = self._constant(self.env[instr.args[0]])
        if condition is None:
            self.keep(instr)
            return
        region = instr.regions[0 if condition else 1]
        self.block(region.body)
        for result, value in zip(instr.results, region.yields, strict=True):
            self.env[result] = self.env[value]

    def _loop(self, instr: Instr) -> None:
        """A value carried unchanged is not carried."""
        (region,) = instr.regions
        moving = []
        for k, (param, value) in enumerate(zip(region.params[1:], region.yields[1:], strict=True)):
            if value is param:
                self.env[param] = self.env[instr.results[1 + k]] = self.env[instr.args[2 + k]]
            else:
                moving.append(k)
        slim = Region(
            (region.params[0], *(region.params[1 + k] for k in moving)),
            region.body,
            (region.yields[0], *(region.yields[1 + k] for k in moving)),
        )
        args = (*instr.args[:2], *(instr.args[2 + k] for k in moving))
        results = (instr.results[0], *(instr.results[1 + k] for k in moving))
        self.keep(Instr("loop", args, results, None, (slim,), instr.span, instr.frozen))

    def _scalar(self, instr: Instr) -> Value:
        args = tuple(self.env[a] for a in instr.args)
        op, type = instr.op, self.type_of(instr.result.type)
        if op == "pin" and not self._pins:
            return args[0]
        if op not in ("const", "pin", "detach", "sample", "table", "most"):
            folded = self._fold(instr, args, type)
            if folded is not None:
                return self._emit(Instr("const", (), (Value(type),), folded, span=instr.span, frozen=instr.frozen))
            rule = _RULES.get(op)
            better = rule(self, instr, args) if rule is not None else None
            if better is not None:
                return better
        return self._emit(Instr(op, args, (Value(type),), instr.attr, span=instr.span, frozen=instr.frozen))

    def make(self, like: Instr, op: str, *args: Value) -> Value:
        """A new instruction in place of `like`, with the type of its first argument."""
        return self._emit(Instr(op, args, (Value(args[0].type),), span=like.span, frozen=like.frozen))

    def number(self, like: Instr, number: float | bool, type: Type) -> Value:
        return self._emit(Instr("const", (), (Value(type),), number, span=like.span, frozen=like.frozen))

    def _emit(self, instr: Instr) -> Value:
        """`instr`, or what already computes the same; a settled rounding is not left to one that may still be fused."""
        key = self._key(instr)
        for known in reversed(self._known):
            made = known.get(key)
            if made is not None and (self._made[made].frozen or not instr.frozen):
                return made
        value = instr.result
        self.out.append(instr)
        self._made[value] = instr
        self._order[value] = len(self._order)
        self._known[-1][key] = value
        return value

    def _key(self, instr: Instr) -> object:
        args: tuple[Value, ...] = instr.args
        if instr.op in _COMMUTATIVE:
            args = tuple(sorted(args, key=lambda v: self._order.get(v, -1) if v in self._order else -id(v)))
        attr = instr.attr
        if isinstance(attr, float):
            attr = (attr.hex() if math.isfinite(attr) else repr(attr), "float")
        elif isinstance(attr, bool):
            attr = (attr, "bool")
        return instr.op, args, instr.result.type, attr

    def constant(self, value: Value) -> float | int | bool | None:
        return self._constant(value)

    def _constant(self, value: Value) -> float | int | bool | None:
        made = self._made.get(value)
        return made.attr if made is not None and made.op == "const" else None  # type: ignore[return-value]

    def made(self, value: Value, op: str) -> Instr | None:
        """The instruction that makes `value`, if it is an `op`."""
        instr = self._made.get(value)
        return instr if instr is not None and instr.op == op else None

    def _fold(self, instr: Instr, args: tuple[Value, ...], type: Type) -> float | int | bool | None:
        if not args or type is Type.REAL or any(a.type is Type.REAL for a in args):
            return None
        numbers = [self._constant(a) for a in args]
        if any(n is None for n in numbers):
            return None
        arrays = [np.array([n]).astype(a.type.dtype) for n, a in zip(numbers, args, strict=True)]
        with np.errstate(all="ignore"):
            if instr.op == "cast":
                result = cast(arrays[0], type.dtype)
            elif arrays[-1].dtype.kind == "f":
                result = REAL_OPS[instr.op](NumpyLanes(arrays[-1].dtype.itemsize * 8), *arrays)
            else:
                result = INTEGERS[instr.op](*arrays)
        return rounded(np.asarray(result).ravel()[0].item(), type)


Rule = Callable[[_Simplify, Instr, tuple[Value, ...]], Value | None]


def _add(s: _Simplify, i: Instr, args: tuple[Value, ...]) -> Value | None:
    x, y = args
    for a, b in ((x, y), (y, x)):
        if _is(s.constant(b), -0.0) or (b.type.is_int and s.constant(b) == 0):
            return a
        if (negative := s.made(b, "neg")) is not None:
            return _RULES["sub"](s, i, (a, negative.args[0])) or s.make(i, "sub", a, negative.args[0])
    return None


def _sub(s: _Simplify, i: Instr, args: tuple[Value, ...]) -> Value | None:
    x, y = args
    if _is(s.constant(y), 0.0) or (y.type.is_int and s.constant(y) == 0):
        return x
    if (negative := s.made(y, "neg")) is not None:
        return s.make(i, "add", x, negative.args[0])
    return None


def _mul(s: _Simplify, i: Instr, args: tuple[Value, ...]) -> Value | None:
    x, y = args
    for a, b in ((x, y), (y, x)):
        number = s.constant(b)
        if number == 1:
            return a
        if number == -1:
            return _negated(s, i, a)
        if (negative := s.made(a, "neg")) is not None:
            return _negated(s, i, s.make(i, "mul", negative.args[0], b))
    return None


def _div(s: _Simplify, i: Instr, args: tuple[Value, ...]) -> Value | None:
    x, y = args
    number = s.constant(y)
    if number == 1:
        return x
    if isinstance(number, float) and number != 0.0 and math.isfinite(number):
        mantissa, exponent = math.frexp(number)
        if abs(mantissa) == 0.5 and abs(exponent) < 100:  # a power of two: its reciprocal is exact
            return s.make(i, "mul", x, s.number(i, 1.0 / number, y.type))
    return None


def _negated(s: _Simplify, i: Instr, x: Value) -> Value:
    inner = s.made(x, "neg")
    return inner.args[0] if inner is not None else s.make(i, "neg", x)


def _neg(s: _Simplify, i: Instr, args: tuple[Value, ...]) -> Value | None:
    inner = s.made(args[0], "neg")
    return inner.args[0] if inner is not None else None


def _select(s: _Simplify, i: Instr, args: tuple[Value, ...]) -> Value | None:
    condition, x, y = args
    if x is y:
        return x
    chosen = s.constant(condition)
    if chosen is not None:
        return x if chosen else y
    if (inverse := s.made(condition, "not")) is not None:
        return s._emit(Instr("select", (inverse.args[0], y, x), (Value(x.type),), span=i.span, frozen=i.frozen))
    return None


def _not(s: _Simplify, i: Instr, args: tuple[Value, ...]) -> Value | None:
    inner = s.made(args[0], "not")
    return inner.args[0] if inner is not None else None


def _and(s: _Simplify, i: Instr, args: tuple[Value, ...]) -> Value | None:
    return _logic(s, args, neutral=True, absorbing=False)


def _or(s: _Simplify, i: Instr, args: tuple[Value, ...]) -> Value | None:
    return _logic(s, args, neutral=False, absorbing=True)


def _logic(s: _Simplify, args: tuple[Value, ...], neutral: bool, absorbing: bool) -> Value | None:
    x, y = args
    if x is y:
        return x
    if x.type is Type.BOOL:
        for a, b in ((x, y), (y, x)):
            number = s.constant(b)
            if number is neutral:
                return a
            if number is absorbing:
                return b
    return None


def _cast(s: _Simplify, i: Instr, args: tuple[Value, ...]) -> Value | None:
    return args[0] if args[0].type is i.result.type else None


def _pow(s: _Simplify, i: Instr, args: tuple[Value, ...]) -> Value | None:
    """x**1 is x. A square stays pow, which may round it another way where its exponent is not constant."""
    return args[0] if s.constant(args[1]) == 1 else None


def _is(number: object, zero: float) -> bool:
    """Whether `number` is this signed zero."""
    return isinstance(number, float) and number == 0.0 and math.copysign(1.0, number) == math.copysign(1.0, zero)


_RULES: dict[str, Rule] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "select": _select,
    "not": _not,
    "and": _and,
    "or": _or,
    "cast": _cast,
    "pow": _pow,
}
