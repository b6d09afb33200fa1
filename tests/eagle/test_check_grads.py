"""check_grads: agrees with right gradients, catches wrong ones, leaves a graph as it was, prints a table."""

import numpy as np
import pytest
from eagletest import kernels as k
from eagletest.graphs import Chain, gradients, recorded
from eagletest.kernels import plan
from eagletest.numpy_sums import bits

import eagle
import hawk
from eagle.errors import ArgumentError, RecordError, UnknownName
from eagle.testing import GradientCheck, GradientMismatch, Row, check_grads
from hawk.diff.partials import PARTIALS

N = 20
RNG = np.random.default_rng(11)

POINTS: list[tuple[hawk.Kernel, dict[str, object]]] = [
    (k.square, {"x": RNG.standard_normal(N), "a": 0.7}),
    (k.wave, {"x": RNG.standard_normal(N)}),
    (k.spend, {"x": RNG.standard_normal(N), "b": RNG.standard_normal(N)}),
    (k.turn, {"m": RNG.standard_normal((2, 3, N)), "v": RNG.standard_normal((3, N)), "k": (0.3, -2.0)}),
    (k.keep_larger, {"x": RNG.standard_normal(N), "best": RNG.standard_normal(N)}),
    (k.look_up, {"i": RNG.integers(0, 4, N), "x": RNG.standard_normal(N), "values": RNG.standard_normal(4)}),
    (
        k.climb,
        {"x": RNG.uniform(0.1, 2, N), "gain": 0.9, "start": 1, "up": RNG.random(N) < 0.5, "trips": np.full(N, 8)},
    ),
]


@pytest.mark.parametrize("mode", ["float64", "float32"])
@pytest.mark.parametrize(("kernel", "planes"), POINTS, ids=lambda p: getattr(p, "name", ""))
def test_right_derivatives_agree(kernel: hawk.Kernel, planes: dict[str, object], mode: str) -> None:
    check = check_grads(kernel, planes, mode=mode, quiet=True)
    assert check.ok
    assert check.largest_error < (1e-6 if mode == "float64" else 1e-4)
    reals = [a.name for a in kernel.program().arguments if a.name in planes and a.type.is_real]
    assert [row.what for row in check.rows] == [
        f"{kernel.name}_{kind} by {name}" for name in reals for kind in ("vjp", "jvp")
    ]


def test_the_second_order() -> None:
    kernel, planes = POINTS[0]
    check = check_grads(kernel, planes, order=2, quiet=True)
    derivatives = {row.what.partition(" ")[0] for row in check.rows}
    assert derivatives == {
        "square_vjp", "square_jvp", "square_vjp_vjp", "square_vjp_jvp", "square_jvp_vjp", "square_jvp_jvp",
    }  # fmt: skip
    assert check.largest_error < 1e-6


def test_some_inputs_and_some_outputs() -> None:
    kernel, planes = POINTS[2]
    check = check_grads(kernel, planes, wrt=["x"], outputs=["b"], quiet=True)
    assert [row.what for row in check.rows] == ["spend_vjp by x", "spend_jvp by x"]
    assert [row.computed for row in check.rows] == [0.0, 0.0]  # b does not depend on x
    both = check_grads(kernel, planes, wrt=["x"], quiet=True)
    assert both.rows[0].computed != 0.0


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e6, 1e12])
def test_values_of_any_size(size: float) -> None:
    check_grads(k.cubic, {"x": size * np.linspace(1, 2, N), "a": 1 / size**3}, atol=0.0, quiet=True)


def test_samples_first() -> None:
    assert check_grads(k.by_rows, {"v": RNG.standard_normal((N, 3))}, quiet=True).rows[0].shape == (N, 3)


# wrong derivatives


@pytest.fixture
def wrong_cosine(monkeypatch: pytest.MonkeyPatch) -> hawk.Kernel:
    """A kernel with a sine whose derivative is the sine."""
    monkeypatch.setitem(PARTIALS, "sin", lambda c, args, result: (lambda b, t: b("mul", result, t),))
    return k.new_kernel(0.0)


def test_a_wrong_derivative_is_caught_with_the_table(wrong_cosine: hawk.Kernel) -> None:
    with pytest.raises(GradientMismatch) as mismatch:
        check_grads(wrong_cosine, {"x": RNG.standard_normal(N), "a": 2.0})
    title, head, *lines = str(mismatch.value).splitlines()
    assert title == "check_grads of fresh, float64, order 1: 2 of 4 WRONG"
    assert head.split() == ["derivative", "shape", "computed", "differences", "error"]
    verdicts = {" ".join(line.split()[:3]): line.split()[-1] for line in lines}
    assert verdicts == {
        "fresh_vjp by x": "WRONG",
        "fresh_jvp by x": "WRONG",
        "fresh_vjp by a": "ok",
        "fresh_jvp by a": "ok",
    }


