"""A whole run as one node: a phase of a hybrid trajectory, reversed by the vjp of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, final

import numpy as np

from hawk.events import RULE, STATUS
from hawk.ir.program import Argument, Role
from hawk.run import LIMIT, STEPS

from ...devices.host import HostProgram, Slot
from ...errors import ReverseError
from ...plan import Plan, place
from ...planes import Array, Plane, new_array
from .compiled import CompiledNode

if TYPE_CHECKING:
    from ...runs.runner import Runner


@final
class PhaseNode(CompiledNode):
    """A run that each launch of the graph starts afresh, from what its planes then hold.

    The planes are those of the run; its params, and how each sample fared, are the node's own.

    Attributes, of the last launch: ``steps``, ``finished``, ``event_status`` and ``event_rule`` of every
    sample, as a run has them.
    """

    def __init__(self, name: str, runner: Runner) -> None:
        self._runner = runner
        self._plan = runner.run_plan
        step, planes = {a.name: a for a in runner.plan.program.arguments}, runner.bound.planes
        writes = {k: planes[k] for k, a in step.items() if a.role is Role.MUTABLE}
        params = {k: replace(planes[k], array=planes[k].array.copy()) for k, a in step.items() if a.role is Role.PARAM}
        flags = [k for k, a in step.items() if a.role is Role.TERMINATED]
        own = [a for a in self._plan.program.arguments if a.name in (*flags, STEPS, STATUS, RULE)]
        self._outcome = {a.name: Plane(a, new_array(a, runner.samples, np.zeros)) for a in own}
        self._planes = planes | params | self._outcome
        super().__init__(name, runner.samples, {k: self._planes[k] for k in step if k not in flags}, writes, params)
        self.steps = self._outcome[STEPS].array
        self.finished = self._outcome[flags[0]].array if flags else np.zeros(self.samples, np.bool_)

    @property
    def event_status(self) -> Array:
        """A `Status` a sample, as int32."""
        return self._runner.statuses(self.finished, self._located(STATUS))

    @property
    def event_rule(self) -> Array:
        """Which comparison of the stop rule made the event of a sample; -1 for none."""
        return np.where(self._located(STATUS) == 0, np.int32(-1), self._located(RULE))

    def _located(self, name: str) -> Array:
        """What a refined run says of every sample; zeros for any other."""
        return self._outcome[name].array if name in self._outcome else np.zeros(self.samples, np.int32)

    def lower(self, device: HostProgram) -> None:
        for plane in self._outcome.values():
            device.zero(device.in_place(plane), plane.argument)
        self._plan.call_step(device, place(device, self._plan, self._planes))

    def check(self) -> None:
        self._runner.check_events(self.name, self.event_status)

    def fault(self) -> str:
        return self._runner.without_derivative(self.name, self.event_status)

    def vjp_plan(self) -> Plan:
        """The vjp of the run, for as many steps as it may take."""
        from ...runs.reverse import schedule_for_all, vjp_plan

        return vjp_plan(self._runner, schedule_for_all(self._runner)[0])

    def tape_sizes(self) -> Mapping[str, int]:
        from ...runs.reverse import schedule_for_all

        return schedule_for_all(self._runner)[1]

    def private(self, device: HostProgram, argument: Argument) -> Slot:
        """What the run starts from beside its planes: counts of zero, the limit, the sizes of the tapes."""
        if argument.name in self._outcome:
            return device.read(Plane(argument, new_array(argument, self.samples, np.zeros)))
        number = self._runner.options.max_steps if argument.name == LIMIT else self.tape_sizes()[argument.name]
        return device.read(Plane(argument, np.array(number, argument.type.dtype)))

    def check_vjp(self, vjp: object) -> None:
        raise ReverseError(f"vjps[{self.name!r}]: the phase is reversed by eagle's own vjp of its run; leave it out")
