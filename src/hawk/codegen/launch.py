"""The launch entry: one kernel over a range of samples, W lanes at a time.

``void name(const Address* addresses, int64_t count, int64_t first)`` runs `count` samples (at most 256 when
the kernel has sums); ``Address`` is ``{char* base; int64_t component_stride}`` with the base at the range's
first sample and the stride in bytes. `first` is the index of the first sample in the batch. An argument that
is both read and written has two addresses, the one to read first; every other argument has one, in the
order of `slots`.

A kernel with tapes takes one more address: scratch memory of `tape_bytes` for them.

The tail of a range is a masked group: the same code, with masked loads and stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ir.program import PER_SAMPLE, Argument, Program, Role
from ..ir.types import Type
from .llvm_lanes import ELEMENT_BYTES, LlvmLanes, suffix
from .lower import ELEMENTS, Lowering, from_stored, row_bytes, stored, to_stored
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


def emit_launch(program: Program, symbol: str, width: int) -> Function:
    """The launch entry of `program` as LLVM IR."""
    return _Launch(program, symbol, width).run()


class _Launch:
    def __init__(self, program: Program, symbol: str, width: int) -> None:
        self._program = program
        self._f = Function(symbol, "ptr noalias readonly %addresses, i64 %count, i64 %first")
        self._lower = Lowering(self._f, width, program)
        self._m = LlvmLanes(self._f, width, 64)
        self._width = width
        self._pointers: dict[tuple[str, int, bool], Operand] = {}
        self._buffers: dict[tuple[str, int], Operand] = {}

    def run(self) -> Function:
        f, width = self._f, self._width
        self._load_addresses()
        self._read_params()
        if self._program.tapes:
            arena = self._f.value("ptr", f"load ptr, {self._field(2 * len(slots(self._program)))}")
            self._lower.place_tapes(arena)
        self._start_sums()
        self._lower.uniform_block(self._program.body)
        before = f.block
        f.jump("group")
        f.start("group")
        slot = f.placeholder()
        i = Operand("i64", "%i")
        left = f.value("i64", f"sub i64 %count, {i.text}")
        full = f.value("i1", f"icmp sge {left}, {width}")
        mask = self._m.compare("icmp slt", self._m.iota(), self._m.broadcast(left))
        self._lower.first_sample = self._sample_index(i)
        self._load(i, full, mask)
        self._lower.mask = mask
        self._lower.block(self._program.body)
        self._store(i, full, mask)
        following = f.value("i64", f"add {i}, {width}")
        f.fill(slot, f"%i = phi i64 [ 0, %{before} ], [ {following.text}, %{f.block} ]")
        f.branch(f.value("i1", f"icmp slt {following}, %count"), "group", "done")
        f.start("done")
        self._finish_sums()
        f.line("ret void")
        return f

    # addresses

    def _load_addresses(self) -> None:
        for k, slot in enumerate(slots(self._program)):
            base = self._f.value("ptr", f"load ptr, {self._field(2 * k)}")
            a = slot.argument
            if a.role in (Role.TABLE, Role.TABLE_SUM):
                self._lower.bases[a.name] = base
                continue
            stride = self._f.value("i64", f"load i64, {self._field(2 * k + 1)}")
            for component in range(a.size):
                offset = self._f.value("i64", f"mul {stride}, {component}")
                pointer = self._f.value("ptr", f"getelementptr i8, {base}, {offset}")
                self._pointers[a.name, component, slot.writes] = pointer

    def _field(self, word: int) -> Operand:
        return self._f.value("ptr", f"getelementptr i64, ptr %addresses, i64 {word}")

    def _read_params(self) -> None:
        for place, value in self._program.inputs:
            role = self._program.argument(place.argument).role
            if role in (Role.PARAM, Role.TABLE):
                if role is Role.PARAM:
                    pointer = self._pointers[place.argument, place.component, False]
                else:
                    base = self._lower.bases[place.argument]
                    element = f"{stored(value.type)}, {base}, i64 {place.component}"
                    pointer = self._f.value("ptr", f"getelementptr {element}")
                self._lower.scalars[value] = self._loaded_scalar(pointer, value.type)
                self._lower.lanes[value] = self._m.broadcast(self._lower.scalars[value])

    def _loaded_scalar(self, pointer: Operand, type: Type) -> Operand:
        raw = self._f.value(stored(type), f"load {stored(type)}, {pointer}")
        return self._f.value("i1", f"icmp ne {raw}, 0") if type is Type.BOOL else raw

    # planes

    def _sample_index(self, i: Operand) -> Operand:
        start = self._f.value("i64", f"add {i}, %first")
        return self._m.binary("add", self._m.broadcast(start), self._m.iota())

    def _at(self, pointer: Operand, i: Operand, type: Type) -> Operand:
        return self._f.value("ptr", f"getelementptr {stored(type)}, {pointer}, {i}")

    def _load(self, i: Operand, full: Operand, mask: Operand) -> None:
        """Every input place, whole groups and the masked tail on paths of their own."""
        f = self._f
        reads = [
            (value, self._pointers[place.argument, place.component, False])
            for place, value in self._program.inputs
            if self._program.argument(place.argument).role in PER_SAMPLE
        ]
        where = [self._at(pointer, i, value.type) for value, pointer in reads]
        f.branch(full, "load_full", "load_tail")
        f.start("load_full")
        whole = [self._vector_load(p, v.type) for (v, _), p in zip(reads, where, strict=True)]
        f.jump("loaded")
        f.start("load_tail")
        part = [self._masked_load(p, v.type, mask) for (v, _), p in zip(reads, where, strict=True)]
        f.jump("loaded")
        f.start("loaded")
        raws = [f.phi([(a, "load_full"), (b, "load_tail")]) for a, b in zip(whole, part, strict=True)]
        for (value, _), raw in zip(reads, raws, strict=True):
            self._lower.lanes[value] = from_stored(self._m, raw, value.type)

    def _vector_load(self, pointer: Operand, type: Type) -> Operand:
        kind = self._m.vector(stored(type))
        return self._f.value(kind, f"load {kind}, {pointer}, align {ELEMENT_BYTES[stored(type)]}")

    def _masked_load(self, pointer: Operand, type: Type, mask: Operand) -> Operand:
        kind = self._m.vector(stored(type))
        if self._width == 1:  # never reached: a group of one is full
            return Operand(kind, "zeroinitializer")
        align = Operand("i32", str(ELEMENT_BYTES[stored(type)]))
        zero = Operand(kind, "zeroinitializer")
        return self._f.call(kind, f"llvm.masked.load.{suffix(kind)}.p0", [pointer, align, mask, zero])

    def _store(self, i: Operand, full: Operand, mask: Operand) -> None:
        f = self._f
        writes = []
        for place, value in self._program.outputs:
            lane = self._lower.lane(value)
            role = self._program.argument(place.argument).role
            if role is Role.SUM:
                self._add_to_sum(place.argument, place.component, lane, i, mask, value.type)
            else:
                lane = to_stored(self._m, lane, value.type)
                pointer = self._pointers[place.argument, place.component, True]
                writes.append((lane, self._at(pointer, i, value.type), ELEMENT_BYTES[stored(value.type)]))
        f.branch(full, "store_full", "store_tail")
        f.start("store_full")
        for lane, pointer, align in writes:
            f.line(f"store {lane}, {pointer}, align {align}")
        f.jump("stored")
        f.start("store_tail")
        for lane, pointer, align in writes:
            if self._width > 1:
                name = f"llvm.masked.store.{suffix(lane.type)}.p0"
                f.call_void(name, [lane, pointer, Operand("i32", str(align)), mask])
        f.jump("stored")
        f.start("stored")

    # sums over samples: each block's values wait in a buffer, then a fixed tree adds them

    def _start_sums(self) -> None:
        f = self._f
        for a in self._program.arguments:
            if a.role is Role.SUM:
                element = ELEMENTS[a.type]
                for component in range(a.size):
                    buffer = f.value("ptr", f"alloca [{BLOCK} x {element}], align 64")
                    self._buffers[a.name, component] = buffer
                    kind = self._m.vector(element)
                    for k in range(0, BLOCK, self._width):
                        where = f.value("ptr", f"getelementptr {element}, {buffer}, i64 {k}")
                        f.line(f"store {self._nothing(kind, element)}, {where}, align {ELEMENT_BYTES[element]}")

    def _nothing(self, kind: str, element: str) -> Operand:
        """-0.0: what adds nothing to any sum."""
        return Operand(kind, self._m.splat(element, "0x8000000000000000").text)

    def _add_to_sum(self, name: str, component: int, lane: Operand, i: Operand, mask: Operand, type: Type) -> None:
        kept = self._m.select(mask, lane, self._nothing(lane.type, ELEMENTS[type]))
        where = self._at(self._buffers[name, component], i, type)
        self._f.line(f"store {kept}, {where}, align {ELEMENT_BYTES[ELEMENTS[type]]}")

    def _finish_sums(self) -> None:
        for (name, component), buffer in self._buffers.items():
            element = ELEMENTS[self._program.argument(name).type]
            total = self._tree(buffer, element)
            self._f.line(f"store {total}, {self._pointers[name, component, True]}")

    def _tree(self, buffer: Operand, element: str) -> Operand:
        """v[i] += v[i + half] for half = 128, 64, ... 1: the same additions at every width."""
        f, width, kind = self._f, self._width, self._m.vector(element)
        parts = []
        for k in range(0, BLOCK, width):
            where = f.value("ptr", f"getelementptr {element}, {buffer}, i64 {k}")
            parts.append(f.value(kind, f"load {kind}, {where}, align {ELEMENT_BYTES[element]}"))
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [self._m.add(a, b) for a, b in zip(parts[:half], parts[half:], strict=True)]
        total = parts[0]
        while width > 1:
            width //= 2
            upper = ", ".join(f"i32 {width + k}" for k in range(width))
            lower = ", ".join(f"i32 {k}" for k in range(width))
            half_kind = f"<{width} x {element}>"
            a = f.value(half_kind, f"shufflevector {total}, {total.type} poison, <{width} x i32> <{lower}>")
            b = f.value(half_kind, f"shufflevector {total}, {total.type} poison, <{width} x i32> <{upper}>")
            total = self._m.add(a, b)
        if total.type == element:
            return total
        return f.value(element, f"extractelement {total}, i64 0")
