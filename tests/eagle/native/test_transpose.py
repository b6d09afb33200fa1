"""The reverse of a graph, case by case, worked out by hand."""

from __future__ import annotations

import pytest

from eagle._native import Description, Join, Node, Pass, Transposed, Vjp, copies, transpose

X, Y, Z, W = range(4)


def node(
    name: str,
    reads: list[int],
    writes: list[int],
    *,
    needs: list[int] | None = None,
    differentiates: list[int] | None = None,
    passes_through: bool = False,
) -> Node:
    """Arguments are numbered over the reads, then the writes; `needs` and `differentiates` are such numbers.

    Without them all reads are needed and differentiated.
    """
    read = list(enumerate(reads))
    return Node(
        name,
        reads=read,
        writes=list(enumerate(writes, len(reads))),
        needs=read if needs is None else [read[k] for k in needs],
        differentiates=read if differentiates is None else [read[k] for k in differentiates],
        passes_through=passes_through,
    )


def show(step: Vjp | Join | Pass) -> str:
    """`Vjp` as n(cotangents -> outputs), `Join` as t=s+s, `Pass` as t=n?s."""
    if isinstance(step, Vjp):
        return f"{step.node}({','.join(map(str, step.cotangents))} -> {','.join(map(str, step.outputs))})"
    if isinstance(step, Join):
        return f"{step.target}={'+'.join(map(str, step.sources))}"
    return f"{step.target}={step.node}?{step.source}"


def steps(result: Transposed) -> list[str]:
    return [show(step) for step in result.steps]


def gradients(result: Transposed) -> dict[int, int]:
    return {g.plane: g.buffer for g in result.gradients}


def copied(graph: Description) -> list[tuple[int, int]]:
    return [(c.plane, c.before_node) for c in copies(graph)]


def test_a_chain_is_reversed_last_to_first() -> None:
    graph = Description(3, [node("first", [X], [Y]), node("last", [Y], [Z])])
    result = transpose(graph, [(1, Z)])
    assert steps(result) == ["1(0 -> 1)", "0(1 -> 2)"]
    assert result.seed_buffers == [0]
    assert result.buffer_planes == [Z, Y, X]
    assert gradients(result) == {X: 2}
    assert result.copies == []
    assert result.sources == [[-1], [-1]]


def test_readers_are_added_in_the_order_they_were_added_to_the_graph() -> None:
    graph = Description(4, [node("a", [X], [Y]), node("b", [X], [Z]), node("c", [X], [W])])
    result = transpose(graph, [(0, Y), (1, Z), (2, W)])
    assert steps(result) == ["2(2 -> 3)", "1(1 -> 4)", "0(0 -> 5)", "6=5+4+3"]
    assert gradients(result) == {X: 6}
    (gradient,) = result.gradients
    assert [(s.node, s.argument, s.buffer) for s in gradient.shares] == [(0, 0, 5), (1, 0, 4), (2, 0, 3)]


def test_a_seed_comes_before_the_readers() -> None:
    graph = Description(4, [node("a", [X], [Y]), node("b", [Y], [Z]), node("c", [Y], [W])])
    result = transpose(graph, [(2, W), (0, Y), (1, Z)])
    assert result.seed_buffers == [0, 1, 2]
    assert steps(result) == ["2(0 -> 3)", "1(2 -> 4)", "5=1+4+3", "0(5 -> 6)"]
    assert result.buffer_planes[5] == Y


def test_one_plane_under_two_arguments_gives_two_terms_in_argument_order() -> None:
    graph = Description(2, [node("square", [X, X], [Y])])
    result = transpose(graph, [(0, Y)])
    assert steps(result) == ["0(0 -> 1,2)", "3=1+2"]
    assert [(s.argument, s.buffer) for s in result.gradients[0].shares] == [(0, 1), (1, 2)]
    assert result.sources == [[-1, -1]]


def test_arguments_come_before_later_nodes() -> None:
    graph = Description(3, [node("square", [X, X], [Y]), node("copy", [X], [Z])])
    result = transpose(graph, [(0, Y), (1, Z)])
    assert steps(result) == ["1(1 -> 2)", "0(0 -> 3,4)", "5=3+4+2"]


