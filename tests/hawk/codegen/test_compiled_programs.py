"""Compiled programs give the interpreter's bits: ranges and tails, memory, structure, random programs."""

import llvmlite.binding as llvm
import numpy as np
import pytest
from hawktest.build import Kit
from hawktest.compiled import WIDTHS, assert_compiled_as_interpreted, assert_same_bits, block_sum, launch
from hawktest.random_programs import RUN, TAME, programs, samples
from hypothesis import given, settings

from hawk.codegen.launch import emit_launch
from hawk.diff import jvp, vjp
from hawk.ir.definition import Traced
from hawk.ir.interpret import interpret
from hawk.ir.passes import prepare
from hawk.ir.program import Argument, Place, Program, Region, Role, Tape, Value
from hawk.ir.types import Type
from hawk.kernel import Kernel

REALS = pytest.mark.parametrize("real", [Type.F64, Type.F32], ids=str)


def chaotic(real: Type) -> Program:
    """A value, an if, a loop with a trip count of its own, a bool and an integer."""
    kit = Kit()
    x, n = kit.read("x", real), kit.read("n", Type.I32)
    b = kit.b
    trip, a = Value(Type.I32), Value(real)
    with b.block() as body:
        grown = b("mul", b("mul", b.const(3.99, real), a), b("sub", b.const(1.0, real), a))
        again = b("ge", grown, b.const(0.05, real))
    trips, a_out = b.loop(n, b("gt", x, b.const(0.1, real)), [x], Region((trip, a), tuple(body), (again, grown)))
    kit.write("a", b("add", b("exp", a_out), b("mul", b("sin", x), a_out)))
    kit.write("trips", trips)
    kit.write("left", b("lt", trips, n))
    return kit.program()


def chaotic_planes(count: int, real: Type) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(count)
    return {"x": rng.uniform(0.0, 1.0, count).astype(real.dtype), "n": rng.integers(-2, 90, count).astype(np.int32)}


# ranges


@REALS
def test_every_length_and_width_gives_a_sample_the_same_bits(real):
    program = chaotic(real)
    planes = chaotic_planes(70, real)
    whole = interpret(program, planes)
    for width in WIDTHS:
        for count in (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 70):
            part = {name: plane[:count] for name, plane in planes.items()}
            assert_same_bits(launch(program, part, width), {name: plane[:count] for name, plane in whole.items()})


def test_a_sample_has_the_same_bits_at_every_place_of_a_range():
    program = chaotic(Type.F64)
    planes = chaotic_planes(40, Type.F64)
    first = interpret(program, planes)
    for shift in range(1, 18):
        rolled = {name: np.roll(plane, shift) for name, plane in planes.items()}
        assert_same_bits(launch(program, rolled, 8), {name: np.roll(plane, shift) for name, plane in first.items()})


@pytest.mark.parametrize("width", WIDTHS)
def test_the_index_of_a_sample_counts_from_the_first_of_the_range(width):
    kit = Kit()
    kit.write("same", kit.read("x"))
    (index,) = kit.b.emit("sample", (), (Type.I64,))
    kit.write("index", index)
    written = launch(kit.program(), {"x": np.zeros(37)}, width, first=2**40)
    np.testing.assert_array_equal(written["index"], 2**40 + np.arange(37))


def test_vectors_params_and_returned_bools():
    b = Kit().b
    v, p, flag = [Value(Type.F64) for _ in range(3)], [Value(Type.F32) for _ in range(2)], Value(Type.BOOL)
    arguments = (
        Argument("v", Role.SAMPLE, (3,), Type.F64),
        Argument("p", Role.PARAM, (2,), Type.F32),
        Argument("flag", Role.PARAM, (), Type.BOOL),
        Argument("w", Role.MUTABLE, (2, 2), Type.F64),
        Argument("same", Role.MUTABLE, (), Type.BOOL),
    )
    wide = b.cast(b("div", p[0], p[1]), Type.F64)
    outs = [v[0], b("mul", v[1], wide), b.select(flag, v[2], wide), b.const(-0.0, Type.F64)]
    same = b("xor", flag, b("lt", v[0], wide))
    inputs = [(Place("v", k), x) for k, x in enumerate(v)]
    inputs += [(Place("p", k), x) for k, x in enumerate(p)] + [(Place("flag", 0), flag)]
    outputs = [*((Place("w", k), x) for k, x in enumerate(outs)), (Place("same", 0), same)]
    program = Program("k", arguments, tuple(inputs), tuple(b.body), tuple(outputs))
    for truth in (True, False):
        planes = {"v": np.arange(63.0).reshape(3, 21), "p": np.array([1.0, 3.0], np.float32), "flag": truth}
        assert_compiled_as_interpreted(program, planes, WIDTHS)


