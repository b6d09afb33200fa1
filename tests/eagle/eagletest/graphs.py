"""Small graphs, and what can be done with them in one line."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

import eagle
import hawk
from eagle.diff import Gradients
from eagle.graph import Graph

from . import kernels as k
from .kernels import plan


def recorded(*steps: tuple[str, hawk.Kernel, Mapping[str, object]], mode: str = "float64") -> Graph:
    """A recorded graph of (name, kernel, planes) steps."""
    graph = Graph()
    for name, kernel, planes in steps:
        graph.add(plan(kernel, mode).bind(**planes), name=name)
    return graph.build(record=True)


def gradients(graph: Graph, seeds: Mapping[str, object]) -> Gradients:
    """Launch and reverse."""
    graph.launch()
    return eagle.diff.reverse(graph.record, seeds)


@dataclass
class Chain:
    """wave(square(x)): z = sin(a x^2), recorded."""

    x: np.ndarray
    a: float = 0.5
    y: np.ndarray = field(init=False)
    z: np.ndarray = field(init=False)
    graph: Graph = field(init=False)

    def __post_init__(self) -> None:
        self.y, self.z = np.zeros_like(self.x), np.zeros_like(self.x)
        self.graph = recorded(
            ("square", k.square, {"x": self.x, "a": self.a, "y": self.y}),
            ("wave", k.wave, {"x": self.y, "y": self.z}),
            mode=str(self.x.dtype),
        )

    @property
    def ones(self) -> dict[str, np.ndarray]:
        return {"wave.y": np.ones_like(self.x)}