def test_an_update_in_place_is_a_new_version() -> None:
    graph = Description(1, [node("step", [X], [X]), node("step", [X], [X]), node("step", [X], [X])])
    result = transpose(graph, [(2, X)])
    assert steps(result) == ["2(0 -> 1)", "1(1 -> 2)", "0(2 -> 3)"]
    assert gradients(result) == {X: 3}
    assert [(c.plane, c.before_node) for c in result.copies] == [(X, 0), (X, 1), (X, 2)]
    assert result.sources == [[0], [1], [2]]


def test_seeds_of_an_earlier_version_join_the_next_node() -> None:
    graph = Description(1, [node("step", [X], [X]), node("step", [X], [X])])
    result = transpose(graph, [(0, X), (1, X)])
    assert steps(result) == ["1(1 -> 2)", "3=0+2", "0(3 -> 4)"]


def test_a_needed_plane_that_is_overwritten_is_copied_once() -> None:
    """Both readers need x; two nodes overwrite it later, only the first of which destroys that value."""
    graph = Description(4, [
        node("a", [X], [Y]),
        node("b", [X], [Z]),
        node("clear", [W], [X], needs=[]),
        node("clear again", [W], [X], needs=[]),
    ])  # fmt: skip
    assert copied(graph) == [(X, 2)]
    result = transpose(graph, [(0, Y)])
    assert result.sources == [[0], [0], [], []]
    assert steps(result) == ["0(0 -> 1)"]


def test_a_plane_that_no_vjp_needs_is_not_copied() -> None:
    graph = Description(3, [node("linear", [X], [Y], needs=[]), node("clear", [Z], [X])])
    assert copied(graph) == []
    graph = Description(3, [node("linear", [X], [Y]), node("clear", [Z], [Y])])  # y was written but not read
    assert copied(graph) == []


def test_copies_are_taken_in_the_order_of_the_nodes_and_do_not_depend_on_seeds() -> None:
    graph = Description(4, [
        node("a", [X, Y], [Z]),
        node("b", [Z], [Y, X], needs=[]),
        node("c", [X, Y, Z], [W, Y], needs=[1, 0]),
    ])  # fmt: skip
    expected = [(Y, 1), (X, 1), (Y, 2)]
    assert copied(graph) == expected
    for seeds in ([], [(2, W)], [(0, Z), (1, Y)]):
        result = transpose(graph, seeds)
        assert [(c.plane, c.before_node) for c in result.copies] == expected
        assert result.sources == [[1, 0], [], [2, -1]]


def test_without_a_seed_everything_is_a_structural_zero() -> None:
    graph = Description(3, [node("first", [X], [Y]), node("last", [Y], [Z])])
    result = transpose(graph, [])
    assert steps(result) == []
    assert gradients(result) == {X: -1}
    assert result.gradients[0].shares == []


def test_nodes_that_no_seed_reaches_are_skipped() -> None:
    graph = Description(4, [node("a", [X], [Y]), node("b", [X], [Z]), node("c", [Z, W], [X])])
    result = transpose(graph, [(0, Y)])
    assert steps(result) == ["0(0 -> 1)"]
    assert gradients(result) == {X: 1, W: -1}  # x as it was before the launch; c overwrote it


def test_an_overwritten_version_passes_nothing_to_the_one_before() -> None:
    graph = Description(3, [node("a", [X], [Y]), node("b", [Z], [Y])])
    result = transpose(graph, [(1, Y)])
    assert steps(result) == ["1(0 -> 1)"]
    assert gradients(result) == {X: -1, Z: 1}


def test_some_outputs_without_an_adjoint() -> None:
    graph = Description(4, [node("two", [X], [Y, Z]), node("three", [Z], [W])])
    assert steps(transpose(graph, [(1, W)])) == ["1(0 -> 1)", "0(-1,1 -> 2)"]
    assert steps(transpose(graph, [(0, Y)])) == ["0(0,-1 -> 1)"]


def test_reads_that_are_not_differentiated_get_nothing() -> None:
    pick, count = node("pick", [X, Y], [Z], differentiates=[1]), node("count", [X], [X], differentiates=[])
    graph = Description(3, [pick, count])
    result = transpose(graph, [(0, Z), (1, X)])
    assert steps(result) == ["0(0 -> 2)"]
    assert gradients(result) == {Y: 2}


