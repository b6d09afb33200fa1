"""The reverse of a recorded graph."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from hawk.ir.program import Argument

from ..errors import Busy, EventError, RecordError, ReverseError, SeedError
from ..graph.graph import Graph
from ..planes import Array, samples_to_end
from .base import Record
from .gradients import Gradients
from .record import GraphRecord, Recorder
from .sweep import Sweep


def reverse(
    record: Record, seeds: Mapping[str, object], *, vjps: Mapping[str, object] | None = None, strict: bool = False
) -> Gradients:
    """Reverse one launch or run: from seeds of outputs to the gradients of every real input, in one sweep.

    `seeds` maps outputs to dJ/d(output), one value per sample each (the output's shape); outputs not named
    do not enter J. An output goes by the name its node gave it, ``"node.plane"`` where that is ambiguous;
    of several nodes that write one plane under one name, the plain name is the last one's.
    With ``strict=True`` a gradient that is not bitwise reproducible is refused.

    In a loop, build a `Reverse` once instead: this builds one per call. Errors as in `Reverse`.
    """
    if not isinstance(record, Record):
        hint = "; was the run recorded? pass record=True" if record is None else ""
        hint = "; pass its .record" if type(record).__name__ in ("Result", "Runner", "Simulation", "Graph") else hint
        raise TypeError(f"reverse() takes the record of a launch or a run, found {type(record).__name__}{hint}")
    return record.reverse(seeds, vjps, strict)


@final
class Reverse:
    """The reverse of a recorded graph, built once and run for the record of each launch.

    ``vjps`` maps the names of nodes to vjp plans of your own; every other node is reversed by the vjp that
    eagle builds of its kernel.

    Calling it raises SeedError for a seed that names no output, several, or an input, or that is not one
    value per sample; RecordError for a record that is stale or of another graph; EventError for a phase with
    an event that has no derivative; Busy while another thread uses this object. The record counts as reversed
    only if the call returns.
    """

    def __init__(self, graph: Graph, vjps: Mapping[str, object] | None = None, *, strict: bool = False) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"Reverse takes a graph built with record=True, found {type(graph).__name__}")
        self._reverser = Reverser(graph.recorder, vjps, strict)

    def __call__(self, record: GraphRecord, seeds: Mapping[str, object]) -> Gradients:
        return self._reverser(record, seeds)


@dataclass(frozen=True, slots=True, eq=False)
class _Seed:
    """One output that can be seeded."""

    node: int
    plane: int
    argument: Argument
    shape: tuple[int, ...]
    label: str


class Reverser:
    """Sweeps by the set of outputs seeded; each is built when it is first asked for."""

    def __init__(self, recorder: Recorder, vjps: Mapping[str, object] | None, strict: bool) -> None:
        self._recorder = recorder
        self._vjps = self._checked(vjps or {})
        self._sweeps: dict[tuple[str, ...], tuple[list[_Seed], Sweep]] = {}
        self._turn = threading.Lock()

    def _checked(self, vjps: Mapping[str, object]) -> dict[int, object]:
        if not isinstance(vjps, Mapping):
            raise ReverseError(f"vjps maps names of nodes to vjp plans, found {type(vjps).__name__}")
        names = [n.name for n in self._recorder.nodes]
        for name, vjp in vjps.items():
            if name not in names:
                raise ReverseError(f"vjps[{name!r}]: the graph has no node of that name; it has {', '.join(names)}")
            self._recorder.nodes[names.index(name)].check_vjp(vjp)
        return {names.index(name): vjp for name, vjp in vjps.items()}

    def __call__(self, record: GraphRecord, seeds: Mapping[str, object]) -> Gradients:
        if not isinstance(record, GraphRecord):
            raise TypeError(f"a Reverse takes the record of a launch (graph.record), found {type(record).__name__}")
        if record.recorder is not self._recorder:
            raise RecordError(
                "this record is of another graph; pass the record of the graph this Reverse was built for"
            )
        if record.fault:
            raise EventError(record.fault)
        if not self._turn.acquire(blocking=False):
            raise Busy("another thread is running this Reverse; build one for each thread")
        try:
            outputs, sweep = self._sweep(record, seeds)
            given = tuple(_checked_seed(o, s) for o, s in zip(outputs, seeds.values(), strict=True))
            with record.reading():
                arrays = sweep.run(given)
            return Gradients(sweep.names, arrays, record.generation)
        finally:
            self._turn.release()

    def _sweep(self, record: GraphRecord, seeds: Mapping[str, object]) -> tuple[list[_Seed], Sweep]:
        if not isinstance(seeds, Mapping):
            raise SeedError(f'seeds maps outputs to arrays, {{"y": dJ_dy}}, found {type(seeds).__name__}')
        key = tuple(seeds)
        if record.primals_are_shared:
            found = self._sweeps.get(key)
            if found is not None:
                return found
        outputs = [self._output(name) for name in key]
        places = [(o.node, o.plane) for o in outputs]
        for k, place in enumerate(places):
            if place in places[:k]:
                raise SeedError(f"seeds[{key[k]!r}] and seeds[{key[places.index(place)]!r}] are the same output")
        made = outputs, Sweep(self._recorder, places, record.primals(), self._vjps)
        if record.primals_are_shared:
            self._sweeps[key] = made
        return made

    def _output(self, name: str) -> _Seed:
        """The output of that name; of several nodes that write one plane under a plain name, the last."""
        nodes = self._recorder.nodes
        found = []
        for i, node in enumerate(nodes):
            for k, plane in node.writes().items():
                if name in (k, f"{node.name}.{k}"):
                    label = f"{node.name}.{k}"
                    found.append(_Seed(i, self._recorder.number(plane), plane.argument, plane.array.shape, label))
        if len({f.plane for f in found}) != 1:
            raise SeedError(self._no_output(name, [f.label for f in found]))
        last = found[-1]
        if not last.argument.type.is_real:
            raise SeedError(
                f"seeds[{name!r}]: {last.label} holds {last.argument.type.dtype} values and has no derivative"
            )
        return last

    def _no_output(self, name: object, found: list[str]) -> str:
        if found:
            return f"seeds[{name!r}] names several outputs: {', '.join(found)}; name one of them"
        nodes = self._recorder.nodes
        if any(name in (k, f"{n.name}.{k}") for n in nodes for k in n.reads()):
            return (
                f"seeds[{name!r}]: {name} is an input. A seed is dJ/d(output); the gradient with respect to {name} "
                f"is grads[{name!r}] in what reverse returns"
            )
        outputs = ", ".join(f"{n.name}.{k}" for n in nodes for k in n.writes())
        return f"seeds[{name!r}]: no node writes a plane of that name; the outputs are {outputs}"


def _checked_seed(output: _Seed, seed: object) -> Array:
    """A seed as a contiguous array of its output's dtype, its sample axis last."""
    try:
        array = np.asarray(seed)
    except ValueError:  # ragged
        array = np.asarray(None)
    if array.dtype.kind not in "fiub":
        found = f"an array of {array.dtype}" if isinstance(seed, np.ndarray) else type(seed).__name__
        raise SeedError(f"the seed of {output.label} is no array of real numbers: found {found}")
    if array.shape != output.shape:
        raise SeedError(
            f"the seed of {output.label} is dJ/d({output.label}), one value per sample: expected shape "
            f"{output.shape}, found {array.shape}"
        )
    array = np.asarray(samples_to_end(output.argument, array), output.argument.type.dtype, "C")
    return array if array.flags.aligned else array.copy()
