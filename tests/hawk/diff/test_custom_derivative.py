"""Functions that carry their own derivative."""

import pickle

import numpy as np
import pytest
from hawktest.compiled import WIDTHS, launch
from hawktest.derivatives import gradients, run

import eagle
import hawk
from eagle.testing import GradientMismatch, check_grads
from hawk import Int32, KernelError, Mutable, Param, Scalar, Table, Terminated, Vector
from hawk import math as hm
from hawk.diff import jvp, vjp
from hawk.ir.interpret import interpret
from hawk.ir.parse import parse
from hawk.ir.printer import text
from hawk.ir.program import walk
from hawk.ir.types import Type
from hawk.ir.verify import VerifyError, verify
from hawk.language import trace

RNG = np.random.default_rng(5)


@hawk.custom_derivative
def kepler(mean, e):
    """The eccentric anomaly, by as many Newton steps as it takes."""
    anomaly = mean
    while abs(anomaly - e * hm.sin(anomaly) - mean) > 1e-14:
        anomaly = anomaly - (anomaly - e * hm.sin(anomaly) - mean) / (1 - e * hm.cos(anomaly))
    return anomaly


@kepler.partials
def kepler_partials(mean, e, anomaly):
    slope = 1 / (1 - e * hm.cos(anomaly))
    return slope, hm.sin(anomaly) * slope


@hawk.custom_derivative
def polar(v, scale=1.0):
    return hm.vec(scale * hm.norm(v), hm.atan2(v[1], v[0]))


@polar.partials
def polar_partials(v, scale, result):
    length = result[0] / scale
    return (scale * v / length, hm.vec(-v[1], v[0]) / (length * length)), hm.vec(length, 0)


@hawk.custom_derivative
def sine(x):
    return hm.sin(x)


@sine.partials
def sine_partials(x, result):
    return hm.cos(x)


@hawk.custom_derivative
def stretched(x, n):
    return x * sine(x) ** n


@stretched.partials
def stretched_partials(x, n, result):
    return sine(x) ** n + n * result / sine(x) * hm.cos(x), None


@hawk.kernel
def orbit(x: Scalar, e: Scalar, y: Mutable[Scalar]):
    y = x * kepler(2 * x, e)


# right at every order


def test_an_implicit_function_to_the_third_order():
    check_grads(orbit, {"x": RNG.uniform(0, 3, 8), "e": RNG.uniform(0, 0.8, 8)}, order=3, quiet=True)


def test_the_derivative_is_the_rule():
    @hawk.kernel
    def k(x: Scalar, a: Scalar, y: Mutable[Scalar]):
        y = wrong_by_intent(x, a)

    found = gradients(k, {"x": [2.0, 3.0], "a": [5.0, 7.0]}, y=[1.0, 10.0])
    np.testing.assert_array_equal(found["x"], [7.0, 100.0])
    np.testing.assert_array_equal(found["a"], [0.0, 0.0])
    with pytest.raises(GradientMismatch, match=r"k_vjp by x .*WRONG"):
        check_grads(k, {"x": [2.0, 3.0], "a": [5.0, 7.0]})


@hawk.custom_derivative
def wrong_by_intent(x, a):
    return x * a


@wrong_by_intent.partials
def wrong_partials(x, a, result):
    return a + x, 0.0


def test_vectors_params_and_defaults():
    @hawk.kernel
    def k(v: Vector[2], s: Param, y: Mutable[Scalar]):
        p, q = polar(v, scale=s), polar(v)
        y = p[0] * p[1] + q[1]

    check_grads(k, {"v": RNG.normal(size=(2, 7)), "s": 2.0}, order=2, quiet=True)


def test_in_loops_and_branches_with_rules_that_call_others():
    @hawk.kernel
    def k(x: Scalar, n: Int32, y: Mutable[Scalar]):
        s = x
        for _ in range(n):
            s = s - 0.1 * stretched(s, 2) if s > 0.3 else s + 0.2 * stretched(x, 3)
        y = s

    check_grads(k, {"x": RNG.uniform(0.1, 1, 9), "n": np.arange(9)}, quiet=True)


