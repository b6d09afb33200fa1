"""The machine code is made for: its name, its vector width, how many lanes suit a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from ..ir.ops import ELEMENTARY
from ..ir.program import Instr, Program, Role, Value, walk
from ..ir.types import Type

_SHORT = 400  # instructions: longer programs take one vector a value if they are short of registers
_SCATTERING = 8  # lanes of a program that adds to tables


@dataclass(frozen=True, slots=True)
class Target:
    """A CPU as LLVM names it, with the width of its vectors in bits."""

    triple: str
    cpu: str
    features: str
    vector_bits: int

    @property
    def registers(self) -> int:
        return 32 if self.vector_bits == 512 or "aarch64" in self.triple or "arm64" in self.triple else 16


@cache
def host() -> Target:
    """The CPU this process runs on."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    bits = 512 if features.get("avx512f") else 256 if features.get("avx2") else 128
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten(), bits)


@cache
def machine(target: Target) -> llvm.TargetMachine:
    """LLVM's code generator for a target."""
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="small"
    )


def lanes(program: Program, target: Target) -> int:
    """How many samples to compute at once.

    Two vectors a value hide latency, also where some of them must wait in memory; four in a kernel of few values
    without elementary functions, which need registers of their own. One is enough where very many values are
    alive at once, and for a long program, whose code would take twice as long to make. A program that scatters has
    the same number on every machine: it adds group by group, and the order of a sum is part of its bits.
    """
    if program.effects:
        return _SCATTERING
    element = 64 if any(_is_double(v) for v in _values(program)) else 32
    one = max(1, target.vector_bits // element)
    alive = pressure(program)
    if alive * 4 <= target.registers and not any(i.op in ELEMENTARY for i in walk(program.body)):
        return 4 * one
    is_short = sum(1 for _ in walk(program.body)) <= _SHORT
    return 2 * one if alive * 2 <= target.registers or (alive <= 2 * target.registers and is_short) else one


def _is_double(value: Value) -> bool:
    return value.type in (Type.F64, Type.I64)


def _values(program: Program) -> list[Value]:
    out = [v for _, v in program.inputs]
    for instr in program.body:
        out += instr.results
    return out


def pressure(program: Program) -> int:
    """The most lane values alive at once, in order of the text; a region counts at its own peak."""
    uniform = {v for place, v in program.inputs if program.argument(place.argument).role in (Role.PARAM, Role.TABLE)}
    return _peak(program.body, {v for _, v in program.outputs}, uniform)


def _peak(body: tuple[Instr, ...], alive: set[Value], uniform: set[Value]) -> int:
    for instr in body:
        if not instr.regions and all(a in uniform for a in instr.args) and instr.op != "sample":
            uniform.update(instr.results)
    alive = {v for v in alive if v not in uniform}
    peak = len(alive)
    for instr in reversed(body):
        if instr.results and instr.results[0] in uniform:
            continue
        alive.difference_update(instr.results)
        regions = instr.regions if instr.op != "custom" else ()
        inner = [_peak(r.body, alive | set(r.yields), uniform) for r in regions]
        alive.update(a for a in instr.args if a not in uniform)
        peak = max(peak, len(alive), *inner, 0)
    return peak