def test_a_node_that_may_be_skipped_passes_adjoints_on_after_its_own_terms() -> None:
    graph = Description(2, [
        node("first", [X], [Y]),
        node("maybe", [X, Y], [Y], passes_through=True),
        node("last", [Y, X], [X]),
    ])  # fmt: skip
    result = transpose(graph, [(2, X)])
    assert steps(result) == ["2(0 -> 1,2)", "1(1 -> 3,4)", "5=1?1", "6=4+5", "0(6 -> 7)", "8=7+3+2"]
    assert result.buffer_planes[5] == Y


def test_passing_through_reaches_the_value_before_the_launch() -> None:
    graph = Description(2, [node("maybe", [X], [Y], passes_through=True)])
    result = transpose(graph, [(0, Y)])
    assert steps(result) == ["0(0 -> 1)", "2=0?0"]
    assert gradients(result) == {X: 1, Y: 2}
    shares = {g.plane: [(s.node, s.argument, s.buffer) for s in g.shares] for g in result.gradients}
    assert shares == {X: [(0, 0, 1)], Y: [(0, -1, 2)]}


def test_long_chains_and_wide_fans() -> None:
    n = 3000
    chain = Description(n + 1, [node(str(k), [k], [k + 1]) for k in range(n)])
    result = transpose(chain, [(n - 1, n)])
    assert steps(result) == [f"{n - 1 - k}({k} -> {k + 1})" for k in range(n)]
    fan = Description(n + 1, [node(str(k), [0], [k + 1]) for k in range(n)])
    result = transpose(fan, [(k, k + 1) for k in range(n)])
    assert steps(result)[-1] == f"{2 * n}={'+'.join(str(2 * n - 1 - k) for k in range(n))}"


def test_seeds_that_make_no_sense_are_refused() -> None:
    graph = Description(2, [node("only", [X], [Y])])
    with pytest.raises(ValueError, match="node 'only': plane 0 is seeded, but this node does not write it"):
        transpose(graph, [(0, X)])
    with pytest.raises(ValueError, match="node 'only': plane 1 is seeded twice"):
        transpose(graph, [(0, Y), (0, Y)])
    with pytest.raises(ValueError, match="a seed for node 1 of 1"):
        transpose(graph, [(1, Y)])


def test_descriptions_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="node 'a': argument 0 is bound to plane 2 of 2"):
        Description(2, [node("a", [2], [Y])])
    with pytest.raises(ValueError, match="node 'a': argument 1 is bound to plane -1 of 2"):
        Description(2, [node("a", [X], [-1])])
    with pytest.raises(ValueError, match="node 'a': plane 1 is written by two arguments"):
        Description(2, [node("a", [X], [Y, Y])])
    for needs, differentiates in (([(1, X)], []), ([], [(0, Y)])):
        odd = Node("a", reads=[(0, X)], writes=[(1, Y)], needs=needs, differentiates=differentiates)
        with pytest.raises(ValueError, match=r"node 'a': argument [01] .* not among the reads"):
            Description(2, [odd])


def test_descriptions_can_be_read_back() -> None:
    graph = Description(3, [node("a", [X, Y], [Z], needs=[1], differentiates=[0], passes_through=True)])
    (only,) = graph.nodes
    assert (graph.planes, only.name, only.passes_through) == (3, "a", True)
    assert (only.reads, only.writes) == ([(0, X), (1, Y)], [(2, Z)])
    assert (only.needs, only.differentiates) == ([(1, Y)], [(0, X)])


def test_steps_show_what_they_are() -> None:
    graph = Description(2, [node("maybe", [X, X, Y], [Y], passes_through=True)])
    result = transpose(graph, [(0, Y)])
    assert [repr(step) for step in result.steps] == [
        "Vjp(node=0, cotangents=[0], outputs=[1, 2, 3])",
        "Pass(node=0, plane=1, target=4, source=0)",
        "Join(target=5, sources=[1, 2])",
        "Join(target=6, sources=[3, 4])",
    ]
    assert repr(result.copies) == "[Copy(plane=1, before_node=0)]"