def test_a_rule_with_a_loop_and_a_branch():
    @hawk.custom_derivative
    def power(x, n):
        return x**n

    @power.partials
    def power_partials(x, n, result):
        slope = hm.real(n)
        for _ in range(n - 1):
            slope = slope * x
        return slope if n > 0 else 0.0, None

    @hawk.kernel
    def k(x: Scalar, n: Int32, y: Mutable[Scalar]):
        y = power(x, n)

    check_grads(k, {"x": RNG.uniform(0.5, 2, 5), "n": np.arange(5)}, quiet=True)


def test_an_argument_without_a_partial_is_a_constant():
    @hawk.kernel
    def k(x: Scalar, a: Scalar, y: Mutable[Scalar]):
        y = held(x, a) * a

    found = gradients(k, {"x": [3.0], "a": [5.0]}, y=[1.0])
    np.testing.assert_array_equal([found["x"], found["a"]], [[25.0], [15.0]])


@hawk.custom_derivative
def held(x, a):
    return x * a


@held.partials
def held_partials(x, a, result):
    return a, None


def test_an_infinite_partial_and_no_variation():
    @hawk.custom_derivative
    def root(x):
        return hm.sqrt(x)

    @root.partials
    def root_partials(x, result):
        return 0.5 / result

    @hawk.kernel
    def k(x: Scalar, w: Scalar, y: Mutable[Scalar]):
        y = root(x) * w + hm.where(x > 0, root(x), 0.0)

    planes = {"x": np.array([0.0, 4.0]), "w": np.array([0.0, 1.0])}
    np.testing.assert_array_equal(gradients(k, planes, y=np.ones(2))["x"], [0.0, 0.5])
    np.testing.assert_array_equal(run(jvp(k), planes, {"x": np.ones(2)})["y"], [0.0, 0.5])

    @hawk.kernel
    def product(x: Scalar, y: Mutable[Scalar]):
        y = x * root(x)

    np.testing.assert_array_equal(gradients(product, {"x": [0.0, 4.0]}, y=np.ones(2))["x"], [0.0, 3.0])
    np.testing.assert_array_equal(run(jvp(product), {"x": [0.0, 4.0]}, {"x": np.ones(2)})["y"], [0.0, 3.0])


# values


def test_outside_kernels_it_is_the_function():
    assert sine(1.0) == hm.sin(1.0)
    assert polar(hm.vec(3.0, 4.0)).items[0] == 5.0
    assert kepler.__doc__ == "The eccentric anomaly, by as many Newton steps as it takes."
    assert repr(kepler) == "<kepler, a function with its own derivative>"


@pytest.mark.parametrize("width", WIDTHS)
def test_compiled_is_interpreted_and_the_value_has_one_set_of_bits(width):
    planes = {"x": RNG.uniform(0, 3, 7), "e": RNG.uniform(0, 0.8, 7)}
    seeds = {"bar_y": RNG.normal(size=7), "dot_x": RNG.normal(size=7), "dot_e": RNG.normal(size=7)}
    for program in (orbit.program(), vjp(orbit).program(Type.F64), jvp(orbit).program(Type.F64)):
        expected, found = interpret(program, planes | seeds), launch(program, planes | seeds, width)
        for name, plane in expected.items():
            np.testing.assert_array_equal(found[name], plane)


def test_the_value_is_the_same_in_the_kernel_and_in_its_derivatives():
    @hawk.kernel
    def k(x: Scalar, e: Scalar, y: Mutable[Scalar], trace: Mutable[Scalar]):
        trace = kepler(2 * x, e)
        y = trace * trace

    planes = {"x": RNG.uniform(0, 3, 50), "e": RNG.uniform(0, 0.8, 50)}
    values = interpret(k.program(), planes)["trace"]
    by_x = interpret(vjp(k, ["x"]).program(Type.F64), planes | {"bar_y": np.ones(50), "bar_trace": np.zeros(50)})
    slope = 1 / (1 - planes["e"] * np.cos(values))
    np.testing.assert_allclose(by_x["bar_x"], 4 * values * slope, rtol=1e-14)


