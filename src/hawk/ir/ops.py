"""The closed list of operations, with the type rule and meaning of each.

Every interpretation is a table keyed by these names: `real_ops.REAL_OPS` and `interpret.INTEGERS` (what an op
means), `diff.partials.PARTIALS` (how it varies), `codegen.integers.INTEGERS` (how lanes compute it). A test holds each
table to this list, or to that table's explicit list of exceptions. `if`, `loop` and `custom` have regions and are
handled by name in each interpretation; everything else is scalar.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .types import Type

TypeRule = Callable[[tuple[Type, ...]], Type | None]


@dataclass(frozen=True, slots=True)
class Op:
    """One operation: its name, how many arguments it takes, its result type, its meaning in a line."""

    name: str
    arity: int
    rule: TypeRule
    doc: str


def _one_type(types: tuple[Type, ...]) -> Type | None:
    return types[0] if all(t is types[0] for t in types) else None


def _real(types: tuple[Type, ...]) -> Type | None:
    return types[0] if types[0].is_real and _one_type(types) else None


def _number(types: tuple[Type, ...]) -> Type | None:
    return types[0] if types[0] is not Type.BOOL and _one_type(types) else None


def _integer(types: tuple[Type, ...]) -> Type | None:
    return types[0] if types[0].is_int and _one_type(types) else None


def _logic(types: tuple[Type, ...]) -> Type | None:
    return types[0] if not types[0].is_real and _one_type(types) else None


def _compare(types: tuple[Type, ...]) -> Type | None:
    return Type.BOOL if _one_type(types) else None


def _select(types: tuple[Type, ...]) -> Type | None:
    return types[1] if types[0] is Type.BOOL and types[1] is types[2] else None


def _given(types: tuple[Type, ...]) -> Type | None:
    raise NotImplementedError("the result type is given by whoever emits it")


_TABLE = (
    # constants and conversions
    ("const", 0, _given, "the number in `attr`, rounded once to the result type"),
    ("cast", 1, _given, "conversion to the result type; real to integer truncates and saturates, to bool tests != 0"),
    ("pin", 1, _one_type, "the same value; multiply-adds are not fused across it (the edge of an unrolled iteration)"),
    ("detach", 1, _one_type, "the same value, taken as a constant by every derivative"),
    # arithmetic
    ("add", 2, _number, "x + y"),
    ("sub", 2, _number, "x - y"),
    ("mul", 2, _number, "x * y"),
    ("div", 2, _real, "x / y"),
    ("neg", 1, _number, "-x"),
    ("fma", 3, _real, "x * y + z, rounded once"),
    ("floordiv", 2, _number, "Python's x // y; an integer divided by 0 is 0, the most negative by -1 wraps"),
    ("mod", 2, _number, "Python's x % y (the sign of y); an integer modulo 0 is x"),
    ("fmod", 2, _real, "C's fmod: exact, the sign of x"),
    ("abs", 1, _number, "|x|"),
    ("sign", 1, _real, "-1, 0 or 1 (0 for both zeros, NaN for NaN)"),
    ("copysign", 2, _real, "|x| with the sign of y"),
    ("minimum", 2, _number, "the smaller; NaN if either is NaN"),
    ("maximum", 2, _number, "the larger; NaN if either is NaN"),
    ("floor", 1, _real, "the largest integer <= x"),
    ("ceil", 1, _real, "the smallest integer >= x"),
    ("trunc", 1, _real, "x rounded towards zero"),
    ("round", 1, _real, "x rounded to the nearest integer, ties to even"),
    # elementary functions
    ("sqrt", 1, _real, "square root, correctly rounded"),
    ("rsqrt", 1, _real, "1 / sqrt(x)"),
    ("cbrt", 1, _real, "cube root"),
    ("hypot", 2, _real, "sqrt(x*x + y*y), scaled"),
    ("exp", 1, _real, "e**x"),
    ("exp2", 1, _real, "2**x"),
    ("expm1", 1, _real, "e**x - 1"),
    ("log", 1, _real, "natural logarithm"),
    ("log2", 1, _real, "logarithm to base 2"),
    ("log10", 1, _real, "logarithm to base 10"),
    ("log1p", 1, _real, "log(1 + x)"),
    ("pow", 2, _real, "x**y with C's special values"),
    ("sin", 1, _real, "sine of x radians"),
    ("cos", 1, _real, "cosine of x radians"),
    ("tan", 1, _real, "tangent of x radians"),
    ("asin", 1, _real, "arc sine"),
    ("acos", 1, _real, "arc cosine"),
    ("atan", 1, _real, "arc tangent"),
    ("atan2", 2, _real, "the angle of the point (y, x) in the order (y, x)"),
    ("sinh", 1, _real, "hyperbolic sine"),
    ("cosh", 1, _real, "hyperbolic cosine"),
    ("tanh", 1, _real, "hyperbolic tangent"),
    ("asinh", 1, _real, "inverse hyperbolic sine"),
    ("acosh", 1, _real, "inverse hyperbolic cosine"),
    ("atanh", 1, _real, "inverse hyperbolic tangent"),
    ("erf", 1, _real, "error function"),
    ("erfc", 1, _real, "1 - erf(x)"),
    # comparisons and logic
    ("lt", 2, _compare, "x < y"),
    ("le", 2, _compare, "x <= y"),
    ("gt", 2, _compare, "x > y"),
    ("ge", 2, _compare, "x >= y"),
    ("eq", 2, _compare, "x == y"),
    ("ne", 2, _compare, "x != y (true when either is NaN)"),
    ("and", 2, _logic, "x and y; bitwise for integers"),
    ("or", 2, _logic, "x or y; bitwise for integers"),
    ("xor", 2, _logic, "exclusive or; bitwise for integers"),
    ("not", 1, _logic, "not x; bitwise for integers"),
    ("shl", 2, _integer, "x << y, y taken modulo the width"),
    ("shr", 2, _integer, "x >> y, y taken modulo the width; arithmetic for signed types, logical for u32"),
    ("select", 3, _select, "y if x else z; both are computed, the one not chosen contributes nothing"),
    # memory shared by the samples
    ("table", 1, _given, "element `index` (flat, I32) of the table named by `attr`, the index clamped into it"),
    ("scatter", 2, _given, "adds a real to element `index` of the table sum named by `attr`; no result"),
    # local memory of one sample
    ("load", 1, _given, "element `index` (I32) of the tape named by `attr`, the index clamped into it"),
    (
        "store",
        2,
        _given,
        "sets element `index` of the tape named by `attr`, perhaps also where a sample takes no part; no result",
    ),
    (
        "most",
        1,
        _integer,
        "the largest x, and 0, of the samples computed together; no result may depend on it",
    ),
    ("sample", 0, _given, "the index of this sample in the batch, I64"),
    # structure
    ("if", 1, _given, "region 0 if the condition holds, else region 1; the results are its yields"),
    (
        "custom",
        -1,
        _given,
        "args (*values, *arguments): the values; region 0 has (*arguments, *results) as parameters and yields, row by "
        "row, the partial of each result by each real argument: derivatives read it, nothing else runs it",
    ),
    ("loop", -1, _given, "args (limit, again, *carried): while again and trip < limit; results (trips, *carried)"),
)

OPS: dict[str, Op] = {name: Op(name, arity, rule, doc) for name, arity, rule, doc in _TABLE}

STRUCTURED = frozenset({"if", "loop", "custom"})
COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
# The ops computed by `hawk.elementary`; the others are single machine operations or short idioms.
ELEMENTARY = frozenset(
    "rsqrt cbrt hypot exp exp2 expm1 log log2 log10 log1p pow sin cos tan asin acos atan atan2 "
    "sinh cosh tanh asinh acosh atanh erf erfc fmod".split()
)
