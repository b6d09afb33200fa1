"""What ops mean, by Python's integers, floats and fractions. (Elementary functions are judged in `elementary`.)"""

import math
import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hawktest.build import Kit, one_of_each
from hawktest.compiled import differences
from hawktest.exact import rounded, saturated, wrapped
from hawktest.samples import mixed, special_values

from hawk import Int32, Scalar, kernel
from hawk.ir.interpret import Array, interpret
from hawk.ir.ops import COMPARISONS, ELEMENTARY, OPS
from hawk.ir.types import Type

REALS = pytest.mark.parametrize("real", [Type.F64, Type.F32], ids=str)
INTEGERS = pytest.mark.parametrize("type", [Type.I64, Type.I32, Type.U32], ids=str)
INF = math.inf


def evaluate(op: str, *args: Array) -> Array:
    types = [next(t for t in Type if t is not Type.REAL and t.dtype == a.dtype) for a in args]
    program = one_of_each({"r": (op, types)})
    return interpret(program, {f"{t.value}_{k}": a for k, (t, a) in enumerate(zip(types, args, strict=True))})["r"]


def samples(type: Type, arity: int, count: int = 900) -> list[Array]:
    """Random and special values; of one argument all special ones, of two all their pairs."""
    rng = np.random.default_rng(arity)
    special, random = special_values(type), [mixed(type, count, rng) for _ in range(arity)]
    grid = np.meshgrid(*[special] * min(arity, 2)) if arity < 3 else [rng.choice(special, count) for _ in range(arity)]
    return [np.concatenate([g.ravel(), r]) for g, r in zip(grid, random, strict=True)]


def assert_means(op: str, type: Type, arity: int, meaning: Callable[..., float | int | bool]) -> None:
    args = samples(type, arity)
    got = evaluate(op, *args)
    expected = np.array([meaning(*(x.item() for x in point)) for point in zip(*args, strict=True)], got.dtype)
    (wrong,) = np.nonzero(differences(got, expected))
    assert not wrong.size, (
        f"{op} of {[a[wrong[0]] for a in args]} is {got[wrong[0]]!r}, not {expected[wrong[0]]!r} ({wrong.size} more)"
    )


# reals


def finite(*numbers: float) -> bool:
    return all(map(math.isfinite, numbers))


def special_or_exact(operation: Callable[..., Fraction], real: Type) -> Callable[..., float]:
    """Exact and rounded once; Python's doubles decide about zeros, infinities and NaN."""

    def meaning(*args: float) -> float:
        with np.errstate(all="ignore"):
            plain = float(operation(*map(np.float64, args)))
        if not finite(*args):
            return plain
        exact = operation(*map(Fraction, args))
        return rounded(exact, real) if exact else plain

    return meaning


@REALS
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_sums_and_products_are_rounded_once(op, real):
    assert_means(op, real, 2, special_or_exact(getattr(operator, op), real))


@REALS
def test_quotients_are_rounded_once(real):
    def divided(x: float, y: float) -> float:
        if not finite(x, y) or y == 0:
            with np.errstate(all="ignore"):
                return float(np.float64(x) / np.float64(y))
        exact = rounded(Fraction(x) / Fraction(y), real)
        return math.copysign(exact, math.copysign(1, x) * math.copysign(1, y))

    assert_means("div", real, 2, divided)


@REALS
def test_a_multiply_add_is_rounded_once(real):
    def multiply_add(x: float, y: float, z: float) -> float:
        with np.errstate(all="ignore"):
            plain = float(np.float64(x) * np.float64(y) + np.float64(z))
        if not finite(x, y, z):
            return z if finite(x, y) else plain
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if exact:
            return rounded(exact, real)
        return plain if x == 0 or y == 0 else 0.0  # a difference of equal numbers is +0

    assert_means("fma", real, 3, multiply_add)