def test_constants_go_through_as_they_are():
    @hawk.kernel
    def k(x: Scalar, y: Mutable[Scalar]):
        y = stretched(0.5, 2) * stretched(x, 2)

    assert sum(i.op == "custom" for i in k.program().body) == 2  # stretched of x, and sine in its value
    check_grads(k, {"x": [0.3, 0.7]}, quiet=True)


def test_pickled_and_parsed():
    program = orbit.program()
    assert text(parse(text(program))) == text(program)
    assert text(verify(parse(text(vjp(orbit).program(Type.F64))))).count("custom") == 1
    copy = pickle.loads(pickle.dumps(orbit))
    check_grads(copy, {"x": [0.3], "e": [0.1]}, quiet=True)


def test_in_a_recorded_graph():
    (step,) = eagle.deploy([orbit])
    x, e, y, z = RNG.uniform(0, 1, (4, 5))
    graph = eagle.Graph()
    graph.add(step.bind(x=x, e=e, y=y), name="first")
    graph.add(step.bind(x=y, e=e, y=z), name="second")
    graph.build(record=True)
    check_grads(graph, quiet=True)


@hawk.custom_derivative
def implicit(y, dt, k):
    """The z with z = y - dt k z**3, by Newton's method."""
    z = y
    while abs(z + dt * k * z**3 - y) > 1e-14:
        z = z - (z + dt * k * z**3 - y) / (1 + 3 * dt * k * z * z)
    return z


@implicit.partials
def implicit_partials(y, dt, k, z):
    slope = 1 / (1 + 3 * dt * k * z * z)
    return slope, -k * z**3 * slope, -dt * z**3 * slope


@hawk.kernel(time="t", time_step="dt")
def decay(y: Mutable[Scalar], t: Mutable[Scalar], k: Param, dt: Param, low: Terminated):
    y = implicit(y, dt, k)
    t = t + dt
    low = y < 0.5


@pytest.mark.parametrize("events", ["step", "refine"])
def test_in_a_run_to_an_event(events):
    def run(k=1.5, shift=0.0, **options):
        state = {"y": np.linspace(0.6, 2, 5) + shift, "t": np.zeros(5)}
        return eagle.simulate(decay, **state, k=k, dt=0.05, max_steps=400, events=events, record=True, **options)

    def total(**changed):
        result = run(**changed)
        return result.y.sum() + 2 * result.t.sum()

    seeds, h = {"y": np.ones(5), "t": np.full(5, 2.0)}, 1e-6
    grads = eagle.diff.reverse(run().record, seeds)
    assert grads["k"] == pytest.approx((total(k=1.5 + h) - total(k=1.5 - h)) / (2 * h), rel=1e-7)
    assert grads["y"].sum() == pytest.approx((total(shift=h) - total(shift=-h)) / (2 * h), rel=1e-7)
    for window in (1, 7, "full"):
        again = eagle.diff.reverse(run(window=window).record, seeds)
        assert again["k"] == grads["k"]
        np.testing.assert_array_equal(again["y"], grads["y"])


def test_the_region_sees_nothing_outside():
    program = orbit.program()
    (custom,) = (i for i in walk(program.body) if i.op == "custom")
    lines = text(program).split("\n")
    at = next(k for k, line in enumerate(lines) if "yield" in line and k > len(lines) - 6)
    outside = lines[at].replace(lines[at].split()[1].strip(","), "%0", 1)
    assert custom.regions[0].yields
    with pytest.raises(VerifyError, match="outside its region"):
        verify(parse("\n".join([*lines[:at], outside, *lines[at + 1 :]])))


# refusals


def refused(function):
    with pytest.raises(KernelError) as caught:
        trace(function)
    return str(caught.value)


def test_a_function_without_a_rule():
    @hawk.custom_derivative
    def bare(x):
        return x

    def k(x: Scalar) -> Scalar:
        return bare(x)

    said = refused(k)
    assert "bare has no derivative yet" in said
    assert "define it before the kernel, with @bare.partials" in said
    assert "    return bare(x)\n" in said


