"""What is emitted grows with the source, not with the trips; both sides of the unroll limit mean the same."""

import types

import numpy as np
import pytest

import hawk
from eagle.plan import Plan
from eagle.testing import check_grads
from hawk import Int32, Matrix, Mutable, Scalar, Vector, kernel
from hawk import math as hm
from hawk.diff import jvp, vjp
from hawk.ir.program import walk
from hawk.language.loops import UNROLLED

MODES = ("float64", "float32")


def trip(s, x, i):
    bend = x * (1 + 0.1 * i / (1 + i))
    if s > 0:
        return 1 - bend * s
    return 1 + bend * s


def constant(trips: int) -> hawk.Kernel:
    @kernel
    def k(x: Scalar, y: Mutable[Scalar]):
        s = x
        for i in range(trips):
            s = trip(s, x, i)
        y = s

    return k


@kernel
def computed(x: Scalar, n: Int32, y: Mutable[Scalar]):
    s = x
    for i in range(n):
        s = trip(s, x, i)
    y = s


def derivatives(k: hawk.Kernel) -> tuple[hawk.Kernel, ...]:
    return k, hawk.Kernel("back", vjp(k, ("x",))), hawk.Kernel("push", jvp(k, ("x",)))


def ops(k: hawk.Kernel) -> int:
    return sum(1 for _ in walk(k.program().body))


def launched(k: hawk.Kernel, mode: str, **planes: np.ndarray) -> list[np.ndarray]:
    plan = Plan(k, mode)
    types = {a.name: a.type.dtype for a in plan.program.arguments}
    bound = {name: np.asarray(plane, types[name]) for name, plane in planes.items()}
    n = next(plane.shape[-1] for plane in bound.values())
    written = {a.name: np.zeros((*a.shape, n), types[a.name]) for a in plan.program.arguments if a.name not in bound}
    plan.bind(**bound, **written).launch()
    return list(written.values())


def test_loops_beyond_the_limit_are_loops_whatever_their_length():
    sizes = [[ops(k) for k in derivatives(constant(n))] for n in (UNROLLED + 1, 50, 60)]
    assert sizes[0] == sizes[1] == sizes[2]
    assert [ops(k) for k in derivatives(constant(10**6))][::2] == sizes[0][::2]
    many = [ops(hawk.Kernel("back", vjp(constant(n)))) for n in (4097, 10**5, 262_144)]
    assert many[0] == many[1] == many[2]


def test_an_unrolled_loop_grows_by_the_same_for_each_trip():
    for which in range(3):
        sizes = [ops(derivatives(constant(n))[which]) for n in (4, 8, 12, 16)]
        growth = np.diff(sizes)
        assert growth.max() <= 1.1 * growth.min(), "branches double nothing"


@pytest.mark.parametrize("mode", MODES)
def test_both_sides_of_the_limit_have_the_same_bits(mode):
    x = np.linspace(-2, 3, 99)
    for trips in range(UNROLLED - 1, UNROLLED + 3):
        (expected,) = launched(computed, mode, x=x, n=np.full(99, trips))
        (found,) = launched(constant(trips), mode, x=x)
        np.testing.assert_array_equal(found, expected)
        assert ("loop" in str(constant(trips))) == (trips > UNROLLED)


@pytest.mark.parametrize("trips", [UNROLLED, UNROLLED + 1, 100, 4000])
def test_derivatives_of_loops_of_any_length(trips):
    check_grads(constant(trips), {"x": np.linspace(0.2, 0.8, 5)}, quiet=True)


def test_a_million_trips():
    x = np.array([0.25, 0.5])
    (found,) = launched(constant(10**6), "float64", x=x)
    (expected,) = launched(computed, "float64", x=x, n=np.full(2, 10**6))
    np.testing.assert_array_equal(found, expected)
    value, back, push = derivatives(constant(10**6))
    (slopes,) = launched(back, "float64", x=x, bar_y=np.ones(2))
    (pushed,) = launched(push, "float64", x=x, dot_x=np.ones(2))
    np.testing.assert_allclose(slopes, pushed, rtol=1e-10)
    assert value.name == "k"


