"""Checking gradients: is what the reverse says what a small change does?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

import hawk
from hawk.diff import jvp, vjp
from hawk.ir.program import PER_SAMPLE, Argument

from .errors import ArgumentError
from .graph.graph import Graph
from .plan import Plan
from .planes import WRITTEN, Array

Values = dict[str, Array]


class GradientMismatch(AssertionError):
    """A gradient does not agree with finite differences; the message is the whole table."""


@dataclass(frozen=True, slots=True)
class Row:
    """One projection: <gradient, direction> as computed and as differences give it."""

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
        return max((row.error for row in self.rows), default=0.0)

    def __str__(self) -> str:
        head = ("derivative", "shape", "computed", "differences", "error", "")
        lines = [head] + [
            (r.what, str(r.shape), f"{r.computed: .9e}", f"{r.expected: .9e}", f"{r.error:.1e}", "ok" if r.ok else "WRONG")
            for r in self.rows
        ]
        widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
        table = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        return "\n".join([self.title, *table])


def check_grads(
    target: hawk.Kernel | Graph,
    planes: Mapping[str, object] | None = None,
    *,
    wrt: Iterable[str] | None = None,
    outputs: Iterable[str] | None = None,
    order: int = 1,
    mode: str = "float64",
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
    of launches; `outputs` names what to seed (default: all real outputs not overwritten later). Its planes
    and params are put back afterwards, and its last record is given up.

    For each input v and a random direction u, ``<gradient, u>`` must agree with
    ``(J(v + h u) - J(v - h u)) / 2h`` within ``rtol * scale + atol``, where J is the sum of all outputs
    times random seeds and the scale is that of the terms summed. `rtol` is 1e-6, and 1e-4 in float32.

    Returns the check; raises GradientMismatch if it fails.
    """
    rng = np.random.default_rng(seed)
    if isinstance(target, Graph):
        if planes is not None or order != 1:
            raise ArgumentError("check_grads(graph) takes its planes from the graph, and order=1")
        title = f"check_grads of a graph of {len(target.nodes)} nodes"
        rows = _graph_rows(target, None if outputs is None else tuple(outputs), wrt, rng, rtol, atol)
    elif isinstance(target, hawk.Kernel):
        title = f"check_grads of {target.name}, {mode}, order {order}"
        rtol = rtol if rtol is not None else 1e-6 if mode == "float64" else 1e-4
        wanted = None if wrt is None else tuple(wrt)
        rows = _kernel_rows(target, dict(planes or {}), wanted, order, mode, rng, rtol, atol)
    else:
        raise ArgumentError(f"check_grads takes a kernel or a recorded graph, found {type(target).__name__}")
    check = GradientCheck(title, rows)
    if not check.ok:
        raise GradientMismatch(str(check))
    if not quiet:
        print(check)
    return check


def _row(what: str, shape: tuple[int, ...], computed: float, expected: float, scale: float, tol: tuple[float, float]) -> Row:
    error = abs(computed - expected) / scale if scale > 0 else abs(computed - expected)
    ok = bool(abs(computed - expected) <= tol[0] * scale + tol[1])
    return Row(what, shape, computed, expected, error, ok)


# kernels


