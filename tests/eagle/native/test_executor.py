"""What the steps of an executor do, and what it refuses."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import numpy as np
import pytest

from eagle._native import Executor, Slot, tree_of_blocks

from . import entries

SIZES = [1, 6, 255, 256, 257, 256 * 11 + 3, 60_000]
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def plane(external: int, components: np.ndarray | None = None) -> Slot:
    """The slot of a (n,) array of doubles, or of `components`: an array (..., n) of any strides."""
    if components is None:
        return Slot.plane(external, sample_stride=8)
    return Slot.plane(external, sample_stride=components.strides[-1], component_stride=components.strides[0])


def filled(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


def executor(n: int, *arrays: np.ndarray) -> Executor:
    made = Executor(n)
    for array in arrays:
        made.set_external(made.add_external(), array, True)
    return made


@pytest.mark.parametrize("n", SIZES)
def test_calls_follow_each_other(n: int) -> None:
    x, y, z = filled(n), np.empty(n), np.empty(n)
    twice, product = entries.twice(), entries.product()
    e = executor(n, x, y, z)
    e.call(twice.address, [plane(0), plane(1)])
    e.call(product.address, [plane(1), plane(0), plane(2)])
    assert e.run()
    assert (y == 2 * x).all()
    assert (z == 2 * x * x).all()
    assert (e.samples, e.blocks, e.externals) == (n, -(-n // 256), 3)


@pytest.mark.parametrize("n", SIZES)
def test_cells_are_the_same_for_all_samples(n: int) -> None:
    x, cells, y = filled(n), np.array([0.0, 1.7]), np.empty(n)
    scaled = entries.scaled()
    e = executor(n, x, cells, y)
    e.call(scaled.address, [plane(0), Slot.cell(1, 8), plane(2)])
    e.run()
    assert (y == x * 1.7).all()


@pytest.mark.parametrize("n", SIZES)
def test_calls_know_which_samples_they_work_on(n: int) -> None:
    y, z = np.empty(n), np.empty(n)
    number = entries.number()
    e = executor(n, y, z)
    e.call(number.address, [plane(0)])
    e.barrier()
    e.call(number.address, [plane(1)], any_count=True)
    e.run()
    assert (y == np.arange(n)).all()
    assert (z == np.arange(n)).all()


@pytest.mark.parametrize("n", SIZES)
def test_calls_get_a_block_at_a_time_unless_all_steps_take_any_count(n: int) -> None:
    calls: list[tuple[int, int]] = []
    callback = CALLBACK(lambda addresses, count, first: calls.append((first, count)))
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    y = np.empty(n)
    blocks = [(first, min(256, n - first)) for first in range(0, n, 256)]

    one, other = executor(n, y), executor(n, y)
    one.call(address, [plane(0)])
    other.call(address, [plane(0)], any_count=True)
    other.call(address, [Slot.scratch(other.scratch(2048), sample_stride=8)], any_count=True)
    for e, repeats in ((one, 1), (other, 2)):
        calls.clear()
        e.run()
        assert sorted(calls) == sorted(blocks * repeats)

    e = executor(n, y)
    e.call(address, [plane(0)], any_count=True)
    e.zero(plane(0), 1, 8)
    calls.clear()
    e.run()
    assert sorted(b for first, count in calls for b in range(first, first + count)) == list(range(n))
    assert all(first % 256 == 0 and count <= 2048 for first, count in calls)
    assert (y == 0).all()


@pytest.mark.parametrize("n", SIZES)
def test_strided_planes_go_through_scratch(n: int) -> None:
    x, y = filled(n, 3), np.zeros((n, 3))
    twice = entries.twice()
    e = executor(n, x, y)
    e.scratch(1)  # the next reservation starts on a cache line of its own
    at = e.scratch(3 * 2048)
    assert at == 64
    packed = Slot.scratch(at, sample_stride=8, component_stride=2048)
    e.copy(packed, plane(0, x.T), 3, 8)
    for component in range(3):
        one = Slot.scratch(at + component * 2048, sample_stride=8)
        e.call(twice.address, [one, one])
    e.copy(plane(1, y.T), packed, 3, 8)
    e.run()
    assert (y == 2 * x).all()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_copies_of_every_itemsize_and_stride(dtype: str, step: int) -> None:
    n = 700
    x = (filled(2, 3 * n) * 100).astype(dtype)[:, n : n + step * n : step]
    y = np.zeros((n, 4), dtype)
    e = executor(n, x, y)
    e.copy(plane(1, y.T), plane(0, x), 2, x.itemsize)
    e.run()
    assert (y[:, :2] == x.T).all()
    assert (y[:, 2:] == 0).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_join_adds_in_the_order_given(n: int, dtype: str) -> None:
    a, b, c = (filled(n, 2, k, dtype=dtype)[..., 0] for k in (1, 2, 3))
    out = np.empty((2, n), dtype)
    e = executor(n, a, b, c, out)
    e.join(plane(3, out), [plane(0, a.T), plane(1, b.T), plane(2, c.T)], 2, dtype == "float64")
    e.run()
    assert (out == ((a + b) + c).T).all()
    if n > 250:
        assert (out != (a + (b + c)).T).any()


def test_join_of_one_source_is_a_copy_and_keeps_negative_zero() -> None:
    x, y = np.array([-0.0, 1.0]), np.empty(2)
    e = executor(2, x, y)
    e.join(plane(1), [plane(0)], 1, True)
    e.run()
    assert y.tobytes() == x.tobytes()


@pytest.mark.parametrize("n", SIZES)
def test_join_may_write_one_of_its_sources(n: int) -> None:
    a, b, c = filled(n), filled(n) * 3, filled(n) * 7
    expected = (a + b) + c
    e = executor(n, a, b, c)
    e.join(plane(2), [plane(0), plane(1), plane(2)], 1, True)
    e.run()
    assert (c == expected).all()


@pytest.mark.parametrize("n", SIZES)
def test_zero_clears_what_it_is_given_and_no_more(n: int) -> None:
    x = np.ones((n, 3))
    y = np.ones((2, n))
    e = executor(n, x, y)
    e.zero(Slot.plane(0, 8, sample_stride=24, component_stride=8), 2, 8)
    e.zero(Slot.plane(1, sample_stride=8), 1, 8)
    e.run()
    assert (x == [1.0, 0.0, 0.0]).all()
    assert (y[0] == 0).all()
    assert (y[1] == 1).all()


def reversed_copy(n: int, *, barrier: bool) -> tuple[np.ndarray, np.ndarray]:
    """y = 2 x, then z = y backwards: sample 0 of z needs the last block of y."""
    x, y, z = filled(n), np.zeros(n), np.empty(n)
    twice = entries.twice()
    e = executor(n, x, y, z)
    e.barrier()  # with nothing before it: means nothing
    e.call(twice.address, [plane(0), plane(1)])
    if barrier:
        e.barrier()
    e.copy(plane(2), Slot.plane(1, 8 * (n - 1), sample_stride=-8), 1, 8)
    e.run()
    return z, 2 * x[::-1]


@pytest.mark.parametrize("n", SIZES)
def test_a_barrier_waits_for_all_blocks(n: int) -> None:
    z, expected = reversed_copy(n, barrier=True)
    assert (z == expected).all()


def test_without_a_barrier_blocks_run_through_all_steps() -> None:
    z, expected = reversed_copy(256 * 2, barrier=False)
    assert (z[:256] == 0).all()  # block 0 came first and found block 1 of y still unwritten
    assert (z[256:] == expected[256:]).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums_are_trees_over_the_partials(n: int, dtype: str) -> None:
    x, totals = filled(2, n, dtype=dtype), np.full(4, np.nan, dtype)
    first = entries.first_of_block("double" if dtype == "float64" else "float")
    e = executor(n, x, totals)
    number = e.sum(1, x.itemsize, 2, dtype == "float64")
    e.call(first.address, [plane(0, x), Slot.sum(number)])
    for _ in range(2):
        e.run()
        assert [totals[1], totals[2]] == [tree_of_blocks(np.ascontiguousarray(c[::256])) for c in x]
        assert np.isnan(totals[[0, 3]]).all()


@pytest.mark.parametrize("n", SIZES)
def test_after_a_barrier_a_sum_can_be_read_as_a_cell(n: int) -> None:
    x, total, y = filled(2, n), np.empty(2), np.empty(n)
    first, scaled = entries.first_of_block(), entries.scaled()
    e = executor(n, x, total, y)
    e.call(first.address, [plane(0, x), Slot.sum(e.sum(1, 0, 2, True))])
    e.barrier()
    e.call(scaled.address, [plane(0), Slot.cell(1, 8), plane(2)])
    e.run()
    assert (y == x[0] * tree_of_blocks(np.ascontiguousarray(x[1, ::256]))).all()


def table_reference(index: np.ndarray, x: np.ndarray, size: int, part: int) -> np.ndarray:
    """Part by part in sample order, then the tree over the parts."""
    rows = []
    for first in range(0, len(x), part):
        row = np.zeros(size, x.dtype)
        np.add.at(row, index[first : first + part], x[first : first + part])
        rows.append(row)
    return np.array([tree_of_blocks(np.ascontiguousarray(column)) for column in np.array(rows).T], x.dtype)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("part_blocks", [0, 1, 4, 1024])
def test_table_sums_have_a_fixed_order(n: int, dtype: str, part_blocks: int) -> None:
    size = 5
    x = (filled(n) * 10 ** filled(n)).astype(dtype)
    index = np.random.default_rng(n).integers(0, size, n)
    table = np.full(size + 1, np.nan, dtype)
    scatter = entries.scatter("double" if dtype == "float64" else "float")
    e = Executor(n, 3, part_blocks=part_blocks)
    for k, array in enumerate((index, x, table)):
        e.set_external(k, array, True)
    number = e.table_sum(2, x.itemsize, size, dtype == "float64")
    e.call(scatter.address, [plane(0), Slot.plane(1, sample_stride=x.itemsize), Slot.sum(number)])
    for _ in range(2):
        e.run()
        assert table[1:].tobytes() == table_reference(index, x, size, 256 * e.part_blocks).tobytes()


def test_parts_are_a_power_of_two_blocks_and_at_most_64() -> None:
    assert [Executor(n).part_blocks for n in (0, 1, 256 * 64, 256 * 64 + 1, 256 * 1000)] == [1, 1, 1, 2, 16]
    assert Executor(10, part_blocks=8).part_blocks == 8


def test_no_samples_no_calls_and_sums_of_zero() -> None:
    total = np.full(3, -1.0)
    e = Executor(0, 2)
    e.set_external(1, total, True)
    sums = [e.sum(1, 8, 1, True), e.table_sum(1, 16, 1, True)]
    e.call(1, [plane(0), *map(Slot.sum, sums)])  # would crash; external 0 is not even set
    assert e.run()
    assert total.tobytes() == np.array([-1.0, 0.0, 0.0]).tobytes()


@pytest.mark.parametrize("n", SIZES)
def test_run_with_binds_for_one_run(n: int) -> None:
    x, y = filled(n), np.empty(n)
    twice = entries.twice()
    e = Executor(n, 3)
    e.call(twice.address, [plane(1), plane(2)])
    held = sys.getrefcount(y)
    assert e.run_with(1, (x, y), 1)
    assert (y == 2 * x).all()
    assert sys.getrefcount(y) == held
    other = np.empty(n)
    assert e.run_with(1, (y.ctypes.data, other.ctypes.data))
    assert (other == 4 * x).all()
    with pytest.raises(RuntimeError, match="external 1 is used but not set"):
        e.run()


def test_externals_are_kept_alive_until_they_are_replaced() -> None:
    x = np.zeros(6)
    before = sys.getrefcount(x)
    e = Executor(6, 1)
    e.set_external(0, x, True)
    assert sys.getrefcount(x) > before
    e.set_external(0, np.zeros(6), True)
    assert sys.getrefcount(x) == before
    e.set_external(0, x, False)
    del e
    assert sys.getrefcount(x) == before


def test_objects_without_writable_memory_are_refused() -> None:
    fixed = np.zeros(6)
    fixed.flags.writeable = False
    e = Executor(6, 3)
    e.set_external(0, fixed, False)
    with pytest.raises(ValueError, match="external 0 cannot be written"):
        e.set_external(0, fixed, True)
    with pytest.raises(ValueError, match="external 2 cannot be written"):
        e.run_with(1, (fixed, fixed), 1)
    with pytest.raises(TypeError, match=r"external 1 is a list: pass an array or an address \(int\)"):
        e.set_external(1, [1.0], False)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        e.set_external(1, 1 << 80, False)
    with pytest.raises(ValueError, match="run_with sets externals 2 to 3 of 3"):
        e.run_with(2, (fixed, fixed))
    with pytest.raises(ValueError, match="external 3 of 3"):
        e.set_external(3, fixed, False)


def test_an_external_that_was_not_set_is_named() -> None:
    twice = entries.twice()
    e = Executor(6, 2)
    e.set_external(0, np.zeros(6), False)
    e.call(twice.address, [plane(0), plane(1)])
    with pytest.raises(RuntimeError, match="external 1 is used but not set"):
        e.run()
    e = Executor(0, 1)
    e.sum(0, 0, 1, True)
    with pytest.raises(RuntimeError, match="external 0 is used but not set"):
        e.run()
    e = Executor(1, 1)
    e.sum(0, 0, 1, True)
    with pytest.raises(RuntimeError, match="sum 0 is declared but has no call"):
        e.run()


REFUSED: list[tuple[str, Callable[[Executor], object]]] = [
    ("external 2 of 2", lambda e: e.call(8, [plane(2)])),
    ("external -1 of 2", lambda e: e.call(8, [Slot.cell(-1)])),
    ("sum 0 of 0; declare it first", lambda e: e.call(8, [Slot.sum(0)])),
    ("the entry is a null pointer", lambda e: e.call(0, [])),
    ("byte 128 of 64 bytes of scratch", lambda e: e.call(8, [Slot.scratch(128, sample_stride=8)])),
    ("external 2 of 2", lambda e: e.sum(2, 0, 1, True)),
    ("sum: 0 components", lambda e: e.sum(0, 0, 0, True)),
    ("scratch: -1 bytes", lambda e: e.scratch(-1)),
    ("copy: 0 components", lambda e: e.copy(plane(0), plane(1), 0, 8)),
    ("copy: an itemsize of 3 bytes; it can be 1, 2, 4 or 8", lambda e: e.copy(plane(0), plane(1), 1, 3)),
    ("copy: writes a cell", lambda e: e.copy(Slot.cell(0), plane(1), 1, 8)),
    ("zero: up to byte 2048 of 64 bytes", lambda e: e.zero(Slot.scratch(0, sample_stride=8), 1, 8)),
    ("join: no sources", lambda e: e.join(plane(0), [], 1, True)),
    ("sum: 0 components", lambda e: e.table_sum(0, 0, 0, True)),
    ("parts of 3 blocks; give a power of two", lambda e: Executor(5, part_blocks=3)),
    ("-5 samples", lambda e: Executor(-5, 0)),
]


@pytest.mark.parametrize(("message", "build"), REFUSED)
def test_steps_that_cannot_be_run_are_refused(message: str, build: Callable[[Executor], object]) -> None:
    e = executor(6, np.zeros(6), np.zeros(6))
    e.scratch(64)
    with pytest.raises(ValueError, match=message):
        build(e)
    assert e.run()  # and leave nothing behind


def test_a_sum_belongs_to_one_call() -> None:
    first = entries.first_of_block()
    e = executor(6, np.zeros((2, 6)), np.zeros(2))
    partials = Slot.sum(e.sum(1, 0, 2, True))
    with pytest.raises(ValueError, match="copy: a sum's partials belong to calls"):
        e.copy(partials, plane(0), 1, 8)
    e.call(first.address, [plane(0), partials])
    with pytest.raises(ValueError, match="sum 0 has a call already; declare one for each"):
        e.call(first.address, [plane(0), partials])


def test_a_running_executor_is_busy_and_cannot_be_changed() -> None:
    seen: list[object] = []

    def inside(addresses: int, count: int, first: int) -> None:
        seen.extend([e.run(), e.run_with(0, ())])
        for change in (e.barrier, lambda: e.set_external(0, np.zeros(6), True), lambda: e.scratch(8)):
            try:
                change()
            except RuntimeError as error:
                seen.append(str(error))

    callback = CALLBACK(inside)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    e = Executor(6, 1)
    e.call(address, [])
    for _ in range(2):  # the first run releases the interpreter's lock; the second, known to be brief, does not
        seen.clear()
        assert e.run()
        assert seen == [False, False, *["this executor is running: change it when the run is done"] * 3]


def test_steps_can_be_added_after_a_run() -> None:
    x, y = filled(600), np.zeros(600)
    twice = entries.twice()
    e = executor(600, x, y)
    e.call(twice.address, [plane(0), plane(1)])
    e.run()
    e.call(twice.address, [plane(1), plane(1)])
    e.run()
    assert (y == 4 * x).all()
