"""The one table of calculus: how each op varies with each of its arguments.

A row maps (calculus, arguments, result) to one linear map per argument, or None where the derivative is
zero by definition. A linear map takes a tangent to a tangent; being a scalar map it is its own transpose,
so forward mode and reverse mode apply the same one. Rows build IR: derivatives are programs like any other
and can be differentiated again.

Conventions: abs'(0) = 0; minimum and maximum split a tie in halves and are NaN where an argument is; hypot
and atan2 have derivative 0 at the origin; an infinite slope times a variation of exactly 0 is 0, so that a
value multiplied by nothing contributes nothing; the side that a `select` did not choose contributes nothing either.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from ..ir.build import Builder
from ..ir.program import Instr, Value

Linear = Callable[[Builder, Value], Value]
Row = Callable[["Calculus", tuple[Value, ...], Value], tuple[Linear | None, ...]]


class Calculus:
    """What a row builds with: the builder, and which values are known constants."""

    def __init__(self, builder: Builder, constants: dict[Value, float]) -> None:
        self.b = builder
        self._constants = constants

    def constant(self, value: Value) -> float | None:
        return self._constants.get(value)

    def number(self, number: float, like: Value) -> Value:
        return self.b.const(number, like.type)


def note_constant(constants: dict[Value, float], instr: Instr) -> None:
    """Record the number of a `const`, for `Calculus.constant`."""
    if instr.op == "const" and isinstance(instr.attr, (int, float)):
        constants[instr.result] = float(instr.attr)


# linear maps


def one(b: Builder, t: Value) -> Value:
    return t


def minus(b: Builder, t: Value) -> Value:
    return b("neg", t)


@final
@dataclass(frozen=True, slots=True)
class Scale:
    """The variation times a factor."""

    factor: Value

    def __call__(self, b: Builder, t: Value) -> Value:
        return b("mul", self.factor, t)


def over(divisor: Value) -> Linear:
    return lambda b, t: b("div", t, divisor)


@final
@dataclass(frozen=True, slots=True)
class Gate:
    """The variation where the condition holds, and exactly nothing elsewhere."""

    condition: Value

    def __call__(self, b: Builder, t: Value) -> Value:
        return b.select(self.condition, t, b.const(0.0, t.type))


def unless(condition: Value, then: Linear) -> Linear:
    """Nothing where the condition holds, `then` elsewhere."""
    return lambda b, t: b.select(condition, b.const(0.0, t.type), then(b, t))


def steep(factor: Value) -> Linear:
    """For a slope that need not be finite: a variation of exactly 0 stays 0.

    The slope is replaced, not the product: this map too is differentiated, also where the variation is 0.
    """

    def linear(b: Builder, t: Value) -> Value:
        zero = b.const(0.0, t.type)
        finite = b("lt", b("abs", factor), b.const(math.inf, t.type))
        replaced = b("and", b("eq", t, zero), b("not", finite))
        return b("mul", b.select(replaced, zero, factor), t)

    return linear


def steep_over(divisor: Value) -> Linear:
    """`over` for a divisor that can be 0, as `steep`."""

    def linear(b: Builder, t: Value) -> Value:
        zero = b.const(0.0, t.type)
        both = b("and", b("eq", t, zero), b("eq", divisor, zero))
        return b("div", t, b.select(both, b.const(1.0, t.type), divisor))

    return linear


# rows


def _mul(c: Calculus, args: tuple[Value, ...], r: Value) -> tuple[Linear | None, ...]:
    x, y = args
    return Scale(y), Scale(x)


def _div(c: Calculus, args: tuple[Value, ...], r: Value) -> tuple[Linear | None, ...]:
    _, y = args
    return over(y), lambda b, t: b("neg", b("mul", r, b("div", t, y)))


def _fma(c: Calculus, args: tuple[Value, ...], r: Value) -> tuple[Linear | None, ...]:
    x, y, _ = args
    return Scale(y), Scale(x), one


def _quotient(c: Calculus, args: tuple[Value, ...], r: Value) -> tuple[Linear | None, ...]:
    """mod and fmod: x minus a whole multiple of y."""
    x, y = args
    b = c.b
    multiple = b("round", b("div", b("sub", x, r), y))
    return one, lambda b, t: b("neg", b("mul", multiple, t))


def _extremum(comparison: str) -> Row:
    def row(c: Calculus, args: tuple[Value, ...], r: Value) -> tuple[Linear | None, ...]:
        def side(mine: Value, other: Value) -> Linear:
            wins, loses = c.b(comparison, mine, other), c.b(comparison, other, mine)
            tie = c.b.select(c.b("eq", mine, other), c.number(0.5, r), c.number(math.nan, r))
            shared = Scale(tie)
            return lambda b, t: b.select(wins, t, b.select(loses, b.const(0.0, t.type), shared(b, t)))

        x, y = args
        return side(x, y), side(y, x)

    return row


def _copysign(c: Calculus, args: tuple[Value, ...], r: Value) -> tuple[Linear | None, ...]:
    x, y = args
    return Scale(c.b("mul", c.b("sign", x), c.b("copysign", c.number(1.0, x), y))), None


def _hypot(c: Calculus, args: tuple[Value, ...], r: Value) -> tuple[Linear | None, ...]:
    x, y = args
    origin = c.b("eq", r, c.number(0.0, r))
    return unless(origin, Scale(c.b("div", x, r))), unless(origin, Scale(c.b("div", y, r)))


def _atan2(c: Calculus, args: tuple[Value, ...], r: Value) -> tuple[Linear | None, ...]:
    """d/dy = x/h**2, d/dx = -y/h**2, divided twice by h so that nothing is squared."""
    y, x = args
    h = c.b("hypot", x, y)
    origin = c.b("eq", h, c.number(0.0, h))
    by_y = Scale(c.b("div", c.b("div", x, h), h))
    by_x = Scale(c.b("neg", c.b("div", c.b("div", y, h), h)))
    return unless(origin, by_y), unless(origin, by_x)


def _pow(c: Calculus, args: tuple[Value, ...], r: Value) -> tuple[Linear | None, ...]:
    """d/dx = y x**(y-1), 0 for y = 0; d/dy = x**y log x, 0 at x = 0 for y > 0. A constant y takes no log."""
    x, y = args
    b, zero = c.b, c.number(0.0, x)
    exponent = c.constant(y)
    if exponent == 0.0:
        return None, None
    lower = c.number(exponent - 1.0, x) if exponent is not None else b("sub", y, c.number(1.0, y))
    slope = b("mul", y, b("pow", x, lower))
    if exponent is not None:
        return steep(slope), None
    flat = b("eq", y, zero)
    still = b("and", b("eq", x, zero), b("gt", y, zero))
    return unless(flat, steep(slope)), unless(still, steep(b("mul", r, b("log", x))))


def _select(c: Calculus, args: tuple[Value, ...], r: Value) -> tuple[Linear | None, ...]:
    condition = args[0]
    return None, Gate(condition), Gate(c.b("not", condition))


def _cast(c: Calculus, args: tuple[Value, ...], r: Value) -> tuple[Linear | None, ...]:
    """Between precisions; a cast to or from an integer has no variation."""
    (x,) = args
    return (lambda b, t: b.cast(t, r.type if t.type is x.type else x.type),)


def unary(slope: Callable[[Calculus, Value, Value], Value], infinite: bool = False) -> Row:
    """A row for one argument from its slope at (x, r)."""

    def row(c: Calculus, args: tuple[Value, ...], r: Value) -> tuple[Linear | None, ...]:
        factor = slope(c, args[0], r)
        return (steep(factor) if infinite else Scale(factor),)

    return row


def _one_minus_square(c: Calculus, x: Value) -> Value:
    """(1 - x)(1 + x): no cancellation near |x| = 1."""
    unit = c.number(1.0, x)
    return c.b("mul", c.b("sub", unit, x), c.b("add", unit, x))


def _rsqrt_slope(c: Calculus, x: Value, r: Value) -> Value:
    return c.b("mul", c.b("mul", c.b("mul", c.number(-0.5, r), r), r), r)


def _gauss(factor: float) -> Callable[[Calculus, Value, Value], Value]:
    def slope(c: Calculus, x: Value, r: Value) -> Value:
        return c.b("mul", c.number(factor, x), c.b("exp", c.b("neg", c.b("mul", x, x))))

    return slope


PARTIALS: dict[str, Row] = {
    "add": lambda c, args, r: (one, one),
    "sub": lambda c, args, r: (one, minus),
    "mul": _mul,
    "div": _div,
    "neg": lambda c, args, r: (minus,),
    "fma": _fma,
    "pin": lambda c, args, r: (one,),
    "cast": _cast,
    "mod": _quotient,
    "fmod": _quotient,
    "abs": unary(lambda c, x, r: c.b("sign", x)),
    "copysign": _copysign,
    "minimum": _extremum("lt"),
    "maximum": _extremum("gt"),
    "select": _select,
    "sqrt": unary(lambda c, x, r: c.b("div", c.number(0.5, r), r), infinite=True),
    "rsqrt": unary(_rsqrt_slope, infinite=True),
    "cbrt": unary(
        lambda c, x, r: c.b("div", c.number(1.0, r), c.b("mul", c.b("mul", c.number(3.0, r), r), r)), infinite=True
    ),
    "hypot": _hypot,
    "exp": unary(lambda c, x, r: r),
    "exp2": unary(lambda c, x, r: c.b("mul", c.number(math.log(2.0), r), r)),
    "expm1": unary(lambda c, x, r: c.b("exp", x)),
    "log": lambda c, args, r: (steep_over(args[0]),),
    "log2": lambda c, args, r: (steep_over(c.b("mul", c.number(math.log(2.0), r), args[0])),),
    "log10": lambda c, args, r: (steep_over(c.b("mul", c.number(math.log(10.0), r), args[0])),),
    "log1p": lambda c, args, r: (steep_over(c.b("add", c.number(1.0, r), args[0])),),
    "pow": _pow,
    "sin": unary(lambda c, x, r: c.b("cos", x)),
    "cos": unary(lambda c, x, r: c.b("neg", c.b("sin", x))),
    "tan": unary(lambda c, x, r: c.b("fma", r, r, c.number(1.0, r))),
    "asin": unary(lambda c, x, r: c.b("rsqrt", _one_minus_square(c, x)), infinite=True),
    "acos": unary(lambda c, x, r: c.b("neg", c.b("rsqrt", _one_minus_square(c, x))), infinite=True),
    "atan": lambda c, args, r: (over(c.b("fma", args[0], args[0], c.number(1.0, r))),),
    "atan2": _atan2,
    "sinh": unary(lambda c, x, r: c.b("cosh", x)),
    "cosh": unary(lambda c, x, r: c.b("sinh", x)),
    "tanh": unary(lambda c, x, r: c.b("fma", c.b("neg", r), r, c.number(1.0, r))),
    "asinh": lambda c, args, r: (over(c.b("hypot", args[0], c.number(1.0, r))),),
    "acosh": unary(
        lambda c, x, r: c.b("mul", c.b("rsqrt", c.b("sub", x, c.number(1.0, x))),
                            c.b("rsqrt", c.b("add", x, c.number(1.0, x)))),
        infinite=True,
    ),
    "atanh": lambda c, args, r: (steep_over(_one_minus_square(c, args[0])),),
    "erf": unary(_gauss(2.0 / math.sqrt(math.pi))),
    "erfc": unary(_gauss(-2.0 / math.sqrt(math.pi))),
}  # fmt: skip

# Results that do not vary: constants, steps, comparisons, logic, integers. Their derivative is exactly 0.
FLAT = frozenset(
    "const detach sign floor ceil trunc round floordiv lt le gt ge eq ne and or xor not shl shr sample most".split()
)
# Ops whose slope can be infinite at an end of their domain.
STEEP = frozenset("sqrt rsqrt cbrt log log2 log10 log1p pow asin acos acosh atanh".split())
# Ops with regions or memory, which forward and reverse mode treat by name.
BY_NAME = frozenset({"if", "loop", "custom", "table", "scatter", "load", "store"})
