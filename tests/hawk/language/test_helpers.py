"""hawk.math: the same function on Python numbers, in a kernel, and component by component."""

import math

import numpy as np
import pytest

from hawk import math as hm
from hawk.ir.interpret import interpret
from hawk.language import Bool, Int32, KernelError, Scalar, Vector, trace

X = np.array([0.3, 0.7, -0.4, 0.0, 0.95])
ONE = {
    "sqrt": np.sqrt, "cbrt": np.cbrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": np.vectorize(math.erf),
    "erfc": np.vectorize(math.erfc), "abs": np.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "round": np.round, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip
TWO = {"atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod, "copysign": np.copysign, "pow": np.power,
       "minimum": np.minimum, "maximum": np.maximum}  # fmt: skip


def evaluated(function, *columns):
    program = trace(function)
    names = [a.name for a in program.arguments if a.name not in program.returns]
    return interpret(program, dict(zip(names, columns, strict=True)))["out"]


@pytest.mark.parametrize("name", ONE)
def test_a_function_of_one_number(name):
    function = getattr(hm, name)

    def k(x: Scalar) -> Scalar:
        return function(x)

    def each(v: Vector[2]) -> Vector[2]:
        return function(v)

    x = X + 1 if name in ("acosh",) else np.abs(X) if name in ("sqrt", "rsqrt", "log", "log2", "log10") else X
    with np.errstate(all="ignore"):
        wanted = ONE[name](x)
    out = evaluated(k, x)
    np.testing.assert_allclose(out, wanted, rtol=1e-15, atol=1e-300)
    np.testing.assert_array_equal([function(v) for v in x.tolist()], out)
    np.testing.assert_array_equal(evaluated(each, np.stack([x, x])), [out, out])
    assert type(function(0.5)) is float
    assert function.__doc__


@pytest.mark.parametrize("name", TWO)
def test_a_function_of_two_numbers(name):
    function = getattr(hm, name)

    def k(x: Scalar, y: Scalar) -> Scalar:
        return function(x, y)

    x, y = np.abs(X), np.array([0.5, -0.2, 2.0, 1.0, -3.0])
    out = evaluated(k, x, y)
    np.testing.assert_allclose(out, TWO[name](x, y), rtol=1e-15)
    np.testing.assert_array_equal([function(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)], out)


def test_choices_and_limits(agree):
    def k(x: Scalar, n: Int32) -> tuple[Scalar, Scalar, Scalar, Int32]:
        small = hm.clip(x, -0.25, 0.5)
        chosen = hm.where(hm.land(x > 0, n > 1), x, hm.where(hm.lnot(n == 2), 1, -1.0))
        return small, chosen, hm.maximum(x, 0, 0.5) - hm.minimum(x, n), hm.maximum(n, 1)

    agree(k, x=X, n=np.arange(5, dtype=np.int32))


def test_special_values():
    def k(x: Scalar) -> Vector[3]:
        return hm.vec(hm.real(hm.isnan(x)), hm.real(hm.isinf(x)), hm.real(hm.isfinite(x)))

    out = evaluated(k, np.array([1.0, np.nan, np.inf, -np.inf]))
    np.testing.assert_array_equal(out, [[0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]])
    assert (hm.isnan(hm.nan), hm.isinf(-hm.inf), hm.isfinite(1)) == (True, True, True)
    assert math.isnan(hm.sqrt(-1.0))
    assert hm.log(0.0) == -math.inf


def test_smooth_steps():
    def sigmoid(x: Scalar) -> Scalar:
        return hm.sigmoid(x)

    def softplus(x: Scalar) -> Scalar:
        return hm.softplus(x)

    x = np.array([-800.0, -40.0, -1.0, 0.0, 1.0, 40.0, 800.0])
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_allclose(evaluated(sigmoid, x), 1 / (1 + np.exp(-x)), rtol=1e-15, atol=1e-300)
    np.testing.assert_allclose(evaluated(softplus, x), np.logaddexp(0, x), rtol=1e-15, atol=1e-300)
    assert hm.sigmoid(0) == 0.5


def test_a_norm_neither_over_nor_underflows():
    def k(v: Vector[3]) -> Scalar:
        return hm.norm(v)

    scales = np.array([1e-200, 1.0, 1e200, 0.0])
    np.testing.assert_allclose(evaluated(k, np.array([[2.0], [3.0], [6.0]]) * scales), 7 * scales, rtol=1e-15)
    assert hm.hypot(2.0, 3.0, 6.0) == 7.0


def test_fused_multiply_add_rounds_once():
    def k(x: Scalar) -> Scalar:
        return hm.fma(x, x, -1)

    x = 1 + 2.0**-30
    assert evaluated(k, np.array([x]))[0] == 2.0**-29 + 2.0**-60
    assert hm.fma(x, x, -1) == 2.0**-29 + 2.0**-60


def test_logic_of_vectors(agree):
    def k(v: Vector[3]) -> tuple[Bool, Bool]:
        return any(hm.lor(v > 0.5, v < -0.3)), all(v < 1)

    agree(k, v=np.stack([X, X + 0.2, X - 0.1]))


def test_functions_outside_kernels_take_arrays():
    np.testing.assert_array_equal(hm.vec(1, 2).items, (1.0, 2.0))
    assert hm.dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 11.0
    assert hm.cross((1, 0, 0), (0, 1, 0)).items == (0, 0, 1)
    assert hm.maximum(1, 2) == 2
    assert isinstance(hm.maximum(1, 2), int)
    assert hm.int32(2.7) == 2
    assert hm.uint32(-1) == 0
    assert hm.real(True) == 1.0
    assert hm.pow(2.0, 3) == 8.0


def test_mistakes():
    with pytest.raises(KernelError, match=r"hm\.sin takes 1 argument\(s\), got 2"):
        hm.sin(1.0, 2.0)
    with pytest.raises(KernelError, match="'a' is no number"):
        hm.sin("a")
    with pytest.raises(KernelError, match="give at least one"):
        hm.minimum()
    with pytest.raises(KernelError, match="two or more"):
        hm.hypot(1.0)
