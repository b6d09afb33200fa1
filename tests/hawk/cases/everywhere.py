"""One sample of a kernel, computed in many places: its value and its slopes have the same bits in each.

The sample stands alone, and first, in the middle and last among others; it is computed as a kernel and as a node of
a recorded graph; its reverse runs twice. Reverse mode agrees with forward mode, input by input.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

import eagle
import hawk
from eagle.planes import new_array
from hawk.diff import jvp, vjp
from hawk.ir.program import PER_SAMPLE, Argument, Role

Array = np.ndarray
COUNTS = (1, 7, 1003)


@dataclass(frozen=True)
class Sample:
    """What one sample gives: `values` of the outputs, `slopes` of <seeds, outputs> by the inputs."""

    values: dict[str, Array]
    slopes: dict[str, Array]


def everywhere(
    kernel: hawk.Kernel,
    given: Mapping[str, object],
    seeds: Mapping[str, object] | None = None,
    mode: str = "float64",
    wrt: tuple[str, ...] | None = None,
) -> Sample:
    """The values and slopes of the sample `given`; seeds are 1 unless said. Asserts the laws above."""
    bench = _Bench(kernel, given, seeds or {}, mode, wrt)
    alone = bench.outcome(1, 0)
    for count, place in _places():
        _same(bench.outcome(count, place), alone, f"place {place} of {count}")
    _same(bench.outcome(1003, 501), bench.outcome(1003, 501), "the same again")
    bench.compare_modes(alone)
    bench.compare_graph(alone)
    return Sample(alone["value"], alone["slope"])


def _places() -> Iterator[tuple[int, int]]:
    for count in COUNTS[1:]:
        yield from ((count, place) for place in (0, count // 2, count - 1))


def _same(found: dict[str, dict[str, Array]], expected: dict[str, dict[str, Array]], where: str) -> None:
    for kind, planes in expected.items():
        for name, plane in planes.items():
            assert found[kind][name].tobytes() == plane.tobytes(), f"{kind} of {name}, {where}"


class _Bench:
    def __init__(
        self,
        kernel: hawk.Kernel,
        given: Mapping[str, object],
        seeds: Mapping[str, object],
        mode: str,
        wrt: tuple[str, ...] | None,
    ) -> None:
        self._kernel, self._mode = kernel, mode
        self._program = kernel.program(mode)
        self._given = {a.name: np.asarray(given[a.name], a.type.dtype) for a in self._arguments() if a.name in given}
        self._real = [a for a in self._arguments() if a.role is Role.MUTABLE and a.type.is_real]
        self._seeds = {
            a.name: np.broadcast_to(np.asarray(seeds.get(a.name, 1.0), a.type.dtype), a.shape) for a in self._real
        }
        self._back, self._forward = vjp(kernel, wrt), jvp(kernel, wrt)
        self._plan = eagle.plan.Plan(kernel, mode)
        self._reverse = eagle.plan.Plan(hawk.Kernel("back", self._back), mode)
        self._push = eagle.plan.Plan(hawk.Kernel("push", self._forward), mode)

    def _arguments(self) -> tuple[Argument, ...]:
        return self._program.arguments

    def _batch(self, count: int, place: int) -> dict[str, Array]:
        """The sample at `place` among others."""
        rng = np.random.default_rng(count + place)
        planes = {}
        for name, sample in self._given.items():
            argument = self._program.argument(name)
            if argument.role not in PER_SAMPLE:
                planes[name] = sample.copy()
                continue
            drawn = rng.integers(-5, 6, (*argument.shape, count)) * (0.3 if argument.type.is_real else 1)
            planes[name] = drawn.astype(argument.type.dtype)
            planes[name][..., place] = sample
        return planes

    def _run(self, plan: eagle.plan.Plan, planes: Mapping[str, Array], count: int) -> dict[str, Array]:
        """What a plan writes; its inputs stay as they were."""
        bound = {}
        for a in plan.program.arguments:
            bound[a.name] = planes[a.name].copy() if a.name in planes else new_array(a, count, np.zeros)
        plan.bind(**bound).launch()
        written = plan.program.writes()
        for name, plane in planes.items():
            if name in bound and name not in written:
                assert bound[name].tobytes() == plane.tobytes(), f"{name} was changed"
        return {name: bound[name] for name in sorted(written)}

    def outcome(self, count: int, place: int) -> dict[str, dict[str, Array]]:
        planes = self._batch(count, place)
        values = self._run(self._plan, planes, count)
        seeds = {self._back.named(name): _only(seed, count, place) for name, seed in self._seeds.items()}
        slopes = self._run(self._reverse, planes | seeds, count)
        return {
            "value": {name: plane[..., place].copy() for name, plane in values.items()},
            "slope": {
                name: _at(slopes[self._back.named(name)], self._program.argument(name), place)
                for name in self._back.wrt
            },
        }

    def compare_modes(self, alone: dict[str, dict[str, Array]]) -> None:
        """Each slope is what forward mode gives for a unit change of that input."""
        tolerance = 1e-12 if self._mode == "float64" else 1e-5
        for name in self._forward.wrt:
            a = self._program.argument(name)
            for k in range(a.size):
                unit = np.zeros(a.size, a.type.dtype)
                unit[k] = 1
                tangent = unit.reshape(*a.shape, 1) if a.role in PER_SAMPLE else unit.reshape(a.shape)
                pushed = self._run(self._push, self._batch(1, 0) | {self._forward.named(name): tangent}, 1)
                along = sum(
                    np.sum(s * pushed[self._forward.named(o)][..., 0]) for o, s in self._seeds.items() if s.any()
                )
                slope = alone["slope"][name].reshape(-1)[k]
                np.testing.assert_allclose(along, slope, tolerance, tolerance * 1e-3, err_msg=f"jvp and vjp by {name}")

    def compare_graph(self, alone: dict[str, dict[str, Array]]) -> None:
        """The kernel as the one node of a recorded graph."""
        planes = self._batch(1, 0)
        bound = {a.name: planes.get(a.name, new_array(a, 1, np.zeros)) for a in self._arguments()}
        graph = eagle.Graph()
        graph.add(self._plan.bind(**bound), name="node")
        graph.build(record=True)
        graph.launch()
        grads = eagle.diff.reverse(graph.record, {k: _only(s, 1, 0) for k, s in self._seeds.items()})
        for name, slope in alone["slope"].items():
            assert np.asarray(grads[name]).reshape(slope.shape).tobytes() == slope.tobytes(), f"{name} in a graph"


def _only(seed: Array, count: int, place: int) -> Array:
    """The seed for one sample, nothing for the others: so a param's sum is that sample's share."""
    plane = np.zeros((*seed.shape, count), seed.dtype)
    plane[..., place] = seed
    return plane


def _at(plane: Array, argument: Argument, place: int) -> Array:
    return plane[..., place].copy() if argument.role in PER_SAMPLE else plane.copy()
