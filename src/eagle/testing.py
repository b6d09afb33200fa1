"""Checking gradients: is what the reverse says what a small change does?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

import hawk
from hawk.diff import jvp, vjp
from hawk.ir.program import PER_SAMPLE

from .diff.gradients import Gradients
from .diff.reverse import reverse
from .errors import ArgumentError
from .graph.graph import Graph
from .plan import Plan
from .planes import WRITTEN, Array, Plane, new_array

Values = dict[str, Array]


class GradientMismatch(AssertionError):
    """A gradient does not agree with finite differences; the message is the whole table."""


@dataclass(frozen=True, slots=True)
class Row:
    """One projection: <gradient, direction> as computed and as differences give it; ``error`` is relative."""

    what: str
    shape: tuple[int, ...]
    computed: float
    expected: float
    error: float
    ok: bool


@final
class GradientCheck:
    """The outcome of `check_grads`: ``rows``, ``ok``, ``largest_error``; prints as a table."""

    def __init__(self, title: str, rows: Iterable[Row]) -> None:
        self.title = title
        self.rows = tuple(rows)

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows)

    @property
    def largest_error(self) -> float:
        return float(np.max([row.error for row in self.rows], initial=0.0))

    def __str__(self) -> str:
        wrong = sum(not row.ok for row in self.rows)
        outcome = f"{wrong} of {len(self.rows)} WRONG" if wrong else f"all {len(self.rows)} agree"
        head = ("derivative", "shape", "computed", "differences", "error", "")
        lines = [head] + [
            (
                r.what,
                str(r.shape),
                f"{r.computed: .9e}",
                f"{r.expected: .9e}",
                f"{r.error:.1e}",
                "ok" if r.ok else "WRONG",
            )
            for r in self.rows
        ]
        widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
        table = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        return "\n".join([f"{self.title}: {outcome}", *table])


def check_grads(
    target: hawk.Kernel | Graph,
    planes: Mapping[str, object] | None = None,
    *,
    wrt: Iterable[str] | None = None,
    outputs: Iterable[str] | None = None,
    order: int = 1,
    mode: str | None = None,
    rtol: float | None = None,
    atol: float = 1e-9,
    seed: int = 0,
    quiet: bool = False,
) -> GradientCheck:
    """Check derivatives by projection on random directions, and print a table.

    A **kernel** is checked at `planes` (its inputs, and the old values of what it reads before writing):
    vjp and jvp against central differences, and with ``order=2`` the derivatives of those too. In
    ``mode="float32"`` the differences are taken of the float64 kernel.

    A recorded **graph** is checked where its planes and params stand now: its reverse against differences
    of launches. Its planes and params are put back afterwards, and its last record is given up. What is
    moved is an array: if a graph reads one under several names, their gradients are checked as a sum.

    For each input v (or only those in `wrt`) and a random direction u, ``<gradient, u>`` must agree with
    ``(J(v + h u) - J(v - h u)) / 2h`` within ``rtol * scale + atol``, where J is the sum of `outputs`
    (default: all real ones; in a graph, those not overwritten later) times random seeds, and the scale is
    that of the terms summed. `rtol` is 1e-6; for a kernel in float32 it is 1e-4, for such a graph 2e-2.

    Returns the check. Raises GradientMismatch, with the table, if it fails; ArgumentError for a plane or an
    output that is missing, unknown or cannot be used, and if there is nothing to check.
    """
    rng = np.random.default_rng(seed)
    wanted = None if wrt is None else tuple(wrt)
    chosen = None if outputs is None else tuple(outputs)
    if isinstance(target, Graph):
        if planes is not None or mode is not None or order != 1:
            raise ArgumentError("check_grads(graph) takes planes and precision from the graph; order is 1")
        title = f"check_grads of a graph of {len(target.nodes)} nodes"
        rows = _graph_rows(target, wanted, chosen, rng, rtol, atol)
    elif isinstance(target, hawk.Kernel):
        mode = "float64" if mode is None else mode
        title = f"check_grads of {target.name}, {mode}, order {order}"
        tolerance = rtol if rtol is not None else 1e-4 if mode == "float32" else 1e-6
        trial = _Trial(rng, 6e-6, 1e-3, tolerance, atol)
        rows = _kernel_rows(target, dict(planes or {}), wanted, chosen, order, mode, trial)
    else:
        raise ArgumentError(f"check_grads takes a kernel or a recorded graph, found {type(target).__name__}")
    if not rows:
        raise ArgumentError(f"{title}: there is no real input, so there is nothing to check")
    check = GradientCheck(title, rows)
    if not check.ok:
        raise GradientMismatch(str(check))
    if not quiet:
        print(check)
    return check


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """How derivatives are projected, and when two projections agree."""

    rng: np.random.Generator
    step: float
    shortest: float
    rtol: float
    atol: float

    def direction(self, at: Array) -> Array:
        """Random; below 1 of the size that the values typically have, above 1 growing less than they do."""
        size = np.abs(at)
        typical = np.clip(np.mean(size) if np.any(size) else 1.0, self.shortest, 1.0)
        large = np.maximum(np.sqrt(size), self.shortest * size)
        return self.rng.standard_normal(at.shape) * np.where(size > 1.0, large, typical)

    def seeds(self, outputs: Values) -> Values:
        return {k: self.rng.standard_normal(v.shape).astype(v.dtype) for k, v in outputs.items()}

    def difference(self, run: Callable[[Array], Values], u: Array, seeds: Values) -> tuple[float, float]:
        """The central difference of J along u, and the size of the terms in it."""
        ahead, behind = run(self.step * u), run(-self.step * u)
        terms = [s * (ahead[k].astype(float) - behind[k]) / (2 * self.step) for k, s in seeds.items()]
        return float(sum(np.sum(t) for t in terms)), float(sum(np.sum(np.abs(t)) for t in terms))

    def row(self, what: str, shape: tuple[int, ...], terms: Array, expected: float, scale: float = 0.0) -> Row:
        """Compare the sum of `terms` with what differences give; the scale is at least that of the two."""
        computed = float(np.sum(terms))
        scale = max(scale, float(np.sum(np.abs(terms))) + abs(expected))
        off = abs(computed - expected)
        ok = bool(off <= self.rtol * scale + self.atol)
        return Row(what, shape, computed, expected, off / scale if scale > 0 else off, ok)


# kernels


def _kernel_rows(
    kernel: hawk.Kernel,
    values: Mapping[str, object],
    wrt: tuple[str, ...] | None,
    outputs: tuple[str, ...] | None,
    order: int,
    mode: str,
    trial: _Trial,
) -> list[Row]:
    point = _point(kernel, values)
    run = _runner(kernel, "float64")
    seeds = trial.seeds(_chosen(kernel.name, run(point), outputs))
    forward_of = jvp(kernel, wrt)
    forward = hawk.Kernel(f"{kernel.name}_jvp", forward_of)
    push = _runner(forward, mode)
    still = {forward_of.named(k): np.zeros(point[k].shape) for k in forward_of.wrt}
    back = None
    if not kernel.program().tapes:  # reverse mode does not go back through tapes: forward mode alone
        backward_of = vjp(kernel, wrt)
        backward = hawk.Kernel(f"{kernel.name}_vjp", backward_of)
        seeded = point | {backward_of.named(k): s for k, s in seeds.items()}
        back = _runner(backward, mode)(seeded)
    rows = []
    for name in forward_of.wrt:
        at = point[name]
        u = trial.direction(at)
        expected, size = trial.difference(lambda shift: run(point | {name: at + shift}), u, seeds)  # noqa: B023
        if back is not None:
            gradient = back[backward_of.named(name)].astype(float)
            rows.append(trial.row(f"{backward.name} by {name}", u.shape, gradient * u, expected))
        pushed = push(point | still | {forward_of.named(name): u})
        along = [np.sum(s * pushed[forward_of.named(k)].astype(float)) for k, s in seeds.items()]
        rows.append(trial.row(f"{forward.name} by {name}", u.shape, np.array(along), expected, size))
    if order > 1:
        if back is not None:
            rows += _kernel_rows(backward, seeded, None, None, order - 1, mode, trial)
        moving = {forward_of.named(k): trial.rng.standard_normal(point[k].shape) for k in forward_of.wrt}
        rows += _kernel_rows(forward, point | moving, None, None, order - 1, mode, trial)
    return rows


def _point(kernel: hawk.Kernel, values: Mapping[str, object]) -> Values:
    """The values of what a kernel reads, reals in float64."""
    program = kernel.program()
    known = {a.name: a for a in program.arguments}
    for name in values:
        if name not in known:
            raise ArgumentError(f"check_grads: {kernel.name} has no plane {name!r}; its planes are {', '.join(known)}")
    point = {}
    for a in program.arguments:
        if a.role in WRITTEN and a.name not in program.reads():
            continue
        if a.name not in values:
            raise ArgumentError(f"check_grads: {kernel.name} reads {a.name}; give its value in planes")
        value = np.asarray(values[a.name])
        if not np.can_cast(value.dtype, a.type.dtype, "same_kind"):
            raise ArgumentError(f"check_grads: {kernel.name}.{a.name} holds {a.type.dtype} values, found {value.dtype}")
        point[a.name] = value.astype(a.type.dtype)
    return point


def _chosen(kernel: str, written: Values, outputs: tuple[str, ...] | None) -> Values:
    """The real outputs to seed."""
    real = {k: v for k, v in written.items() if v.dtype.kind == "f"}
    for name in real if outputs is None else outputs:
        if name not in real:
            choices = ", ".join(real) or "none"
            raise ArgumentError(f"check_grads: outputs={name!r} is no real output of {kernel}; it has {choices}")
    if not real:
        raise ArgumentError(f"check_grads: {kernel} has no real output, so there is nothing to check")
    return real if outputs is None else {k: real[k] for k in outputs}


def _runner(kernel: hawk.Kernel, mode: str) -> Callable[[Values], Values]:
    """A function from input values to output values, through a plan of its own. What is not given is 0."""
    plan = Plan(kernel, mode)
    arguments = plan.program.arguments

    def run(values: Values) -> Values:
        planes = (Plane(a, values[a.name]) for a in arguments if a.role in PER_SAMPLE and a.name in values)
        n = next((plane.samples for plane in planes), 0)
        bound = {
            a.name: np.array(values[a.name], a.type.dtype) if a.name in values else new_array(a, n, np.zeros)
            for a in arguments
        }
        plan.bind(**bound).launch()
        return {a.name: bound[a.name] for a in arguments if a.role in WRITTEN}

    return run


# graphs


def _graph_rows(
    graph: Graph,
    wrt: tuple[str, ...] | None,
    outputs: tuple[str, ...] | None,
    rng: np.random.Generator,
    rtol: float | None,
    atol: float,
) -> list[Row]:
    bench = _Bench(graph, outputs)
    single = any(a.dtype == np.float32 for a in bench.outputs.values())
    step, shortest, tolerance = (2e-3, 0.1, 2e-2) if single else (6e-6, 1e-3, 1e-6)
    trial = _Trial(rng, step, shortest, tolerance if rtol is None else rtol, atol)
    try:
        seeds = trial.seeds(bench.launch())
        grads = reverse(graph.record, seeds)
        rows = []
        for number, keys in bench.moved(grads, wrt).items():
            u = trial.direction(bench.start(number))
            expected, _ = trial.difference(lambda shift: bench.launch(number, shift), u, seeds)  # noqa: B023
            terms = np.array([np.asarray(grads[key], float) * u for key in keys])
            rows.append(trial.row(" + ".join(keys), u.shape, terms, expected))
        return rows
    finally:
        bench.restore()


@final
class _Bench:
    """A recorded graph, launched again and again from where its planes and params stood."""

    def __init__(self, graph: Graph, outputs: tuple[str, ...] | None) -> None:
        self._graph = graph
        self._recorder = graph.recorder
        self._arrays = [plane.array for plane in self._recorder.planes]
        self._start = [array.copy() for array in self._arrays]
        self.outputs = self._last_outputs(outputs)

    def start(self, number: int) -> Array:
        """The value that a plane had at first."""
        return self._start[number]

    def restore(self) -> None:
        if self._recorder.newest_is_live():
            self._graph.record.discard()
        for array, value in zip(self._arrays, self._start, strict=True):
            if array.flags.writeable:
                array[...] = value

    def launch(self, moved: int | None = None, shift: Array | float = 0.0) -> Values:
        """The outputs of a launch from the start, one plane moved."""
        self.restore()
        if moved is not None:
            self._arrays[moved] += shift
        self._graph.launch()
        return {label: array.copy() for label, array in self.outputs.items()}

    def _last_outputs(self, wanted: tuple[str, ...] | None) -> Values:
        """The real outputs to seed: those asked for, or all. A later node must not overwrite them."""
        written = [
            (f"{node.name}.{k}", k, plane)
            for node in self._recorder.nodes
            for k, plane in node.writes().items()
            if plane.argument.type.is_real
        ]
        last = {self._recorder.number(plane): label for label, _, plane in written}
        values = {label: plane.array for label, _, plane in written if last[self._recorder.number(plane)] == label}
        if wanted is None:
            return values
        found = {}
        for name in wanted:
            labels = [label for label, k, _ in written if name in (k, label)]
            if len(labels) != 1:
                choices = ", ".join(labels or [label for label, _, _ in written])
                what = "names several outputs" if labels else "is no real output"
                raise ArgumentError(f"check_grads: outputs={name!r} {what} of the graph; choose of {choices}")
            if labels[0] not in values:
                raise ArgumentError(
                    f"check_grads: outputs={name!r}: a later node overwrites {labels[0]}, so a launch leaves no value "
                    f"of it; choose of {', '.join(values)}"
                )
            found[labels[0]] = values[labels[0]]
        return found

    def moved(self, grads: Gradients, wrt: tuple[str, ...] | None) -> dict[int, list[str]]:
        """The planes to move, by number, and the keys of all gradients by each."""
        nodes = {node.name: node for node in self._recorder.nodes}
        numbers = {
            entry.key: self._recorder.number(nodes[entry.nodes[0]].reads()[entry.name]) for entry in grads.entries
        }
        moved: dict[int, list[str]] = {numbers[grads.entry(key).key]: [] for key in (grads if wrt is None else wrt)}
        for key, number in numbers.items():
            if number in moved:
                moved[number].append(key)
        for number, keys in moved.items():
            if not self._arrays[number].flags.writeable:
                raise ArgumentError(
                    f"check_grads: {keys[0]} is read from a read-only array, which cannot be moved; bind a writable "
                    "copy, or leave it out of wrt="
                )
        return moved


__all__ = ["GradientCheck", "GradientMismatch", "Row", "check_grads"]
