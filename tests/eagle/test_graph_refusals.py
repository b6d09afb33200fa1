"""Graphs that cannot be built or launched, updates and vjps that do not fit: each is refused by its text."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from eagletest import kernels as k
from eagletest.graphs import Chain, gradients, recorded
from eagletest.kernels import plan

import eagle
import hawk
from eagle.errors import ArgumentError, GraphError, PlaneError, RecordError, ReverseError, UnknownName
from eagle.plan import Bound, Plan

N = 5


def square(x: np.ndarray | None = None, y: np.ndarray | None = None) -> Bound:
    return plan(k.square).bind(x=np.ones(N) if x is None else x, a=2.0, y=np.zeros(N) if y is None else y)


def refused(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as refusal:
        call()
    assert str(refusal.value) == message


# making a graph


def test_a_graph_is_built_once() -> None:
    for record in (False, True):
        graph = eagle.Graph().add(square()).build(record)
        refused(graph.build, GraphError, "the graph is built already")
        graph.launch()


def test_an_empty_graph() -> None:
    refused(eagle.Graph().build, GraphError, "the graph is empty: add() its steps before build()")


def test_a_name_is_used_once() -> None:
    graph = eagle.Graph().add(square())
    message = "name='square' is used by another node of this graph; give each its own: add(..., name=)"
    refused(lambda: graph.add(square()), GraphError, message)
    refused(lambda: graph.add(square(), name="square"), GraphError, message)
    graph.add(square(), name="another").build().launch()


@pytest.mark.parametrize("name", ["", "a.b", 3])
def test_names_that_are_none(name: object) -> None:
    refused(
        lambda: eagle.Graph().add(square(), name=name),  # type: ignore[arg-type]
        GraphError,
        f"name={name!r}: a node's name is a non-empty string without a dot",
    )


def test_nothing_is_added_to_a_built_graph() -> None:
    graph = eagle.Graph().add(square()).build()
    refused(lambda: graph.add(square()), GraphError, "the graph is built; add its nodes before build()")
    assert [node.name for node in graph.nodes] == ["square"]


def test_only_bound_plans_are_added() -> None:
    refused(
        lambda: eagle.Graph().add(plan(k.square)),  # type: ignore[arg-type]
        ArgumentError,
        "Graph.add takes a bound plan, found Plan; bind its planes first: plan.bind(x=..., y=...)",
    )
    refused(
        lambda: eagle.Graph().add(k.square),  # type: ignore[arg-type]
        ArgumentError,
        "Graph.add takes a bound plan, found Kernel",
    )
    refused(
        lambda: eagle.Graph().add_node(square()),  # type: ignore[arg-type]
        ArgumentError,
        "Graph.add_node takes a node, found Bound; a bound plan goes to add()",
    )


def test_one_node_is_in_a_graph_once() -> None:
    graph = eagle.Graph().add(square())
    refused(
        lambda: graph.add_node(graph.nodes[0], name="again"),
        GraphError,
        "the node 'square' is in this graph already; add a step once for each time it runs",
    )


def test_a_vjp_is_no_step() -> None:
    back = Plan(hawk.Kernel("square_back", hawk.diff.vjp(k.square)), "float64")
    planes = {"x": np.ones(N), "a": 1.0, "bar_y": np.ones(N), "bar_x": np.ones(N), "bar_a": np.ones(())}
    refused(
        lambda: eagle.Graph().add(back.bind(**planes)),
        ArgumentError,
        "square_back is a vjp: it belongs to a reverse, never to a forward step. eagle.diff.reverse builds and runs "
        "it for you",
    )


def test_planes_that_overlap_in_part_across_nodes() -> None:
    buffer = np.ones(N + 1)
    graph = eagle.Graph().add(square(y=buffer[1:]), name="first").add(square(x=buffer[:-1]), name="second")
    refused(
        graph.build,
        PlaneError,
        "second.x and first.y overlap in memory, but are not the same view of it, and one is written; pass the same "
        "array or separate ones",
    )


def test_a_table_of_one_node_is_no_output_of_another() -> None:
    table, index = np.ones(4), np.zeros(4, np.int32)
    graph = eagle.Graph().add(plan(k.wave).bind(x=np.ones(4), y=table), name="fill")
    graph.add(plan(k.look_up).bind(i=index, x=np.ones(4), values=table, y=np.zeros(4)), name="use")
    refused(
        graph.build,
        PlaneError,
        "fill.y and use.values are the same array, one as a table, which any sample reads anywhere, and one as a plane "
        "that is written; give each its own",
    )


def test_planes_of_nodes_that_only_read_may_overlap() -> None:
    buffer, y, z = np.arange(1.0, N + 2), np.zeros(N), np.zeros(N)
    graph = recorded(
        ("low", k.wave, {"x": buffer[:-1], "y": y}),
        ("high", k.wave, {"x": buffer[1:], "y": z}),
    )
    grads = gradients(graph, {"low.y": np.ones(N), "high.y": np.ones(N)})
    np.testing.assert_allclose(grads["low.x"], np.cos(buffer[:-1]))
    np.testing.assert_allclose(grads["high.x"], np.cos(buffer[1:]))


# launching


def test_launch_before_build() -> None:
    graph = eagle.Graph().add(square())
    for n in (0, 1, 2):
        refused(partial(graph.launch, n), GraphError, "the graph is not built; call build() before launch()")


@pytest.mark.parametrize("n", [-1, 1.0, "2", None])
def test_a_number_of_launches_that_is_none(n: object) -> None:
    graph = eagle.Graph().add(square()).build()
    refused(
        lambda: graph.launch(n),  # type: ignore[arg-type]
        ValueError,
        f"launch({n!r}): the number of launches is an integer >= 0",
    )


def test_launch_n_times() -> None:
    s = np.array([0.0])
    graph = eagle.Graph().add(plan(k.raised).bind(s=s)).build()
    for n, total in ((0, 0), (1, 1), (3, 4), (np.int64(2), 6)):
        graph.launch(n)
        assert s[0] == total


@pytest.mark.parametrize("n", [0, 2, 1000])
def test_a_recorded_graph_is_launched_once_at_a_time(n: int) -> None:
    chain = Chain(np.ones(N))
    refused(
        lambda: chain.graph.launch(n),
        ValueError,
        f"launch({n}): a graph built with record=True records one run per launch; call launch() once for each, and "
        "reverse or keep() its record before the next",
    )
    assert not chain.z.any()


# update


def test_update_refuses_unknown_names() -> None:
    chain = Chain(np.ones(N))
    for name in ("b", "wave.a", "square.x", "a.square", "squares.a"):
        refused(
            partial(chain.graph.update, {name: 1.0}),
            ArgumentError,
            f"update({name}=...): no node has a Param of that name; the graph has square.a",
        )
    refused(
        lambda: recorded(("wave", k.wave, {"x": np.ones(N), "y": np.zeros(N)})).update(a=1.0),
        ArgumentError,
        "update(a=...): no node has a Param of that name; the graph has none",
    )


def test_update_refuses_values_that_do_not_fit() -> None:
    graph = recorded(
        ("turn", k.turn, {"m": np.ones((2, 3, N)), "v": np.ones((3, N)), "k": (1.0, 2.0), "w": np.zeros((2, N))}),
    )
    refused(
        lambda: graph.update(k=(1.0, 2.0, 3.0)),
        PlaneError,
        "turn.k is Param[Vector[2]], one value for the whole batch: expected shape (2,), found (3,)",
    )
    refused(lambda: graph.update(k="one"), ArgumentError, "turn.k is Param[Vector[2]]: expected a number, found str")


def test_nothing_is_updated_when_anything_is_refused() -> None:
    chain = Chain(np.ones(N), a=0.5)
    for faulty in ({"square.a": 3.0, "b": 1.0}, {"square.a": 3.0, "a": "four"}, {"a": 3.0, "square.a": np.ones(2)}):
        with pytest.raises((ArgumentError, PlaneError)):
            chain.graph.update(faulty)
        grads = gradients(chain.graph, chain.ones)
        np.testing.assert_array_equal(chain.y, 0.5)
        assert grads["a"] == pytest.approx(N * np.cos(0.5))


def test_update_is_refused_while_the_record_is_live() -> None:
    chain = Chain(np.ones(N), a=0.5)
    chain.graph.launch()
    refused(
        lambda: chain.graph.update(a=2.0),
        RecordError,
        "the record of generation 1 is live, neither reversed nor kept, and update() would change the params it was "
        "launched with. Reverse it first, keep a copy with record.keep(), or give it up with record.discard()",
    )
    assert eagle.diff.reverse(chain.graph.record, chain.ones)["a"] == pytest.approx(N * np.cos(0.5))
    chain.graph.update(a=2.0)
    chain.graph.launch()
    np.testing.assert_array_equal(chain.y, 2.0)


# vjps=


def vjp_plan(kernel: hawk.Kernel, mode: str = "float64", wrt: tuple[str, ...] | None = None) -> Plan:
    return Plan(hawk.Kernel(f"{kernel.name}_back", hawk.diff.vjp(kernel, wrt)), mode)


@pytest.mark.parametrize(
    ("vjps", "message"),
    [
        (
            lambda: {"squares": vjp_plan(k.square)},
            "vjps['squares']: the graph has no node of that name; it has square, wave",
        ),
        (
            lambda: {"square": vjp_plan(k.wave)},
            "vjps['square']: node 'square' runs the kernel square (float64), but wave_back is the vjp of another "
            "kernel, wave; build it of this one: hawk.diff.vjp(square)",
        ),
        (
            lambda: {"wave": vjp_plan(k.wave), "square": vjp_plan(k.square, "float32")},
            "vjps['square']: node 'square' runs the kernel square (float64), but square_back is built for float32; "
            "build it in the same mode",
        ),
        (
            lambda: {"square": vjp_plan(k.square, wrt=("x",))},
            "vjps['square']: square_back differentiates by x only; build it by all real inputs, x, a",
        ),
        (
            lambda: {"square": plan(k.square)},
            "vjps['square']: node 'square' runs the kernel square (float64); expected the plan of its vjp, found "
            "<plan of square(x, a, y), float64, host>",
        ),
        (
            lambda: {"square": None},
            "vjps['square']: node 'square' runs the kernel square (float64); expected the plan of its vjp, found None",
        ),
        (lambda: ["square"], "vjps maps names of nodes to vjp plans, found list"),
    ],
)
def test_vjps_that_are_not_the_nodes(vjps: Callable[[], dict], message: str) -> None:
    chain = Chain(np.ones(N))
    refused(lambda: eagle.diff.Reverse(chain.graph, vjps=vjps()), ReverseError, message)
    chain.graph.launch()
    refused(lambda: eagle.diff.reverse(chain.graph.record, chain.ones, vjps=vjps()), ReverseError, message)


def test_a_vjp_built_by_hand_gives_the_same_bits() -> None:
    chain = Chain(np.linspace(-1, 1, 300))
    chain.graph.launch()
    built = eagle.diff.reverse(chain.graph.record, chain.ones)
    by_hand = eagle.diff.reverse(
        chain.graph.record, chain.ones, vjps={"square": vjp_plan(k.square), "wave": vjp_plan(k.wave)}
    )
    for key in built:
        np.testing.assert_array_equal(by_hand[key], built[key])


# what is asked of a reverse and of its gradients


def test_a_reverse_is_of_a_recorded_graph() -> None:
    message = "this graph does not record its launches; build it with build(record=True)"
    for graph in (eagle.Graph(), eagle.Graph().add(square()).build()):
        refused(partial(eagle.diff.Reverse, graph), RecordError, message)
        refused(partial(getattr, graph, "record"), RecordError, message)
    refused(
        lambda: eagle.diff.Reverse(plan(k.square)),  # type: ignore[arg-type]
        TypeError,
        "Reverse takes a graph built with record=True, found Plan",
    )


def test_what_is_reversed_is_a_record() -> None:
    chain = Chain(np.ones(N))
    refused(
        lambda: eagle.diff.reverse(chain.graph, chain.ones),  # type: ignore[arg-type]
        TypeError,
        "reverse() takes the record of a launch or a run, found Graph; pass its .record",
    )
    refused(
        lambda: eagle.diff.Reverse(chain.graph)(None, chain.ones),  # type: ignore[arg-type]
        TypeError,
        "a Reverse takes the record of a launch (graph.record), found NoneType",
    )


def test_gradients_by_names_that_are_none() -> None:
    x, y, z = np.ones(N), np.zeros(N), np.zeros(N)
    graph = recorded(
        ("one", k.square, {"x": x, "a": 2.0, "y": y}),
        ("two", k.square, {"x": x, "a": 3.0, "y": z}),
    )
    grads = gradients(graph, {"one.y": np.ones(N)})
    refused(lambda: grads["z"], UnknownName, "no gradient is named 'z'; there are x, one.a, two.a")
    refused(
        lambda: grads["a"],
        UnknownName,
        "'a' names several gradients: one.a, two.a. Name one of them, or add them up with total('a')",
    )
    refused(lambda: grads.total("z"), UnknownName, "no gradient is named 'z'; there are x, one.a, two.a")
    assert "a" not in grads
    assert "z" not in grads
    assert 3 not in grads
    with pytest.raises(KeyError):
        grads["z"]


def test_a_kernel_without_a_derivative_is_refused_when_it_is_recorded() -> None:
    bound = plan(k.endless).bind(x=np.ones(N), y=np.zeros(N))
    eagle.Graph().add(bound).build().launch()
    with pytest.raises(hawk.diff.DerivativeError, match=r"endless.*(?s:.)*while s < 10\.0"):
        eagle.Graph().add(bound).build(record=True)
