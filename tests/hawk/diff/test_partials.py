"""Every row of the table of partials against mpmath: first and second derivatives, forward and reverse."""

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
from hawktest.build import Kit, one_of_each
from hawktest.derivatives import kernel_of, run

from hawk.diff import jvp, vjp
from hawk.diff.partials import PARTIALS
from hawk.ir.interpret import Array
from hawk.ir.ops import OPS
from hawk.ir.types import Type
from hawk.kernel import Kernel

mp = mpmath.mp.clone()
mp.dps = 700  # differences of functions as flat as atan at 1e100

WIDE = (1e-300, 1e-8, 0.3, 1.0, 2.5, 7.0, 1e5, 1e300)


def signed(*sizes: float) -> tuple[float, ...]:
    return tuple(s * x for x in sizes for s in (1.0, -1.0))


@dataclass(frozen=True)
class Case:
    """A function of mpmath numbers, and values for each of its arguments.

    `loss` is how many digits (in units of eps) the conditioning of the slope's formula may cost.
    """

    function: Callable[..., mpmath.mpf]
    points: tuple[tuple[float, ...], ...]
    loss: float = 1.0
    absolute: bool = False  # errors relative to 1, where the slope is a difference of numbers near 1


def one_argument(
    function: Callable[..., mpmath.mpf], *points: float, loss: float = 1.0, absolute: bool = False
) -> Case:
    return Case(function, (points,), loss, absolute)


_MIXED = (0.7, -1.3, 2.5, -0.01, 5.0, 30.0, -8.0)
_OTHER = (1.9, 0.4, -3.0, -2.2, 0.05, 7.0, -0.6)
_THIRD = (-0.3, 2.0, 1.1, 4.0, -6.0, 0.2, 9.0)

CASES = {
    "add": Case(lambda x, y: x + y, (_MIXED, _OTHER)),
    "sub": Case(lambda x, y: x - y, (_MIXED, _OTHER)),
    "mul": Case(lambda x, y: x * y, (_MIXED, _OTHER)),
    "div": Case(lambda x, y: x / y, (_MIXED, _OTHER)),
    "fma": Case(lambda x, y, z: x * y + z, (_MIXED, _OTHER, _THIRD)),
    "neg": one_argument(lambda x: -x, *_MIXED),
    "pin": one_argument(lambda x: x, *_MIXED),
    "abs": one_argument(abs, *_MIXED, 5e-324, -5e-324),
    "copysign": Case(lambda x, y: abs(x) * mp.sign(y), (_MIXED, _OTHER)),
    "minimum": Case(min, (_MIXED, _OTHER)),
    "maximum": Case(max, (_MIXED, _OTHER)),
    "select": Case(lambda c, x, y: x if c else y, ((1.0, 0.0) * 3 + (1.0,), _MIXED, _OTHER)),
    "mod": Case(lambda x, y: x - y * mp.floor(x / y), ((-19.0, 19.0, -19.0, 7.5, 1e10), (3.0, -3.0, -3.0, 2.0, 7.0))),
    "fmod": Case(lambda x, y: x - y * int(x / y), ((-19.0, 19.0, -19.0, 7.5, 1e10), (3.0, -3.0, -3.0, 2.0, 7.0))),
    "sqrt": one_argument(mp.sqrt, *WIDE),
    "rsqrt": one_argument(lambda x: 1 / mp.sqrt(x), 1e-100, 1e-8, 0.3, 1.0, 2.5, 1e5, 1e100, loss=2),
    "cbrt": one_argument(lambda x: mp.sign(x) * mp.cbrt(abs(x)), *signed(1e-150, 1e-8, 0.3, 1.0, 8.0, 1e150), loss=2),
    "hypot": Case(mp.hypot, ((3.0, -1e-200, 1e200, 0.0, -5.0), (-4.0, 1e-200, -1e200, 2.0, 1.5)), loss=2),
    "exp": one_argument(mp.exp, -300.0, -1.0, 1e-10, 0.5, 20.0, 300.0),
    "exp2": one_argument(lambda x: mp.mpf(2) ** x, -300.0, -1.0, 1e-10, 0.5, 20.0, 300.0),
    "expm1": one_argument(mp.expm1, -30.0, -1.0, 1e-10, 0.5, 20.0, 300.0),
    "log": one_argument(mp.log, *WIDE),
    "log2": one_argument(lambda x: mp.log(x) / mp.log(2), *WIDE),
    "log10": one_argument(mp.log10, *WIDE),
    "log1p": one_argument(mp.log1p, -0.999, -0.5, 1e-12, 3.0, 1e100),
    "pow": Case(mp.power, ((0.5, 2.0, 3.0, 10.0, 1e-5, 1.0), (2.5, -3.0, 1.0, 0.3, 4.0, 9.0)), loss=30),
    "sin": one_argument(mp.sin, *signed(1e-9, 0.5, 1.5, 3.0, 100.0), absolute=True),
    "cos": one_argument(mp.cos, *signed(1e-9, 0.5, 1.5, 3.0, 100.0), absolute=True),
    "tan": one_argument(mp.tan, *signed(1e-9, 0.5, 1.5, 3.0, 100.0), loss=4),
    "asin": one_argument(mp.asin, *signed(1e-9, 0.5, 0.999999), loss=4, absolute=True),
    "acos": one_argument(mp.acos, *signed(1e-9, 0.5, 0.999999), loss=4, absolute=True),
    "atan": one_argument(mp.atan, *signed(1e-9, 0.5, 3.0, 1e100), loss=2),
    "atan2": Case(mp.atan2, ((3.0, -1e-13, 2e-100, -2.0, 1.0), (-4.0, 5.6843e-14, 1e-100, -0.5, 1e100)), loss=4),
    "sinh": one_argument(mp.sinh, *signed(1e-9, 0.5, 3.0, 300.0)),
    "cosh": one_argument(mp.cosh, *signed(1e-9, 0.5, 3.0, 300.0)),
    "tanh": one_argument(mp.tanh, *signed(1e-9, 0.5, 3.0, 30.0), loss=4, absolute=True),
    "asinh": one_argument(mp.asinh, *signed(1e-9, 0.5, 3.0, 1e100), loss=4),
    "acosh": one_argument(mp.acosh, 1.000001, 1.5, 3.0, 1e100, loss=4),
    "atanh": one_argument(mp.atanh, *signed(1e-9, 0.5, 0.999999), loss=4, absolute=True),
    "erf": one_argument(mp.erf, *signed(1e-9, 0.5, 2.0, 5.0), loss=60),
    "erfc": one_argument(mp.erfc, *signed(1e-9, 0.5, 2.0, 5.0), loss=60),
}


