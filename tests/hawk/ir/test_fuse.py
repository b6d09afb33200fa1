"""Multiply-adds: the rule of `fuse`, word by word."""

import numpy as np
import pytest
from hawktest.build import Kit
from hawktest.compiled import assert_same_bits
from hawktest.expressions import expression_of, program_of

from hawk import Int32, Scalar, kernel
from hawk.ir.interpret import interpret
from hawk.ir.passes import drop_dead, fuse, simplify
from hawk.ir.program import Region, Value, walk
from hawk.ir.types import Type
from hawk.ir.verify import verify


def fused(expression: str) -> str:
    return expression_of(drop_dead(simplify(fuse(simplify(program_of(expression))), pins=False)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("add(mul(x, y), z)", "fma(x, y, z)"),
        ("add(z, mul(x, y))", "fma(x, y, z)"),
        ("add(mul(x, y), mul(z, w))", "fma(x, y, mul(z, w))"),
        ("sub(mul(x, y), z)", "fma(x, y, neg(z))"),
        ("sub(mul(x, y), 3.0)", "fma(x, y, -3.0)"),
        ("sub(z, mul(x, y))", "fma(neg(x), y, z)"),
        ("sub(mul(x, y), mul(z, w))", "sub(mul(x, y), mul(z, w))"),
        ("sub(mul(x, x), mul(y, y))", "sub(mul(x, x), mul(y, y))"),
        ("add(mul(x, x), neg(mul(y, y)))", "sub(mul(x, x), mul(y, y))"),
        ("add(add(mul(x, y), z), w)", "add(fma(x, y, z), w)"),
        ("add(mul(x, 2.0), 1.0)", "fma(x, 2.0, 1.0)"),
        ("add(div(x, 2.0), y)", "fma(x, 0.5, y)"),
        ("add(mul(i, j), i)", "add(mul(i, j), i)"),
        ("add(pin(mul(x, y)), z)", "add(mul(x, y), z)"),
        ("mul(add(x, y), z)", "mul(add(x, y), z)"),
        ("add(mul(x, y), mul(x, y))", "fma(x, y, mul(x, y))"),
    ],
)
def test_the_rule(before, after):
    assert fused(before) == after


def test_a_product_used_twice_is_fused_where_it_is_added_and_kept_for_the_rest():
    kit = Kit()
    x, y, z = (kit.read(name) for name in "xyz")
    product = kit.b("mul", x, y)
    kit.write("sum", kit.b("add", product, z))
    kit.write("product", product)
    kit.write("difference", kit.b("sub", z, product))
    settled = drop_dead(fuse(kit.program()))
    assert [i.op for i in settled.body] == ["mul", "fma", "neg", "fma"]


def test_a_product_outside_a_region_is_fused_inside():
    kit = Kit()
    x, y, c = kit.read("x"), kit.read("y"), kit.read("c", Type.BOOL)
    product = kit.b("mul", x, y)
    with kit.b.block() as body:
        total = kit.b("add", product, x)
    (total,) = kit.b.if_(c, Region((), tuple(body), (total,)), Region((), (), (y,)))
    kit.write("out", total)
    settled = verify(drop_dead(fuse(kit.program())))
    assert [i.op for i in walk(settled.body)] == ["if", "fma"]


def test_a_product_of_a_loop_index_and_a_constant_is_left_alone():
    kit = Kit()
    x, b = kit.read("x"), kit.b
    trip, a = Value(Type.I32), Value(Type.F64)
    with b.block() as body:
        offset = b("mul", b.cast(trip, Type.F64), b.const(0.1, Type.F64))
        shifted = b("add", offset, a)  # the product is static: not fused
        scaled = b("add", b("mul", b.cast(trip, Type.F64), a), b.const(0.1, Type.F64))  # that of a is not
        total = b("add", shifted, scaled)
    always = b.const(True, Type.BOOL)
    region = Region((trip, a), tuple(body), (always, total))
    _, out = b.loop(b.const(20, Type.I32), always, [x], region)
    kit.write("out", out)
    inside = [i.op for i in walk(drop_dead(fuse(kit.program())).body)]
    assert inside.count("mul") == 1
    assert inside.count("fma") == 1
    assert inside.count("add") == 2


def test_what_is_frozen_is_not_fused():
    assert expression_of(fuse(program_of("add(mul(x, y), z)", frozen=True))) == "add(mul(x, y), z)"


def test_a_difference_of_squares_is_zero_where_they_are_equal():
    @kernel
    def k(x: Scalar, y: Scalar) -> Scalar:
        return x * x - y * y

    x = np.random.default_rng(0).normal(size=100)
    np.testing.assert_array_equal(interpret(k.program(), {"x": x, "y": x})["out"], 0)


@pytest.mark.parametrize("trips", [16, 17])
def test_an_unrolled_loop_and_a_loop_of_the_ir_have_the_same_bits(trips):
    @kernel
    def unrolled(x: Scalar) -> Scalar:
        s, t = x, 0.25
        for i in range(trips):
            t = t * s + i * 0.1
            s = s * 0.9 - t * (i * 0.3)
            if s > 2:
                s = s * t - 2 * t
        return s + t

    @kernel
    def looped(x: Scalar, n: Int32) -> Scalar:
        s, t = x, 0.25
        for i in range(n):
            t = t * s + i * 0.1
            s = s * 0.9 - t * (i * 0.3)
            if s > 2:
                s = s * t - 2 * t
        return s + t

    assert ("loop" in str(unrolled)) == (trips > 16)
    assert "loop" in str(looped)
    x = np.random.default_rng(1).normal(size=200)
    expected = interpret(unrolled.program(), {"x": x})
    assert_same_bits(interpret(looped.program(), {"x": x, "n": np.full(200, trips)}), expected)