@REALS
def test_a_square_root_is_correctly_rounded(real):
    def root(x: float) -> float:
        if not finite(x) or x <= 0:
            return x if x == 0 or x == INF else math.nan
        scaled = Fraction(x) * 4**700  # an integer square root of it has 300 bits and more
        low = math.isqrt(scaled.numerator // scaled.denominator)
        return rounded(Fraction(2 * low + 1, 2 ** (1 + 700)), real)  # between two candidates: never a tie

    assert_means("sqrt", real, 1, root)


@REALS
@pytest.mark.parametrize(
    ("op", "function"),
    [("floor", math.floor), ("ceil", math.ceil), ("trunc", math.trunc), ("round", round)],
)
def test_roundings_to_whole_numbers(op, function, real):
    def whole(x: float) -> float:
        return math.copysign(float(function(x)), x) if finite(x) else x

    assert_means(op, real, 1, whole)


def test_halves_are_rounded_to_even():
    np.testing.assert_array_equal(evaluate("round", np.array([0.5, 1.5, 2.5, -0.5, -2.5])), [0, 2, 2, -0.0, -2])


@REALS
def test_signs(real):
    assert_means("neg", real, 1, operator.neg)
    assert_means("abs", real, 1, abs)
    assert_means("sign", real, 1, lambda x: x if x == 0 or x != x else math.copysign(1, x))
    assert_means("copysign", real, 2, math.copysign)


@REALS
def test_smaller_and_larger(real):
    """NaN if either is; of two equal zeros the second."""
    assert_means("minimum", real, 2, lambda x, y: math.nan if x != x or y != y else x if x < y else y)
    assert_means("maximum", real, 2, lambda x, y: math.nan if x != x or y != y else x if x > y else y)


@REALS
def test_comparisons_are_pythons(real):
    for op in COMPARISONS:
        assert_means(op, real, 2, getattr(operator, op))


def python_remainder(x: float, y: float) -> float:
    return math.nan if y == 0 or not math.isfinite(x) else x % y


def c_remainder(x: float, y: float) -> float:
    return math.nan if y == 0 or math.isinf(x) else math.fmod(x, y)


@REALS
def test_remainders_of_reals_are_pythons(real):
    assert_means("fmod", real, 2, c_remainder)
    if real is Type.F64:
        assert_means("mod", real, 2, python_remainder)
    else:  # in single the sum that moves the sign is rounded to single
        assert_means("mod", real, 2, lambda x, y: float(np.float32(python_remainder(x, y))))


def test_whole_quotients_of_doubles_are_pythons():
    def quotient(x: float, y: float) -> float:
        if y == 0:
            with np.errstate(all="ignore"):
                return float(np.float64(x) / np.float64(y))
        return x // y

    assert_means("floordiv", Type.F64, 2, quotient)


def test_whole_quotients_of_singles_are_exact_where_they_can_be():
    x, y = samples(Type.F32, 2)
    got = evaluate("floordiv", x, y)
    checked = 0
    for a, b, q in zip(x.tolist(), y.tolist(), got.tolist(), strict=True):
        if finite(a, b) and b != 0 and abs(a / b) < 2**23:
            assert q == math.floor(Fraction(a) / Fraction(b)), (a, b)
            checked += 1
    assert checked > 500


# integers


@INTEGERS
@pytest.mark.parametrize("op", ["add", "sub", "mul", "and", "or", "xor"])
def test_integer_arithmetic_wraps(op, type):
    function = {"and": operator.and_, "or": operator.or_}.get(op) or getattr(operator, op)
    assert_means(op, type, 2, lambda x, y: wrapped(function(x, y), type))


@INTEGERS
@pytest.mark.parametrize(("op", "function"), [("neg", operator.neg), ("abs", abs), ("not", operator.invert)])
def test_integer_functions_wrap(op, function, type):
    assert_means(op, type, 1, lambda x: wrapped(function(x), type))


@INTEGERS
def test_integer_division_is_pythons_and_a_zero_divisor_gives_0_and_x(type):
    assert_means("floordiv", type, 2, lambda x, y: wrapped(x // y, type) if y else 0)
    assert_means("mod", type, 2, lambda x, y: x % y if y else x)


@INTEGERS
def test_shifts_are_by_the_amount_modulo_the_width(type):
    bits = np.iinfo(type.dtype).bits
    assert_means("shl", type, 2, lambda x, y: wrapped(x << (y % bits), type))
    assert_means("shr", type, 2, lambda x, y: x >> (y % bits))  # arithmetic: a u32 is never negative


@INTEGERS
def test_integer_comparisons_and_extrema(type):
    for op in COMPARISONS:
        assert_means(op, type, 2, getattr(operator, op))
    assert_means("minimum", type, 2, min)
    assert_means("maximum", type, 2, max)


def test_bools():
    for op, function in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor), ("eq", operator.eq)):
        assert_means(op, Type.BOOL, 2, function)
    assert_means("not", Type.BOOL, 1, operator.not_)


def test_a_division_identity_and_the_cases_that_must_not_end_the_process():
    low = np.int32(-(2**31))
    x = np.array([-7, 7, -7, 7, low, low, 5, low], np.int32)
    y = np.array([2, -2, -2, 2, -1, 1, 0, 0], np.int32)
    np.testing.assert_array_equal(evaluate("floordiv", x, y), [-4, -4, 3, 3, low, low, 0, 0])
    np.testing.assert_array_equal(evaluate("mod", x, y), [1, -1, -1, 1, 0, 0, 5, low])

    @kernel
    def k(a: Int32, b: Int32, c: Scalar, d: Scalar) -> Scalar:
        return (a // b * b + a % b - a) + (c // d * d + c % d - c)

    planes = {"a": x, "b": y, "c": np.full(8, -7.5), "d": np.full(8, 2.0)}
    np.testing.assert_array_equal(interpret(k.program(), planes)["out"], 0)


# conversions


def converted(x: Array, target: Type) -> Array:
    kit = Kit()
    source = next(t for t in Type if t is not Type.REAL and t.dtype == x.dtype)
    kit.write("out", kit.b.emit("cast", [kit.read("x", source)], [target])[0])
    return interpret(kit.program(), {"x": x})["out"]


CONCRETE = [t for t in Type if t is not Type.REAL]


@pytest.mark.parametrize("source", CONCRETE, ids=str)
@pytest.mark.parametrize("target", CONCRETE, ids=str)
def test_conversions(source, target):
    """Reals are truncated and saturate, integers wrap, numbers become reals rounded once, True where not 0."""
    (x,) = samples(source, 1)

    def meaning(value: float | int | bool) -> float | int | bool:
        if target is Type.BOOL:
            return value != 0
        if source.is_real and target.is_int:
            return saturated(value, target)
        if target.is_int:
            return wrapped(int(value), target)
        if source.is_real and (value == 0 or not finite(value)):
            return value
        return rounded(Fraction(value), target)

    expected = np.array([meaning(v) for v in x.tolist()], target.dtype)
    assert not differences(converted(x, target), expected).any()


def test_conversions_at_the_ends():
    x = np.array([2.7, -2.7, 1e10, -1e10, math.nan, INF, -INF, 2147483647.0, -2147483649.0])
    ends = [2, -2, 2**31 - 1, -(2**31), 0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31)]
    np.testing.assert_array_equal(converted(x, Type.I32), ends)
    np.testing.assert_array_equal(converted(np.array([-1.5, 4294967295.5, 1e20]), Type.U32), [0, 2**32 - 1, 2**32 - 1])
    np.testing.assert_array_equal(converted(np.array([1e19, -1e19]), Type.I64), [2**63 - 1, -(2**63)])


def test_nothing_is_left_untested():
    """Every op with a table entry is in a test here, or in `elementary`, or an idiom tested elsewhere."""
    here = "add sub mul div fma sqrt floor ceil trunc round neg abs sign copysign minimum maximum fmod mod floordiv"
    tested = set(here.split()) | COMPARISONS | {"and", "or", "xor", "not", "shl", "shr", "cast"}
    elsewhere = ELEMENTARY | {"pin", "detach", "select", "const"}
    memory_and_structure = {"table", "scatter", "load", "store", "most", "sample", "if", "loop", "custom"}
    assert tested | elsewhere | memory_and_structure == set(OPS)
