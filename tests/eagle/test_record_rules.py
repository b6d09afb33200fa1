"""Records: one at a time, the newest only, unless kept; and seeds, which are refused by their text."""

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
    assert repr(c.graph.record) == "<LiveRecord of generation 1, live, 0 bytes>"
    kept = c.graph.record.keep()
    assert repr(kept) == "<KeptRecord of generation 1, not live, 4,808 bytes>"
    assert repr(c.graph.record) == "<LiveRecord of generation 1, not live, 0 bytes>"


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


# seeds


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        (
            {"x": np.ones(N)},
            "seeds['x']: x is an input. A seed is dJ/d(output); the gradient with respect to x is grads['x'] in what "
            "reverse returns",
        ),
        (
            {"square.a": 1.0},
            "seeds['square.a']: square.a is an input. A seed is dJ/d(output); the gradient with respect to square.a is "
            "grads['square.a'] in what reverse returns",
        ),
        ({"y": np.ones(N)}, "seeds['y'] names several outputs: square.y, wave.y; name one of them"),
        (
            {"z": np.ones(N)},
            "seeds['z']: no node writes a plane of that name; the outputs are square.y, wave.y",
        ),
        ({3: np.ones(N)}, "seeds[3]: no node writes a plane of that name; the outputs are square.y, wave.y"),
        (
            {"wave.y": np.ones(3)},
            "the seed of wave.y is dJ/d(wave.y), one value per sample: expected shape (300,), found (3,)",
        ),
        ({"wave.y": 1.0}, "the seed of wave.y is dJ/d(wave.y), one value per sample: expected shape (300,), found ()"),
        (
            {"wave.y": np.ones((1, N))},
            "the seed of wave.y is dJ/d(wave.y), one value per sample: expected shape (300,), found (1, 300)",
        ),
        ({"wave.y": "ones"}, "the seed of wave.y is no array of real numbers: found str"),
        ({"wave.y": None}, "the seed of wave.y is no array of real numbers: found NoneType"),
        ({"wave.y": [[1.0], []]}, "the seed of wave.y is no array of real numbers: found list"),
        (
            {"wave.y": np.ones(N, complex)},
            "the seed of wave.y is no array of real numbers: found an array of complex128",
        ),
        (["wave.y"], 'seeds maps outputs to arrays, {"y": dJ_dy}, found list'),
        (np.ones(N), 'seeds maps outputs to arrays, {"y": dJ_dy}, found ndarray'),
    ],
)
def test_seeds_that_are_none(seeds: object, message: str) -> None:
    c = chain()
    c.graph.launch()
    rev = Reverse(c.graph)
    rev(c.graph.record, c.ones)
    for call in (lambda: reverse(c.graph.record, seeds), lambda: rev(c.graph.record, seeds)):  # type: ignore[arg-type]
        refused(call, SeedError, message)


def test_one_output_seeded_by_two_names() -> None:
    x, y = np.ones((2, N))
    graph = recorded(("wave", k.wave, {"x": x, "y": y}))
    graph.launch()
    refused(
        lambda: reverse(graph.record, {"y": np.ones(N), "wave.y": np.ones(N)}),
        SeedError,
        "seeds['wave.y'] and seeds['y'] are the same output",
    )


@pytest.mark.parametrize(("name", "dtype"), [("count", "int32"), ("high", "bool"), ("climb.done", "bool")])
def test_an_output_that_is_not_real_has_no_seed(name: str, dtype: str) -> None:
    graph = recorded(("climb", k.climb, climb_planes()))
    graph.launch()
    label = f"climb.{name.removeprefix('climb.')}"
    refused(
        lambda: reverse(graph.record, {name: np.ones(N)}),
        SeedError,
        f"seeds[{name!r}]: {label} holds {dtype} values and has no derivative",
    )


def climb_planes() -> dict[str, object]:
    return {
        "x": np.ones(N), "gain": 1.0, "start": 0, "up": np.ones(N, bool), "trips": np.full(N, 3, np.int32),
        "y": np.zeros(N), "count": np.zeros(N, np.int32), "high": np.zeros(N, bool), "done": np.zeros(N, bool),
    }  # fmt: skip


@pytest.mark.parametrize(
    "seed",
    [
        np.ones(N, np.float32),
        np.ones(N, np.int64),
        np.ones(N, bool),
        [1.0] * N,
        np.broadcast_to(1.0, N),
        np.ones(2 * N)[::2],
        np.ones(N, ">f8"),
        np.frombuffer(b"\0" + np.ones(N).tobytes(), np.uint8)[1:].view(np.float64),
    ],
)
def test_any_array_of_numbers_is_a_seed(seed: object) -> None:
    c = chain()
    expected = gradients(c.graph, c.ones)
    grads = reverse(c.graph.record, {"wave.y": seed})
    assert bits(grads["x"]) == bits(expected["x"])
    assert bits(grads["a"]) == bits(expected["a"])


def test_no_seed_at_all_is_an_objective_of_nothing() -> None:
    c = chain()
    grads = gradients(c.graph, {})
    np.testing.assert_array_equal(grads["x"], np.zeros(N))
    assert grads["a"] == 0.0
