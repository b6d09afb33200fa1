"""Runs as nodes of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ArgumentError
from ..graph.nodes import PhaseNode

if TYPE_CHECKING:
    from ..runs import Runner, Simulation


def phase(run: Simulation | Runner) -> PhaseNode:
    """A run as a node of a graph: one continuous piece of a hybrid trajectory.

    Each launch of the graph starts the run afresh, from what its planes then hold, and leaves in them the
    state at its event. Chained with kernels that reset the state, the reverse of the graph is the
    sensitivity of the whole trajectory, jumps included. Its planes and params go by the kernel's names.

    Raises ArgumentError for what is no run.
    """
    from ..runs import Runner, Simulation

    runner = run.runner if isinstance(run, Simulation) else run
    if not isinstance(runner, Runner):
        raise ArgumentError(f"phase takes a simulation or a runner, found {type(run).__name__}")
    return PhaseNode(runner.plan.name, runner)
