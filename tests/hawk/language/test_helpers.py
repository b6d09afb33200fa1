"""Calls inside a kernel: functions, closures, methods and callables are traced as Python would run them."""

# ruff: noqa: E731, F841 - kernels assign to their outputs, and closures see names as they are when called

import functools
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest

from hawk import math as hm
from hawk.language import Int32, KernelError, Mutable, Scalar, Vector, trace

X = np.array([-2.0, -0.5, 0.5, 3.0])


def clamp(x, low=-1.0, *, high=1.0):
    if x < low:
        return low
    return high if x > high else x


def through(f, x):
    return f(x) + f(-x)


@functools.lru_cache
def cached(x):
    return x * 2


def weights(count):
    try:
        return [1.0 / (k + 1) for k in range(count)]
    finally:
        pass


@dataclass(frozen=True)
class Spring:
    stiffness: float
    rest: float = 0.5

    def force(self, x):
        return -self.stiffness * (x - self.rest) if x > self.rest else 0.0

    def __call__(self, x):
        return self.force(x) * 2

    @property
    def double(self):
        return 2 * self.stiffness


class State(NamedTuple):
    x: object
    v: object

    def moved(self, dt):
        return self._replace(x=self.x + dt * self.v)


def test_helpers_with_branches_defaults_and_keywords(agree):
    def k(x: Scalar) -> Scalar:
        return clamp(x) + clamp(x, 0) * 10 + clamp(high=2, x=x)

    agree(k, x=X)


def test_closures_lambdas_and_functions_as_arguments(agree):
    scale = 3.0

    def k(x: Scalar, n: Int32) -> Scalar:
        offset = 1

        def f(y, times=n):
            return scale * y * times + offset

        square = lambda y: y * y if y > 0 else -y
        offset = 2
        return f(x) + through(square, x) + through(f, x) + (lambda *a, **k: sum(a) + k["z"])(x, 1, z=n)

    agree(k, x=X, n=np.array([1, 2, 0, -1], np.int32))


def test_methods_callables_partials_and_caches(agree):
    spring = Spring(4.0)
    shifted = functools.partial(clamp, low=-0.25)

    def k(x: Scalar) -> Scalar:
        total = spring.force(x) + spring(x) + spring.double * x + shifted(x) + cached(x)
        return total + functools.reduce(lambda a, b: a * b + (1 if a > b else 2), [x, 2.0, x])

    agree(k, x=X)


def test_records_built_in_the_kernel(agree):
    def k(x: Scalar) -> Scalar:
        state = State(x, 1.0)
        soft = Spring(x * x)
        if x > 0:
            state = state.moved(0.5)
            soft = replace(Spring(2.0, x), stiffness=1.0)
        for _ in range(20):
            state = State(state.x + 0.1 * state.v, -state.x)
        return state.x + soft.force(state.v) + soft.double

    agree(k, x=X)


def test_a_helper_without_traced_arguments_is_plain_python(agree):
    def k(x: Scalar) -> Scalar:
        table = {"a": 2.0, **{"b": len("abc")}}
        return sum(w * x for w in weights(3)) + table["a"] + table["b"] + float(f"{1.5:.1f}")

    agree(k, x=X)


def test_recursion_that_ends_on_static_values(agree):
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    def k(x: Scalar) -> Scalar:
        return power(x, 5)

    agree(k, x=X)

    def forever(x):
        return forever(x + 1) if x > 0 else x

    def endless(x: Scalar) -> Scalar:
        return forever(x)

    with pytest.raises(KernelError, match="forever calls itself without end"):
        trace(endless)


def test_each_closure_keeps_its_own_constants():
    def make(factor, function):
        def k(x: Scalar, y: Mutable[Scalar]):
            y = factor * function(x)

        return k

    programs = [trace(make(f, g)) for f, g in ((2.0, hm.sin), (3.0, hm.sin), (2.0, hm.cos))]
    seen = [[(i.op, i.attr) for i in p.body] for p in programs]
    assert seen[0] == [("sin", None), ("const", 2.0), ("mul", None)]
    assert seen[1] == [("sin", None), ("const", 3.0), ("mul", None)]
    assert seen[2] == [("cos", None), ("const", 2.0), ("mul", None)]


def test_a_component_set_in_a_helper_changes_the_helpers_own_vector(agree):
    def zeroed(v):
        v[0] = 0.0
        return v

    def k(v: Vector[2]) -> tuple[Vector[2], Vector[2]]:
        return zeroed(v.copy() if isinstance(v, np.ndarray) else v), v

    agree(k, v=np.array([[1.0, 2.0], [3.0, 4.0]]))


def test_errors_in_helpers_say_who_called():
    def inner(x):
        return np.exp(x)

    def outer(x):
        return inner(x) + 1

    def k(x: Scalar, y: Mutable[Scalar]):
        y = outer(x)

    with pytest.raises(KernelError) as caught:
        trace(k)
    text = str(caught.value)
    assert text.index("return np.exp(x)") < text.index("return inner(x) + 1") < text.index("y = outer(x)")
    assert "write hm.exp(...)" in text
    assert len(caught.value.callers) == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("math.sin(x)", ["math.sin cannot take a real", "hm.sin"]),
        ("np.arctan2(x, x)", ["arctan2", "hm.atan2"]),
        ("np.array([x, x])", ["array", "hm.vec"]),
        ("sorted([x, 1.0])[0]", ["sorted", "a list of 2"]),
        ("clamp()", ["clamp() missing 1 required positional argument: 'x'"]),
        ("clamp(x, 1, 2)", ["too many positional arguments"]),
        ("x(1)", ["a real is called, and is no function"]),
        ("undefined(x)", ["the name undefined is not defined"]),
        ("print(x)", ["print of a value that the kernel computes"]),
        ("weights(-1)[0] + x", ["IndexError"]),
        ("weights('a')[0] + x", ["weights(...): TypeError"]),
        ("complex(x, 1)", ["complex"]),
        ("str(x)", ["str"]),
    ],
)
def test_calls_that_cannot_be_made(call, words):
    import math

    text = f"def k(x: Scalar, y: Mutable[Scalar]):\n    y = {call}\n"
    names = {"Scalar": Scalar, "Mutable": Mutable, "math": math, "np": np, "clamp": clamp, "weights": weights}
    exec(text, names)
    with pytest.raises(KernelError) as caught:
        trace(names["k"], source=text)
    for word in words:
        assert word in str(caught.value)