def test_a_wrong_derivative_in_a_graph_is_caught(wrong_cosine: hawk.Kernel) -> None:
    x, y, z = RNG.standard_normal((3, N))
    before = [bits(a) for a in (x, y, z)]
    graph = recorded(
        ("square", k.square, {"x": x, "a": 0.5, "y": y}), ("wrong", wrong_cosine, {"x": y, "a": 2.0, "y": z})
    )
    with pytest.raises(GradientMismatch, match=r"check_grads of a graph of 2 nodes: 2 of 3 WRONG"):
        check_grads(graph)
    assert [bits(a) for a in (x, y, z)] == before


def test_a_gradient_of_nan_is_wrong() -> None:
    check = GradientCheck("nan", [Row("x", (1,), 0.0, 0.0, 0.0, True), Row("y", (1,), np.nan, 0.0, np.nan, False)])
    assert not check.ok
    assert np.isnan(check.largest_error)
    with pytest.raises(GradientMismatch, match="nan"), np.errstate(all="ignore"):
        check_grads(k.square, {"x": np.array([1.0, np.nan]), "a": 1.0})


def test_the_table() -> None:
    rows = [
        Row("step_vjp by x", (3, 20), 1.5, 1.5 + 1e-9, 6.7e-10, True),
        Row("step_vjp by gain", (), -20.0, 17.25, 1.0, False),
    ]
    assert str(GradientCheck("check_grads of step, float64, order 1", rows)) == (
        "check_grads of step, float64, order 1: 1 of 2 WRONG\n"
        "derivative        shape    computed          differences       error\n"
        "step_vjp by x     (3, 20)   1.500000000e+00   1.500000001e+00  6.7e-10  ok\n"
        "step_vjp by gain  ()       -2.000000000e+01   1.725000000e+01  1.0e+00  WRONG"
    )
    assert str(GradientCheck("all", rows[:1])).splitlines()[0] == "all: all 1 agree"


def test_it_prints_unless_it_is_told_not_to(capsys: pytest.CaptureFixture[str]) -> None:
    kernel, planes = POINTS[0]
    check = check_grads(kernel, planes)
    assert capsys.readouterr().out == f"{check}\n"
    check_grads(kernel, planes, quiet=True)
    assert capsys.readouterr().out == ""


def test_the_seed_chooses_the_directions() -> None:
    kernel, planes = POINTS[0]
    one, same, other = (check_grads(kernel, planes, seed=s, quiet=True).rows[0].computed for s in (1, 1, 2))
    assert one == same != other


# graphs


def test_a_graph_is_put_back_and_its_record_given_up() -> None:
    x, s, y = RNG.standard_normal((3, N))
    out = np.full(N, 7.0)
    graph = recorded(
        ("square", k.square, {"x": x, "a": 0.5, "y": y}),
        ("gather", k.gather, {"a": y, "s": s, "out": out}),
        ("again", k.square, {"x": s, "a": 0.25, "y": s}),
    )
    graph.launch()
    live = graph.record
    before = [bits(a) for a in (x, s, y, out)]
    check = check_grads(graph, quiet=True)
    assert [row.what for row in check.rows] == ["x", "square.a", "s", "again.a"]
    assert [bits(a) for a in (x, s, y, out)] == before
    assert not live.live
    graph.launch()
    x2, s2, y2, out2 = (np.frombuffer(b[-8 * N :]).copy() for b in before)
    fresh = recorded(
        ("square", k.square, {"x": x2, "a": 0.5, "y": y2}),
        ("gather", k.gather, {"a": y2, "s": s2, "out": out2}),
        ("again", k.square, {"x": s2, "a": 0.25, "y": s2}),
    )
    fresh.launch()
    assert [bits(a) for a in (x, s, y, out)] == [bits(a) for a in (x2, s2, y2, out2)], "params are as they were, too"


def test_a_float32_graph() -> None:
    chain = Chain(np.linspace(0.1, 1, N, dtype=np.float32))
    check = check_grads(chain.graph, quiet=True)
    assert [row.what for row in check.rows] == ["x", "a"]
    assert 0 < check.largest_error < 2e-2


def test_an_array_that_is_read_under_two_names_is_moved_as_one() -> None:
    w = RNG.standard_normal(N)
    graph = recorded(("product", k.product, {"a": w, "b": w, "y": np.zeros(N)}))
    assert [row.what for row in check_grads(graph, quiet=True).rows] == ["a + b"]
    assert [row.what for row in check_grads(graph, wrt=["b"], quiet=True).rows] == ["a + b"]


def test_a_name_that_is_an_input_of_a_later_node_only() -> None:
    u, v, w, y, z = RNG.standard_normal((5, N))
    graph = recorded(
        ("first", k.product, {"a": u, "b": v, "y": y}),
        ("second", k.wave, {"x": y, "y": z}),  # its x is no input of the graph
        ("third", k.wave, {"x": w, "y": u}),
    )
    assert [row.what for row in check_grads(graph, quiet=True).rows] == ["a", "b", "x"]


