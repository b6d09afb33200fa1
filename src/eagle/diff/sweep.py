"""One backward sweep: the steps of `eagle::diff::transpose` on a device, for one set of seeded outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import numpy as np

from hawk.ir.program import PER_SAMPLE, Argument, Role

from .. import _native
from ..devices.host import HostProgram, Slot
from ..errors import Busy
from ..planes import Array, Plane, new_array
from .gradients import Names
from .record import Access, Recorder


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One gradient to compute: how it is written, over how many samples, and the terms that add up to it.

    A term is (node, adjoint buffer). One term is written where it is computed. Several are joined in order:
    per sample by the device, sums over the samples (`parts`) when all stages are done.
    """

    argument: Argument
    samples: int
    terms: tuple[tuple[int, int], ...]
    parts: tuple[Array, ...]

    @property
    def per_sample(self) -> bool:
        return self.argument.role in PER_SAMPLE


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
        self.recorder = recorder
        self.plan = _native.transpose(recorder.description, list(seeds))
        self.seeds = seeds
        self.primals = primals
        self.vjps = vjps
        accesses = _first_reads(recorder)
        self.names = Names(_labels(recorder, accesses))
        self.outputs = [self._output(places) for places in accesses]
        self._makers = [
            partial(new_array, o.argument, o.samples, np.empty if o.terms else np.zeros) for o in self.outputs
        ]
        self._joined = [(k, o.parts) for k, o in enumerate(self.outputs) if o.parts]
        self._stages = [_Stage(self, n) for n in dict.fromkeys(x.samples for x in recorder.nodes)]

    def _output(self, places: list[Access]) -> Output:
        node, name = places[0]
        argument = self.recorder.nodes[node].adjoint(name)
        shares = [s for g in self.plan.gradients for s in g.shares]
        wanted = [(i, self.recorder.arguments[i].index(k)) for i, k in places]
        terms = tuple((s.node, s.buffer) for s in shares if (s.node, s.argument) in wanted)
        several = argument.role not in PER_SAMPLE and len(terms) > 1
        parts = tuple(new_array(argument, 0, np.zeros) for _ in terms) if several else ()
        return Output(argument, self.recorder.nodes[node].samples, terms, parts)

    def run(self, seeds: tuple[Array, ...]) -> list[Array]:
        """The gradients, in the order of `names`, as arrays of their own."""
        arrays = [make() for make in self._makers]
        for stage in self._stages:
            stage.run(seeds, arrays)
        for k, parts in self._joined:
            np.add(parts[0], parts[1], out=arrays[k])
            for part in parts[2:]:
                np.add(arrays[k], part, out=arrays[k])
        return arrays


class _Stage:
    """The steps for one batch size. Buffers of adjoints are scratch, but for seeds and gradients."""

    def __init__(self, sweep: Sweep, samples: int) -> None:
        self._sweep, self._plan, self._recorder = sweep, sweep.plan, sweep.recorder
        self._seeds = [k for k, (node, _) in enumerate(sweep.seeds) if self._recorder.nodes[node].samples == samples]
        self._written = [k for k, o in enumerate(sweep.outputs) if self._writes(o, samples)]
        self._takes_all = len(self._seeds) == len(sweep.seeds) and len(self._written) == len(sweep.outputs)
        self._device = HostProgram(samples, len(self._seeds) + len(self._written), len(self._written))
        self._slots: dict[int, Slot] = {}
        self._free: dict[tuple[int, int], list[Slot]] = {}
        self._arguments = [_per_sample(self._recorder.planes[p].argument) for p in self._plan.buffer_planes]
        for number, k in enumerate(self._seeds):
            buffer = self._plan.seed_buffers[k]
            self._slots[buffer] = self._device.late(self._arguments[buffer], number)
        joins = self._place_outputs(sweep.outputs, samples)
        self._lower(samples, joins)

    def _writes(self, output: Output, samples: int) -> bool:
        return bool(output.terms) and not output.parts and self._recorder.nodes[output.terms[0][0]].samples == samples

    def _place_outputs(self, outputs: Sequence[Output], samples: int) -> list[tuple[Slot, tuple[int, ...], Argument]]:
        """Give each gradient its place; returns the joins that are to be made at the end."""
        joins = []
        for number, k in enumerate(self._written, len(self._seeds)):
            output = outputs[k]
            place = self._device.late if output.per_sample else self._device.late_sum
            slot = place(output.argument, number)
            if len(output.terms) == 1:
                self._slots[output.terms[0][1]] = slot
            else:
                joins.append((slot, tuple(buffer for _, buffer in output.terms), output.argument))
        for output in outputs:
            for (node, buffer), part in zip(output.terms, output.parts, strict=False):  # none, or one each
                if self._recorder.nodes[node].samples == samples:
                    self._slots[buffer] = self._device.sum(output.argument, part)
        return joins

    def _lower(self, samples: int, joins: list[tuple[Slot, tuple[int, ...], Argument]]) -> None:
        totals = {g.buffer for g in self._plan.gradients}  # joined by name instead, into the output itself
        steps = [
            s for s in self._plan.steps
            if not (isinstance(s, _native.Join) and s.target in totals) and self._samples(s) == samples
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
        else:  # no node is skippable yet; to ignore its step would lose an adjoint
            raise NotImplementedError(
                f"{self._recorder.nodes[step.node].name}: the reverse of a node that may be skipped"
            )

    def _vjp(self, step: _native.Vjp) -> None:
        node = self._recorder.nodes[step.node]
        cotangents = {}
        for (name, plane), buffer in zip(node.writes().items(), step.cotangents, strict=True):
            if plane.argument.type.is_real:
                cotangents[name] = self._slots[buffer] if buffer >= 0 else self._nothing(plane.argument)
        adjoints = dict(zip(node.differentiates(), map(self._slot, step.outputs), strict=True))

        def primal(name: str) -> Slot:
            plane = self._sweep.primals.get((step.node, name))
            return self._device.unused(node.reads()[name]) if plane is None else self._device.read(plane)

        node.transpose(self._device, primal, cotangents, adjoints, self._sweep.vjps.get(step.node))

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


def _per_sample(argument: Argument) -> Argument:
    """An argument as a plane of adjoints."""
    return replace(argument, role=Role.MUTABLE)


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
