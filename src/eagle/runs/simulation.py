"""A simulation: a run by its kernel, built once and run many times from its start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

import hawk
from hawk.ir.program import Role

from ..errors import ArgumentError
from ..plan import Plan
from ..planes import Array
from .record import RunRecord
from .result import Result
from .runner import Runner, until_done
from .step import step_plan


def simulation(
    kernel: hawk.Kernel | Sequence[hawk.Kernel],
    *,
    max_steps: int,
    until: hawk.Kernel | None = None,
    record: bool = False,
    window: int | str | None = None,
    memory_budget: int | None = None,
    events: str = "step",
    on_no_event: str = "raise",
    progress: bool = False,
    mode: str = "float64",
    **planes: object,
) -> Simulation:
    """Build a run of a kernel from its start planes; ``run()`` it as often as you like.

    Options and planes are those of `until_done`, with kernels in place of plans. The planes are worked on in
    place: the state is stepped in the arrays given, and what the step only reads is read from them at each run.
    """
    kernels = list(kernel) if isinstance(kernel, (list, tuple)) else [kernel]
    plan = step_plan([_plan(k, mode) for k in kernels], None if until is None else _plan(until, mode))
    runner = until_done(
        plan,
        max_steps=max_steps,
        until=None,
        record=record,
        window=window,
        memory_budget=memory_budget,
        events=events,
        on_no_event=on_no_event,
        progress=progress,
        **planes,
    )
    return Simulation(runner)


def _plan(kernel: object, mode: str) -> Plan:
    """The plan of a kernel, kept with it so that its runs are compiled once."""
    if not isinstance(kernel, hawk.Kernel):
        hint = "; a plan goes to eagle.until_done" if isinstance(kernel, Plan) else ""
        raise ArgumentError(f"simulation takes kernels, found {type(kernel).__name__}{hint}")
    if mode not in kernel.plans:
        kernel.plans[mode] = Plan(kernel, mode)
    plan: Plan = kernel.plans[mode]
    return plan


def simulate(kernel: hawk.Kernel | Sequence[hawk.Kernel], *, max_steps: int, **options: Any) -> Result:
    """Run a kernel once and return the result. Arguments as in `simulation`, but the start is left as it is: the
    state is stepped in copies, which the result holds."""
    kernels = list(kernel) if isinstance(kernel, (list, tuple)) else [kernel]
    programs = [k.program(options.get("mode", "float64")) for k in kernels if isinstance(k, hawk.Kernel)]
    stepped = {a.name for p in programs for a in p.arguments if a.role in (Role.MUTABLE, Role.TERMINATED)}
    copies = {k: v.copy() for k, v in options.items() if k in stepped and isinstance(v, np.ndarray)}
    return simulation(kernel, max_steps=max_steps, **(options | copies)).run()


@final
class Simulation:
    """A run that always begins at its start.

    Attributes: ``runner``, the run in place on the planes; ``record`` and ``result`` of the last run.
    """

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def run(self, **start: object) -> Result:
        """Put the planes back to the start, then run to the end. A start value given here, or an input, or a
        value of a Param, is the simulation's from now on; inputs are written into the arrays first given.

        Raises ArgumentError for a name that is no argument of the kernel, PlaneError for a value of another
        shape or kind, and errors as in `Runner.run`.
        """
        return self.runner.restart(start)

    @property
    def record(self) -> RunRecord:
        return self.runner.record

    @property
    def result(self) -> Result:
        return self.runner.result

    @property
    def planes(self) -> Mapping[str, Array]:
        return self.runner.planes

    def __repr__(self) -> str:
        return f"<simulation of {self.runner.plan.name}, {self.runner.samples} samples>"
