"""What the gradients of small graphs are: of one output and of many, by which names, for planes of every kind."""

from collections.abc import Mapping

import numpy as np
import pytest
from eagletest import kernels as k
from eagletest.graphs import Chain, gradients, recorded
from eagletest.kernels import plan
from eagletest.numpy_sums import bits

import eagle
from eagle.diff import Reverse, reverse

N = 257


# seeds


def test_seeds_of_several_outputs_add_up() -> None:
    chain = Chain(np.linspace(-1, 1, N))
    inner, wave = np.linspace(1, 2, N), np.linspace(-3, 3, N)
    both = gradients(chain.graph, {"square.y": inner, "wave.y": wave})
    x, y = chain.x, 0.5 * chain.x**2
    np.testing.assert_allclose(both["x"], (inner + wave * np.cos(y)) * x, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(both["a"], np.sum((inner + wave * np.cos(y)) * x * x), rtol=1e-12)
    swapped = reverse(chain.graph.record, {"wave.y": wave, "square.y": inner})
    assert [bits(swapped[key]) for key in swapped] == [bits(both[key]) for key in both]


def test_a_seed_of_an_output_in_the_middle_stops_there() -> None:
    chain = Chain(np.linspace(-1, 1, N))
    grads = gradients(chain.graph, {"square.y": np.ones(N)})
    np.testing.assert_array_equal(grads["x"], 0.5 * chain.x + 0.5 * chain.x)


def test_seeds_of_two_values_that_one_plane_had() -> None:
    """Each node's output is its own, though the second overwrites the first."""
    s = np.full(N, 3.0)
    graph = recorded(("once", k.squared, {"s": s}), ("twice", k.squared, {"s": s}))
    graph.launch()
    for seeds, expected in (
        ({"once.s": 1.0}, 6.0),
        ({"twice.s": 1.0}, 2 * 9.0 * 6.0),
        ({"once.s": 100.0, "twice.s": 1.0}, 600.0 + 108.0),
    ):
        grads = reverse(graph.record, {name: np.full(N, seed) for name, seed in seeds.items()})
        np.testing.assert_array_equal(grads["s"], np.full(N, expected))


def test_a_reverse_for_other_outputs_each_time() -> None:
    chain = Chain(np.linspace(-1, 1, N))
    rev = Reverse(chain.graph)
    chain.graph.launch()
    for seeds in ({"wave.y": np.ones(N)}, {"square.y": np.ones(N)}, {"square.y": np.ones(N), "wave.y": np.ones(N)}, {}):
        for _ in range(2):
            again = rev(chain.graph.record, seeds)
            fresh = reverse(chain.graph.record, seeds)
            assert [bits(again[key]) for key in again] == [bits(fresh[key]) for key in fresh]


# names


Named = tuple[eagle.Graph, dict[str, np.ndarray]]


@pytest.fixture
def named() -> Named:
    """Two inputs called x, one of which two nodes read; three params called a."""
    planes = dict(zip("uvyzwo", np.random.default_rng(0).uniform(0.5, 1, (6, N)), strict=True))
    graph = recorded(
        ("first", k.square, {"x": planes["u"], "a": 2.0, "y": planes["y"]}),
        ("second", k.square, {"x": planes["v"], "a": 3.0, "y": planes["z"]}),
        ("third", k.square, {"x": planes["u"], "a": 5.0, "y": planes["w"]}),
        ("both", k.product, {"a": planes["y"], "b": planes["z"], "y": planes["o"]}),
    )
    return graph, planes


def test_a_name_that_stands_for_several_planes_is_given_by_its_node(named: Named) -> None:
    graph, planes = named
    u, v = planes["u"], planes["v"]
    grads = gradients(graph, {"both.y": np.ones(N), "third.y": np.ones(N)})
    assert list(grads) == ["first.x", "first.a", "second.x", "second.a", "third.a"]
    np.testing.assert_allclose(grads["first.x"], 4 * u * 3 * v * v + 10 * u)
    np.testing.assert_allclose(grads["second.x"], 2 * u * u * 6 * v)
    np.testing.assert_allclose(grads["third.a"], np.sum(u * u))
    assert grads["third.x"] is not None
    assert bits(grads["third.x"]) == bits(grads["first.x"])  # another name of the same gradient
    assert "third.x" in grads
    assert "third.x" not in list(grads)


def test_a_name_that_stands_for_one_plane_has_the_node_for_an_alias() -> None:
    chain = Chain(np.linspace(-1, 1, N))
    grads = gradients(chain.graph, chain.ones)
    assert list(grads) == ["x", "a"]
    assert bits(grads["square.x"]) == bits(grads["x"])
    assert bits(grads["square.a"]) == bits(grads["a"])
    assert "wave.x" not in grads  # it is no input: square writes it


def test_total_adds_the_shares_of_one_name_in_node_order(named: Named) -> None:
    graph, _ = named
    grads = gradients(graph, {"both.y": np.ones(N), "third.y": np.ones(N)})
    shares = [grads[f"{node}.a"] for node in ("first", "second", "third")]
    assert bits(grads.total("a")) == bits((shares[0] + shares[1]) + shares[2])
    assert bits(grads.total("x")) == bits(grads["first.x"] + grads["second.x"])
    chain = Chain(np.ones(N))
    alone = gradients(chain.graph, chain.ones)
    assert bits(alone.total("a")) == bits(alone["a"])


def test_total_of_gradients_that_have_different_shapes() -> None:
    graph = recorded(
        ("turn", k.turn, {"m": np.ones((2, 3, N)), "v": np.ones((3, N)), "k": (1.0, 2.0), "w": np.zeros((2, N))}),
        ("shear", k.shear, {"m": np.ones((2, 2, N)), "k": np.eye(2)}),
    )
    grads = gradients(graph, {"w": np.ones((2, N))})
    with pytest.raises(
        ValueError, match=r"total\('k'\): the nodes' gradients have different shapes, \[\(2,\), \(2, 2\)\]"
    ):
        grads.total("k")


def test_gradients_are_a_read_only_mapping() -> None:
    chain = Chain(np.linspace(-1, 1, N))
    grads = gradients(chain.graph, chain.ones)
    assert isinstance(grads, Mapping)
    assert len(grads) == 2
    assert set(dict(grads)) == set(grads.keys()) == {"x", "a"}
    assert [key for key, _ in grads.items()] == list(grads)
    assert grads.get("nothing") is None
    with pytest.raises(TypeError):
        grads["x"] = 0  # type: ignore[index]
    with pytest.raises(TypeError):
        del grads["x"]  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        grads.report.bitwise["x"] = False  # type: ignore[index]
    assert repr(grads) == f"<gradients x: float64[{N}], a: {grads['a']:.6g}>"
    assert isinstance(grads["a"], np.float64)


def test_what_each_key_stands_for(named: Named) -> None:
    graph, _ = named
    grads = gradients(graph, {"third.y": np.ones(N)})
    assert [entry.key for entry in grads.entries] == list(grads)
    entry = grads.entry("third.x")
    assert (entry.key, entry.name, entry.nodes) == ("first.x", "x", ("first", "third"))


def test_the_report() -> None:
    chain = Chain(np.linspace(-1, 1, N))
    rev = Reverse(chain.graph)
    for generation in (1, 2, 3):
        chain.graph.launch()
        report = rev(chain.graph.record, chain.ones).report
        assert report.generation == generation == chain.graph.record.generation
        assert dict(report.bitwise) == {"x": True, "a": True}
        assert report.chunks == 1


def test_a_strict_reverse_gives_what_is_bitwise() -> None:
    chain = Chain(np.linspace(-1, 1, N))
    grads = gradients(chain.graph, chain.ones)
    strict = reverse(chain.graph.record, chain.ones, strict=True)
    assert bits(strict["x"]) == bits(grads["x"])


# params


def test_an_update_reaches_the_forward_and_the_reverse() -> None:
    chain = Chain(np.linspace(-1, 1, N), a=0.5)
    rev = Reverse(chain.graph)
    for a in (0.5, 2.0, -1.0):
        chain.graph.update(a=a)
        chain.graph.launch()
        grads = rev(chain.graph.record, chain.ones)
        other = Chain(chain.x, a=a)
        expected = gradients(other.graph, other.ones)
        assert bits(chain.z) == bits(other.z)
        assert [bits(grads[key]) for key in grads] == [bits(expected[key]) for key in expected]


def test_an_update_of_one_node_or_of_all(named: Named) -> None:
    graph, planes = named
    graph.update({"second.a": 7.0})
    graph.launch()
    graph.record.discard()
    np.testing.assert_allclose([planes[p][0] for p in "yz"], [2 * planes["u"][0] ** 2, 7 * planes["v"][0] ** 2])
    graph.update(a=1.0)
    graph.launch()
    np.testing.assert_array_equal(planes["y"], planes["w"])


def test_the_plans_that_were_bound_keep_their_own_params() -> None:
    y = np.zeros(N)
    bound = plan(k.square).bind(x=np.ones(N), a=2.0, y=y)
    graph = eagle.Graph().add(bound).build(record=True)
    graph.update(a=5.0)
    graph.launch()
    np.testing.assert_array_equal(y, 5.0)
    bound.launch()
    np.testing.assert_array_equal(y, 2.0)


def test_an_update_of_a_graph_that_is_not_recorded() -> None:
    y = np.zeros(N)
    graph = eagle.Graph().add(plan(k.square).bind(x=np.ones(N), a=2.0, y=y)).build()
    graph.update(a=3.0)
    graph.launch(2)
    np.testing.assert_array_equal(y, 3.0)


# planes of every kind


@pytest.mark.parametrize("mode", ["float64", "float32"])
def test_vectors_matrices_and_params_of_them(mode: str) -> None:
    rng = np.random.default_rng(6)
    m, v = rng.standard_normal((2, 3, N)).astype(mode), rng.standard_normal((3, N)).astype(mode)
    factors, w = np.array([2.0, -3.0], mode), np.zeros((2, N), mode)
    graph = recorded(("turn", k.turn, {"m": m, "v": v, "k": factors, "w": w}), mode=mode)
    seed = rng.standard_normal((2, N)).astype(mode)
    grads = gradients(graph, {"w": seed})
    tolerance = 1e-13 if mode == "float64" else 1e-4
    product = np.einsum("ijn,jn->in", m, v)
    np.testing.assert_allclose(w, factors[:, None] * product, rtol=tolerance, atol=tolerance)
    scaled = seed * factors[:, None]
    np.testing.assert_allclose(grads["m"], np.einsum("in,jn->ijn", scaled, v), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(grads["v"], np.einsum("ijn,in->jn", m, scaled), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(grads["k"], np.sum(seed * product, axis=1), rtol=tolerance * 10, atol=tolerance * 100)
    assert {key: (grads[key].shape, grads[key].dtype) for key in grads} == {
        "m": ((2, 3, N), np.dtype(mode)),
        "v": ((3, N), np.dtype(mode)),
        "k": ((2,), np.dtype(mode)),
    }


def test_a_matrix_in_place_and_a_param_that_is_a_matrix() -> None:
    rng = np.random.default_rng(7)
    m, factor = rng.standard_normal((2, 2, N)), rng.standard_normal((2, 2))
    old = m.copy()
    graph = recorded(("one", k.shear, {"m": m, "k": factor}), ("two", k.shear, {"m": m, "k": factor}))
    seed = rng.standard_normal((2, 2, N))
    grads = gradients(graph, {"two.m": seed})
    np.testing.assert_allclose(m, np.einsum("ij,jk,kln->iln", factor, factor, old))
    np.testing.assert_allclose(grads["m"], np.einsum("ji,kj,kln->iln", factor, factor, seed))
    by_factor = np.einsum("iln,jln->ij", seed, np.einsum("ij,jkn->ikn", factor, old))
    by_factor += np.einsum("iln,jln->ij", np.einsum("ji,jln->iln", factor, seed), old)
    np.testing.assert_allclose(grads.total("k"), by_factor)


def test_integers_bools_a_branch_and_a_loop_that_ends_by_its_data() -> None:
    n = 5
    x = np.array([1.1, 2.0, 0.25, 2.0, 0.5])
    up = np.array([True, True, True, False, True])
    trips = np.array([10, 10, 10, 10, 0], np.int32)
    y, count, high, done, z = np.zeros(n), np.zeros(n, np.int32), np.zeros(n, bool), np.zeros(n, bool), np.zeros(n)
    climb = {
        "x": x,
        "gain": 1.0,
        "start": 5,
        "up": up,
        "trips": trips,
        "y": y,
        "count": count,
        "high": high,
        "done": done,
    }
    graph = recorded(
        ("climb", k.climb, climb),
        ("again", k.climb, {**climb, "x": y, "up": high, "trips": count, "y": z, "count": np.zeros(n, np.int32),
                            "high": np.zeros(n, bool), "done": np.zeros(n, bool)}),
    )  # fmt: skip
    grads = gradients(graph, {"climb.y": np.ones(n)})
    np.testing.assert_allclose(y, [3.63, 8.0, 0.625, -2.0, 0.0], rtol=1e-15)
    np.testing.assert_array_equal(count, [8, 7, 15, -7, 5])
    np.testing.assert_array_equal(high, [True, True, False, True, False])
    np.testing.assert_array_equal(done, [False, False, False, True, False])
    np.testing.assert_allclose(grads["x"], [6.6, 8.0, 5.0, -1.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(grads["climb.gain"], 3 * 1.1**2 + 2 * 4 + 10 * 0.25**2)
    assert list(grads) == ["x", "climb.gain", "again.gain"]
    later = reverse(graph.record, {"again.y": np.ones(n)})
    # again: where it was high, y > 3 after one trip (or there is none), so z = y y or 0; elsewhere z = -y
    np.testing.assert_allclose(z, [3.63**2, 64.0, -0.625, 0.0, 0.0])
    np.testing.assert_allclose(later["x"], [2 * 3.63 * 6.6, 2 * 8 * 8, -5.0, 0.0, 0.0])


def test_a_float32_graph_is_float32_throughout() -> None:
    chain = Chain(np.linspace(-1, 1, N, dtype=np.float32))
    grads = gradients(chain.graph, chain.ones)
    assert grads["x"].dtype == grads["a"].dtype == np.float32
    x = chain.x.astype(float)
    np.testing.assert_allclose(grads["x"], np.cos(0.5 * x * x) * x, rtol=3e-6, atol=1e-7)
    np.testing.assert_allclose(grads["a"], np.sum(np.cos(0.5 * x * x) * x * x), rtol=1e-5)


def test_float32_and_float64_nodes_in_one_graph() -> None:
    x, x32 = np.linspace(-1, 1, N), np.linspace(-1, 1, N, dtype=np.float32)
    y, y32 = np.zeros(N), np.zeros(N, np.float32)
    graph = eagle.Graph()
    graph.add(plan(k.wave).bind(x=x, y=y), name="double")
    graph.add(plan(k.wave, "float32").bind(x=x32, y=y32), name="single")
    graph.build(record=True)
    grads = gradients(graph, {"double.y": np.ones(N), "single.y": np.ones(N)})
    assert grads["double.x"].dtype == np.float64
    assert grads["single.x"].dtype == np.float32
    np.testing.assert_allclose(grads["double.x"], np.cos(x), rtol=1e-15)
    np.testing.assert_allclose(grads["single.x"], np.cos(x32), rtol=1e-6)


def test_nodes_of_different_batch_sizes_in_one_graph() -> None:
    """They share no plane; their params and gradients are apart, in one record."""
    sizes = {"small": 3, "large": 1003, "one": 1}
    chains = {name: Chain(np.linspace(0.1, 1, n)) for name, n in sizes.items()}
    graph = eagle.Graph()
    for name, c in chains.items():
        graph.add(plan(k.square).bind(x=c.x, a=0.5, y=c.y), name=f"{name} square")
    for name, c in chains.items():
        graph.add(plan(k.wave).bind(x=c.y, y=c.z), name=f"{name} wave")
    graph.build(record=True)
    grads = gradients(graph, {f"{name} wave.y": np.ones(n) for name, n in sizes.items()})
    for name, c in chains.items():
        in_graph = c.z.copy()
        alone = gradients(c.graph, c.ones)
        assert bits(c.z) == bits(in_graph)
        assert bits(grads[f"{name} square.x"]) == bits(alone["x"])
        assert bits(grads[f"{name} square.a"]) == bits(alone["a"])


def test_a_table_shared_by_nodes_of_different_batch_sizes() -> None:
    table = np.arange(1.0, 5)
    steps = []
    for name, n in (("few", 3), ("many", 300)):
        index = np.arange(n, dtype=np.int32) % 4
        steps.append((name, k.look_up, {"i": index, "x": np.ones(n), "values": table, "y": np.zeros(n)}))
    grads = gradients(recorded(*steps), {"few.y": np.ones(3), "many.y": np.full(300, 2.0)})
    np.testing.assert_array_equal(grads["values"], [151.0, 151.0, 151.0, 150.0])


def test_what_a_graph_prints() -> None:
    graph = recorded(
        ("look", k.look_up, {"i": np.zeros(3, np.int32), "x": np.ones(3), "values": np.ones(4), "y": np.zeros(3)}),
        ("turn", k.turn, {"m": np.ones((2, 3, 9)), "v": np.ones((3, 9)), "k": (1, 2), "w": np.zeros((2, 9))}),
    )
    assert repr(graph) == (
        "<graph of 2 nodes, recorded\n"
        "  look: (i: Int32, x: Scalar, values: Table[4]) -> y  [3 samples]\n"
        "  turn: (m: Matrix[2, 3], v: Vector[3], k: Param[Vector[2]]) -> w  [9 samples]>"
    )
    assert repr(plan(k.turn)) == "<plan of turn(m, v, k, w), float64, host>"
    assert repr(plan(k.wave).bind(x=np.ones(3), y=np.ones(3))) == "<wave bound to 3 samples>"
