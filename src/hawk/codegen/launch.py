"""The launch entry: one kernel over a range of samples, W lanes at a time.

``void name(const Address* addresses, int64_t count, int64_t first)`` runs `count` samples (at most 256 when
the kernel has sums); `first` is the index of the first of them in the batch. The addresses are those of `frame`.

The tail of a range is a masked group: the same code, with masked loads and stores.
"""

from __future__ import annotations

from ..ir.program import PER_SAMPLE, Program, Role
from ..ir.types import Type
from .frame import BLOCK, Frame
from .llvm_lanes import ELEMENT_BYTES, suffix
from .lower import ELEMENTS, from_stored, stored, to_stored
from .refill import emit_refilling, is_refillable
from .text import Function, Operand


def emit_launch(program: Program, symbol: str, width: int) -> Function:
    """The launch entry of `program` as LLVM IR."""
    if is_refillable(program):
        return emit_refilling(program, symbol, width)
    return _Launch(program, symbol, width).run()


class _Launch(Frame):
    """Group after group of samples, each loaded, computed and stored."""

    def __init__(self, program: Program, symbol: str, width: int) -> None:
        super().__init__(program, symbol, width)
        self._buffers: dict[tuple[str, int], Operand] = {}

    def run(self) -> Function:
        f, width = self.f, self.width
        self.prologue()
        self._start_sums()
        before = f.block
        f.jump("group")
        f.start("group")
        slot = f.placeholder()
        i = Operand("i64", "%i")
        left = f.value("i64", f"sub i64 %count, {i.text}")
        full = f.value("i1", f"icmp sge {left}, {width}")
        mask = self.m.compare("icmp slt", self.m.iota(), self.m.broadcast(left))
        self.lower.first_sample = self._sample_index(i)
        self._load(i, full, mask)
        self.lower.mask = mask
        self.lower.block(self.program.body)
        self._store(i, full, mask)
        following = f.value("i64", f"add {i}, {width}")
        f.fill(slot, f"%i = phi i64 [ 0, %{before} ], [ {following.text}, %{f.block} ]")
        f.branch(f.value("i1", f"icmp slt {following}, %count"), "group", "done")
        f.start("done")
        self._finish_sums()
        f.line("ret void")
        return f

    # planes

    def _sample_index(self, i: Operand) -> Operand:
        start = self.f.value("i64", f"add {i}, %first")
        return self.m.binary("add", self.m.broadcast(start), self.m.iota())

    def _load(self, i: Operand, full: Operand, mask: Operand) -> None:
        """Every input place, whole groups and the masked tail on paths of their own."""
        f = self.f
        reads = [
            (value, self.pointers[place.argument, place.component, False])
            for place, value in self.program.inputs
            if self.program.argument(place.argument).role in PER_SAMPLE
        ]
        where = [self.at(pointer, i, value.type) for value, pointer in reads]
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
            self.lower.lanes[value] = from_stored(self.m, raw, value.type)

    def _vector_load(self, pointer: Operand, type: Type) -> Operand:
        kind = self.m.vector(stored(type))
        return self.f.value(kind, f"load {kind}, {pointer}, align {ELEMENT_BYTES[stored(type)]}")

    def _masked_load(self, pointer: Operand, type: Type, mask: Operand) -> Operand:
        kind = self.m.vector(stored(type))
        if self.width == 1:  # never reached: a group of one is full
            return Operand(kind, "zeroinitializer")
        align = Operand("i32", str(ELEMENT_BYTES[stored(type)]))
        zero = Operand(kind, "zeroinitializer")
        return self.f.call(kind, f"llvm.masked.load.{suffix(kind)}.p0", [pointer, align, mask, zero])

    def _store(self, i: Operand, full: Operand, mask: Operand) -> None:
        f = self.f
        writes = []
        for place, value in self.program.outputs:
            lane = self.lower.lane(value)
            role = self.program.argument(place.argument).role
            if role is Role.SUM:
                self._add_to_sum(place.argument, place.component, lane, i, mask, value.type)
            else:
                lane = to_stored(self.m, lane, value.type)
                pointer = self.pointers[place.argument, place.component, True]
                writes.append((lane, self.at(pointer, i, value.type), ELEMENT_BYTES[stored(value.type)]))
        f.branch(full, "store_full", "store_tail")
        f.start("store_full")
        for lane, pointer, align in writes:
            f.line(f"store {lane}, {pointer}, align {align}")
        f.jump("stored")
        f.start("store_tail")
        for lane, pointer, align in writes:
            if self.width > 1:
                name = f"llvm.masked.store.{suffix(lane.type)}.p0"
                f.call_void(name, [lane, pointer, Operand("i32", str(align)), mask])
        f.jump("stored")
        f.start("stored")

    # sums over samples: each block's values wait in a buffer, then a fixed tree adds them

    def _start_sums(self) -> None:
        f = self.f
        for a in self.program.arguments:
            if a.role is Role.SUM:
                element = ELEMENTS[a.type]
                for component in range(a.size):
                    buffer = f.value("ptr", f"alloca [{BLOCK} x {element}], align 64")
                    self._buffers[a.name, component] = buffer
                    kind = self.m.vector(element)
                    for k in range(0, BLOCK, self.width):
                        where = f.value("ptr", f"getelementptr {element}, {buffer}, i64 {k}")
                        f.line(f"store {self._nothing(kind, element)}, {where}, align {ELEMENT_BYTES[element]}")

    def _nothing(self, kind: str, element: str) -> Operand:
        """-0.0: what adds nothing to any sum."""
        return Operand(kind, self.m.splat(element, "0x8000000000000000").text)

    def _add_to_sum(self, name: str, component: int, lane: Operand, i: Operand, mask: Operand, type: Type) -> None:
        kept = self.m.select(mask, lane, self._nothing(lane.type, ELEMENTS[type]))
        where = self.at(self._buffers[name, component], i, type)
        self.f.line(f"store {kept}, {where}, align {ELEMENT_BYTES[ELEMENTS[type]]}")

    def _finish_sums(self) -> None:
        for (name, component), buffer in self._buffers.items():
            element = ELEMENTS[self.program.argument(name).type]
            total = self._tree(buffer, element)
            self.f.line(f"store {total}, {self.pointers[name, component, True]}")

    def _tree(self, buffer: Operand, element: str) -> Operand:
        """v[i] += v[i + half] for half = 128, 64, ... 1: the same additions at every width."""
        f, width, kind = self.f, self.width, self.m.vector(element)
        parts = []
        for k in range(0, BLOCK, width):
            where = f.value("ptr", f"getelementptr {element}, {buffer}, i64 {k}")
            parts.append(f.value(kind, f"load {kind}, {where}, align {ELEMENT_BYTES[element]}"))
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [self.m.add(a, b) for a, b in zip(parts[:half], parts[half:], strict=True)]
        total = parts[0]
        while width > 1:
            width //= 2
            upper = ", ".join(f"i32 {width + k}" for k in range(width))
            lower = ", ".join(f"i32 {k}" for k in range(width))
            half_kind = f"<{width} x {element}>"
            a = f.value(half_kind, f"shufflevector {total}, {total.type} poison, <{width} x i32> <{lower}>")
            b = f.value(half_kind, f"shufflevector {total}, {total.type} poison, <{width} x i32> <{upper}>")
            total = self.m.add(a, b)
        if total.type == element:
            return total
        return f.value(element, f"extractelement {total}, i64 0")
