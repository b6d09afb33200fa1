"""What cannot be a plane is refused when it is bound, by its name, with what was found and what to do."""

import numpy as np
import pytest
from eagletest import kernels as k
from eagletest.kernels import plan

import eagle
import hawk
from eagle.errors import ArgumentError, PlaneError

N = 6


def real(*shape: int) -> np.ndarray:
    return np.zeros(shape)


def read_only(*shape: int) -> np.ndarray:
    array = np.zeros(shape)
    array.flags.writeable = False
    return array


SQUARE = {"x": real(N), "a": 2.0, "y": real(N)}
TURN = {"m": real(2, 3, N), "v": real(3, N), "k": (1.0, 2.0), "w": real(2, N)}
CLIMB = {
    "x": real(N), "gain": 1.0, "start": 0, "up": np.ones(N, bool), "trips": np.ones(N, np.int32), "y": real(N),
    "count": np.zeros(N, np.int32), "high": np.zeros(N, bool), "done": np.zeros(N, bool),
}  # fmt: skip

REFUSED: list[tuple[hawk.Kernel, dict, dict, type[Exception], str]] = [
    # dtype
    (k.square, SQUARE, {"x": np.zeros(N, np.float32)}, PlaneError,
     "square: x is Scalar: found dtype float32, expected float64. Nothing is converted silently: pass "
     "x.astype(np.float64), or deploy with mode='float32'"),
    (k.square, SQUARE, {"y": np.zeros(N, int)}, PlaneError,
     "square: y is Mutable[Scalar]: found dtype int64, expected float64. Nothing is converted silently: pass "
     "y.astype(np.float64)"),
    (k.square, SQUARE, {"x": np.zeros(N, ">f8")}, PlaneError,
     "square: x is Scalar: found dtype >f8, expected float64. Nothing is converted silently: pass "
     "x.astype(np.float64)"),
    (k.climb, CLIMB, {"trips": np.zeros(N)}, PlaneError,
     "climb: trips is Int32: found dtype float64, expected int32. Nothing is converted silently: pass "
     "trips.astype(np.int32)"),
    (k.climb, CLIMB, {"up": np.zeros(N, np.int32)}, PlaneError,
     "climb: up is Bool: found dtype int32, expected bool. Nothing is converted silently: pass up.astype(np.bool)"),
    # shape
    (k.square, SQUARE, {"x": real(1, N)}, PlaneError, "square: x is Scalar: expected shape (n,), found (1, 6)"),
    (k.square, SQUARE, {"x": np.array(0.0)}, PlaneError, "square: x is Scalar: expected shape (n,), found ()"),
    (k.turn, TURN, {"v": real(2, N)}, PlaneError, "turn: v is Vector[3]: expected shape (3, n), found (2, 6)"),
    (k.turn, TURN, {"v": real(3 * N)}, PlaneError, "turn: v is Vector[3]: expected shape (3, n), found (18,)"),
    (k.turn, TURN, {"v": real(N, 3)}, PlaneError,
     "turn: v is Vector[3]: expected shape (3, n), found (6, 3). The sample axis comes last: pass np.moveaxis(v, 0, "
     "-1), a view that needs no copy, or mark it hawk.samples_first(...) in the kernel"),
    (k.turn, TURN, {"m": real(N, 2, 3)}, PlaneError,
     "turn: m is Matrix[2, 3]: expected shape (2, 3, n), found (6, 2, 3). The sample axis comes last: pass "
     "np.moveaxis(m, 0, -1), a view that needs no copy, or mark it hawk.samples_first(...) in the kernel"),
    (k.turn, TURN, {"m": real(3, 2, N)}, PlaneError,
     "turn: m is Matrix[2, 3]: expected shape (2, 3, n), found (3, 2, 6)"),
    (k.look_up, {"i": np.zeros(N, np.int32), "x": real(N), "y": real(N)}, {"values": real(5)}, PlaneError,
     "look_up: values is Table[4]: expected shape (4,), found (5,)"),
    # the number of samples
    (k.square, SQUARE, {"y": real(N + 1)}, PlaneError,
     "square: x has 6 samples and y has 7; every plane of a launch has the same number"),
    (k.turn, TURN, {"w": real(2, N - 1)}, PlaneError,
     "turn: m has 6 samples and w has 5; every plane of a launch has the same number"),
    (k.square, SQUARE, {"y": real(0)}, PlaneError,
     "square: x has 6 samples and y has 0; every plane of a launch has the same number"),
    # outputs
    (k.square, SQUARE, {"y": read_only(N)}, PlaneError,
     "square: y is Mutable[Scalar]: the kernel writes it, and the array is read-only; pass a writable copy"),
    # no array
    (k.square, SQUARE, {"x": [0.0] * N}, ArgumentError,
     "square: x is Scalar: expected a NumPy array of float64 with shape (n,), found list"),
    (k.square, SQUARE, {"x": 1.0}, ArgumentError,
     "square: x is Scalar: expected a NumPy array of float64 with shape (n,), found float"),
    (k.turn, TURN, {"v": None}, ArgumentError,
     "turn: v is Vector[3]: expected a NumPy array of float64 with shape (3, n), found NoneType"),
    (k.climb, CLIMB, {"done": False}, ArgumentError,
     "climb: done is Terminated: expected a NumPy array of bool with shape (n,), found bool"),
    # params
    (k.square, SQUARE, {"a": np.ones(N)}, PlaneError,
     "square: a is Param, one value for the whole batch: expected shape (), found (6,) (for one value per sample, "
     "declare it Scalar)"),
    (k.square, SQUARE, {"a": "2.0"}, ArgumentError, "square: a is Param: expected a number, found str"),
    (k.square, SQUARE, {"a": None}, ArgumentError, "square: a is Param: expected a number, found NoneType"),
    (k.square, SQUARE, {"a": 2j}, ArgumentError, "square: a is Param: expected a number, found complex"),
    (k.turn, TURN, {"k": (1.0, 2.0, 3.0)}, PlaneError,
     "turn: k is Param[Vector[2]], one value for the whole batch: expected shape (2,), found (3,)"),
    (k.turn, TURN, {"k": 1.0}, PlaneError,
     "turn: k is Param[Vector[2]], one value for the whole batch: expected shape (2,), found ()"),
    (k.turn, TURN, {"k": [[1.0], [2.0, 3.0]]}, ArgumentError,
     "turn: k is Param[Vector[2]]: expected a number, found list"),
    (k.climb, CLIMB, {"start": 1.0}, PlaneError, "climb: start holds int32 values: found 1.0; pass an integer"),
    (k.climb, CLIMB, {"start": 2**31}, PlaneError,
     "climb: start holds int32 values, -2147483648 to 2147483647: found 2147483648"),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "planes", "changed", "error", "message"), REFUSED)
