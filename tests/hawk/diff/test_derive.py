"""vjp and jvp as kernels: their arguments, what `wrt` chooses, what is refused; sums and tables."""

from pathlib import Path

import numpy as np
import pytest
from hawktest.compiled import assert_compiled_as_interpreted
from hawktest.derivatives import Laws, run

from hawk import Bool, Int32, Kernel, Mutable, Param, Scalar, Table, Terminated, Vector, kernel
from hawk import math as hm
from hawk.diff import DerivativeError, jvp, vjp
from hawk.diff.derive import Derivative
from hawk.diff.partials import PARTIALS
from hawk.ir.interpret import interpret
from hawk.ir.program import Role
from hawk.ir.types import Type
from hawk.ir.verify import verify


@kernel
def step(x: Scalar, v: Vector[2], k: Int32, p: Param, s: Mutable[Scalar], t: Table["row":3], out: Mutable[Vector[2]],
         count: Mutable[Int32], done: Terminated):  # fmt: skip
    s = s + p * x * hm.real(k)
    out = v * t.at(k) + t.at(1) * x
    count = k + 1
    done = s > 3


def signature(derivative: Derivative) -> dict[str, tuple[Role, tuple[int, ...]]]:
    return {a.name: (a.role, a.shape) for a in derivative.program(Type.F64).arguments}


# arguments


def test_the_arguments_of_a_vjp():
    assert signature(vjp(step)) == {
        "x": (Role.SAMPLE, ()),
        "v": (Role.SAMPLE, (2,)),
        "k": (Role.SAMPLE, ()),
        "p": (Role.PARAM, ()),
        "s": (Role.SAMPLE, ()),
        "t": (Role.TABLE, (3,)),
        "bar_s": (Role.MUTABLE, ()),
        "bar_out": (Role.SAMPLE, (2,)),
        "bar_x": (Role.MUTABLE, ()),
        "bar_v": (Role.MUTABLE, (2,)),
        "bar_p": (Role.SUM, ()),
        "bar_t": (Role.TABLE_SUM, (3,)),
    }


def test_the_arguments_of_a_jvp():
    assert signature(jvp(step, ("x", "s"))) == {
        "x": (Role.SAMPLE, ()),
        "v": (Role.SAMPLE, (2,)),
        "k": (Role.SAMPLE, ()),
        "p": (Role.PARAM, ()),
        "s": (Role.SAMPLE, ()),
        "t": (Role.TABLE, (3,)),
        "dot_x": (Role.SAMPLE, ()),
        "dot_s": (Role.MUTABLE, ()),
        "dot_out": (Role.MUTABLE, (2,)),
    }


def test_derivatives_of_derivatives_have_names_of_their_own():
    twice = signature(vjp(Kernel("g", vjp(step))))
    assert {"bar_out", "bar2_x", "bar2_bar_x", "bar2_bar_out"} <= twice.keys()
    assert {"dot_x", "bar_x", "bar_dot_x", "bar_dot_out"} <= signature(vjp(Kernel("g", jvp(step)))).keys()
    assert {"dot_x", "dot2_x", "dot2_dot_x", "dot2_dot_out"} <= signature(jvp(Kernel("g", jvp(step)))).keys()


@pytest.mark.parametrize("real", [Type.F64, Type.F32], ids=str)
def test_derivatives_to_the_third_order_are_sound_at_both_precisions(real):
    for first in (vjp, jvp):
        for second in (vjp, jvp):
            for third in (vjp, jvp):
                once = Kernel("once", first(step))
                twice = Kernel("twice", second(once))
                verify(third(twice).program(real))


# wrt


def test_wrt_none_is_every_real_input_in_the_order_of_the_arguments():
    assert vjp(step).wrt == ("x", "v", "p", "s", "t")
    assert jvp(step, ("p", "x")).wrt == ("x", "p")
    assert vjp(step, iter(["s", "t"])).wrt == ("s", "t")


@pytest.mark.parametrize("make", [vjp, jvp])
def test_wrt_of_an_unknown_name(make):
    found = r"^wrt='z': step has no input of that name; its real inputs are x, v, p, s, t$"
    with pytest.raises(ValueError, match=found):
        make(step, ("x", "z"))
    with pytest.raises(ValueError, match=r"^wrt='out': step has no input of that name"):
        make(step, ("out",))


@pytest.mark.parametrize("make", [vjp, jvp])
def test_wrt_of_what_does_not_vary_smoothly(make):
    @kernel
    def k(n: Int32, flag: Bool, x: Scalar) -> Scalar:
        return x * n if flag else x

    with pytest.raises(TypeError, match=r"^wrt='n': k\.n holds i32 values, which do not vary smoothly$"):
        make(k, ("n",))
    with pytest.raises(TypeError, match=r"^wrt='flag': k\.flag holds bool values, which do not vary smoothly$"):
        make(k, ("flag",))


def test_an_adjoint_whose_name_is_taken_already():
    @kernel
    def k(x: Scalar, bar_x: Scalar) -> Scalar:
        return x * bar_x

    with pytest.raises(ValueError, match=r"k_vjp: the derivative needs a plane named 'bar_x'.*rename it"):
        vjp(k)
    jvp(k)


def test_only_what_wrt_names_is_written_and_the_rest_costs_nothing():
    program = vjp(step, ("v",)).program(Type.F64)
    assert program.writes() == {"bar_v"}
    assert not {"x", "p", "s"} & program.reads()


# what has no rule


def first_line_of(function) -> int:
    return function.__wrapped__.__code__.co_firstlineno


@kernel
def wavy(x: Scalar, y: Scalar) -> Scalar:
    z = y * y
    return z + hm.sin(x)


