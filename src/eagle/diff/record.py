"""Records: what one launch of a graph leaves for its reverse, and the rules that keep launches apart.

The vjps recompute from the values each node read. Most of those still lie in the graph's own planes; one
that a later step overwrites is copied just before. So a record points at planes that the next launch will
change, and is only good until then, unless it is kept.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import final

import numpy as np

from .. import _native
from ..devices.host import HostProgram
from ..errors import Busy, RecordError
from ..graph.nodes import Node
from ..planes import Array, Plane
from .base import Record
from .gradients import Gradients

Access = tuple[int, str]  # (node, argument)


@final
class Recorder:
    """What the launches of one recorded graph share: its description, the saved copies, whose turn it is.

    ``planes`` numbers the graph's planes by memory; ``arguments[i]`` names what node i touches, and the
    native description counts arguments by their place in that list.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.planes: list[Plane] = []
        self.arguments: list[list[str]] = []
        self._numbers: dict[tuple[object, ...], int] = {}
        self.description = self._describe()
        self._transposed = _native.transpose(self.description, [])
        self._copies = [(c.before_node, self._copy_of(c.plane)) for c in self._transposed.copies]
        self._lock = threading.Lock()
        self._generation = 0
        self._readers = 0
        self._launching = self._live = False
        self._lost = "it has not been launched"  # why there is no record; empty if there is one
        self._newest: LiveRecord | None = None

    # the graph in numbers

    def number(self, plane: Plane) -> int:
        """The number of a plane: one for all views of the same memory."""
        number = self._numbers.setdefault(plane.key, len(self.planes))
        if number == len(self.planes):
            self.planes.append(plane)
        return number

    def _describe(self) -> _native.Description:
        described = []
        for node in self.nodes:
            reads, writes = node.reads(), node.writes()
            names = [*reads, *(k for k in writes if k not in reads)]
            self.arguments.append(names)
            numbers = {k: (names.index(k), self.number(p)) for k, p in [*reads.items(), *writes.items()]}
            described.append(
                _native.Node(
                    node.name,
                    reads=[numbers[k] for k in reads],
                    writes=[numbers[k] for k in writes],
                    needs=[numbers[k] for k in node.needs()],
                    differentiates=[numbers[k] for k in node.differentiates()],
                )
            )
        return _native.Description(len(self.planes), described)

    def _copy_of(self, number: int) -> Plane:
        plane = self.planes[number]
        return plane.over(np.empty(plane.by_component.shape, plane.array.dtype))

    def save_before(self, node: Node, device: HostProgram) -> None:
        """Add the copies that must be made before `node` overwrites what a reverse will read."""
        index = self.nodes.index(node)
        for copy, (before, saved) in zip(self._transposed.copies, self._copies, strict=True):
            if before == index:
                device.copy(device.write(saved), device.read(self.planes[copy.plane]), saved.argument)

    def primals(self) -> dict[Access, Plane]:
        """Where the values that each node's reverse needs lie after a launch."""
        found = {}
        for i, (node, sources) in enumerate(zip(self.nodes, self._transposed.sources, strict=True)):
            for name, copy in zip(node.needs(), sources, strict=True):
                found[i, name] = node.reads()[name] if copy < 0 else self._copies[copy][1]
        return found

    @property
    def nbytes(self) -> int:
        """The bytes of the copies."""
        return sum(saved.array.nbytes for _, saved in self._copies)

    # whose turn it is

    def launch(self, run: Callable[[], None], n: int) -> None:
        """One recording launch, if the last record allows it."""
        if n != 1:
            raise ValueError(
                f"launch({n!r}): a graph built with record=True records one run per launch; call launch() once "
                "for each, and reverse or keep() its record before the next"
            )
        mine = False
        try:
            with self._lock:
                self._refuse_if_busy()
                if self._live:
                    raise RecordError(self._live_message("launch() would overwrite what it points at"))
                self._launching = mine = True
                self._lost = "its last launch was interrupted"
                self._generation += 1
                self._newest = None
            run()
            self._lost, self._live = "", True
        finally:
            if mine:
                self._launching = False

    def update(self, write: Callable[[], None]) -> None:
        """Change params, if the last record allows it: a reverse must see those of its launch."""
        with self._lock:
            self._refuse_if_busy()
            if self._live:
                raise RecordError(self._live_message("update() would change the params it was launched with"))
            write()
            self._lost = self._lost or "its params were updated since its last launch"

    def newest(self) -> GraphRecord:
        record = self._newest
        if record is None or self._lost:
            with self._lock:
                if self._launching:
                    raise Busy("another thread is launching this graph")
                if self._lost:
                    raise RecordError(f"this graph has no record: {self._lost}; call launch()")
                fault = next(filter(None, (n.fault() for n in self.nodes)), "")
                record = self._newest = LiveRecord(self, self._generation, fault)
        return record

    def _refuse_if_busy(self) -> None:
        if self._launching:
            raise Busy("another thread is launching this graph")
        if self._readers:
            raise Busy("a reverse is reading the record of this graph; launch or update it when that is done")

    def _live_message(self, why: str) -> str:
        return (
            f"the record of generation {self._generation} is live, neither reversed nor kept, and {why}. Reverse "
            "it first, keep a copy with record.keep(), or give it up with record.discard()"
        )

    def begin_read(self, generation: int) -> None:
        with self._lock:
            if self._launching:
                raise Busy("another thread is launching this graph")
            if generation == self._generation and self._lost:
                raise RecordError(
                    f"the graph of this record, generation {generation}, cannot be reversed: {self._lost}; reverse "
                    "before update(), or keep() a record to reverse it later"
                )
            if generation != self._generation:
                raise RecordError(
                    f"this record is of generation {generation}, and the graph has launched again: the current one "
                    f"is {self._generation}. Its planes hold newer values; keep() a record to reverse it later"
                )
            self._readers += 1

    def end_read(self, done: bool) -> None:
        with self._lock:
            self._readers -= 1
            self._live = self._live and not done

    def discard(self, generation: int) -> None:
        """Let the next launch overwrite the record of a launch."""
        with self._lock:
            if generation == self._generation:
                self._live = False

    def newest_is_live(self) -> bool:
        return self._live

    def is_live(self, generation: int) -> bool:
        return self._live and generation == self._generation