def test_an_argument_that_does_not_fit(
    kernel: hawk.Kernel, planes: dict, changed: dict, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as refusal:
        plan(kernel).bind(**planes | changed)
    assert str(refusal.value) == message


def test_the_arguments_that_were_changed_are_the_only_fault() -> None:
    for kernel, planes in ((k.square, SQUARE), (k.turn, TURN), (k.climb, CLIMB)):
        assert plan(kernel).bind(**planes).samples == N


def test_a_float32_plan_refuses_float64_planes() -> None:
    with pytest.raises(PlaneError, match="wave: x is Scalar: found dtype float64, expected float32"):
        plan(k.wave, "float32").bind(x=real(N), y=real(N))


def test_missing_and_unknown_planes() -> None:
    with pytest.raises(ArgumentError) as refusal:
        plan(k.square).bind(x=real(N))
    assert str(refusal.value) == "square: missing a, y; its planes are x, a, y"
    with pytest.raises(ArgumentError) as refusal:
        plan(k.square).bind(**SQUARE, z=real(N), w=1)
    assert str(refusal.value) == "square: no plane is named z, w; its planes are x, a, y"


def test_two_written_planes_on_one_array() -> None:
    same = real(N)
    with pytest.raises(PlaneError) as refusal:
        plan(k.spend).bind(x=real(N), b=same, loss=same)
    assert str(refusal.value) == "spend: b and spend: loss are written to the same array; give each its own"


def test_views_that_overlap_in_part() -> None:
    buffer = real(N + 1)
    with pytest.raises(PlaneError) as refusal:
        plan(k.wave).bind(x=buffer[:N], y=buffer[1:])
    assert str(refusal.value) == (
        "wave: x and wave: y overlap in memory, but are not the same view of it, and one is written; pass the same "
        "array or separate ones"
    )
    assert not buffer.any()


def test_a_component_of_a_vector_overlaps_it() -> None:
    v = real(2, N)
    with pytest.raises(PlaneError, match=r"add_components: [vy] and add_components: [vy] overlap in memory"):
        plan(k.add_components).bind(v=v, y=v[0])


def test_views_that_are_only_read_may_overlap() -> None:
    buffer, y = np.arange(N + 1.0), real(N)
    plan(k.product).bind(a=buffer[:N], b=buffer[1:], y=y).launch()
    np.testing.assert_array_equal(y, buffer[:N] * buffer[1:])


def test_separate_views_of_one_array_are_fine() -> None:
    x, y = np.arange(2.0 * N).reshape(2, N)
    expected = np.sin(x)
    plan(k.wave).bind(x=x, y=y).launch()
    np.testing.assert_allclose(y, expected, rtol=1e-15)


def test_a_table_is_not_written_as_a_plane() -> None:
    table = np.arange(4.0)
    index = np.zeros(4, np.int32)
    with pytest.raises(PlaneError) as refusal:
        plan(k.look_up).bind(i=index, x=real(4), values=table, y=table)
    assert str(refusal.value) == (
        "look_up: values and look_up: y are the same array, one as a table, which any sample reads anywhere, and one "
        "as a plane that is written; give each its own"
    )


# what is not refused


def test_read_only_inputs_are_read() -> None:
    x, values, y = np.arange(1.0, 5), np.arange(4.0), real(4)
    x.flags.writeable = values.flags.writeable = False
    plan(k.look_up).bind(i=np.array([3, 2, 1, 0], np.int32), x=x, values=values, y=y).launch()
    np.testing.assert_array_equal(y, [3, 4, 3, 0])
    assert y.flags.writeable


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.array(2.0), np.int64(2)])
def test_a_param_takes_any_number(value: object) -> None:
    y = real(2)
    plan(k.square).bind(x=np.array([1.0, 3.0]), a=value, y=y).launch()
    np.testing.assert_array_equal(y, [2, 18])


