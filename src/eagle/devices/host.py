"""The CPU as a device: steps in terms of planes, built into a native executor as they are added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from hawk.codegen.frame import BLOCK
from hawk.ir.program import PER_SAMPLE, Argument, Role

from .._native import Executor, Slot
from ..planes import Array, Plane


@final
class HostProgram:
    """Steps over `samples` samples, run block by block in the order they are added.

    The first `late` arrays it works on are given at each run (contiguous; the ones read first, then
    `late_written` that are written). Every other array is bound while building, and kept alive.
    """

    def __init__(self, samples: int, late: int = 0, late_written: int = 0) -> None:
        self.samples = samples
        self._late_written = late_written
        self._executor = Executor(samples, late)
        self._copies: dict[object, _Copy] = {}  # of planes that the next call cannot work on in place
        self._to_copy_back: list[tuple[Plane, _Copy]] = []
        self._spare: dict[int, list[int]] = {}  # offsets of scratch that copies left, by size

    # where things lie

    def read(self, plane: Plane) -> Slot:
        """Where the next call finds a plane, or the one value or table that all samples share.

        A plane that is not packed is copied to scratch, block by block, by a step added here."""
        if plane.packed:
            return self._in_place(plane, writable=False)
        known = plane.key in self._copies
        copy = self._copy_of(plane)
        if not known:
            for there, here, components in self._groups(plane, copy, writable=False):
                self._executor.copy(here, there, components, copy.itemsize)
        return copy.slot()

    def write(self, plane: Plane) -> Slot:
        """Where the next call writes a plane; one that is not packed is copied from scratch after it."""
        if plane.packed:
            return self.in_place(plane)
        copy = self._copy_of(plane)
        self._to_copy_back.append((plane, copy))
        return copy.slot()

    def unused(self, plane: Plane) -> Slot:
        """A place for a plane that the next call takes and does not touch."""
        return self._in_place(plane, writable=False)

    def in_place(self, plane: Plane) -> Slot:
        """A packed plane, to be written where it is."""
        assert plane.packed, "only a packed plane is written in place; use write()"
        return self._in_place(plane, writable=True)

    def _in_place(self, plane: Plane, writable: bool) -> Slot:
        return _slot(plane.argument, self._external(plane.array, writable), plane.layout.component)

    def _copy_of(self, plane: Plane) -> _Copy:
        copy = self._copies.get(plane.key)
        if copy is None:
            itemsize, components = plane.array.itemsize, plane.argument.size
            spare = self._spare.get(components * itemsize)
            offset = spare.pop() if spare else self._executor.scratch(components * BLOCK * itemsize)
            copy = self._copies[plane.key] = _Copy(offset, components, itemsize)
        return copy

    def _groups(self, plane: Plane, copy: _Copy, writable: bool) -> Iterator[tuple[Slot, Slot, int]]:
        """The components of a plane in evenly spaced groups: in the plane, in its copy, how many."""
        layout, index = plane.layout, self._external(plane.array, writable)
        count = copy.components // len(layout.groups)
        for k, offset in enumerate(layout.groups):
            there = Slot.plane(index, offset, sample_stride=layout.sample, component_stride=layout.component)
            yield there, copy.slot(k * count), count

    def late(self, argument: Argument, index: int) -> Slot:
        """The array given as number `index` at each run."""
        itemsize = argument.type.dtype.itemsize
        return _slot(argument, index, itemsize * (self.samples if argument.role in PER_SAMPLE else 1))

    def scratch(self, argument: Argument) -> Slot:
        """Memory for one block of an argument; every thread has its own."""
        itemsize = argument.type.dtype.itemsize
        offset = self._executor.scratch(argument.size * BLOCK * itemsize)
        return Slot.scratch(offset, sample_stride=itemsize, component_stride=BLOCK * itemsize)

    def scratch_bytes(self, size: int) -> Slot:
        """Memory of a given size; every thread has its own."""
        return Slot.scratch(self._executor.scratch(size), sample_stride=0)

    def sum(self, argument: Argument, target: Array) -> Slot:
        """A sum over the samples (SUM: the canonical tree; TABLE_SUM: additions by index in a fixed order),
        written to `target` when all blocks are done."""
        return self._summed(argument, self._external(target, writable=True))

    def late_sum(self, argument: Argument, index: int) -> Slot:
        """The same into the array given as number `index` at each run."""
        return self._summed(argument, index)

    def _summed(self, argument: Argument, external: int) -> Slot:
        declare = self._executor.sum if argument.role is Role.SUM else self._executor.table_sum
        return Slot.sum(declare(external, 0, argument.size, argument.type.dtype.itemsize == 8))

    def _external(self, array: Array, writable: bool) -> int:
        index = self._executor.add_external()
        self._executor.set_external(index, array, writable)
        return index

    # steps

    def call(self, entry: int, slots: Sequence[Slot], any_count: bool = False) -> None:
        """Run a compiled launch entry; slots in the order of `hawk.codegen.launch.slots`.

        `any_count`: it takes more samples at once than a block (it has no sums)."""
        self._executor.call(entry, list(slots), any_count=any_count)
        for plane, copy in self._to_copy_back:
            for there, here, components in self._groups(plane, copy, writable=True):
                self._executor.copy(there, here, components, copy.itemsize)
        for copy in self._copies.values():
            self._spare.setdefault(copy.components * copy.itemsize, []).append(copy.offset)
        self._copies, self._to_copy_back = {}, []

    def copy(self, to: Slot, source: Slot, argument: Argument) -> None:
        self._executor.copy(to, source, argument.size, argument.type.dtype.itemsize)

    def join(self, to: Slot, sources: Sequence[Slot], argument: Argument) -> None:
        """to = ((sources[0] + sources[1]) + sources[2]) ..."""
        self._executor.join(to, list(sources), argument.size, argument.type.dtype.itemsize == 8)

    def zero(self, to: Slot, argument: Argument) -> None:
        self._executor.zero(to, argument.size, argument.type.dtype.itemsize)

    def passes(self, blocks: int) -> None:
        """Let `blocks` blocks at a time finish before the next ones begin."""
        self._executor.passes(blocks)

    # running

    def run(self) -> bool:
        """Run the steps once; False, with nothing done, if another thread is running them."""
        return self._executor.run()

    def run_with(self, arrays: tuple[Array, ...]) -> bool:
        """Run with the late arrays."""
        return self._executor.run_with(0, arrays, self._late_written)


@final
@dataclass(frozen=True, slots=True)
class _Copy:
    """A block of a plane in scratch, packed."""

    offset: int
    components: int
    itemsize: int

    def slot(self, first: int = 0) -> Slot:
        """Its components from the first one given on."""
        component = BLOCK * self.itemsize
        return Slot.scratch(self.offset + first * component, sample_stride=self.itemsize, component_stride=component)


def _slot(argument: Argument, external: int, component_stride: int) -> Slot:
    if argument.role in PER_SAMPLE:
        itemsize = argument.type.dtype.itemsize
        return Slot.plane(external, sample_stride=itemsize, component_stride=component_stride)
    return Slot.cell(external, component_stride=component_stride)