def test_there_is_a_case_for_every_row():
    assert CASES.keys() | {"cast"} == PARTIALS.keys()


# One program of all ops, each on arguments of its own, run at as many samples as the longest list of points.

COUNT = max(len(case.points[0]) for case in CASES.values())


def kernel() -> Kernel:
    kinds = {op: [Type.REAL] * OPS[op].arity for op in CASES}
    kinds["select"][0] = Type.BOOL
    return kernel_of(one_of_each({op: (op, kinds[op]) for op in CASES}, apart=True))


def planes() -> dict[str, Array]:
    return {f"{op}_{k}": np.resize(values, COUNT) for op, case in CASES.items() for k, values in enumerate(case.points)}


def reals(op: str) -> range:
    """The positions of an op's arguments that vary."""
    return range(op == "select", OPS[op].arity)


def along(k: int, scale: float = 1.0) -> dict[str, Array]:
    """A direction: of every op the k-th argument."""
    return {f"{op}_{j}": np.full(COUNT, scale * (j == k)) for op in CASES for j in reals(op)}


def wrt() -> tuple[str, ...]:
    return tuple(f"{op}_{k}" for op in CASES for k in reals(op))


SEEDS = {op: np.ones(COUNT) for op in CASES}


def exact(case: Case, orders: tuple[int, ...]) -> list[mpmath.mpf]:
    """A partial derivative at every point."""
    out = []
    for point in zip(*case.points, strict=True):
        arguments = [mp.mpf(x) for x in point]
        varying = [k for k, order in enumerate(orders) if order]

        def restricted(*values: mpmath.mpf, at=arguments, varying=varying) -> mpmath.mpf:
            full = list(at)
            for k, value in zip(varying, values, strict=True):
                full[k] = value
            return case.function(*full)

        here = tuple(arguments[k] for k in varying)
        step = min(abs(x) for x in here) * mp.mpf(10) ** -30 or mp.mpf(10) ** -30
        out.append(mp.diff(restricted, here, tuple(orders[k] for k in varying), h=step))
    return out


