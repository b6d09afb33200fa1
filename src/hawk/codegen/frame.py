"""What every entry begins with: its addresses, the params, and what all samples share.

An entry takes ``const Address* addresses``, where ``Address`` is ``{char* base; int64_t component_stride}`` with
the base at the range's first sample and the stride in bytes. An argument that is both read and written has two
addresses, the one to read first; every other argument has one, in the order of `slots`. A kernel with tapes takes
one more address: scratch memory of `tape_bytes` for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ir.program import Argument, Program, Role
from ..ir.types import Type
from .llvm_lanes import LlvmLanes
from .lower import Lowering, row_bytes, stored
from .text import Function, Operand

BLOCK = 256  # samples: the unit of work and of every sum


@dataclass(frozen=True, slots=True)
class Slot:
    """One address of an entry: which argument, and whether it is read or written."""

    argument: Argument
    writes: bool


def slots(program: Program) -> tuple[Slot, ...]:
    """The addresses a launch entry takes, in order."""
    reads, writes = program.reads(), program.writes()
    out = []
    for a in program.arguments:
        if a.name in reads or a.name not in writes:
            out.append(Slot(a, writes=False))
        if a.name in writes:
            out.append(Slot(a, writes=True))
    return tuple(out)


def tape_bytes(program: Program, width: int, params: Mapping[str, int]) -> int:
    """The scratch memory a launch entry of `width` lanes needs; `params` holds the capacities given by params."""
    return sum(tape.rows(params) * row_bytes(tape, width) for tape in program.tapes)


class Frame:
    """An entry being emitted: its function, its lanes, and a pointer to each component of each plane."""

    def __init__(self, program: Program, symbol: str, width: int) -> None:
        self.program = program
        self.f = Function(symbol, "ptr noalias readonly %addresses, i64 %count, i64 %first")
        self.lower = Lowering(self.f, width, program)
        self.m = LlvmLanes(self.f, width, 64)
        self.width = width
        self.pointers: dict[tuple[str, int, bool], Operand] = {}

    def prologue(self) -> None:
        """Read the addresses and the params, lay out the tapes, compute what all samples share."""
        self._load_addresses()
        self._read_params()
        if self.program.tapes:
            arena = self.f.value("ptr", f"load ptr, {self._field(2 * len(slots(self.program)))}")
            self.lower.place_tapes(arena)
        self.lower.uniform_block(self.program.body)

    def _load_addresses(self) -> None:
        for k, slot in enumerate(slots(self.program)):
            base = self.f.value("ptr", f"load ptr, {self._field(2 * k)}")
            a = slot.argument
            if a.role in (Role.TABLE, Role.TABLE_SUM):
                self.lower.bases[a.name] = base
                continue
            stride = self.f.value("i64", f"load i64, {self._field(2 * k + 1)}")
            for component in range(a.size):
                offset = self.f.value("i64", f"mul {stride}, {component}")
                pointer = self.f.value("ptr", f"getelementptr i8, {base}, {offset}")
                self.pointers[a.name, component, slot.writes] = pointer

    def _field(self, word: int) -> Operand:
        return self.f.value("ptr", f"getelementptr i64, ptr %addresses, i64 {word}")

    def _read_params(self) -> None:
        for place, value in self.program.inputs:
            role = self.program.argument(place.argument).role
            if role in (Role.PARAM, Role.TABLE):
                if role is Role.PARAM:
                    pointer = self.pointers[place.argument, place.component, False]
                else:
                    base = self.lower.bases[place.argument]
                    element = f"{stored(value.type)}, {base}, i64 {place.component}"
                    pointer = self.f.value("ptr", f"getelementptr {element}")
                self.lower.scalars[value] = self._loaded_scalar(pointer, value.type)
                self.lower.lanes[value] = self.m.broadcast(self.lower.scalars[value])

    def _loaded_scalar(self, pointer: Operand, type: Type) -> Operand:
        raw = self.f.value(stored(type), f"load {stored(type)}, {pointer}")
        return self.f.value("i1", f"icmp ne {raw}, 0") if type is Type.BOOL else raw

    def at(self, pointer: Operand, i: Operand, type: Type) -> Operand:
        return self.f.value("ptr", f"getelementptr {stored(type)}, {pointer}, {i}")