@REALS
@pytest.mark.parametrize("count", [1, 5, 255, 256])
def test_a_sum_is_the_canonical_tree_at_every_width(real, count):
    kit = Kit()
    x = kit.read("x", real)
    kit.write("total", x, Role.SUM)
    kit.write("of_zeros", kit.b.const(-0.0, real), Role.SUM)
    rng = np.random.default_rng(count)
    x = (rng.normal(size=count) * 10.0 ** rng.integers(-8, 8, count)).astype(real.dtype)
    for width in WIDTHS:
        written = launch(kit.program(), {"x": x}, width)
        assert_same_bits(written, {"total": block_sum(x), "of_zeros": np.array(-0.0, real.dtype)})


# memory


def test_a_table_is_read_at_the_clamped_index():
    kit = Kit()
    kit.table("t", 5)
    for name, type in (("f", Type.F64), ("i", Type.I32)):
        kit.table(f"t_{name}", 4, type)
        index = kit.read(f"at_{name}", Type.I32)
        kit.write(name, kit.b.table(f"t_{name}", index, type))
    kit.write("fixed", kit.b.table("t", kit.b.const(7, Type.I32), Type.F64))
    at = np.array([-(2**31), -1, 0, 1, 2, 3, 4, 2**31 - 1], np.int32)
    tables = {"t": np.arange(5.0), "t_f": np.array([0.5, -0.0, np.nan, 4.0]), "t_i": np.array([7, -8, 9, -10])}
    planes = tables | {"at_f": at, "at_i": at[::-1]}
    assert_compiled_as_interpreted(kit.program(), planes, WIDTHS)
    np.testing.assert_array_equal(interpret(kit.program(), planes)["i"], [-10, -10, -10, 9, -8, 7, 7, 7])


@pytest.mark.parametrize("held", [Type.F64, Type.F32, Type.I64, Type.I32, Type.U32, Type.BOOL], ids=str)
@pytest.mark.parametrize("shared", [True, False], ids=["one row", "rows apart"])
def test_a_tape_gives_back_what_it_was_given(held, shared):
    """Every trip stores; the next loop reads backwards, at an index all lanes share or at each lane's own."""
    kit = Kit()
    x, n, b = kit.read("x", held), kit.read("n", Type.I32), kit.b
    limit = b("most", n) if shared else n
    always = b.const(True, Type.BOOL)

    def changed(value: Value, trip: Value) -> Value:
        if held is Type.BOOL:
            return b("xor", value, b("eq", b("mod", trip, b.const(3, Type.I32)), b.const(0, Type.I32)))
        return b("add", value, b.cast(trip, held))

    trip, a = Value(Type.I32), Value(held)
    with b.block() as body:
        b.store("tape", trip, a)
        following = changed(a, trip)
    b.loop(limit, always, [x], Region((trip, a), tuple(body), (always, following)))
    trip, a = Value(Type.I32), Value(held)
    with b.block() as body:
        back = b("sub", b("sub", n, trip), b.const(1, Type.I32))
        loaded = b.load("tape", back, held)
        mixed = b("ne" if held is Type.BOOL else "add", a, loaded)
    _, total = b.loop(n, always, [x], Region((trip, a), tuple(body), (always, mixed)))
    kit.write("total", total)
    program = kit.program(tapes=[Tape("before", Type.BOOL, 3), Tape("tape", held, 9)])
    planes = {"x": np.arange(19) % 2 if held is Type.BOOL else np.arange(19), "n": np.arange(19) % 10}
    planes["n"][:8] = 6  # a group of lanes that agree
    assert_compiled_as_interpreted(program, planes, WIDTHS)


