"""One backward sweep: the steps of `eagle::diff::transpose` on a device, for one set of seeded outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from hawk.ir.program import PER_SAMPLE, Argument, Role

from .. import _native
from ..devices.host import HostProgram, Slot
from ..errors import Busy
from ..planes import Array, Plane
from .gradients import Names
from .record import Access, Recorder


@dataclass(frozen=True, slots=True, eq=False)
class _Output:
    """One gradient to compute: the argument it is for, its array, the adjoint buffers that add up to it."""

    argument: Argument
    shape: tuple[int, ...]
    samples: int
    buffers: tuple[int, ...]


@final
class Sweep:
    """The reverse of a graph for seeds of the outputs `seeds`, (node, plane) each.

    Every adjoint between two steps lives in scratch memory of one block; only the gradients are written.
    """

    def __init__(
        self,
        recorder: Recorder,
        seeds: Sequence[tuple[int, int]],
        primals: Mapping[Access, Plane],
        vjps: Mapping[int, object],
    ) -> None:
        self._recorder = recorder
        self._plan = _native.transpose(recorder.description, list(seeds))
        accesses = _first_reads(recorder)
        self.names = Names(_labels(recorder, accesses))
        self._outputs = [self._output(places) for places in accesses]
        self._makers = [
            (np.empty if o.buffers else np.zeros, o.shape, o.argument.type.dtype) for o in self._outputs
        ]
        self._stages = [
            _Stage(self, recorder, n, seeds, primals, vjps) for n in dict.fromkeys(x.samples for x in recorder.nodes)
        ]

    @property
    def plan(self) -> _native.Transposed:
        return self._plan

    @property
    def outputs(self) -> list[_Output]:
        return self._outputs

    def _output(self, places: list[Access]) -> _Output:
        node, name = places[0]
        plane = self._recorder.nodes[node].reads()[name]
        shares = [s for g in self._plan.gradients for s in g.shares]
        wanted = [(i, self._recorder.arguments[i].index(k)) for i, k in places]
        buffers = tuple(s.buffer for s in shares if (s.node, s.argument) in wanted)
        return _Output(_adjoint(plane.argument), plane.array.shape, self._recorder.nodes[node].samples, buffers)

    def run(self, seeds: tuple[Array, ...]) -> list[Array]:
        """The gradients, in the order of `names`, as arrays of their own."""
        arrays = [make(shape, dtype) for make, shape, dtype in self._makers]
        for stage in self._stages:
            stage.run(seeds, arrays)
        return arrays


class _Stage:
    """The steps for one batch size. Buffers of adjoints are scratch, but for seeds and gradients."""

    def __init__(
        self,
        sweep: Sweep,
        recorder: Recorder,
        samples: int,
        seeds: Sequence[tuple[int, int]],
        primals: Mapping[Access, Plane],
        vjps: Mapping[int, object],
    ) -> None:
        self._recorder, self._primals, self._vjps, self._plan = recorder, primals, vjps, sweep.plan
        self._seeds = [k for k, (node, _) in enumerate(seeds) if recorder.nodes[node].samples == samples]
        self._written = [k for k, o in enumerate(sweep.outputs) if o.samples == samples and o.buffers]
        self._takes_all = len(self._seeds) == len(seeds) and len(self._written) == len(sweep.outputs)
        late = len(self._seeds) + len(self._written)
        self._device = HostProgram(samples, late, len(self._written))
        self._slots: dict[int, Slot] = {}
        self._free: dict[tuple[int, int], list[Slot]] = {}
        self._arguments = [_adjoint(recorder.planes[p].argument) for p in self._plan.buffer_planes]
        for number, k in enumerate(self._seeds):
            buffer = self._plan.seed_buffers[k]
            self._slots[buffer] = self._device.late(self._arguments[buffer], number)
        joins = self._place_outputs(sweep.outputs)
        self._lower(samples, joins)

    def _place_outputs(self, outputs: Sequence[_Output]) -> list[tuple[Slot, tuple[int, ...], Argument]]:
        """A gradient with one term is written where it is computed; the others are joined at the end."""
        joins = []
        for number, k in enumerate(self._written, len(self._seeds)):
            output = outputs[k]
            if output.argument.role in PER_SAMPLE:
                slot = self._device.late(output.argument, number)
            else:
                slot = self._device.late_sum(output.argument, number)
            if len(output.buffers) == 1:
                self._slots[output.buffers[0]] = slot
            else:
                joins.append((slot, output.buffers, output.argument))
        return joins

    def _lower(self, samples: int, joins: list[tuple[Slot, tuple[int, ...], Argument]]) -> None:
        totals = {g.buffer for g in self._plan.gradients}  # joined by name instead, into the output itself
        steps = [
            s for s in self._plan.steps
            if self._samples(s) == samples and not (isinstance(s, _native.Join) and s.target in totals)
        ]  # fmt: skip
        last_use = {b: k for k, s in enumerate(steps) for b in _reads(s)}
        last_use |= {b: len(steps) for _, buffers, _ in joins for b in buffers}
        fixed = set(self._slots)
        for k, step in enumerate(steps):
            self._step(step)
            for buffer in _touched(step):
                if buffer not in fixed and last_use.get(buffer, -1) <= k:
                    self._release(buffer)
        for slot, buffers, argument in joins:
            self._device.join(slot, [self._slots[b] for b in buffers], argument)

    def _samples(self, step: _native.Vjp | _native.Join | _native.Pass) -> int:
        if isinstance(step, _native.Join):
            return self._recorder.planes[self._plan.buffer_planes[step.target]].samples
        return self._recorder.nodes[step.node].samples

    def _step(self, step: _native.Vjp | _native.Join | _native.Pass) -> None:
        if isinstance(step, _native.Join):
            target = self._slot(step.target)
            self._device.join(target, [self._slots[b] for b in step.sources], self._arguments[step.target])
        elif isinstance(step, _native.Vjp):
            self._vjp(step)

    def _vjp(self, step: _native.Vjp) -> None:
        node = self._recorder.nodes[step.node]
        cotangents = {}
        for (name, plane), buffer in zip(node.writes().items(), step.cotangents, strict=True):
            if plane.argument.type.is_real:
                cotangents[name] = self._slots[buffer] if buffer >= 0 else self._nothing(plane.argument)
        adjoints = dict(zip(node.differentiates(), map(self._slot, step.outputs), strict=True))

        def primal(name: str) -> Slot:
            plane = self._primals.get((step.node, name))
            return self._device.plane(plane if plane is not None else node.reads()[name])

        node.transpose(self._device, primal, cotangents, adjoints, self._vjps.get(step.node))

    def _nothing(self, argument: Argument) -> Slot:
        slot = self._device.scratch(argument)
        self._device.zero(slot, argument)
        return slot

    def _slot(self, buffer: int) -> Slot:
        """Where a buffer lies; scratch that an earlier one left is taken again."""
        if buffer not in self._slots:
            argument = self._arguments[buffer]
            spare = self._free.get(_size(argument))
            self._slots[buffer] = spare.pop() if spare else self._device.scratch(argument)
        return self._slots[buffer]

    def _release(self, buffer: int) -> None:
        self._free.setdefault(_size(self._arguments[buffer]), []).append(self._slots[buffer])

    def run(self, seeds: tuple[Array, ...], outputs: Sequence[Array]) -> None:
        if self._takes_all:
            arrays = (*seeds, *outputs)
        else:
            arrays = (*[seeds[k] for k in self._seeds], *[outputs[k] for k in self._written])
        if not self._device.run_with(arrays):
            raise Busy("another thread is running this reverse")


def _adjoint(argument: Argument) -> Argument:
    """The adjoint of an argument: written per sample, or summed over the samples."""
    if argument.role in PER_SAMPLE:
        return replace(argument, role=Role.MUTABLE)
    return replace(argument, role=Role.SUM if argument.role is Role.PARAM else Role.TABLE_SUM)


def _size(argument: Argument) -> tuple[int, int]:
    return argument.size, argument.type.dtype.itemsize


def _reads(step: _native.Vjp | _native.Join | _native.Pass) -> list[int]:
    if isinstance(step, _native.Join):
        return list(step.sources)
    return [b for b in step.cotangents if b >= 0] if isinstance(step, _native.Vjp) else [step.source]


def _touched(step: _native.Vjp | _native.Join | _native.Pass) -> list[int]:
    if isinstance(step, _native.Join):
        return [*step.sources, step.target]
    return [*_reads(step), *step.outputs] if isinstance(step, _native.Vjp) else [step.source, step.target]


def _first_reads(recorder: Recorder) -> list[list[Access]]:
    """The differentiable reads of values from before the launch, grouped by plane and name."""
    groups: dict[tuple[int, str], list[Access]] = {}
    written: set[int] = set()
    for i, node in enumerate(recorder.nodes):
        for name in node.differentiates():
            number = recorder.number(node.reads()[name])
            if number not in written:
                groups.setdefault((number, name), []).append((i, name))
        written.update(recorder.number(p) for p in node.writes().values())
    return list(groups.values())


def _labels(recorder: Recorder, accesses: list[list[Access]]) -> list[tuple[str, tuple[str, ...]]]:
    return [(places[0][1], tuple(recorder.nodes[i].name for i, _ in places)) for places in accesses]
