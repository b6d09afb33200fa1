"""What each op on reals computes, as text over `Lanes`: one table for the interpreter and every back end.

Evaluated by NumPy it is the oracle, emitted as vector IR it is the compiled kernel; the tests judge both
by mpmath and Python's own floats.
"""

from __future__ import annotations

from collections.abc import Callable

from . import FUNCTIONS
from .lanes import Lanes, V


def minimum(m: Lanes, x: V, y: V) -> V:
    """The smaller; NaN if either is; of equals (two zeros) the second."""
    return m.select(m.either(m.lt(x, y), m.ne(x, x)), x, y)


def maximum(m: Lanes, x: V, y: V) -> V:
    """The larger; NaN if either is; of equals (two zeros) the second."""
    return m.select(m.either(m.gt(x, y), m.ne(x, x)), x, y)


def sign(m: Lanes, x: V) -> V:
    """-1, 0 or 1; the zeros give themselves and NaN gives NaN."""
    one = m.copysign(m.real(1.0), x)
    return m.select(m.either(m.eq(x, m.real(0.0)), m.ne(x, x)), x, one)


def mod(m: Lanes, x: V, y: V) -> V:
    """Python's x % y for floats: fmod moved to the sign of y (CPython, Objects/floatobject.c, float_rem)."""
    zero = m.real(0.0)
    r = FUNCTIONS["fmod"](m, x, y)
    moved = m.select(m.lt(m.mul(m.copysign(m.real(1.0), r), m.copysign(m.real(1.0), y)), zero), m.add(r, y), r)
    return m.select(m.eq(r, zero), m.copysign(zero, y), moved)


def floordiv(m: Lanes, x: V, y: V) -> V:
    """Python's x // y for floats: exact where representable (CPython, float_floor_div); x/0 is IEEE's."""
    zero, one = m.real(0.0), m.real(1.0)
    r = FUNCTIONS["fmod"](m, x, y)
    quotient = m.div(m.sub(x, r), y)
    opposite = m.both(m.ne(r, zero), m.lt(m.mul(m.copysign(one, r), m.copysign(one, y)), zero))
    quotient = m.select(opposite, m.sub(quotient, one), quotient)
    low = m.floor(quotient)
    nearest = m.select(m.gt(m.sub(quotient, low), m.real(0.5)), m.add(low, one), low)
    exact = m.div(x, y)
    nearest = m.select(m.eq(quotient, zero), m.copysign(zero, exact), nearest)
    return m.select(m.eq(y, zero), exact, nearest)


REAL_OPS: dict[str, Callable[..., V]] = {
    "add": lambda m, x, y: m.add(x, y),
    "sub": lambda m, x, y: m.sub(x, y),
    "mul": lambda m, x, y: m.mul(x, y),
    "div": lambda m, x, y: m.div(x, y),
    "fma": lambda m, x, y, z: m.fma(x, y, z),
    "neg": lambda m, x: m.neg(x),
    "pin": lambda m, x: x,
    "detach": lambda m, x: x,
    "abs": lambda m, x: m.abs(x),
    "sqrt": lambda m, x: m.sqrt(x),
    "floor": lambda m, x: m.floor(x),
    "ceil": lambda m, x: m.ceil(x),
    "trunc": lambda m, x: m.trunc(x),
    "round": lambda m, x: m.rint(x),
    "copysign": lambda m, x, y: m.copysign(x, y),
    "minimum": minimum,
    "maximum": maximum,
    "sign": sign,
    "mod": mod,
    "floordiv": floordiv,
    "lt": lambda m, x, y: m.lt(x, y),
    "le": lambda m, x, y: m.le(x, y),
    "gt": lambda m, x, y: m.gt(x, y),
    "ge": lambda m, x, y: m.ge(x, y),
    "eq": lambda m, x, y: m.eq(x, y),
    "ne": lambda m, x, y: m.ne(x, y),
    "select": lambda m, c, x, y: m.select(c, x, y),
    **FUNCTIONS,
}