@kernel
def wavy_loop(x: Scalar, n: Int32) -> Scalar:
    a = x
    for _ in range(n):
        if a < 1:
            a = a + hm.sin(a)
    return a


@pytest.mark.parametrize("make", [vjp, jvp])
@pytest.mark.parametrize(
    ("k", "line", "source"),
    [(wavy, 3, "return z + hm.sin(x)"), (wavy_loop, 5, "a = a + hm.sin(a)")],
    ids=["line", "loop"],
)
def test_a_missing_rule_names_the_op_the_kernel_and_the_line(monkeypatch, make, k, line, source):
    monkeypatch.delitem(PARTIALS, "sin")
    with pytest.raises(DerivativeError) as caught:
        make(k)
    at = first_line_of(k) + line
    assert str(caught.value) == (
        f"{k.name}: the op 'sin' has no derivative rule, and its result depends on an argument that is "
        "differentiated by. Leave that argument out of wrt=, or write the step with other functions.\n"
        f'  File "{Path(__file__)}", line {at}\n    {source}'
    )
    assert caught.value.span is not None
    assert caught.value.span.line == at


def test_a_missing_rule_is_no_matter_where_nothing_varies(monkeypatch):
    monkeypatch.delitem(PARTIALS, "sin")
    vjp(wavy, ("y",))
    jvp(wavy, ("y",))


# params and sums


@kernel
def weighted(x: Scalar, w: Param) -> Scalar:
    return hm.sin(x * w)


def test_the_adjoint_of_a_param_is_a_sum_that_can_be_differentiated_again():
    x = np.linspace(-1, 1, 5)
    adjoints = Kernel("adjoints", vjp(weighted))
    assert adjoints.program().argument("bar_w").role is Role.SUM
    Laws(adjoints, {"x": x, "w": 0.7, "bar_out": np.ones(5)}).check(1e-12, 1e-8)
    seeds = {"bar_w": np.array(1.0)}
    curved = run(vjp(adjoints, ("x",)), {"x": x, "w": 0.7, "bar_out": np.ones(5)}, seeds)["x"]
    np.testing.assert_allclose(curved, np.cos(0.7 * x) - 0.7 * x * np.sin(0.7 * x), rtol=1e-14)


# tables


@kernel
def looked_up(x: Scalar, i: Int32, t: Table["row":2, "col":3]) -> Scalar:
    a = t.at(1, 2) * x
    for k in range(20):
        if k < i:
            a = a + t.at(k, i) * t.at(0, 0)
    return a


@kernel
def always_the_same(x: Scalar, t: Table["row":3]) -> Scalar:
    return t.at(0) * x + t.at(2) * t.at(2)


TABLE = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
INDICES = np.array([0, 1, 2, 5, -3, 1])


def test_the_adjoint_of_a_table_at_computed_indices_is_gathered_over_the_samples():
    x = np.linspace(0.5, 2, 6)
    planes = {"x": x, "i": INDICES, "t": TABLE}
    seeds = np.linspace(-1, 1, 6)
    found = run(vjp(looked_up), planes, {"out": seeds})["t"]
    expected = np.zeros((2, 3))
    for k in np.ndindex(2, 3):
        ends = []
        for sign in (1, -1):
            moved = TABLE.copy()
            moved[k] += sign * 1e-6
            ends.append(interpret(looked_up.program(), planes | {"t": moved})["out"] @ seeds)
        expected[k] = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
    assert_compiled_as_interpreted(vjp(looked_up).program(Type.F64), planes | {"bar_out": seeds}, (1, 8, 16))


def test_the_tangent_of_a_table_is_read_at_the_same_indices():
    rng = np.random.default_rng(1)
    x, direction, seeds = np.linspace(0.5, 2, 6), rng.normal(size=(2, 3)), rng.normal(size=6)
    planes = {"x": x, "i": INDICES, "t": TABLE}
    pushed = run(jvp(looked_up, ("t",)), planes, {"t": direction})["out"]
    pulled = run(vjp(looked_up, ("t",)), planes, {"out": seeds})["t"]
    np.testing.assert_allclose(pushed @ seeds, (pulled * direction).sum(), rtol=1e-13)


def test_the_adjoint_of_a_table_at_constant_indices_is_a_sum():
    derivative = vjp(always_the_same)
    assert derivative.program(Type.F64).argument("bar_t").role is Role.SUM
    planes = {"x": np.array([1.0, -2.0, 3.0]), "t": np.array([0.5, 9.0, -1.0])}
    found = run(derivative, planes, {"out": np.ones(3)})["t"]
    np.testing.assert_array_equal(found, [[1, -2, 3], [0, 0, 0], [-2, -2, -2]])
    Laws(always_the_same, planes).check()


def test_second_derivatives_by_a_table():
    """The vjp scatters into a table sum; its own vjp reads that sum's seed as a table."""
    rng = np.random.default_rng(2)
    x = np.linspace(0.5, 2, 6)
    adjoints = Kernel("adjoints", vjp(looked_up, ("t",)))
    planes = {"x": x, "i": INDICES, "t": TABLE, "bar_out": rng.normal(size=6)}
    direction, weights = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    again = run(vjp(adjoints, ("x",)), planes, {"bar_t": weights})["x"]
    tangent = run(jvp(adjoints, ("x",)), planes, {"x": np.ones(6)})["bar_t"]
    np.testing.assert_allclose(again.sum(), (tangent * weights).sum(), rtol=1e-13)
    curved = run(jvp(adjoints, ("t",)), planes, {"t": direction})["bar_t"]
    ends = [interpret(adjoints.program(), planes | {"t": TABLE + s * 1e-6 * direction})["bar_t"] for s in (1, -1)]
    np.testing.assert_allclose(curved, (ends[0] - ends[1]) / 2e-6, rtol=1e-7, atol=1e-7)