def test_a_rule_with_too_few_partials():
    @hawk.custom_derivative
    def product(x, y):
        return x * y

    @product.partials
    def product_partials(x, y, result):
        return y

    def k(x: Scalar) -> Scalar:
        return product(x, x)

    said = refused(k)
    assert "product(x, y): its rule returns 1 partial\n" in said
    assert "return 2, one by each argument in order" in said


def test_partials_of_another_shape_or_kind():
    @hawk.custom_derivative
    def mirrored(v):
        return hm.vec(v[1], v[0], 0.0)

    @mirrored.partials
    def mirrored_partials(v, result):
        return (0.0, 1.0), (1.0, 0.0)

    def shape(v: Vector[2]) -> Vector[3]:
        return mirrored(v)

    said = refused(shape)
    assert "mirrored: its rule gives a Matrix[2, 2] as the partial by v" in said
    assert "mirrored returns a Vector[3] and v is a Vector[2], so it must be a Matrix[3, 2]" in said

    @hawk.custom_derivative
    def same(x):
        return x

    @same.partials
    def same_partials(x, result):
        return x > 0

    def kind(x: Scalar) -> Scalar:
        return same(x)

    assert "same: its rule gives a bool as the partial by x" in refused(kind)


def test_integers_have_no_partial():
    def k(x: Scalar, i: Int32) -> Scalar:
        return held(i, x)

    said = refused(k)
    assert "held: x is an int32, which does not vary smoothly" in said
    assert "call held with hm.real(x)" in said


def test_too_many_axes():
    def k(x: Scalar, v: Vector[2]) -> Scalar:
        return wrong_by_intent(hm.outer(v, v), 1.0)[0, 0]

    assert "the partial of a Matrix[2, 2] by x, a Matrix[2, 2], has 4 axes" in refused(k)


def test_only_numbers_go_in_and_come_out():
    def record(x: Scalar) -> Scalar:
        return held((x, x), 1.0)

    def function(x: Scalar) -> Scalar:
        return held(1.0, lambda: x)

    def table(x: Scalar, t: Table["i":3]) -> Scalar:
        return held(x, t)

    assert "held: x is a tuple of 2" in refused(record)
    assert "held: a is a TracedFunction" in refused(function)
    assert "held: a is a TableValue" in refused(table)

    @hawk.custom_derivative
    def pair(x):
        return x, x

    @pair.partials
    def pair_partials(x, result):
        return 1.0

    @hawk.custom_derivative
    def positive(x):
        return x > 0

    @positive.partials
    def positive_partials(x, result):
        return 0.0

    def two(x: Scalar) -> Scalar:
        return pair(x)[0]

    def truth(x: Scalar) -> Scalar:
        return 1.0 if positive(x) else 0.0

    assert "pair returns a tuple of 2" in refused(two)
    assert "positive returns a bool, which does not vary smoothly" in refused(truth)


def test_a_rule_uses_the_result_and_does_not_call_the_function():
    @hawk.custom_derivative
    def growth(x):
        return hm.exp(x)

    @growth.partials
    def growth_partials(x, result):
        return growth(x)

    def k(x: Scalar) -> Scalar:
        return growth(x)

    said = refused(k)
    assert "the rule of growth calls growth" in said
    assert "use its result, the last argument of the rule" in said


def test_what_is_decorated():
    with pytest.raises(TypeError, match="custom_derivative decorates a plain function, not an object of type int"):
        hawk.custom_derivative(3)
    with pytest.raises(TypeError, match=r"takes \*args: name its arguments"):
        hawk.custom_derivative(lambda *args: args)
    with pytest.raises(TypeError, match=r"@sine\.partials decorates a plain function, not the class int"):
        sine.partials(int)
    with pytest.raises(TypeError, match="sine has a rule already, sine_partials"):
        sine.partials(lambda x, result: x)

    @hawk.custom_derivative
    def fresh(x, y):
        return x

    with pytest.raises(TypeError, match="takes 2 arguments; the rule of fresh takes 3: x, y, and the result"):
        fresh.partials(lambda x, result: x)

    def fresh_(x, y, result):
        return 1.0, 0.0

    fresh_.__name__ = "fresh"
    with pytest.raises(TypeError, match="would take its place"):
        fresh.partials(fresh_)
