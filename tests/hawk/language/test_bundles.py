"""Vectors and matrices: values made of scalars, with operators, indices and small linear algebra."""

import numpy as np
import pytest

from hawk import math as hm
from hawk.ir.interpret import interpret
from hawk.language import Bool, Int32, KernelError, Matrix, Mutable, Param, Scalar, Table, Vector, trace

RNG = np.random.default_rng(5)
V, W = RNG.standard_normal((2, 3, 6))
A, B = RNG.standard_normal((2, 3, 3, 6))


def run(function, **planes):
    program = trace(function)
    out = interpret(program, {name: np.asarray(plane) for name, plane in planes.items()})
    return [out[name] for name in (program.returns or sorted(program.writes()))]


def test_operators_work_component_by_component(agree):
    def k(v: Vector[3], w: Vector[3], x: Scalar) -> tuple[Vector[3], Vector[3], Bool]:
        u = 2 * v - w / x + v * w
        u += 1
        return -u, abs(u) + u**2 // 1, u[0] < v[1]

    agree(k, v=V, w=W, x=V[0] + 3)


def test_indices_slices_and_unpacking(agree):
    def k(v: Vector[3], m: Matrix[3, 3]) -> tuple[Scalar, Vector[2], Vector[3], Vector[2]]:
        a, *rest = v
        b, c = rest
        first, _, last = m
        return a + v[-1] * m[1, 2] - m[2][0], v[1:], first - last + m[:, 1], hm.vec(*m[1:, 1:][0]) + hm.vec(b, c)

    agree(k, v=V, m=A)


def test_an_index_the_kernel_computes_picks_as_pythons(agree):
    weights = (0.5, 2.0, -1.0, 4.0)

    def k(v: Vector[3], m: Matrix[3, 3], i: Int32) -> tuple[Scalar, Vector[3], Scalar]:
        return v[i], m[i], m[1, i] + weights[i]

    agree(k, v=V, m=A, i=np.array([0, 1, 2, -1, -2, -3], np.int32))


def test_an_index_outside_picks_the_nearest_and_sets_nothing():
    def k(v: Vector[3], i: Int32) -> tuple[Scalar, Vector[3]]:
        w = v
        w[i] = 9.0
        return v[i], w

    picked, changed = run(k, v=V, i=np.array([3, 99, -4, -99, 2, -3], np.int32))
    np.testing.assert_array_equal(picked, [V[2, 0], V[2, 1], V[0, 2], V[0, 3], V[2, 4], V[0, 5]])
    expected = V.copy()
    expected[2, 4] = expected[0, 5] = 9
    np.testing.assert_array_equal(changed, expected)


def test_components_are_set_in_place(agree):
    def k(x: Scalar) -> tuple[Matrix[2, 3], Vector[4]]:
        m = np.zeros((2, 3)) + x
        m[0, 1] = 2 * x
        m[1] = np.array([1.0, 2.0, 3.0]) * x
        m[:, 2] -= 1
        v = np.zeros(4) * x
        v[1:3] = 7
        v[0] += x
        return m, v

    agree(k, x=[1.0, 2.5])


def test_vectors_are_values_and_arrays_are_never_changed():
    constant = np.array([1.0, 2.0])

    def k(x: Scalar) -> tuple[Vector[2], Vector[2], Vector[2]]:
        v = hm.vec(x, x)
        w = v
        w[0] = 0
        c = constant
        c[1] = x
        return v, w, c

    v, w, c = run(k, x=[3.0])
    np.testing.assert_array_equal(np.ravel([v, w, c]), [3, 3, 0, 3, 1, 3])
    np.testing.assert_array_equal(constant, [1, 2])