def _kernel_rows(
    kernel: hawk.Kernel,
    values: dict[str, object],
    wrt: tuple[str, ...] | None,
    order: int,
    mode: str,
    rng: np.random.Generator,
    rtol: float,
    atol: float,
) -> list[Row]:
    program = kernel.program("float64")
    point = _point(kernel.name, program.arguments, program.reads(), values)
    if program.tapes:  # reverse mode does not go back through tapes: forward mode alone
        return _forward_rows(kernel, point, wrt, mode, rng, (rtol, atol))
    backward_of, forward_of = vjp(kernel, wrt), jvp(kernel, wrt)
    reverse = hawk.Kernel(f"{kernel.name}_vjp", backward_of)
    forward = hawk.Kernel(f"{kernel.name}_jvp", forward_of)
    names, adjoint_name, tangent_name = backward_of.wrt, backward_of.named, forward_of.named
    run = _runner(kernel, "float64")
    base = run(point)
    seeds = {k: rng.standard_normal(v.shape) for k, v in base.items() if v.dtype.kind == "f"}
    back = _runner(reverse, mode)(point | {adjoint_name(k): s for k, s in seeds.items()})
    rows = []
    for name in names:
        u = rng.standard_normal(point[name].shape) * np.maximum(np.abs(point[name]), 1.0)
        gradient = np.asarray(back[adjoint_name(name)], float)
        expected, terms = _difference(lambda v: run(point | {name: v}), point[name], u, seeds)  # noqa: B023
        scale = float(np.sum(np.abs(gradient * u))) + abs(expected)
        rows.append(_row(f"{reverse.name} by {name}", u.shape, float(np.sum(gradient * u)), expected, scale, (rtol, atol)))
        directions = {tangent_name(k): np.zeros(point[k].shape) for k in names} | {tangent_name(name): u}
        pushed = _runner(forward, mode)(point | directions)
        along = sum(float(np.sum(seeds[k] * np.asarray(pushed[tangent_name(k)], float))) for k in seeds)
        rows.append(_row(f"{forward.name} by {name}", u.shape, along, expected, max(scale, terms), (rtol, atol)))
    if order > 1:
        inputs = {k: v for k, v in point.items()}
        rows += _kernel_rows(reverse, inputs | {adjoint_name(k): s for k, s in seeds.items()}, None, order - 1, mode,
                             rng, rtol, atol)  # fmt: skip
        directions = {tangent_name(k): rng.standard_normal(point[k].shape) for k in names}
        rows += _kernel_rows(forward, inputs | directions, None, order - 1, mode, rng, rtol, atol)
    return rows


def _forward_rows(
    kernel: hawk.Kernel,
    point: Values,
    wrt: tuple[str, ...] | None,
    mode: str,
    rng: np.random.Generator,
    tol: tuple[float, float],
) -> list[Row]:
    definition = jvp(kernel, wrt)
    run, forward = _runner(kernel, "float64"), _runner(hawk.Kernel(f"{kernel.name}_jvp", definition), mode)
    seeds = {k: rng.standard_normal(v.shape) for k, v in run(point).items() if v.dtype.kind == "f"}
    rows = []
    for name in definition.wrt:
        u = rng.standard_normal(point[name].shape) * np.maximum(np.abs(point[name]), 1.0)
        expected, terms = _difference(lambda v: run(point | {name: v}), point[name], u, seeds)  # noqa: B023
        directions = {definition.named(k): np.zeros(point[k].shape) for k in definition.wrt}
        pushed = forward(point | directions | {definition.named(name): u})
        along = sum(float(np.sum(seeds[k] * np.asarray(pushed[definition.named(k)], float))) for k in seeds)
        rows.append(_row(f"{kernel.name}_jvp by {name}", u.shape, along, expected, terms, tol))
    return rows


def _point(kernel: str, arguments: Iterable[Argument], reads: frozenset[str], values: Mapping[str, object]) -> Values:
    point = {}
    for a in arguments:
        if a.role not in WRITTEN or a.name in reads:
            if a.name not in values:
                raise ArgumentError(f"check_grads: {kernel} reads {a.name}; give its value in planes")
            dtype = np.float64 if a.type.is_real else a.type.dtype
            point[a.name] = np.array(values[a.name], dtype)
    return point


def _runner(kernel: hawk.Kernel, mode: str) -> Callable[[Values], Values]:
    """A function from input values to output values, through a plan of its own."""
    plan = Plan(kernel, mode)

    def run(values: Values) -> Values:
        n = next(
            (values[a.name].shape[-1] for a in plan.program.arguments if a.role in PER_SAMPLE and a.name in values), 0
        )
        bound: dict[str, object] = {}
        for a in plan.program.arguments:
            shape = (*a.shape, n) if a.role in PER_SAMPLE else a.shape
            given = values.get(a.name)
            bound[a.name] = np.zeros(shape, a.type.dtype) if given is None else np.array(given, a.type.dtype)
        plan.bind(**bound).launch()
        return {a.name: np.asarray(bound[a.name]) for a in plan.program.arguments if a.role in WRITTEN}

    return run


