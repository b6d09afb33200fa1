"""Records: one at a time, the newest only, unless kept; what they hold, and that a reverse changes nothing."""

from collections.abc import Callable

import numpy as np
import pytest
from eagletest import kernels as k
from eagletest.graphs import Chain, gradients, recorded
from eagletest.numpy_sums import bits

import hawk
from eagle.diff import Reverse, reverse
from eagle.errors import RecordError, SeedError

N = 300


def chain() -> Chain:
    return Chain(np.linspace(-2, 2, N))


def refused(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as refusal:
        call()
    assert str(refusal.value) == message


# live


LIVE = (
    "the record of generation {} is live, neither reversed nor kept, and launch() would overwrite what it points at. "
    "Reverse it first, keep a copy with record.keep(), or give it up with record.discard()"
)


@pytest.mark.parametrize("release", ["reverse", "keep", "discard"])
def test_a_live_record_stands_in_the_way_of_the_next_launch(release: str) -> None:
    c = chain()
    for generation in (1, 2):
        c.graph.launch()
        record = c.graph.record
        assert record.generation == generation
        assert record.live
        c.x[0], before = 7.0, c.x.copy()
        refused(c.graph.launch, RecordError, LIVE.format(generation))
        assert c.y[0] != 0.5 * 49
        c.x[:] = before
        if release == "reverse":
            reverse(record, c.ones)
        elif release == "keep":
            record.keep()
        else:
            record.discard()
        assert not record.live
    c.graph.launch()


def test_a_reverse_that_is_refused_leaves_the_record_live() -> None:
    c = chain()
    c.graph.launch()
    with pytest.raises(SeedError):
        reverse(c.graph.record, {"x": np.ones(N)})
    assert c.graph.record.live
    reverse(c.graph.record, c.ones)
    assert not c.graph.record.live


def test_a_graph_that_was_not_launched_has_no_record() -> None:
    c = chain()
    refused(
        lambda: c.graph.record,
        RecordError,
        "this graph has no record: it has not been launched; call launch()",
    )


# stale


def test_a_record_whose_launch_is_not_the_newest() -> None:
    c = chain()
    c.graph.launch()
    first = c.graph.record
    first.discard()
    c.graph.launch()
    message = (
        "this record is of generation 1, and the graph has launched again: the current one is 2. Its planes hold newer "
        "values; keep() a record to reverse it later"
    )
    refused(lambda: reverse(first, c.ones), RecordError, message)
    refused(lambda: Reverse(c.graph)(first, c.ones), RecordError, message)
    refused(first.keep, RecordError, message)
    first.discard()
    assert c.graph.record.live, "giving up an old record does not give up the newest"


def test_a_record_is_void_after_an_update() -> None:
    c = chain()
    c.graph.launch()
    record = c.graph.record
    kept = record.keep()
    expected = reverse(record, c.ones)
    c.graph.update(a=0.75)
    refused(
        lambda: reverse(record, c.ones),
        RecordError,
        "the graph of this record, generation 1, cannot be reversed: its params were updated since its last launch; "
        "reverse before update(), or keep() a record to reverse it later",
    )
    refused(
        lambda: c.graph.record,
        RecordError,
        "this graph has no record: its params were updated since its last launch; call launch()",
    )
    assert bits(reverse(kept, c.ones)["x"]) == bits(expected["x"])
    c.graph.launch()
    np.testing.assert_allclose(reverse(c.graph.record, c.ones)["a"], np.sum(np.cos(0.75 * c.x**2) * c.x**2))


def test_an_update_of_nothing_changes_nothing() -> None:
    c = chain()
    c.graph.launch()
    reverse(c.graph.record, c.ones)
    c.graph.update({})
    reverse(c.graph.record, c.ones)


def test_a_record_of_another_graph() -> None:
    c, other = chain(), chain()
    c.graph.launch()
    refused(
        lambda: Reverse(other.graph)(c.graph.record, c.ones),
        RecordError,
        "this record is of another graph; pass the record of the graph this Reverse was built for",
    )
    assert c.graph.record.live


# kept


def test_a_kept_record_outlives_launches_and_changes_of_planes() -> None:
    c = chain()
    rev = Reverse(c.graph)
    c.graph.launch()
    kept = c.graph.record.keep()
    assert kept.generation == 1
    assert not kept.live
    assert kept.keep() is kept
    expected = rev(c.graph.record, c.ones)
    c.graph.update(a=3.0)
    for _ in range(3):
        c.x += 0.5
        c.graph.launch()
        moved = rev(c.graph.record, c.ones)
        again = rev(kept, c.ones)
        assert bits(moved["x"]) != bits(expected["x"])
        for key in expected:
            assert bits(again[key]) == bits(expected[key])
        assert again.report.generation == 1
    kept.discard()
    assert bits(reverse(kept, c.ones)["a"]) == bits(expected["a"])


def test_a_kept_record_does_not_free_or_hold_up_the_graph() -> None:
    c = chain()
    c.graph.launch()
    kept = c.graph.record.keep()
    c.graph.launch()
    reverse(kept, c.ones)
    assert c.graph.record.live, "reversing the kept one says nothing about the newest"
    with pytest.raises(RecordError):
        c.graph.launch()


def test_what_a_record_holds_beside_the_planes() -> None:
    """Nothing, unless a plane is overwritten that a vjp reads; a kept one holds each array once."""
    c = chain()
    c.graph.launch()
    assert c.graph.record.nbytes == 0
    assert c.graph.record.keep().nbytes == 8 * (N + 1 + N)  # x and a of square, y of wave
    x, y, z = np.ones((3, N))
    shared = recorded(
        ("one", k.square, {"x": x[:], "a": 1.0, "y": y}),
        ("two", k.wave, {"x": x[:], "y": z}),
    )
    shared.launch()
    assert shared.record.keep().nbytes == 8 * (N + 1)


def test_records_say_what_they_are() -> None:
    c = chain()
    c.graph.launch()
    assert repr(c.graph.record) == "<record of generation 1, live, 0 bytes>"
    kept = c.graph.record.keep()
    assert repr(kept) == "<kept record of generation 1, not live, 4,808 bytes>"
    assert repr(c.graph.record) == "<record of generation 1, not live, 0 bytes>"


# overwritten planes are copied


@pytest.mark.parametrize(
    ("kernel", "copies"),
    [
        (k.squared, 1),  # its derivative reads the old value
        (k.raised, 0),  # it does not
        (k.spend, 1),  # of b alone
    ],
)
def test_an_overwritten_plane_is_copied_once_and_only_if_needed(kernel: hawk.Kernel, copies: int) -> None:
    graph = recorded(("in place", kernel, {a.name: np.ones(N) for a in kernel.program().arguments}))
    graph.launch()
    assert graph.record.nbytes == 8 * N * copies


def test_a_value_that_many_nodes_read_is_copied_once_before_it_is_overwritten() -> None:
    x, a, b, c, d = np.full((5, N), 0.5)
    graph = recorded(
        ("first", k.wave, {"x": x, "y": a}),
        ("second", k.square, {"x": x, "a": 2.0, "y": b}),
        ("over", k.wave, {"x": a, "y": x}),  # overwrites what first and second read
        ("third", k.wave, {"x": x, "y": c}),  # reads the new value, which stays
        ("again", k.wave, {"x": b, "y": d}),
    )
    graph.launch()
    assert graph.record.nbytes == 8 * N
    grads = reverse(graph.record, {"third.y": np.ones(N), "again.y": np.ones(N)})
    u = 0.5
    expected = np.cos(np.sin(np.sin(u))) * np.cos(np.sin(u)) * np.cos(u) + np.cos(2 * u * u) * 4 * u
    np.testing.assert_allclose(grads["x"], expected, rtol=1e-14)


def test_a_plane_overwritten_before_anything_reads_it_is_not_copied() -> None:
    x, y, z = np.full((3, N), 0.5)
    graph = recorded(
        ("first", k.wave, {"x": x, "y": y}),
        ("second", k.wave, {"x": x, "y": y}),  # y again: nobody read the first
        ("third", k.wave, {"x": y, "y": z}),
    )
    graph.launch()
    assert graph.record.nbytes == 0
    grads = reverse(graph.record, {"first.y": np.ones(N), "third.y": np.ones(N)})
    np.testing.assert_allclose(grads["x"], np.cos(np.sin(0.5)) * np.cos(0.5) + np.cos(0.5), rtol=1e-15)


# the reverse reads and changes nothing


def test_a_reverse_twice_gives_the_same_bits_and_changes_nothing() -> None:
    x, s, y, z = (np.linspace(0.1, 1, N) + k for k in range(4))
    table, index = np.arange(4.0), np.arange(N, dtype=np.int32) % 4
    graph = recorded(
        ("square", k.square, {"x": x, "a": 0.5, "y": y}),
        ("in place", k.gather, {"a": y, "s": s, "out": z}),
        ("table", k.look_up, {"i": index, "x": z, "values": table, "y": y}),
    )
    graph.launch()
    seeds = {"table.y": np.linspace(-1, 1, N), "in place.s": np.ones(N)}
    watched = [x, s, y, z, table, index, *seeds.values()]
    before = [bits(a) for a in watched]
    one = reverse(graph.record, seeds)
    two = reverse(graph.record, seeds)
    rev = Reverse(graph)
    three, four = rev(graph.record, seeds), rev(graph.record.keep(), seeds)
    assert set(one) == {"x", "a", "s", "values"}
    for key in one:
        assert bits(one[key]) == bits(two[key]) == bits(three[key]) == bits(four[key])
    assert [bits(a) for a in watched] == before


def test_gradients_are_arrays_of_their_own() -> None:
    c = chain()
    rev = Reverse(c.graph)
    seeds = c.ones
    c.graph.launch()
    first = rev(c.graph.record, seeds)
    expected = first["x"].copy()
    assert not any(np.shares_memory(first["x"], a) for a in (c.x, c.y, c.z, seeds["wave.y"]))
    first["x"][:] = np.nan
    second = rev(c.graph.record, seeds)
    assert bits(second["x"]) == bits(expected)
    assert np.isnan(first["x"]).all()


def test_a_gradient_that_is_the_seed_is_a_copy_of_it() -> None:
    s = np.zeros(N)
    graph = recorded(("raise", k.raised, {"s": s}))
    seed = np.linspace(0, 1, N)
    grads = gradients(graph, {"s": seed})
    assert bits(grads["s"]) == bits(seed)
    assert not np.shares_memory(grads["s"], seed)