def test_arrays_and_vectors_mix(agree):
    matrix = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])

    def k(v: Vector[3], x: Scalar) -> tuple[Vector[3], Matrix[2, 3], Scalar]:
        return np.array([1.0, 2.0, 3.0]) - v * matrix[1], x * matrix - matrix / x, x * matrix[0, 2]

    agree(k, v=V, x=V[0])

    def product(v: Vector[3]) -> Vector[2]:
        return matrix @ v

    np.testing.assert_allclose(run(product, v=V)[0], matrix @ V, rtol=1e-13)


def test_a_param_vector_and_a_matrix_output():
    def k(v: Vector[3], p: Param[Vector[3]], m: Mutable[Matrix[3, 3]]):
        m = hm.outer(v, p)
        m[0, 0] = m[1, 1]

    program = trace(k)
    out = interpret(program, {"v": V, "p": np.array([1.0, 2.0, 3.0])})["m"]
    wanted = np.einsum("in,j->ijn", V, [1.0, 2.0, 3.0])
    wanted[0, 0] = wanted[1, 1]
    np.testing.assert_array_equal(out, wanted)


def test_products_follow_numpy():
    def k(
        v: Vector[3], w: Vector[3], a: Matrix[3, 3], b: Matrix[3, 3]
    ) -> tuple[Scalar, Vector[3], Vector[3], Matrix[3, 3], Vector[3], Scalar, Matrix[3, 3]]:
        return hm.dot(v, w), a @ v, v @ a, hm.matmul(a, b), hm.cross(v, w), hm.norm(v), a.T + hm.transpose(b)

    dot, av, va, ab, cross, norm, turned = run(k, v=V, w=W, a=A, b=B)
    np.testing.assert_allclose(dot, np.einsum("in,in->n", V, W), rtol=1e-13)
    np.testing.assert_allclose(av, np.einsum("ijn,jn->in", A, V), rtol=1e-13)
    np.testing.assert_allclose(va, np.einsum("ijn,in->jn", A, V), rtol=1e-13)
    np.testing.assert_allclose(ab, np.einsum("ijn,jkn->ikn", A, B), rtol=1e-12)
    np.testing.assert_allclose(cross, np.cross(V, W, axis=0), rtol=1e-12)
    np.testing.assert_allclose(norm, np.linalg.norm(V, axis=0), rtol=1e-14)
    np.testing.assert_array_equal(turned, (A + B).transpose(1, 0, 2))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_det_inv_and_solve(n):
    a, b = RNG.standard_normal((n, n, 5)), RNG.standard_normal((n, 5))
    a[0, 0] = 0.0 if n > 1 else 2.0  # elimination must exchange rows

    def k(a: Matrix[n, n], b: Vector[n]) -> tuple[Scalar, Matrix[n, n], Vector[n], Matrix[n, n]]:
        return hm.det(a), hm.inv(a), hm.solve(a, b), hm.solve(a, a)

    det, inv, x, one = run(k, a=a, b=b)
    by_sample = a.transpose(2, 0, 1)
    np.testing.assert_allclose(det, np.linalg.det(by_sample), rtol=1e-10)
    np.testing.assert_allclose(inv.transpose(2, 0, 1), np.linalg.inv(by_sample), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(np.einsum("ijn,jn->in", a, x), b, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(one, np.broadcast_to(np.eye(n)[:, :, None], one.shape), atol=1e-9)


def test_quaternions():
    q = RNG.standard_normal((4, 6))
    q /= np.linalg.norm(q, axis=0)

    def k(q: Vector[4], v: Vector[3]) -> tuple[Vector[3], Vector[4], Vector[4]]:
        sandwich = hm.qmul(hm.qmul(q, hm.vec(0, v)), hm.qconj(q))
        return hm.qrotate(q, v), sandwich, hm.qmul(q, hm.qconj(q))

    rotated, sandwich, one = run(k, q=q, v=V)
    np.testing.assert_allclose(rotated, sandwich[1:], atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(rotated, axis=0), np.linalg.norm(V, axis=0), rtol=1e-13)
    np.testing.assert_allclose(one, np.broadcast_to([[1], [0], [0], [0]], (4, 6)), atol=1e-15)


def test_vec_joins_and_counts_stay_ints():
    def k(v: Vector[3], n: Int32) -> tuple[Vector[5], Int32]:
        counts = hm.vec(n, n + 1)
        return hm.vec(v, n, 2), counts[1] // 2

    n = np.arange(6, dtype=np.int32)
    joined, half = run(k, v=V, n=n)
    np.testing.assert_array_equal(joined, [*V, n, np.full(6, 2.0)])
    np.testing.assert_array_equal(half, (n + 1) // 2)


def test_mistakes_name_the_shapes():
    def check(body, words):
        text = f"def k(x: Scalar, v: Vector[3], m: Matrix[2, 3], y: Mutable[Scalar]):\n    y = {body}\n"
        names = {"Scalar": Scalar, "Vector": Vector, "Matrix": Matrix, "Mutable": Mutable, "hm": hm}
        exec(text, names)
        with pytest.raises(KernelError) as caught:
            trace(names["k"], source=text)
        for word in words:
            assert word in str(caught.value)

    check("v + hm.vec(x, x)", ["a Vector[2] and a Vector[3]"])
    check("m @ hm.vec(x, x)", ["a Matrix[2, 3] @ a Vector[2]"])
    check("v[3]", ["a Vector[3] has no component [3]"])
    check("v[0, 1]", ["1 axes"])
    check("v[x]", ["an index is a whole number", "hm.int32"])
    check("v[:int(x)][0]", ["a slice needs bounds known while tracing"])
    check("v.x", ["a Vector[3] has no attribute x"])
    check("hm.det(m)", ["a Matrix[2, 3]", "square"])
    check("hm.cross(v, m[0, 1:])[0]", ["a Vector[2]", "a Vector[3]"])
    check("1.0 if v > 0 else 2.0", ["neither true nor false", "any(v > 0)"])
    check("x[0]", ["a real has no components"])
    check("hm.dot(v, x)", ["a Vector[3]", "a scalar"])


def test_tables_are_read_by_name_position_and_traced_index():
    table = np.arange(6.0).reshape(3, 2)

    def k(i: Int32, t: Table["r":3, "c":2]) -> tuple[Scalar, Scalar, Scalar]:
        return t.at(i, c=1), t.at(c=0, r=2), t.at(i, i)

    a, b, c = run(k, i=np.array([0, 1, 2, -5, 9], np.int32), t=table)
    np.testing.assert_array_equal(a, [1, 3, 5, 1, 5])
    np.testing.assert_array_equal(b, [4] * 5)
    np.testing.assert_array_equal(c, [0, 3, 5, 0, 5])


@pytest.mark.parametrize(
    ("read", "words"),
    [
        ("t.at(x, 0)", ["an index is a whole number", "hm.int32"]),
        ("t.at(3, 0)", ["t.at(r=3) is outside the table", "from 0 to 2"]),
        ("t.at(-1, 0)", ["t.at(r=-1) is outside the table"]),
        ("t.at(0)", ["does not index every axis once", "t.at(r=..., c=...)"]),
        ("t.at(0, 0, 0)", ["does not index every axis once"]),
        ("t.at(0, r=1)", ["does not index every axis once"]),
        ("t[0]", ["it is not indexed with []", "t.at(...)"]),
        ("t.mean", ["t has no attribute mean"]),
    ],
)
def test_wrong_reads_of_a_table_are_refused(read, words):
    text = f"def k(x: Scalar, t: Grid, y: Mutable[Scalar]):\n    y = {read}\n"
    names = {"Scalar": Scalar, "Grid": Table["r":3, "c":2], "Mutable": Mutable}
    exec(text, names)
    with pytest.raises(KernelError) as caught:
        trace(names["k"], source=text)
    for word in words:
        assert word in str(caught.value)
