"""The CPU as a device: steps in terms of planes, built into a native executor as they are added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from hawk.codegen.launch import BLOCK
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

    # where things lie

    def plane(self, plane: Plane, writable: bool = False) -> Slot:
        """An array: its samples, or the one value or table that all samples share."""
        index = self._external(plane.array, writable)
        return _slot(plane.argument, index, plane.component_stride)

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

    def copy(self, to: Slot, source: Slot, argument: Argument) -> None:
        self._executor.copy(to, source, argument.size, argument.type.dtype.itemsize)

    def join(self, to: Slot, sources: Sequence[Slot], argument: Argument) -> None:
        """to = ((sources[0] + sources[1]) + sources[2]) ..."""
        self._executor.join(to, list(sources), argument.size, argument.type.dtype.itemsize == 8)

    def zero(self, to: Slot, argument: Argument) -> None:
        self._executor.zero(to, argument.size, argument.type.dtype.itemsize)

    # running

    def run(self) -> bool:
        """Run the steps once; False, with nothing done, if another thread is running them."""
        return self._executor.run()

    def run_with(self, arrays: tuple[Array, ...]) -> bool:
        """Run with the late arrays."""
        return self._executor.run_with(0, arrays, self._late_written)


def _slot(argument: Argument, external: int, component_stride: int) -> Slot:
    if argument.role in PER_SAMPLE:
        itemsize = argument.type.dtype.itemsize
        return Slot.plane(external, sample_stride=itemsize, component_stride=component_stride)
    return Slot.cell(external, component_stride=component_stride)