class GraphRecord(Record):
    """One launch of a graph, ready to be reversed; ``recorder`` is what its launches share, `fault` says why it
    cannot be reversed, if it cannot."""

    def __init__(self, recorder: Recorder, generation: int, fault: str) -> None:
        self.recorder = recorder
        self.generation = generation
        self.fault = fault

    def reverse(self, seeds: Mapping[str, object], vjps: Mapping[str, object] | None, strict: bool) -> Gradients:
        from .reverse import Reverser

        return Reverser(self.recorder, vjps, strict)(self, seeds)

    @abstractmethod
    def keep(self) -> GraphRecord: ...

    @property
    @abstractmethod
    def primals_are_shared(self) -> bool:
        """Whether every record of this graph reads the same arrays, so that a sweep built for one serves all."""

    @abstractmethod
    def primals(self) -> Mapping[Access, Plane]:
        """The values each node's reverse reads, by node and argument."""

    @abstractmethod
    def reading(self) -> Reading:
        """Hold the record still while a reverse reads it."""


class Reading:
    """The time in which a reverse reads a record; the record counts as reversed if it ends well."""

    __slots__ = ("_record",)

    def __init__(self, record: LiveRecord | None) -> None:
        self._record = record

    def __enter__(self) -> None:
        if self._record is not None:
            self._record.recorder.begin_read(self._record.generation)

    def __exit__(self, kind: object, *rest: object) -> None:
        if self._record is not None:
            self._record.recorder.end_read(done=kind is None)


@final
class LiveRecord(GraphRecord):
    """The record of a graph's newest launch, in the graph's own planes."""

    @property
    def live(self) -> bool:
        return self.recorder.is_live(self.generation)

    @property
    def nbytes(self) -> int:
        return self.recorder.nbytes

    def keep(self) -> GraphRecord:
        with self.reading():
            primals = self.primals()
            copies = {plane.key: plane.by_component for plane in primals.values()}
            copies = {key: array.copy(order="C") for key, array in copies.items()}
            kept = {access: plane.over(copies[plane.key]) for access, plane in primals.items()}
            return KeptRecord(self, kept, list(copies.values()))

    def discard(self) -> None:
        self.recorder.discard(self.generation)

    primals_are_shared = True

    def primals(self) -> Mapping[Access, Plane]:
        return self.recorder.primals()

    def reading(self) -> Reading:
        return Reading(self)


@final
class KeptRecord(GraphRecord):
    """A record with copies of its own."""

    called = "kept record"

    def __init__(self, record: GraphRecord, primals: Mapping[Access, Plane], arrays: Sequence[Array]) -> None:
        super().__init__(record.recorder, record.generation, record.fault)
        self._primals = primals
        self._arrays = arrays

    @property
    def live(self) -> bool:
        return False

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays)

    def keep(self) -> GraphRecord:
        return self

    def discard(self) -> None:
        """Nothing to do: a kept record is in no launch's way."""

    primals_are_shared = False

    def primals(self) -> Mapping[Access, Plane]:
        return self._primals

    def reading(self) -> Reading:
        return Reading(None)