def check(case: Case, got: Array, orders: tuple[int, ...], loss: float = 8.0) -> None:
    """Of derivatives beyond the range, no digits are asked."""
    info = np.finfo(got.dtype)
    eps, tiny, largest = (mp.mpf(float(x)) for x in (info.eps, info.tiny, info.max))
    for point, value, number in zip(zip(*case.points, strict=True), got, exact(case, orders), strict=False):
        if abs(number) < tiny / 1e40:
            number = mp.mpf(0)
        if number == 0 or 1e8 * tiny < abs(number) < 0.1 * largest:
            error = abs(mp.mpf(float(value)) - number) / max(abs(number), mp.mpf(case.absolute), tiny)
            assert error <= loss * case.loss * eps, f"at {point}: {value!r}, not {mp.nstr(number, 20)}"


@pytest.fixture(scope="module")
def first() -> dict[int, tuple[dict[str, Array], dict[str, Array]]]:
    """By position: tangents along it, and all adjoints."""
    adjoints = run(vjp(kernel(), wrt()), planes(), SEEDS)
    return {k: (run(jvp(kernel(), wrt()), planes(), along(k)), adjoints) for k in range(3)}


@pytest.mark.parametrize("op", CASES)
def test_slope(op, first):
    for k in reals(op):
        orders = tuple(int(j == k) for j in range(OPS[op].arity))
        tangents, adjoints = first[k]
        check(CASES[op], tangents[op], orders)
        check(CASES[op], adjoints[f"{op}_{k}"], orders)


@pytest.fixture(scope="module")
def second() -> dict[int, tuple[dict[str, Array], dict[str, Array]]]:
    """By position k: the adjoints of the tangents along k, and the tangents along k of the adjoints."""
    forward, reverse = jvp(kernel(), wrt()), vjp(kernel(), wrt())
    out = {}
    for k in range(3):
        tangents = {forward.named(name): plane for name, plane in along(k).items()}
        adjoints = {reverse.named(name): plane for name, plane in SEEDS.items()}
        over = run(
            vjp(Kernel("f", forward), wrt()), planes() | tangents, {forward.named(op): SEEDS[op] for op in CASES}
        )
        under = run(jvp(Kernel("r", reverse), wrt()), planes() | adjoints, along(k))
        out[k] = over, {name: under[reverse.named(name)] for name in wrt()}
    return out


@pytest.mark.parametrize("op", CASES)
def test_curvature(op, second):
    for k in reals(op):
        over, under = second[k]
        for j in reals(op):
            orders = tuple((i == k) + (i == j) for i in range(OPS[op].arity))
            check(CASES[op], over[f"{op}_{j}"], orders, loss=64.0)
            check(CASES[op], under[f"{op}_{j}"], orders, loss=64.0)


@pytest.mark.parametrize("op", CASES)
def test_slope_in_single_precision(op):
    double = CASES[op]
    points = [p for p in zip(*double.points, strict=True) if all(x == 0 or 1e-30 < abs(x) < 1e15 for x in p)]
    columns = [np.array(column, np.float32) for column in zip(*points, strict=True)]
    single = Case(double.function, tuple(tuple(map(float, c)) for c in columns), double.loss, double.absolute)
    types = [Type.BOOL if op == "select" and k == 0 else Type.REAL for k in range(len(columns))]
    reverse = vjp(kernel_of(one_of_each({op: (op, types)}, apart=True)))
    got = run(reverse, {f"{op}_{k}": c for k, c in enumerate(columns)}, {op: np.ones(len(points))}, Type.F32)
    for k in reals(op):
        assert got[f"{op}_{k}"].dtype == np.float32
        check(single, got[f"{op}_{k}"], tuple(int(j == k) for j in range(OPS[op].arity)))


def test_a_cast_between_precisions_passes_variations_on_and_one_through_an_integer_passes_none():
    kit = Kit()
    x = kit.read("x", Type.F64)
    kit.write("narrow", kit.b.cast(kit.b("mul", x, x), Type.F32))
    kit.write("back", kit.b.cast(kit.b.cast(kit.b("sin", x), Type.F32), Type.F64))
    whole = kit.b.cast(kit.b.cast(x, Type.I32), Type.F64)
    kit.write("whole", kit.b("mul", whole, x))
    x = np.array([2.7, -2.7, 0.0, 0.3])
    cases = {"narrow": 2 * x, "back": np.cos(x), "whole": np.trunc(x)}
    for name, expected in cases.items():
        got = run(vjp(kernel_of(kit.program())), {"x": x}, {name: np.ones(4)})["x"]
        np.testing.assert_allclose(got, expected, rtol=1e-6 if name != "whole" else 0)
        tangents = run(jvp(kernel_of(kit.program())), {"x": x}, {"x": np.ones(4)})
        np.testing.assert_allclose(tangents[name], expected, rtol=1e-6 if name != "whole" else 0)
