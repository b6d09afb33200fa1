"""How many lanes: a choice for speed, but for sums of tables, whose order it decides."""

from dataclasses import replace

import pytest

from hawk import Int32, Scalar, Table, kernel
from hawk import math as hm
from hawk.codegen.target import Target, host, lanes
from hawk.diff import jvp, vjp
from hawk.ir.types import Type

MACHINES = [Target("x86_64-unknown-linux-gnu", "generic", "", bits) for bits in (128, 256, 512)]
MACHINES.append(Target("aarch64-unknown-linux-gnu", "generic", "", 128))


@kernel
def light(x: Scalar) -> Scalar:
    return 2 * x


@kernel
def heavy(x: Scalar) -> Scalar:
    return hm.sin(x) * hm.exp(x)


@kernel
def looked_up(x: Scalar, i: Int32, t: Table["row":3]) -> Scalar:
    return t.at(i) * x + t.at(i + 1)


@pytest.mark.parametrize("k", [light, heavy, looked_up], ids=lambda k: k.name)
@pytest.mark.parametrize("real", [Type.F64, Type.F32], ids=str)
def test_lanes_are_a_power_of_two_and_fill_the_machines_vectors(k, real):
    for machine in MACHINES:
        width = lanes(k.definition.program(real), machine)
        assert width in (1, 2, 4, 8, 16, 32, 64)
        assert width * (64 if real is Type.F64 else 32) >= machine.vector_bits


@pytest.mark.parametrize("real", [Type.F64, Type.F32], ids=str)
def test_a_program_that_scatters_has_the_same_lanes_on_every_machine(real):
    program = vjp(looked_up).program(real)
    assert program.effects
    assert len({lanes(program, machine) for machine in (*MACHINES, host())}) == 1
    others = [jvp(looked_up).program(real), vjp(light).program(real)]
    assert all(len({lanes(p, machine) for machine in MACHINES}) > 1 for p in others)


def test_the_host_is_described_once():
    assert host() is host()
    assert host().vector_bits in (128, 256, 512)
    assert replace(host(), vector_bits=512).registers == 32
