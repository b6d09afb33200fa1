"""Kernels built by hand whose params are read from planes, so that a recorded graph may change them."""

import numpy as np
import pytest

import eagle
import hawk
from hawk import Mutable, Param, Scalar, Vector
from hawk.artifact import plugins
from hawk.diff import param_planes, vjp
from hawk.ir.program import Role


@hawk.kernel
def step(x: Scalar, a: Param, w: Param[Vector[2]], y: Mutable[Scalar]):
    y = a * x * x + w[1]


def test_a_plugin_built_by_hand_is_recorded_and_updated(tmp_path):
    bundle = hawk.build([param_planes(step), hawk.Kernel("step_vjp", vjp(param_planes(step)))], tmp_path)
    x, y = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    graph = eagle.Graph()
    graph.add(eagle.plan.plan(plugins(bundle)["step"]).bind(x=x, a=0.5, w=(1.0, 2.0), y=y))
    graph.build(record=True)
    for a in (0.5, 3.0):
        graph.update(a=a)
        graph.launch()
        grads = eagle.diff.reverse(graph.record, {"y": np.ones(3)})
        np.testing.assert_array_equal(y, a * x * x + 2.0)
        np.testing.assert_array_equal(grads["x"], 2 * a * x)
        np.testing.assert_array_equal(grads["a"], 14.0)
        np.testing.assert_array_equal(grads["w"], [0.0, 3.0])


def test_params_are_inputs_that_derivatives_share():
    """No number is compiled in: each is read as an input, by the kernel and by its derivatives alike."""
    by_hand = hawk.Kernel("by_hand", param_planes(step))
    for kernel in (by_hand, hawk.Kernel("back", vjp(by_hand))):
        program = kernel.program()
        params = {a.name for a in program.arguments if a.role is Role.PARAM}
        assert params == {"a", "w"}
        assert "a" in {place.argument for place, _ in program.inputs}
    assert by_hand.name == "by_hand"
    assert by_hand.definition is step.definition


@pytest.mark.parametrize("wrong", [3, lambda x: x, None])
def test_only_kernels(wrong):
    with pytest.raises(TypeError, match=r"param_planes takes a kernel, found .*decorate the function"):
        param_planes(wrong)
