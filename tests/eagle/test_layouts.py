"""Planes of any memory layout work in place, with the bits of a packed copy; nothing outside a view is written."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from eagletest.kernels import plan
from eagletest.layouts import LAYOUTS, Guarded, fitting
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import eagle.testing
import hawk
from eagle.errors import ArgumentError, PlaneError
from eagle.graph import Graph
from eagle.planes import Plane
from hawk import Bool, Int32, Matrix, Mutable, Param, Scalar, Table, Terminated, Vector, samples_first
from hawk import math as hm
from hawk.language.annotations import Annotation

SIZES = [0, 1, 255, 256, 257, 1003]
MODES = ["float64", "float32"]


@hawk.kernel
def mix(x: Scalar, v: Vector[3], m: Matrix[2, 3], i: Int32, b: Bool, a: Param, s: Mutable[Scalar],
        w: Mutable[Vector[2]], u: Mutable[Matrix[2, 2]], c: Mutable[Int32], h: Mutable[Bool]):  # fmt: skip
    """Planes of every shape and type, read, written and both."""
    old = w
    w = a * (m @ v) + w
    u[0, 0] = hm.sin(x) * s
    u[0, 1] = old[0] * v[1]
    u[1, 0] = m[1, 2] - x
    u[1, 1] = old[1] * s + i
    s = s * v[2] if b else s - x
    c = c + i
    h = x > v[0]


@hawk.kernel
def mix_samples_first(x: samples_first(Scalar), v: samples_first(Vector[3]), m: samples_first(Matrix[2, 3]), i: Int32,
                      b: Bool, a: Param, s: Mutable[Scalar], w: Mutable[samples_first(Vector[2])],
                      u: Mutable[samples_first(Matrix[2, 2])], c: Mutable[Int32], h: Mutable[Bool]):  # fmt: skip
    """The same with the sample axis first."""
    old = w
    w = a * (m @ v) + w
    u[0, 0] = hm.sin(x) * s
    u[0, 1] = old[0] * v[1]
    u[1, 0] = m[1, 2] - x
    u[1, 1] = old[1] * s + i
    s = s * v[2] if b else s - x
    c = c + i
    h = x > v[0]


FACTOR = 1.25
KERNELS = [mix, mix_samples_first]
PLANES = {"x": (), "v": (3,), "m": (2, 3), "i": (), "b": (), "s": (), "w": (2,), "u": (2, 2), "c": (), "h": ()}
SEEDED = ["s", "w", "u"]
INPUTS = ["x", "v", "m", "s", "w"]


def values(n: int, mode: str) -> dict[str, np.ndarray]:
    """A value for every plane, samples last."""
    rng = np.random.default_rng(n)
    made = {k: rng.standard_normal((*shape, n)).astype(mode) for k, shape in PLANES.items()}
    made["i"], made["c"] = (rng.integers(-9, 9, n).astype(np.int32) for _ in "ic")
    made["b"], made["h"] = (rng.random(n) < 0.5 for _ in "bh")
    return made


def seeds(n: int, mode: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n + 1)
    return {k: rng.standard_normal((*PLANES[k], n)).astype(mode) for k in SEEDED}


def is_samples_first(kernel: hawk.Kernel, name: str) -> bool:
    return bool(kernel.program().argument(name).samples_first and PLANES[name])


def placed(kernel: hawk.Kernel, names: Mapping[str, str], start: Mapping[str, np.ndarray]) -> dict[str, Guarded]:
    """Values in views of the layouts named."""
    return {
        k: Guarded(fitting(names[k], start[k].shape), start[k], is_samples_first(kernel, k)) for k in start
    }  # fmt: skip


def arrays(guarded: Mapping[str, Guarded]) -> dict[str, np.ndarray]:
    return {k: g.array for k, g in guarded.items()}


def same(found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for k in expected:
        np.testing.assert_array_equal(found[k], expected[k], err_msg=k, strict=True)


def launched(kernel: hawk.Kernel, mode: str, names: Mapping[str, str], n: int) -> dict[str, np.ndarray]:
    """The planes after two launches of one binding, samples last."""
    guarded = placed(kernel, names, values(n, mode))
    bound = plan(kernel, mode).bind(a=FACTOR, **arrays(guarded))
    bound.launch()
    bound.launch()
    for g in guarded.values():
        g.check()
    return {k: g.values for k, g in guarded.items()}


PACKED = dict.fromkeys(PLANES, "packed")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_launch_on_planes_of_one_layout(kernel: hawk.Kernel, mode: str) -> None:
    for n in SIZES:
        expected = launched(mix, mode, PACKED, n)
        for layout in LAYOUTS:
            same(launched(kernel, mode, dict.fromkeys(PLANES, layout), n), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_launch_on_planes_of_mixed_layouts(kernel: hawk.Kernel, mode: str) -> None:
    rng = np.random.default_rng(5)
    expected = launched(mix, mode, PACKED, 257)
    for _ in range(20):
        names = dict(zip(PLANES, rng.choice(list(LAYOUTS), len(PLANES)), strict=True))
        same(launched(kernel, mode, names, 257), expected)


@pytest.mark.parametrize("name", PLANES)
def test_one_plane_that_is_not_packed(name: str) -> None:
    expected = launched(mix, "float64", PACKED, 257)
    for kernel in KERNELS:
        for layout in LAYOUTS:
            same(launched(kernel, "float64", PACKED | {name: layout}, 257), expected)


ROWS, GRIDS = np.zeros((3, 10)), np.zeros((2, 3, 10))
UNALIGNED = np.zeros(8 * 30 + 1, np.uint8)[1:].view(np.float64).reshape(3, 10)
IN_PLACE = [
    (Scalar, ROWS[0]), (Scalar, ROWS[0, 2:7]), (Scalar, ROWS[:1, 0]), (Scalar, ROWS[0, :0]),
    (Vector[3], ROWS), (Vector[3], ROWS[::-1]), (Vector[3], ROWS[:, 2:7]), (Vector[2], ROWS[::2]),
    (Vector[3], np.broadcast_to(ROWS[:1], (3, 10))), (Vector[3], ROWS[:, :1]), (Vector[3], GRIDS[1]),
    (samples_first(Vector[3]), ROWS.T), (samples_first(Vector[3]), np.zeros((10, 3), order="F")),
    (Matrix[2, 3], GRIDS), (Matrix[2, 3], GRIDS[::-1, ::-1]), (Matrix[2, 1], GRIDS[:, 1:2]),
    (Matrix[1, 2], GRIDS[1:, ::2]), (samples_first(Matrix[2, 3]), np.moveaxis(GRIDS, -1, 0)),
]  # fmt: skip
COPIED = [
    (Scalar, ROWS[0, ::-1]), (Scalar, ROWS[:, 0]), (Scalar, np.broadcast_to(0.0, 10)),
    (Scalar, UNALIGNED[0]), (Vector[3], UNALIGNED[:, 2:7]), (Vector[3], ROWS[:, ::2]), (Vector[10], ROWS.T),
    (samples_first(Vector[10]), ROWS), (Matrix[2, 3], GRIDS[:, ::-1]), (Matrix[2, 2], GRIDS[:, :2]),
    (samples_first(Matrix[3, 10]), GRIDS),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "array"), IN_PLACE)
def test_what_a_kernel_works_on_without_copies(annotation: Annotation, array: np.ndarray) -> None:
    assert Plane(annotation.argument("p"), array).packed


@pytest.mark.parametrize(("annotation", "array"), COPIED)
def test_what_is_copied_block_by_block(annotation: Annotation, array: np.ndarray) -> None:
    assert not Plane(annotation.argument("p"), array).packed


# recorded graphs and their reverses


def chain(kernel: hawk.Kernel, mode: str, planes: Mapping[str, np.ndarray]) -> Graph:
    """Two steps on the same planes: the second overwrites what the first wrote, and reads what it overwrites."""
    step = plan(kernel, mode)
    graph = Graph().add(step.bind(a=FACTOR, **planes), name="one").add(step.bind(a=-FACTOR, **planes), name="two")
    return graph.build(record=True)


def reversed_chain(kernel: hawk.Kernel, mode: str, names: Mapping[str, str], n: int) -> dict[str, np.ndarray]:
    """The planes after a launch and the gradients, all with samples last; from live and kept records."""
    start = values(n, mode)
    guarded, seeding = placed(kernel, names, start), placed(kernel, names, seeds(n, mode))
    graph = chain(kernel, mode, arrays(guarded))
    reverse = eagle.diff.Reverse(graph)
    graph.launch()
    kept = graph.record.keep()
    given = {f"two.{k}": g.array for k, g in seeding.items()}
    grads = reverse(graph.record, given)
    out = {k: g.values for k, g in guarded.items()}
    graph.launch()
    graph.record.discard()
    again = reverse(kept, given)
    for g in [*guarded.values(), *seeding.values()]:
        g.check()
    for g in seeding.values():
        np.testing.assert_array_equal(g.view, g.start)
    for k in INPUTS:
        gradient = grads[k]
        assert gradient.shape == guarded[k].array.shape
        np.testing.assert_array_equal(again[k], gradient)
        out[f"gradient {k}"] = np.moveaxis(gradient, 0, -1) if guarded[k].samples_first else gradient
    for k in ("one.a", "two.a"):
        out[f"gradient {k}"] = np.asarray(grads[k])
    return out


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_of_planes_of_one_layout(kernel: hawk.Kernel, mode: str) -> None:
    for n in (0, 1, 257, 1003):
        expected = reversed_chain(mix, mode, PACKED, n)
        for layout in LAYOUTS:
            same(reversed_chain(kernel, mode, dict.fromkeys(PLANES, layout), n), expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_of_planes_of_mixed_layouts(kernel: hawk.Kernel, mode: str) -> None:
    rng = np.random.default_rng(6)
    expected = reversed_chain(mix, mode, PACKED, 300)
    for _ in range(10):
        names = dict(zip(PLANES, rng.choice(list(LAYOUTS), len(PLANES)), strict=True))
        same(reversed_chain(kernel, mode, names, 300), expected)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_large_batch_on_a_team(kernel: hawk.Kernel) -> None:
    n = 40_000
    expected = reversed_chain(mix, "float64", PACKED, n)
    for layout in ("columns of a table", "every third, reversed", "last components apart"):
        same(reversed_chain(kernel, "float64", dict.fromkeys(PLANES, layout), n), expected)


# runs


@hawk.kernel
def fall(v: Mutable[Vector[2]], g: Scalar, dt: Param, done: Terminated):
    v[1] = v[1] - dt * g
    v[0] = v[0] + dt * v[1]
    done = v[0] < 0.0


@hawk.kernel
def fall_samples_first(v: Mutable[samples_first(Vector[2])], g: Scalar, dt: Param, done: Terminated):
    v[1] = v[1] - dt * g
    v[0] = v[0] + dt * v[1]
    done = v[0] < 0.0


def ran(kernel: hawk.Kernel, layout: str, n: int) -> dict[str, np.ndarray]:
    """A run from different heights, and its gradients."""
    first = kernel is fall_samples_first
    start = np.stack([np.linspace(1.0, 9.0, n), np.linspace(3.0, -3.0, n)])
    v = Guarded(fitting(layout, (2, n)), start, first)
    g = Guarded(fitting(layout, (n,)), np.linspace(9.0, 11.0, n))
    done = Guarded(fitting(layout, (n,)), np.zeros(n, bool))
    seed = Guarded(fitting(layout, (2, n)), np.stack([np.linspace(-1.0, 1.0, n), np.ones(n)]), first)
    runner = eagle.until_done(plan(kernel), max_steps=200, record=True, v=v.array, g=g.array, dt=0.01, done=done.array)
    runner.run()
    grads = eagle.diff.reverse(runner.record, {"v": seed.array})
    for guarded in (v, g, done, seed):
        guarded.check()
    bar_v = np.moveaxis(grads["v"], 0, -1) if first else grads["v"]
    out = {"v": v.values, "steps": runner.steps, "bar v": bar_v, "bar g": grads["g"], "bar dt": np.asarray(grads["dt"])}
    return {k: np.ascontiguousarray(a) for k, a in out.items()}


@pytest.mark.parametrize("kernel", [fall, fall_samples_first])
def test_a_run_on_planes_of_one_layout(kernel: hawk.Kernel) -> None:
    expected = ran(fall, "packed", 300)
    assert len(set(expected["steps"])) > 9
    for layout in LAYOUTS:
        same(ran(kernel, layout, 300), expected)


# rows that look like columns


@hawk.kernel
def halved(v: Vector[3], w: Mutable[Vector[3]]):
    for _ in range(9):
        if v[0] < 2.0:
            break
        v = 0.5 * v
    w = v


@hawk.kernel
def halved_samples_first(v: samples_first(Vector[3]), w: Mutable[samples_first(Vector[3])]):
    for _ in range(9):
        if v[0] < 2.0:
            break
        v = 0.5 * v
    w = v


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_as_many_samples_as_components(n: int) -> None:
    rows = np.array([[1.0] * 3, [10.0] * 3, [100.0] * 3, [1.5, 3.0, 7.0]])[:n]
    ends = np.array([[1.0] * 3, [1.25] * 3, [1.5625] * 3, [1.5, 3.0, 7.0]])[:n]
    slopes = np.repeat(np.array([[1.0], [1 / 8], [1 / 64], [1.0]])[:n], 3, axis=1)
    for kernel, turned in ((halved, np.transpose), (halved_samples_first, np.asarray)):
        w = turned(np.zeros((n, 3)))
        graph = Graph().add(plan(kernel).bind(v=turned(rows), w=w)).build(record=True)
        graph.launch()
        np.testing.assert_array_equal(w, turned(ends))
        seed = turned(np.arange(1.0, 3 * n + 1).reshape(n, 3))
        np.testing.assert_array_equal(eagle.diff.reverse(graph.record, {"w": seed})["v"], turned(slopes) * seed)


# inputs whose elements share memory


@hawk.kernel
def weigh(v: Vector[3], x: Scalar, y: Mutable[Scalar]):
    y = x * (v[0] * v[1] + v[2])


@hawk.kernel
def weigh_samples_first(v: samples_first(Vector[3]), x: Scalar, y: Mutable[Scalar]):
    y = x * (v[0] * v[1] + v[2])


@pytest.mark.parametrize("n", SIZES)
def test_inputs_that_are_broadcast(n: int) -> None:
    rng = np.random.default_rng(n)
    row, x, y, seed = np.array([2.0, 3.0, 5.0]), np.broadcast_to(1.5, n), np.zeros(n), rng.integers(-9, 9, n) / 4
    v = np.broadcast_to(row, (n, 3))
    for kernel, plane in ((weigh, v.T), (weigh_samples_first, v)):
        graph = Graph().add(plan(kernel).bind(v=plane, x=x, y=y)).build(record=True)
        graph.launch()
        grads = eagle.diff.reverse(graph.record.keep(), {"y": seed})
        np.testing.assert_array_equal(y, np.full(n, 1.5 * (row[0] * row[1] + row[2])))
        bar = np.stack([seed * 1.5 * row[1], seed * 1.5 * row[0], seed * 1.5])
        np.testing.assert_array_equal(grads["v"], bar.T if kernel is weigh_samples_first else bar, strict=True)
        np.testing.assert_array_equal(grads["x"], seed * (row[0] * row[1] + row[2]), strict=True)
        np.testing.assert_array_equal(eagle.diff.reverse(graph.record, {"y": seed})["v"], grads["v"])


def test_components_that_are_broadcast() -> None:
    x, y = np.linspace(1.0, 2.0, 300), np.zeros(300)
    plan(weigh).bind(v=np.broadcast_to(x, (3, 300)), x=x[::-1], y=y).launch()
    expected = np.zeros(300)
    plan(weigh).bind(v=np.stack([x, x, x]), x=x[::-1].copy(), y=expected).launch()
    np.testing.assert_array_equal(y, expected)


def test_windows_that_slide_over_one_array() -> None:
    signal, y, expected = np.linspace(1.0, 2.0, 302), np.zeros(300), np.zeros(300)
    windows = sliding_window_view(signal, 3)
    plan(weigh).bind(v=windows.T.copy(), x=signal[:300], y=expected).launch()
    plan(weigh).bind(v=windows.T, x=signal[:300], y=y).launch()
    np.testing.assert_array_equal(y, expected)
    plan(weigh_samples_first).bind(v=windows, x=signal[2:], y=y).launch()
    plan(weigh).bind(v=windows.T.copy(), x=signal[2:].copy(), y=expected).launch()
    np.testing.assert_array_equal(y, expected)


# views of one array


@hawk.kernel
def add(x: Scalar, s: Mutable[Scalar]):
    s = s + x * x


@pytest.mark.parametrize("n", [1, 256, 257, 1003])
def test_interleaved_views_of_one_array(n: int) -> None:
    both = np.arange(2.0 * n)
    even, odd = both[::2].copy(), both[1::2].copy()
    graph = Graph().add(plan(add).bind(x=both[::2], s=both[1::2]), name="one")
    graph.add(plan(add).bind(x=both[1::2], s=both[::2]), name="two").build(record=True)
    graph.launch()
    grads = eagle.diff.reverse(graph.record, {"two.s": np.ones(n)})
    after = odd + even * even
    np.testing.assert_array_equal(both[1::2], after)
    np.testing.assert_array_equal(both[::2], even + after * after)
    np.testing.assert_array_equal(grads["one.s"], 2 * after)


@pytest.mark.parametrize("step", [1, 2, -1])
def test_the_same_view_read_and_written(step: int) -> None:
    w = np.arange(1.0, 700)[::step]
    old = w.copy()
    plan(add).bind(x=w, s=w).launch()
    np.testing.assert_array_equal(w, old + old * old)


def test_one_sample_by_two_strides() -> None:
    w = np.array([3.0, 4.0])
    plan(add).bind(x=w[::2], s=w[:1]).launch()
    np.testing.assert_array_equal(w, [12.0, 4.0])


def test_a_graph_on_many_views() -> None:
    """A plane that is read, and read again after others have been copied, and one that is written twice."""
    table = np.zeros((500, 6))
    table[:, 0] = np.arange(500) % 8  # all that follows is exact
    first, second, third, fourth = (table[:, k] for k in (0, 2, 3, 5))
    graph = Graph()
    for k, (x, s) in enumerate([(first, second), (second, third), (first, fourth), (third, second), (second, fourth)]):
        graph.add(plan(add).bind(x=x, s=s), name=f"step {k}")
    graph.build().launch()
    a = np.arange(500.0) % 8
    b = a * a
    c = b * b
    d = a * a
    b = b + c * c
    np.testing.assert_array_equal(table, np.stack([a, 0 * a, b, c, 0 * a, d + b * b], axis=-1))


def test_the_same_samples_by_two_annotations() -> None:
    """One array as samples_first and, transposed, as samples last: the same view of the same memory."""

    @hawk.kernel
    def twice(a: samples_first(Vector[2]), b: Mutable[Vector[2]]):
        b = a + b

    table = np.arange(600.0).reshape(300, 2)
    old = table.copy()
    plan(twice).bind(a=table, b=table.T).launch()
    np.testing.assert_array_equal(table, 2 * old)


def test_a_kernel_reads_no_plane_that_it_does_not_use() -> None:
    @hawk.kernel
    def second(x: Scalar, y: Scalar, z: Mutable[Scalar]):
        z = y

    z = np.zeros(10)
    plan(second).bind(x=np.arange(20.0)[::2], y=np.arange(20.0)[1::2], z=z[::-1]).launch()
    np.testing.assert_array_equal(z, np.arange(20.0)[1::2][::-1])


# one sample


@pytest.mark.parametrize("stride", [0, 1, 8, 4096, -16])
def test_one_sample_with_any_stride(stride: int) -> None:
    eight = values(8, "float64")
    expected = {k: a.copy() for k, a in eight.items()}
    plan(mix).bind(a=FACTOR, **expected).launch()
    one = {k: a[..., :1].copy() for k, a in eight.items()}
    views = {
        k: as_strided(a, a.shape, (*a.strides[:-1], stride * a.itemsize // 8 if stride % 8 == 0 else stride))
        for k, a in one.items()
    }
    plan(mix).bind(a=FACTOR, **views).launch()
    same(one, {k: a[..., :1] for k, a in expected.items()})


# tables and memory maps


@hawk.kernel
def look_up(i: Int32, values: Table["row":3, "column":2], y: Mutable[Scalar]):
    y = values.at(row=i, column=1)


def test_a_table_is_contiguous() -> None:
    table, i, y = np.arange(6.0).reshape(2, 3), np.zeros(20, np.int32), np.zeros(20)
    with pytest.raises(PlaneError) as refusal:
        plan(look_up).bind(i=i, values=table.T, y=y)
    assert str(refusal.value) == (
        "look_up: values is Table[3, 2], which all samples share: the array is not contiguous or not aligned (strides "
        "(8, 24)); pass np.require(values, requirements='CA')"
    )
    i[:] = np.arange(20) % 3
    plan(look_up).bind(i=i[::-1], values=table.T.copy(), y=y[::-1]).launch()
    np.testing.assert_array_equal(y, 3.0 + i)


def test_a_memory_map_is_read_in_place(tmp_path: Path) -> None:
    file = tmp_path / "table.npy"
    np.save(file, np.arange(20.0).reshape(10, 2))
    table, y = np.load(file, mmap_mode="r"), np.zeros(10)
    s = np.ones(10)
    plan(add).bind(x=table[:, 1], s=s).launch()
    np.testing.assert_array_equal(s, 1 + np.arange(1.0, 21, 2) ** 2)
    with pytest.raises(
        PlaneError, match="add: s is Mutable\\[Scalar\\]: the kernel writes it, and the array is read-only"
    ):
        plan(add).bind(x=y, s=table[:, 1])


# what is refused

N = 6
COLUMN = np.zeros((N, 3))


def overlapping(extents: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    return as_strided(np.zeros(64)[16:], extents, tuple(8 * s for s in strides))


@pytest.mark.parametrize(
    ("array", "shape", "strides"),
    [
        (np.broadcast_to(0.0, N), "(6,)", "(0,)"),
        (overlapping((N,), (0,)), "(6,)", "(0,)"),
        (as_strided(np.zeros(N + 1), (N,), (4,)), "(6,)", "(4,)"),
    ],
)
def test_an_output_whose_samples_share_memory(array: np.ndarray, shape: str, strides: str) -> None:
    with pytest.raises(PlaneError) as refusal:
        plan(add).bind(x=np.zeros(N), s=array)
    assert str(refusal.value) == (
        "add: s is Mutable[Scalar]: the kernel writes it, and some of its elements are the same memory (shape "
        f"{shape}, strides {strides}); pass an array whose elements are apart"
    )


@hawk.kernel
def double(v: Vector[2], w: Mutable[Vector[2]]):
    w = 2.0 * v


def test_an_output_whose_components_share_memory() -> None:
    v = np.ones((2, N))
    for strides in ((0, 1), (1, 1), (N - 1, 1), (1, 0), (3, 3), (0, 0), (-2, 1)):
        with pytest.raises(PlaneError, match=r"double: w is Mutable.* some of its elements are the same"):
            plan(double).bind(v=v, w=overlapping((2, N), strides))
    for strides in ((N, 1), (1, 2), (1, 3), (-1, 2), (3, 2)):
        w = overlapping((2, N), strides)  # the last: 0 2 4 6 8 10 and 3 5 7 9 11 13
        plan(double).bind(v=v, w=w).launch()
        np.testing.assert_array_equal(w, 2 * v)


REFUSED: list[tuple[hawk.Kernel, Callable[[], dict[str, object]], type[Exception], str]] = [
    (weigh_samples_first, lambda: {"v": np.zeros((3, N)), "x": np.zeros(N), "y": np.zeros(N)}, PlaneError,
     "weigh_samples_first: v is samples_first(Vector[3]): expected shape (n, 3), found (3, 6). The sample axis comes "
     "first: pass np.moveaxis(v, -1, 0), a view that needs no copy, or mark it hawk.samples_last(...) in the kernel"),
    (weigh, lambda: {"v": np.zeros((N, 3)), "x": np.zeros(N), "y": np.zeros(N)}, PlaneError,
     "weigh: v is Vector[3]: expected shape (3, n), found (6, 3). The sample axis comes last: pass "
     "np.moveaxis(v, 0, -1), a view that needs no copy, or mark it hawk.samples_first(...) in the kernel"),
    (weigh_samples_first, lambda: {"v": np.zeros((N, 4)), "x": np.zeros(N), "y": np.zeros(N)}, PlaneError,
     "weigh_samples_first: v is samples_first(Vector[3]): expected shape (n, 3), found (6, 4)"),
    (weigh_samples_first, lambda: {"v": np.zeros((N, 3)), "x": np.zeros(N - 1), "y": np.zeros(N)}, PlaneError,
     "weigh_samples_first: v has 6 samples and x has 5; every plane of a launch has the same number"),
    (add, lambda: {"x": np.zeros(N, ">f8"), "s": np.zeros(N)}, PlaneError,
     "add: x is Scalar: found dtype >f8, expected float64. Nothing is converted silently: pass x.astype(np.float64)"),
    (add, lambda: {"x": np.ma.masked_array(np.zeros(N)), "s": np.zeros(N)}, ArgumentError,
     "add: x is Scalar: expected a NumPy array of float64 with shape (n,), found MaskedArray, whose mask a kernel does "
     "not see; pass its .filled(...)"),
    (add, lambda: {"x": COLUMN[:, 0], "s": COLUMN[::-1, 0]}, PlaneError,
     "add: x and add: s overlap in memory, but are not the same view of it, and one is written; pass the same array or "
     "separate ones"),
    (double, lambda: {"v": COLUMN[:, :2].T, "w": COLUMN[:, 1:].T}, PlaneError,
     "double: v and double: w overlap in memory, but are not the same view of it, and one is written; pass the same "
     "array or separate ones"),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "planes", "error", "message"), REFUSED)
def test_refused(
    kernel: hawk.Kernel, planes: Callable[[], dict[str, object]], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as refusal:
        plan(kernel).bind(**planes())
    assert str(refusal.value) == message


def test_a_square_array_by_two_sample_axes() -> None:
    """The same array, but another view of it: what one slot takes for a sample is a component to the other."""

    @hawk.kernel
    def turn(a: samples_first(Vector[2]), b: Mutable[Vector[2]]):
        b = a

    square = np.zeros((2, 2))
    with pytest.raises(PlaneError, match="turn: a and turn: b overlap in memory, but are not the same view of it"):
        plan(turn).bind(a=square, b=square)


def test_a_seed_has_the_shape_of_its_plane() -> None:
    @hawk.kernel
    def copy(v: samples_first(Vector[3]), w: Mutable[samples_first(Vector[3])]):
        w = v

    v, w, seed = np.zeros((5, 3)), np.zeros((5, 3)), np.arange(15.0).reshape(5, 3)
    graph = Graph().add(plan(copy).bind(v=v, w=w)).build(record=True)
    graph.launch()
    with pytest.raises(eagle.errors.SeedError, match=r"expected shape \(5, 3\), found \(3, 5\)"):
        eagle.diff.reverse(graph.record, {"w": seed.T})
    np.testing.assert_array_equal(eagle.diff.reverse(graph.record, {"w": seed})["v"], seed, strict=True)


def test_gradients_of_samples_first_planes_agree_with_differences() -> None:
    eagle.testing.check_grads(
        mix_samples_first,
        {k: np.moveaxis(v, -1, 0) for k, v in values(6, "float64").items()} | {"a": FACTOR},
        quiet=True,
    )