def test_scattered_values_are_added_in_the_order_of_the_samples():
    kit = Kit()
    kit.table("sums", 3, role=Role.TABLE_SUM)
    x, at, c, b = kit.read("x"), kit.read("at", Type.I32), kit.read("c", Type.BOOL), kit.b
    with b.block() as body:
        b.scatter("sums", at, x)
    b.if_(c, Region((), tuple(body), ()), Region((), (), ()))
    rng = np.random.default_rng(5)
    count = 77
    planes = {"x": rng.normal(size=count), "at": rng.integers(-1, 4, count), "c": rng.random(count) < 0.8}
    program = kit.program(effects=frozenset({"sums"}))
    expected = np.zeros(3)
    for k in np.flatnonzero(planes["c"]):
        expected[np.clip(planes["at"][k], 0, 2)] += planes["x"][k]
    for width in WIDTHS:
        assert_same_bits(launch(program, planes, width), {"sums": expected})


def test_only_samples_that_take_part_scatter():
    """In an if within an if, and in an if within a loop that samples leave at different trips."""
    kit = Kit()
    kit.table("sums", 4, role=Role.TABLE_SUM)
    c, d, n, b = kit.read("c", Type.BOOL), kit.read("d", Type.BOOL), kit.read("n", Type.I32), kit.b
    unit, nothing = b.const(1.0, Type.F64), Region((), (), ())

    def both(first: Value, second: Value, index: int) -> None:
        with b.block() as outer:
            with b.block() as inner:
                b.scatter("sums", b.const(index, Type.I32), unit)
            b.if_(second, Region((), tuple(inner), ()), nothing)
        b.if_(first, Region((), tuple(outer), ()), nothing)

    both(c, d, 0)
    both(d, c, 1)
    trip = Value(Type.I32)
    with b.block() as body:
        both(c, b("eq", b("mod", trip, b.const(2, Type.I32)), b.const(0, Type.I32)), 2)
        again = b("ne", trip, b.const(3, Type.I32))
    b.loop(n, d, [], Region((trip,), tuple(body), (again,)))
    program = kit.program(effects=frozenset({"sums"}))
    rng = np.random.default_rng(8)
    planes = {"c": rng.random(45) < 0.5, "d": rng.random(45) < 0.5, "n": rng.integers(0, 9, 45)}
    expected = interpret(program, planes)
    c, d, n = planes["c"], planes["d"], planes["n"]
    loops = (c & d) * (np.minimum(n, 4) + 1) // 2
    np.testing.assert_array_equal(expected["sums"], [(c & d).sum(), (c & d).sum(), loops.sum(), 0])
    for width in WIDTHS:
        assert_same_bits(launch(program, planes, width), expected)


# structure


@REALS
def test_an_if_computes_the_side_of_each_lane_and_a_long_side_only_where_some_lane_takes_it(real):
    kit = Kit()
    x, c, p = kit.read("x", real), kit.read("c", Type.BOOL), kit.read("p", Type.BOOL, Role.PARAM)
    b = kit.b

    def nested(depth: int) -> Region:
        with b.block() as body:
            long = b("exp", b("sin", b("tan", b("mul", x, b.const(float(depth + 2), real)))))
            if depth < 2:
                (long,) = b.if_((c, p, b("lt", x, long))[depth], nested(depth + 1), Region((), (), (x,)))
        return Region((), tuple(body), (long,))

    (a,) = b.if_(c, nested(0), Region((), (), (b("neg", x),)))
    (uniform,) = b.if_(p, nested(1), nested(0))
    kit.write("a", a)
    kit.write("uniform", uniform)
    rng = np.random.default_rng(0)
    for chosen in (np.zeros(40, bool), np.ones(40, bool), rng.random(40) < 0.5, np.arange(40) == 33):
        for p_is in (True, False):
            planes = {"x": rng.normal(size=40), "c": chosen, "p": p_is}
            assert_compiled_as_interpreted(kit.program(), planes, (1, 8, 16))