@pytest.mark.parametrize(
    ("bounds", "total"), [((0, 33, 2), 272), ((0, 31, 2), 240), ((5, 0, -2), 9), ((40, 0, -2), 420)]
)
def test_uneven_steps(bounds, total):
    @kernel
    def known(x: Scalar, y: Mutable[Scalar]):
        y = 0.0
        for i in range(*bounds):
            y += i * x

    @kernel
    def given(x: Scalar, stop: Int32, y: Mutable[Scalar]):
        y = 0.0
        for i in range(bounds[0], stop, bounds[2]):
            y += i * x

    assert launched(known, "float64", x=np.ones(1)) == [total]
    assert launched(given, "float64", x=np.ones(1), stop=np.array([bounds[1]])) == [total]
    back = hawk.Kernel("back", vjp(known))
    assert launched(back, "float64", x=np.ones(1), bar_y=np.ones(1)) == [total]


# large kernels


@kernel
def solved(m: Matrix[12, 12], r: Vector[12], y: Mutable[Vector[12]]):
    y = hm.solve(m, r)


@kernel
def eliminated(m: Matrix[12, 12], r: Vector[12], y: Mutable[Vector[12]]):
    """Gauss without pivots, as one would write it."""
    a = [[m[i, j] for j in range(12)] for i in range(12)]
    b = [r[i] for i in range(12)]
    for c in range(12):
        for i in range(c + 1, 12):
            factor = a[i][c] / a[c][c]
            for j in range(c + 1, 12):
                a[i][j] = a[i][j] - factor * a[c][j]
            b[i] = b[i] - factor * b[c]
    for i in reversed(range(12)):
        for j in range(i + 1, 12):
            b[i] = b[i] - a[i][j] * b[j]
        b[i] = b[i] / a[i][i]
    y = hm.vec(*b)


@pytest.mark.parametrize("k", [solved, eliminated])
def test_twelve_equations(k):
    rng = np.random.default_rng(2)
    m, r, seed = rng.normal(size=(12, 12, 3)), rng.normal(size=(12, 3)), rng.normal(size=(12, 3))
    m += 12 * np.eye(12)[:, :, None]
    (found,) = launched(k, "float64", m=m, r=r)
    by_r, by_m = np.zeros((12, 3)), np.zeros((12, 12, 3))
    Plan(hawk.Kernel("back", vjp(k)), "float64").bind(m=m, r=r, bar_y=seed, bar_m=by_m, bar_r=by_r).launch()
    for s in range(3):
        expected = np.linalg.solve(m[..., s], r[:, s])
        np.testing.assert_allclose(found[:, s], expected, rtol=1e-13)
        adjoint = np.linalg.solve(m[..., s].T, seed[:, s])
        np.testing.assert_allclose(by_r[:, s], adjoint, rtol=1e-12)
        np.testing.assert_allclose(by_m[..., s], -np.outer(adjoint, expected), rtol=1e-12, atol=1e-15)


def long_source(lines: int) -> str:
    """A function of as many lines, each of an earlier few."""
    rng = np.random.default_rng(lines)
    source = ["def long(x: Scalar, a: Scalar, y: Mutable[Scalar]):", "    v0 = x", "    v1 = a"]
    for k in range(2, lines - 2):
        p, q = rng.integers(max(0, k - 10), k, 2)
        forms = [f"v{p} + v{q} * 0.5", f"v{p} * v{q} - 0.1", f"v{p} / (2.0 + v{q} * v{q})"]
        source.append(f"    v{k} = {forms[k % 3] if k % 20 else f'hm.sin(v{p} - v{q})'}")
    return "\n".join([*source, f"    y = hm.sin(v{lines - 3})"])


def long_kernel(lines: int) -> tuple[hawk.Kernel, types.CodeType]:
    """The kernel, and code that computes the same by Python."""
    source, names = long_source(lines), {"Scalar": Scalar, "Mutable": Mutable, "hm": hm}
    exec(source, names)
    body = "\n".join(line.strip() for line in source.split("\n")[1:])
    return kernel(source=source)(names["long"]), compile(body, "long", "exec")


def test_three_hundred_lines():
    """The value is Python's, the derivatives are right, and each is no more than a few times as long as the source."""
    k, code = long_kernel(300)
    x, a = np.linspace(-1, 1, 7), np.linspace(0.5, 2, 7)
    (found,) = launched(k, "float64", x=x, a=a)
    for p, q, y in zip(x.tolist(), a.tolist(), found, strict=True):
        names = {"x": p, "a": q, "hm": hm}
        exec(code, names)
        assert names["y"] == pytest.approx(y, rel=1e-12)
    check_grads(k, {"x": x, "a": a}, quiet=True)
    sizes = {n: ops(hawk.Kernel("back", vjp(long_kernel(n)[0]))) for n in (150, 300)}
    assert sizes[300] < 2.5 * sizes[150]