def _difference(run: Callable[[Array], Values], at: Array, u: Array, seeds: Values) -> tuple[float, float]:
    """The central difference of J along u, and the size of the terms in it."""
    h = 6e-6 / max(1.0, float(np.max(np.abs(u), initial=0.0)) / 4)
    ahead, behind = run(at + h * u), run(at - h * u)
    terms = [seeds[k] * (ahead[k] - behind[k]) / (2 * h) for k in seeds]
    return float(sum(np.sum(t) for t in terms)), float(sum(np.sum(np.abs(t)) for t in terms))


# graphs


def _graph_rows(
    graph: Graph,
    outputs: tuple[str, ...] | None,
    wrt: Iterable[str] | None,
    rng: np.random.Generator,
    rtol: float | None,
    atol: float,
) -> list[Row]:
    from .diff.reverse import reverse

    recorder = graph.recorder
    cells = {f"{n.name}.{k}": p.array for n in graph.nodes for k, p in n.params().items()}
    before = {id(p.array): (p.array, p.array.copy()) for p in recorder.planes}
    before |= {id(c): (c, c.copy()) for c in cells.values()}
    final = _final_outputs(graph) if outputs is None else {name: _output(graph, name) for name in outputs}
    seeds = {k: rng.standard_normal(a.shape).astype(a.dtype) for k, a in final.items()}
    single = any(a.dtype == np.float32 for a in final.values())
    h, rtol = (2e-3 if single else 6e-6), rtol if rtol is not None else (2e-2 if single else 1e-6)

    def restore() -> None:
        for array, value in before.values():
            array[...] = value

    def launch(array: Array | None = None, shift: Any = 0.0) -> Values:
        if recorder.newest_is_live():
            graph.record.discard()
        restore()
        if array is not None:
            array[...] = before[id(array)][1] + shift
        graph.launch()
        return {k: a.astype(float) for k, a in final.items()}

    try:
        launch()
        grads = reverse(graph.record, seeds)
        rows = []
        for key in grads if wrt is None else wrt:
            array = _input(graph, key)
            value = before[id(array)][1]
            u = rng.standard_normal(value.shape) * np.maximum(np.abs(value), 1.0)
            gradient = np.asarray(grads[key], float)
            step = h / max(1.0, float(np.max(np.abs(u), initial=0.0)) / 4)
            ahead, behind = launch(array, step * u), launch(array, -step * u)
            terms = [seeds[k] * (ahead[k] - behind[k]) / (2 * step) for k in seeds]
            expected = float(sum(np.sum(t) for t in terms))
            scale = float(np.sum(np.abs(gradient * u))) + abs(expected)
            rows.append(_row(key, value.shape, float(np.sum(gradient * u)), expected, scale, (rtol, atol)))
        return rows
    finally:
        if recorder.newest_is_live():
            graph.record.discard()
        restore()


def _final_outputs(graph: Graph) -> Values:
    """Every real output that no later node overwrites."""
    last = {}
    for node in graph.nodes:
        for k, plane in node.writes().items():
            if plane.argument.type.is_real:
                last[plane.key] = (f"{node.name}.{k}", plane.array)
    return dict(last.values())


def _output(graph: Graph, name: str) -> Array:
    found = [p.array for n in graph.nodes for k, p in n.writes().items() if name in (k, f"{n.name}.{k}")]
    if len(found) != 1:
        raise ArgumentError(f"outputs: {name!r} is the name of {len(found)} outputs of the graph; name one, node.plane")
    return found[0]


def _input(graph: Graph, key: str) -> Array:
    """The array (or cell) that a gradient's key stands for."""
    for node in graph.nodes:
        for k, plane in node.reads().items():
            if key in (k, f"{node.name}.{k}"):
                return plane.array
    raise ArgumentError(f"wrt: the graph has no input {key!r}")


__all__ = ["GradientCheck", "GradientMismatch", "Row", "check_grads"]