def test_outputs_of_a_graph() -> None:
    chain = Chain(np.linspace(0.1, 1, N))
    both = check_grads(chain.graph, quiet=True)
    inner = check_grads(chain.graph, outputs=["square.y"], wrt=["x"], quiet=True)
    assert [row.what for row in inner.rows] == ["x"]
    assert inner.rows[0].computed != both.rows[0].computed


# what is refused


REFUSED: list[tuple[object, dict, type[Exception], str]] = [
    (k.square, {"planes": {"x": np.ones(N)}}, ArgumentError, "check_grads: square reads a; give its value in planes"),
    (k.square, {}, ArgumentError, "check_grads: square reads x; give its value in planes"),
    (
        k.square,
        {"planes": {"x": np.ones(N), "a": 1.0, "b": 2.0}},
        ArgumentError,
        "check_grads: square has no plane 'b'; its planes are x, a, y",
    ),
    (
        k.look_up,
        {"planes": {"i": np.ones(N), "x": np.ones(N), "values": np.ones(4)}},
        ArgumentError,
        "check_grads: look_up.i holds int32 values, found float64",
    ),
    (
        k.square,
        {"planes": {"x": np.ones(N), "a": 1.0}, "outputs": ["x"]},
        ArgumentError,
        "check_grads: outputs='x' is no real output of square; it has y",
    ),
    (
        k.square,
        {"planes": {"x": np.ones(N), "a": 1.0}, "wrt": ["b"]},
        ValueError,
        "wrt='b': square has no input of that name; its real inputs are x, a",
    ),
    (
        k.square,
        {"planes": {"x": np.ones(N), "a": 1.0}, "mode": "float16"},
        ValueError,
        "mode='float16': a kernel is built for 'float64' or 'float32'",
    ),
    (plan, {}, ArgumentError, "check_grads takes a kernel or a recorded graph, found _lru_cache_wrapper"),
]


@pytest.mark.parametrize(("target", "arguments", "error", "message"), REFUSED)
def test_what_cannot_be_checked(target: object, arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as refusal:
        check_grads(target, **arguments)  # type: ignore[arg-type]
    assert str(refusal.value) == message


def test_a_kernel_with_nothing_to_check() -> None:
    with pytest.raises(ArgumentError, match="check_grads of count_on, float64, order 1: there is no real input"):
        check_grads(k.count_on, {"n": np.arange(3)})
    with pytest.raises(ArgumentError, match="check_grads: judge has no real output"):
        check_grads(k.judge, {"x": np.arange(3.0)})


def test_graphs_that_cannot_be_checked() -> None:
    chain = Chain(np.ones(N))
    for arguments in ({"planes": {"x": np.ones(N)}}, {"mode": "float64"}, {"order": 2}):
        with pytest.raises(ArgumentError, match=r"check_grads\(graph\) takes planes and precision from the graph"):
            check_grads(chain.graph, **arguments)
    with pytest.raises(RecordError, match="does not record its launches"):
        check_grads(eagle.Graph().add(plan(k.wave).bind(x=np.ones(N), y=np.ones(N))).build())
    for name, message in (
        ("y", "outputs='y' names several outputs of the graph; choose of square.y, wave.y"),
        ("x", "outputs='x' is no real output of the graph; choose of square.y, wave.y"),
    ):
        with pytest.raises(ArgumentError, match=message):
            check_grads(chain.graph, outputs=[name])
    with pytest.raises(UnknownName, match="no gradient is named 'z'; there are x, a"):
        check_grads(chain.graph, wrt=["z"])


def test_an_output_that_is_overwritten_later_is_not_compared() -> None:
    s = np.ones(N)
    graph = recorded(("once", k.squared, {"s": s}), ("twice", k.squared, {"s": s}))
    with pytest.raises(ArgumentError) as refusal:
        check_grads(graph, outputs=["once.s"])
    assert str(refusal.value) == (
        "check_grads: outputs='once.s': a later node overwrites once.s, so a launch leaves no value of it; choose of "
        "twice.s"
    )
    assert check_grads(graph, outputs=["twice.s"], quiet=True).ok


def test_a_read_only_input_cannot_be_moved() -> None:
    x, y = np.ones(N), np.ones(N)
    x.flags.writeable = False
    graph = recorded(("product", k.product, {"a": x, "b": y, "y": np.zeros(N)}))
    with pytest.raises(ArgumentError) as refusal:
        check_grads(graph)
    assert str(refusal.value) == (
        "check_grads: a is read from a read-only array, which cannot be moved; bind a writable copy, or leave it out "
        "of wrt="
    )
    assert check_grads(graph, wrt=["b"], quiet=True).ok
    assert gradients(graph, {"y": np.ones(N)})["a"][0] == 1.0
