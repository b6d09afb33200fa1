"""Kernels pickle: the same text and bits in any process, and derivatives of what comes out."""

import copy
import multiprocessing
import pickle
from collections.abc import Callable

import cloudpickle
import pytest
from bundled import derived, everything, mixed, swing
from running import digest

import eagle
import hawk
from hawk import Mutable, Scalar
from hawk.artifact import plugins
from hawk.diff import Vjp, jvp, vjp
from hawk.ir.printer import text

ROADS: dict[str, Callable[[object], object]] = {
    "pickle": lambda k: pickle.loads(pickle.dumps(k)),
    "old pickle": lambda k: pickle.loads(pickle.dumps(k, protocol=2)),
    "cloudpickle": lambda k: cloudpickle.loads(cloudpickle.dumps(k)),
    "deepcopy": copy.deepcopy,
}


def scaled(factor: float, table: tuple[float, ...]) -> hawk.Kernel:
    @hawk.kernel
    def scale(x: Scalar, y: Mutable[Scalar]):
        """Times a number, plus others."""
        y = x * factor
        for entry in table:
            y = y + entry

    return scale


def texts(kernel: hawk.Kernel) -> list[str]:
    return [text(kernel.program(mode)) for mode in ("float64", "float32")]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("kernel", [*everything(), scaled(1.25, (0.1, -0.0))], ids=lambda k: k.name)
def test_a_kernel_comes_back_the_same(kernel, road):
    again = ROADS[road](kernel)
    assert isinstance(again, hawk.Kernel)
    assert again.name == kernel.name
    assert again.__doc__ == kernel.__doc__
    assert again.stepping == kernel.stepping
    assert texts(again) == texts(kernel)
    assert repr(again) == repr(kernel)


def test_an_unpickled_kernel_gives_the_same_bits():
    for kernel in (swing, derived()[2], scaled(0.1, ())):
        again = pickle.loads(pickle.dumps(kernel))
        assert digest(eagle.plan.Plan(again, "float32")) == digest(eagle.plan.Plan(kernel, "float32"))


def test_closures_keep_their_own_constants():
    first, second = (pickle.loads(pickle.dumps(scaled(f, ()))) for f in (2.0, 3.0))
    assert "const 2.0" in str(first)
    assert "const 3.0" in str(second)


def test_unpickled_kernels_are_differentiated():
    again = pickle.loads(pickle.dumps(mixed))
    for derivative in (vjp, jvp):
        assert texts(hawk.Kernel("d", derivative(again))) == texts(hawk.Kernel("d", derivative(mixed)))
    twice = hawk.Kernel("d", jvp(pickle.loads(pickle.dumps(hawk.Kernel("d", vjp(mixed))))))
    assert texts(twice) == texts(hawk.Kernel("d", jvp(hawk.Kernel("d", vjp(mixed)))))


def test_an_unpickled_vjp_is_one_of_the_same_kernel():
    kernel, derivative = pickle.loads(pickle.dumps((swing, derived()[0])))
    assert isinstance(derivative.definition, Vjp)
    assert derivative.definition.primal is kernel.definition
    assert derivative.definition.wrt == derived()[0].definition.wrt


def test_plugins_pickle_at_their_precision(tmp_path):
    built = plugins(hawk.build([swing, derived()[0]], tmp_path, mode="float32"))
    again = pickle.loads(pickle.dumps(built))
    for name, plugin in again.items():
        assert text(plugin.kernel.program("float32")) == text(built[name].kernel.program("float32"))
        assert digest(eagle.plan.plan(plugin)) == digest(eagle.plan.plan(built[name]))
        with pytest.raises(ValueError, match="is from a bundle built with mode='float32'"):
            plugin.kernel.program("float64")


def test_a_pickle_is_small():
    swing.program("float64"), swing.program("float32")
    assert len(pickle.dumps(swing)) < 2 * len(text(swing.definition.traced)) + 500


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_another_process_unpickles_and_differentiates(method):
    """Nothing of this module is imported there."""
    with multiprocessing.get_context(method).Pool(1) as pool:
        kernel = scaled(0.5, (1.0, 2.0))
        assert pool.apply(str, (kernel,)) == str(kernel)
        derivative = pool.apply(vjp, (kernel,))
        assert texts(hawk.Kernel("d", derivative)) == texts(hawk.Kernel("d", vjp(kernel)))
