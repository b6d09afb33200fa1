"""What is frozen keeps its bits: a derivative computes the primal as the kernel does."""

import numpy as np
import pytest
from hawktest.compiled import assert_same_bits, launch
from hawktest.derivatives import kernel_of
from hawktest.random_programs import TAME, WILD, programs, random_program, samples
from hypothesis import given, settings
from hypothesis import strategies as st

from hawk import Int32, Scalar, kernel
from hawk import math as hm
from hawk.diff.activity import active_values
from hawk.diff.forward import Forward
from hawk.diff.reverse import Reverse
from hawk.ir.build import Builder
from hawk.ir.interpret import interpret
from hawk.ir.passes import finish, freeze, prepare
from hawk.ir.printer import text
from hawk.ir.program import Argument, Place, Program, Role, Value, walk
from hawk.ir.types import Type
from hawk.ir.verify import verify

REALS = pytest.mark.parametrize("real", [Type.F64, Type.F32], ids=str)


def test_freeze_marks_every_instruction_and_changes_nothing_else():
    program = prepare(random_program(3, 40, WILD), Type.F64)
    thawed = program.with_(body=tuple(i for i in program.body))
    frozen = freeze(thawed)
    assert all(i.frozen for i in walk(frozen.body))
    assert text(frozen) == text(program)
    assert any(i.regions for i in frozen.body)


def with_derivative(program: Program, mode: str) -> Program:
    """What `program` writes beside its derivative by all inputs, settled as derivatives are.

    Every seed or tangent is 1; what the derivative writes goes to one more output, so that nothing of it is dead.
    """
    b = Builder()
    active = active_values(program.body, [v for _, v in program.inputs], frozenset())
    engine = (Reverse if mode == "vjp" else Forward)(program.name, b, active, {})
    engine.env.update((v, Value(v.type)) for _, v in program.inputs)
    inputs = tuple((place, engine.env[v]) for place, v in program.inputs)
    real = next(v.type for _, v in program.inputs if v.type.is_real)
    if isinstance(engine, Reverse):
        engine.primal(program.body)
        for value in dict.fromkeys(v for _, v in program.outputs if v.type.is_real):
            engine.give(value, b.const(1.0, value.type))
        engine.transpose(program.body)
        derivatives = [engine.adjoints[v].value for _, v in program.inputs if v in engine.adjoints]
    else:
        engine.tangents.update((v, b.const(1.0, v.type)) for _, v in program.inputs if v.type.is_real)
        engine.block(program.body)
        derivatives = [engine.tangent(v) for _, v in program.outputs if v.type.is_real]
    total = b.const(0.0, real)
    for derivative in derivatives:
        total = b("add", total, derivative)
    extra = Argument("derivative", Role.MUTABLE, (), real)
    outputs = (*((place, engine.env[v]) for place, v in program.outputs), (Place("derivative", 0), total))
    tapes = tuple(engine.tapes) if isinstance(engine, Reverse) else ()
    made = Program(program.name, (*program.arguments, extra), inputs, tuple(b.body), outputs, tapes=tapes)
    return verify(finish(verify(made)))


def assert_same_primal(program: Program, mode: str, planes: dict[str, np.ndarray], compiled: bool) -> None:
    beside = with_derivative(program, mode)
    run = (lambda p: launch(p, planes, 8)) if compiled else (lambda p: interpret(p, planes))
    expected, got = run(program), run(beside)
    got.pop("derivative")
    assert_same_bits(got, expected)


@pytest.mark.parametrize("mode", ["vjp", "jvp"])
@given(programs(TAME), st.sampled_from([Type.F64, Type.F32]))
@settings(max_examples=30)
def test_a_derivative_computes_a_random_primal_with_the_same_bits(mode, program, real):
    settled = prepare(program, real)
    assert_same_primal(settled, mode, samples(settled, special=0.2), compiled=False)


@kernel
def chaotic(x: Scalar, y: Scalar, n: Int32) -> Scalar:
    a = x
    for _ in range(n):
        a = 3.99 * a * (1 - a)
    return hm.exp(a) * hm.sin(y) + a * y


@kernel
def pinned(x: Scalar, y: Scalar) -> Scalar:
    """An unrolled loop, whose edges must not be fused across in the derivative either."""
    a = x * y
    for i in range(4):
        b = a - 1.0
        a = hm.abs(b) ** (a * y) - b * (i * 0.1)
    return a - y


@REALS
@pytest.mark.parametrize("mode", ["vjp", "jvp"])
@pytest.mark.parametrize("k", [chaotic, pinned], ids=["chaotic", "pinned"])
def test_a_value_beside_its_derivative_has_the_bits_of_the_value_alone(k, mode, real):
    rng = np.random.default_rng(2)
    planes = {"x": rng.uniform(0.1, 0.9, 33), "y": rng.normal(size=33), "n": np.full(33, 200)}
    planes = {name: plane for name, plane in planes.items() if name in {a.name for a in k.program().arguments}}
    program = k.definition.program(real)
    planes = {name: plane.astype(program.argument(name).type.dtype) for name, plane in planes.items()}
    for compiled in (False, True):
        assert_same_primal(program, mode, planes, compiled)


def test_a_program_settled_once_more_stays_as_it_is():
    for seed in range(10):
        program = kernel_of(random_program(seed, 40, WILD)).program()
        assert text(finish(program)) == text(program)
