"""Values that are read and then overwritten: each use is differentiated at the value it read."""

import numpy as np
import pytest
from everywhere import everywhere

import eagle
from eagle.errors import PlaneError
from eagle.testing import check_grads
from hawk import Mutable, Scalar, Vector, kernel
from hawk import math as hm


@kernel
def squared(s: Mutable[Scalar]):
    s = s * s


@kernel
def counted(s: Mutable[Scalar]):
    s = s + 1


def chain(step, times: int, plane: np.ndarray) -> eagle.Graph:
    (plan,) = eagle.deploy([step], mode=str(plane.dtype))
    graph = eagle.Graph()
    for k in range(times):
        graph.add(plan.bind(s=plane), name=f"call {k}")
    return graph.build(record=True)


@pytest.mark.parametrize(("step", "value", "slope"), [(squared, 6561.0, 17496.0), (counted, 6.0, 1.0)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_plane_rewritten_from_itself_three_times(step, value, slope, dtype):
    s = np.full(5, 3.0, dtype)
    graph = chain(step, 3, s)
    for _ in range(2):
        s[:] = 3.0
        graph.launch()
        grads = eagle.diff.reverse(graph.record, {"call 2.s": np.ones(5, dtype)})
        np.testing.assert_array_equal(s, value)
        np.testing.assert_array_equal(grads["call 0.s"], slope)


def test_in_one_kernel_and_by_differences():
    assert everywhere(squared, {"s": 3.0}).slopes["s"] == 6.0
    check_grads(squared, {"s": [3.0, -0.5]}, order=2, quiet=True)
    s = np.array([1.5, -0.5])
    check_grads(chain(squared, 3, s), quiet=True)
    np.testing.assert_array_equal(s, [1.5, -0.5])


@kernel
def spelled_out(x: Scalar, out: Mutable[Scalar]):
    v = Vector[2](0, 0)
    v[0] = v[0] + 1 * x
    v[0] = v[0] + 2 * x
    v[0] = v[0] + 3 * x
    v[0] = v[0] + 4 * x
    out = v[0]


@kernel
def augmented(x: Scalar, out: Mutable[Scalar]):
    v = Vector[2](0, 0)
    v[0] += 1 * x
    v[0] += 2 * x
    v[0] += 3 * x
    v[0] += 4 * x
    out = v[0]


@kernel
def unrolled(x: Scalar, out: Mutable[Scalar]):
    v = Vector[2](0, 0)
    for k in range(4):
        v[0] = v[0] + (k + 1) * x
    out = v[0]


@kernel
def looped(x: Scalar, out: Mutable[Scalar]):
    v = Vector[2](0, 0)
    for k in range(20):
        v[0] = v[0] + (k + 1) * x
    out = v[0]


@pytest.mark.parametrize(("k", "slope"), [(spelled_out, 10), (augmented, 10), (unrolled, 10), (looped, 210)])
@pytest.mark.parametrize("mode", ["float64", "float32"])
def test_a_component_rewritten_from_its_old_value(k, slope, mode):
    found = everywhere(k, {"x": 1.0}, mode=mode)
    assert found.values["out"] == slope
    assert found.slopes["x"] == slope


@kernel
def read_then_overwritten(x: Scalar, b: Mutable[Scalar], loss: Mutable[Scalar]):
    loss = x * b
    b = b + 100


@pytest.mark.parametrize(("seed", "by_b"), [(0.0, 1.0), (1.0, 2.0)])
def test_a_product_uses_the_value_from_before_the_overwrite(seed, by_b):
    found = everywhere(read_then_overwritten, {"x": 1.0, "b": 10.0}, {"b": seed})
    assert found.values == {"loss": 10.0, "b": 110.0}
    assert found.slopes == {"x": 10.0, "b": by_b}


def test_a_node_uses_the_value_from_before_a_later_node_overwrote_it():
    x, b, loss, c = np.array([1.0]), np.array([10.0]), np.zeros(1), np.zeros(1)
    first, second = eagle.deploy([read_then_overwritten, counted])
    graph = eagle.Graph()
    graph.add(first.bind(x=x, b=b, loss=loss), name="product")
    graph.add(second.bind(s=b), name="count")
    graph.add(second.bind(s=x), name="count x")
    graph.build(record=True)
    graph.launch()
    grads = eagle.diff.reverse(graph.record, {"loss": np.ones(1), "count.s": np.ones(1)})
    assert (x, b) == (2.0, 111.0)
    assert grads["product.x"] == 10.0
    assert grads["product.b"] == 2.0


# one array in two slots


@kernel
def product(a: Scalar, b: Scalar, y: Mutable[Scalar]):
    y = a * b


@kernel
def add_and_multiply(a: Scalar, s: Mutable[Scalar], out: Mutable[Scalar]):
    s = s + a
    out = a * s


def test_one_array_read_in_two_slots_has_a_gradient_for_each():
    w, y = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    (plan,) = eagle.deploy([product])
    graph = eagle.Graph()
    graph.add(plan.bind(a=w, b=w, y=y), name="product")
    graph.build(record=True)
    graph.launch()
    grads = eagle.diff.reverse(graph.record, {"y": np.ones(3)})
    np.testing.assert_array_equal(y, w * w)
    np.testing.assert_array_equal(grads["a"], w)
    np.testing.assert_array_equal(grads["b"], w)


def test_one_array_read_and_written_is_read_as_it_was():
    w, out = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    (plan,) = eagle.deploy([add_and_multiply])
    plan.bind(a=w, s=w, out=out).launch()
    np.testing.assert_array_equal(w, [2, 4, 6])
    np.testing.assert_array_equal(out, [2, 8, 18])


def test_arrays_that_overlap_or_are_written_twice_are_refused_by_name():
    w = np.array([1.0, 2.0, 3.0])
    (plan,) = eagle.deploy([add_and_multiply])
    with pytest.raises(PlaneError, match=r"(?s)\ba\b.*\bs\b"):
        plan.bind(a=w[0:2], s=w[1:3], out=np.zeros(2))
    with pytest.raises(PlaneError, match=r"(?s)\bs\b.*\bout\b"):
        plan.bind(a=np.zeros(3), s=w, out=w)


def test_a_vector_of_itself():
    @kernel
    def turned(v: Mutable[Vector[2]]):
        v = hm.vec(v[0] * v[1], v[0] - v[1])

    found = everywhere(turned, {"v": [3.0, 5.0]}, {"v": [1.0, 10.0]})
    np.testing.assert_array_equal(found.values["v"], [15, -2])
    np.testing.assert_array_equal(found.slopes["v"], [15, -7])
