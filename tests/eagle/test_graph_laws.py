"""Laws of random small graphs: in-place steps, shared planes, outputs seeded in the middle.

The reference is a plain NumPy program of the same steps that keeps every value each node wrote, so an
intermediate value counts even if a later node overwrites it.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from eagletest import kernels as k
from eagletest.graphs import recorded
from eagletest.numpy_sums import bits
from hypothesis import given, settings
from hypothesis import strategies as st

import hawk
from eagle.diff import Gradients, Reverse, reverse

N = 3
PLANES = 4


@dataclass(frozen=True)
class Step:
    """A kernel, and as NumPy: from the values it reads (planes and params by name) to what it writes."""

    kernel: hawk.Kernel
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    params: tuple[str, ...]
    run: Callable[..., dict[str, np.ndarray]]


STEPS = (
    Step(k.square, ("x",), ("y",), ("a",), lambda x, a: {"y": a * x * x}),
    Step(k.wave, ("x",), ("y",), (), lambda x: {"y": np.sin(x)}),
    Step(k.product, ("a", "b"), ("y",), (), lambda a, b: {"y": a * b}),
    Step(k.squared, ("s",), ("s",), (), lambda s: {"s": s * s}),
    Step(k.gather, ("a", "s"), ("s", "out"), (), lambda a, s: {"s": s + a, "out": a * (s + a)}),
    Step(k.spend, ("x", "b"), ("b", "loss"), (), lambda x, b: {"b": b + 100.0, "loss": x * b}),
)


@dataclass(frozen=True)
class Node:
    step: Step
    planes: Mapping[str, int]  # by argument
    param: float


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    step = draw(st.sampled_from(STEPS))
    plane = st.integers(0, PLANES - 1)
    written = draw(st.lists(plane, min_size=len(step.writes), max_size=len(step.writes), unique=True))
    planes = dict(zip(step.writes, written, strict=True))
    for name in step.reads:
        if name not in planes:
            planes[name] = draw(plane)
    return Node(step, planes, draw(st.sampled_from([0.5, -0.75, 1.25])))


@dataclass(frozen=True)
class Program:
    nodes: tuple[Node, ...]
    seeded: tuple[tuple[int, str], ...]  # (node, output)

    def labels(self) -> list[str]:
        return [f"n{i}.{name}" for i, name in self.seeded]

    def graph(self, start: np.ndarray) -> tuple:
        planes = [plane.copy() for plane in start]
        steps = []
        for i, node in enumerate(self.nodes):
            bound: dict[str, object] = {name: planes[p] for name, p in node.planes.items()}
            steps.append((f"n{i}", node.step.kernel, bound | dict.fromkeys(node.step.params, node.param)))
        return recorded(*steps), planes

    def outputs(self, start: np.ndarray, params: Mapping[int, float], moved: Mapping | None = None) -> list[np.ndarray]:
        """The seeded values. `moved` adds to what one (node, argument) reads, and nothing else."""
        planes = [plane.copy() for plane in start]
        written = {}
        for i, node in enumerate(self.nodes):
            values = {name: planes[node.planes[name]] for name in node.step.reads}
            for (at, name), shift in (moved or {}).items():
                if at == i:
                    values[name] = values[name] + shift
            results = node.step.run(**values, **dict.fromkeys(node.step.params, params[i]))
            for name, value in results.items():
                planes[node.planes[name]] = written[i, name] = value
        return [written[place] for place in self.seeded]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    chain = tuple(draw(st.lists(nodes(), min_size=1, max_size=6)))
    places = [(i, name) for i, node in enumerate(chain) for name in node.step.writes]
    seeded = draw(st.lists(st.sampled_from(places), min_size=1, max_size=3, unique=True))
    return Program(chain, tuple(seeded))


def start_and_seeds(program: Program) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    return rng.uniform(0.3, 1.1, (PLANES, N)), {label: rng.standard_normal(N) for label in program.labels()}


def read_from_the_start(program: Program) -> dict[tuple[str, int], list[tuple[int, str]]]:
    """By (argument, plane): the reads of values from before the launch."""
    groups: dict[tuple[str, int], list[tuple[int, str]]] = {}
    written: set[int] = set()
    for i, node in enumerate(program.nodes):
        for name in node.step.reads:
            if node.planes[name] not in written:
                groups.setdefault((name, node.planes[name]), []).append((i, name))
        written.update(node.planes[name] for name in node.step.writes)
    return groups


laws = settings(max_examples=120)


@laws
@given(programs())
def test_the_reverse_is_what_differences_say(program: Program) -> None:
    """For each plane under each name, and each param, along the ones: sums of seeded outputs as they move."""
    start, seeds = start_and_seeds(program)
    graph, _ = program.graph(start)
    graph.launch()
    grads = reverse(graph.record, seeds)
    params = {i: node.param for i, node in enumerate(program.nodes)}
    h = 1e-6

    def slope(ahead: list[np.ndarray], behind: list[np.ndarray]) -> np.ndarray:
        pairs = zip(seeds.values(), ahead, behind, strict=True)
        return sum(seed * (a - b) / (2 * h) for seed, a, b in pairs)

    groups = read_from_the_start(program)
    for (name, _), accesses in groups.items():
        ahead, behind = (program.outputs(start, params, dict.fromkeys(accesses, sign * h)) for sign in (1, -1))
        found = grads[f"n{accesses[0][0]}.{name}"]
        np.testing.assert_allclose(found, slope(ahead, behind), rtol=2e-5, atol=2e-5 * largest(grads))
    with_params = [i for i, node in enumerate(program.nodes) if node.step.params]
    for i in with_params:
        ahead, behind = (program.outputs(start, params | {i: params[i] + sign * h}) for sign in (1, -1))
        expected = np.sum(slope(ahead, behind))
        np.testing.assert_allclose(grads[f"n{i}.a"], expected, rtol=2e-5, atol=2e-5 * largest(grads))
    assert len(grads) == len(groups) + len(with_params)


def largest(grads: Gradients) -> float:
    """Differences lose digits to the largest slopes: the tolerance is relative to them."""
    return 1.0 + max(float(np.max(np.abs(grads[key]))) for key in grads)


@laws
@given(programs())
def test_kept_and_live_records_give_the_same_bits(program: Program) -> None:
    start, seeds = start_and_seeds(program)
    graph, planes = program.graph(start)
    rev = Reverse(graph)
    graph.launch()
    kept = graph.record.keep()
    live = rev(graph.record, seeds)
    assert [bits(p) for p in planes] == [bits(p) for p in values_after(program, start)]
    for plane in planes:
        plane += 1.0
    graph.launch()
    again = rev(kept, seeds)
    assert [bits(again[key]) for key in again] == [bits(live[key]) for key in live]


def values_after(program: Program, start: np.ndarray) -> list[np.ndarray]:
    """A loop of launches, each in a graph of its own."""
    planes = [plane.copy() for plane in start]
    for node in program.nodes:
        alone = Program((node,), ())
        graph, copies = alone.graph(np.array(planes))
        graph.launch()
        planes = copies
    return planes


@laws
@given(programs())
def test_gradients_add_up_over_subsets_of_the_seeds(program: Program) -> None:
    start, seeds = start_and_seeds(program)
    graph, _ = program.graph(start)
    rev = Reverse(graph)
    graph.launch()
    single = {label: rev(graph.record, {label: seed}) for label, seed in seeds.items()}
    for size in range(len(seeds) + 1):
        for subset in itertools.combinations(seeds, size):
            together = rev(graph.record, {label: seeds[label] for label in subset})
            for key in together:
                expected = sum((single[label][key] for label in subset), np.zeros_like(together[key]))
                scale = sum(np.max(np.abs(single[label][key])) for label in subset)
                np.testing.assert_allclose(together[key], expected, rtol=0, atol=1e-13 * scale)
