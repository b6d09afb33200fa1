"""Runs in one line, and the same by launching their steps one by one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from eagletest.kernels import plan
from eagletest.numpy_sums import bits

import eagle
import hawk
from eagle.diff import Gradients
from eagle.runs import Result, Simulation
from hawk.ir.program import Role

Planes = Mapping[str, Any]


def copied(planes: Planes) -> dict[str, Any]:
    """The same values in arrays of their own, with the strides they had."""
    return {name: value.copy(order="K") if isinstance(value, np.ndarray) else value for name, value in planes.items()}


def simulation(kernel: hawk.Kernel, planes: Planes, max_steps: int = 1000, **options: Any) -> Simulation:
    """A simulation on copies of the planes."""
    return eagle.simulation(kernel, max_steps=max_steps, **copied(planes), **options)


def ran(kernel: hawk.Kernel, planes: Planes, max_steps: int = 1000, **options: Any) -> Result:
    return simulation(kernel, planes, max_steps, **options).run()


def gradients(kernel: hawk.Kernel, planes: Planes, seeds: Planes, max_steps: int = 1000, **options: Any) -> Gradients:
    """Run, recorded, and reverse; a seed that is a number is the same for all samples."""
    record = ran(kernel, planes, max_steps, record=True, **options).record
    state = record.runner.state
    return eagle.diff.reverse(record, {k: np.broadcast_to(s, state[k].shape) for k, s in seeds.items()})


@dataclass
class Stepped:
    """What launching a step again and again leaves, each sample stopped when it is done."""

    state: dict[str, np.ndarray]
    steps: np.ndarray
    finished: np.ndarray

    @property
    def everything(self) -> list[np.ndarray]:
        return [*self.state.values(), self.steps, self.finished]


def one_by_one(kernel: hawk.Kernel, planes: Planes, max_steps: int, mode: str = "float64") -> Stepped:
    """Launch the step's own plan `max_steps` times, and give samples that were done their planes back."""
    planes = copied(planes)
    step = plan(kernel, mode)
    arguments = {a.name: a for a in step.program.arguments}
    state = [k for k, a in arguments.items() if a.role is Role.MUTABLE]
    flag = next((k for k, a in arguments.items() if a.role is Role.TERMINATED), None)
    samples = next(planes[k].shape[-1] for k in state)
    if flag is not None:
        planes.setdefault(flag, np.zeros(samples, bool))
    bound = step.bind(**planes)
    finished = planes[flag] if flag is not None else np.zeros(samples, bool)
    steps = np.zeros(samples, np.int32)
    for _ in range(max_steps):
        active = ~finished
        if not active.any():
            break
        before = {k: planes[k].copy() for k in state}
        bound.launch()
        for k in state:
            planes[k][..., ~active] = before[k][..., ~active]
        finished |= ~active
        steps += active
    return Stepped({k: planes[k] for k in state}, steps, finished)


def everything(result: Result) -> list[np.ndarray]:
    """In the order of `Stepped.everything`."""
    return [*result.state.values(), result.steps, result.finished]


def same_bits(left: Iterable[np.ndarray], right: Iterable[np.ndarray]) -> None:
    pairs = list(zip(left, right, strict=True))
    different = [i for i, (a, b) in enumerate(pairs) if bits(a) != bits(b)]
    assert not different, f"arrays {different} differ, first {pairs[different[0]]}"


def pendulums(n: int, mode: str = "float64", longest: float = 2.5) -> dict[str, Any]:
    """Of `n` different lengths, up to 250 steps."""
    rng = np.random.default_rng(n)
    planes = {"t_final": rng.uniform(0.1, longest, n), "x": rng.uniform(-3, 3, n), "v": rng.uniform(-1, 1, n)}
    return {"dt": 0.01, "c": 0.3, "t": np.zeros(n, mode)} | {k: a.astype(mode) for k, a in planes.items()}


def walkers(n: int, mode: str = "float64") -> dict[str, Any]:
    rng = np.random.default_rng(n)
    return {
        "dt": 0.05,
        "k": np.array([1.5, 0.7]),
        "limit": rng.uniform(0.5, 6.0, n).astype(mode),
        "trips": rng.integers(0, 9, n).astype(np.int32),
        "force": np.linspace(-0.4, 0.8, 8).astype(mode),
        "p": rng.uniform(-1.0, 1.5, (2, n)).astype(mode),
        "energy": np.zeros(n, mode),
        "cell": np.arange(n, dtype=np.int32),
    }