def test_a_param_is_copied_when_it_is_bound() -> None:
    factor, y = np.array([1.0, 2.0]), real(2, 1)
    bound = plan(k.turn).bind(m=np.ones((2, 3, 1)), v=np.ones((3, 1)), k=factor, w=y)
    factor[:] = 100
    bound.launch()
    np.testing.assert_array_equal(y[:, 0], [3, 6])


# rebind


def test_rebind_changes_some_arguments_and_keeps_the_others() -> None:
    x, y, other = np.arange(3.0), real(3), real(3)
    bound = plan(k.square).bind(x=x, a=2.0, y=y)
    again = bound.rebind(a=3.0, y=other)
    again.launch()
    bound.launch()
    np.testing.assert_array_equal(y, 2 * x * x)
    np.testing.assert_array_equal(other, 3 * x * x)


def test_rebind_refuses_as_bind_does() -> None:
    bound = plan(k.square).bind(**SQUARE)
    with pytest.raises(ArgumentError, match="square: no plane is named z"):
        bound.rebind(z=real(N))
    with pytest.raises(PlaneError, match="square: x has 4 samples and y has 6"):
        bound.rebind(x=real(4))
    assert bound.rebind(x=real(4), y=real(4)).samples == 4


# deploy


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((k.square,), ArgumentError, "eagle.deploy takes a list of kernels: eagle.deploy([kernel])"),
        ((None,), ArgumentError, "eagle.deploy takes a list of kernels: eagle.deploy([kernel])"),
        (([3],), ArgumentError, "expected a hawk kernel, found 3"),
        (([k.square, plan],), ArgumentError, f"expected a hawk kernel, found {plan!r}; decorate it with @hawk.kernel"),
        (
            ([k.square], ("cuda",)),
            ValueError,
            "targets=('cuda',): 'cuda' is not a target of this machine; it has 'host'",
        ),
        (
            ([k.square], "host"),
            ValueError,
            "targets='host': expected a list of targets, for example targets=(\"host\",)",
        ),
        (([k.square], ()), ValueError, 'targets=(): expected a list of targets, for example targets=("host",)'),
    ],
)
def test_deploy_refuses(arguments: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as refusal:
        eagle.deploy(*arguments)
    assert str(refusal.value) == message


@pytest.mark.parametrize("mode", ["float16", "double", None, np.float64])
def test_deploy_refuses_a_mode(mode: object) -> None:
    with pytest.raises(ValueError, match="a kernel is built for 'float64' or 'float32'"):
        eagle.deploy([k.square], mode=mode)  # type: ignore[arg-type]


def test_a_vjp_is_no_forward_step() -> None:
    derivative = hawk.Kernel("square_back", hawk.diff.vjp(k.square))
    message = (
        "square_back is a vjp: it belongs to a reverse, never to a forward step. eagle.diff.reverse builds and runs "
        "it for you"
    )
    with pytest.raises(ArgumentError) as refusal:
        eagle.deploy([k.square, derivative])
    assert str(refusal.value) == message