def test_a_division_by_zero_in_the_side_not_taken_and_an_index_out_of_range_do_no_harm():
    kit = Kit()
    x, at, b = kit.read("x"), kit.read("at", Type.I32), kit.b
    kit.table("t", 3)
    with b.block() as body:
        y = b("add", b("div", b.const(1.0, Type.F64), x), b.table("t", at, Type.F64))
    (y,) = b.if_(b("gt", x, b.const(1.0, Type.F64)), Region((), tuple(body), (y,)), Region((), (), (x,)))
    kit.write("y", y)
    planes = {
        "x": [0.0, 0.5, 2.0, 0.0, 4.0, 0.0, 0.0, 0.0],
        "at": [9**9, -5, 0, 2**31 - 1, 1, 0, 0, 0],
        "t": [1.0, 2, 3],
    }
    assert_compiled_as_interpreted(kit.program(), planes, WIDTHS)
    np.testing.assert_array_equal(interpret(kit.program(), planes)["y"], [0, 0.5, 1.5, 0, 2.25, 0, 0, 0])


@pytest.mark.parametrize("uniform", [True, False], ids=["limit of all", "limit of each"])
@pytest.mark.parametrize("breaks", [True, False], ids=["break", "no break"])
def test_loops_of_every_kind(uniform, breaks):
    kit = Kit()
    x, b = kit.read("x"), kit.b
    limit = kit.read("n", Type.I32, Role.PARAM if uniform else Role.SAMPLE)
    params = (Value(Type.I32), Value(Type.F64), Value(Type.I32), Value(Type.BOOL))
    trip, a, k, flag = params
    with b.block() as body:
        inner = (Value(Type.I32), Value(Type.F64))
        with b.block() as inner_body:
            more = b("add", b("sin", inner[1]), b.cast(inner[0], Type.F64))
            inner_again = b("lt", more, b.const(2.5, Type.F64))
        inner_region = Region(inner, tuple(inner_body), (inner_again, more))
        inner_trips, new = b.loop(b("sub", trip, k), flag, [a], inner_region)
        k_new = b("add", k, inner_trips)
        again = b("lt", new, b.const(1.5, Type.F64)) if breaks else b.const(True, Type.BOOL)
    region = Region(params, tuple(body), (again, new, k_new, flag))
    begins = b("gt", x, b.const(-1.0, Type.F64)) if breaks else b.const(True, Type.BOOL)
    starts = [x, b.const(-2, Type.I32), b("lt", x, b.const(1.0, Type.F64))]
    trips, a_out, k_out, flag_out = b.loop(limit, begins, starts, region)
    for name, value in (("trips", trips), ("a", a_out), ("k", k_out), ("flag", flag_out)):
        kit.write(name, value)
    program = kit.program()
    for n in (-1, 0, 1, 2, 9):
        planes = {"x": np.linspace(-2, 2, 43), "n": n if uniform else np.arange(43) % 10 - 1}
        assert_compiled_as_interpreted(program, planes, (1, 8, 16))


# random programs


@given(programs(TAME), programs(RUN))
@settings(max_examples=25)
def test_what_is_emitted_is_valid_llvm(program, run):
    """LLVM does not check what it is given, and ends the process over some of it."""
    kernel = Kernel("k", Traced(program))
    for settled in (prepare(program, Type.F32), prepare(run, Type.F64), vjp(kernel).program(Type.F64)):
        for width in (1, 8):
            llvm.parse_assembly(emit_launch(settled, "entry", width).text("nounwind")).verify()


@given(programs())
@settings(max_examples=40)
def test_a_random_program_compiles_to_what_it_means(program):
    for real, widths in ((Type.F64, (1, 8)), (Type.F32, (4, 16))):
        settled = prepare(program, real)
        assert_compiled_as_interpreted(settled, samples(settled), widths)


@given(programs(RUN))
@settings(max_examples=30)
def test_samples_that_leave_a_random_run_one_by_one_have_the_bits_of_all_together(program):
    settled = prepare(program, Type.F64)
    for count, width in ((41, 8), (100, 4), (7, 16), (41, 1)):
        assert_compiled_as_interpreted(settled, samples(settled, count), (width,))


@given(programs(TAME))
@settings(max_examples=20)
def test_the_derivatives_of_a_random_program_compile_to_what_they_mean(program):
    kernel = Kernel("k", Traced(program))
    for derivative, width in ((vjp(kernel), 8), (jvp(kernel), 16)):
        settled = derivative.program(Type.F64)
        assert_compiled_as_interpreted(settled, samples(settled, special=0.0), (width,))
