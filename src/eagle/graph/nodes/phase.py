"""A whole run as one node: a phase of a hybrid trajectory, reversed by the vjp of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, final

import numpy as np

from hawk.codegen.frame import slots
from hawk.diff import Vjp
from hawk.events import RULE, STATUS
from hawk.ir.program import Argument, Role
from hawk.run import LIMIT, STEPS

from ...devices.host import HostProgram, Slot
from ...errors import ReverseError
from ...plan import Plan, place
from ...planes import Plane
from .node import Node

if TYPE_CHECKING:
    from ...runs.runner import Runner


@final
class PhaseNode(Node):
    """A run that each launch of the graph starts afresh, from what its planes then hold."""

    def __init__(self, name: str, runner: Runner) -> None:
        super().__init__(name, runner.samples)
        self._runner = runner
        self._plan = runner.run_plan
        planes = runner.bound.planes
        step = {a.name: a for a in runner.plan.program.arguments}
        self._params = {
            k: replace(planes[k], array=planes[k].array.copy()) for k, a in step.items() if a.role is Role.PARAM
        }
        self._planes = planes | self._params
        self._writes = {k: self._planes[k] for k, a in step.items() if a.role is Role.MUTABLE}
        self._reads = {k: self._planes[k] for k, a in step.items() if a.role is not Role.TERMINATED}
        self._fresh = [k for k in (*step, STEPS, STATUS, RULE) if k in planes and k not in self._reads]
        self._zeros = {k: replace(planes[k], array=np.zeros_like(planes[k].array)) for k in self._fresh}
        self._sizes: dict[str, int] = {}

    def reads(self) -> Mapping[str, Plane]:
        return self._reads

    def writes(self) -> Mapping[str, Plane]:
        return self._writes

    def params(self) -> Mapping[str, Plane]:
        return self._params

    def lower(self, device: HostProgram) -> None:
        for name in self._fresh:
            plane = self._planes[name]
            device.zero(device.in_place(plane), plane.argument)
        self._plan.call_step(device, place(device, self._plan, self._planes))

    def check(self) -> None:
        self._runner.check_events()

    def _vjp_plan(self) -> Plan:
        """The vjp of the run for as many steps as it may take."""
        from ...runs.reverse import schedule_for, vjp_plan

        schedule, self._sizes = schedule_for(self._runner, self._runner.options.max_steps)
        return vjp_plan(self._runner, schedule)

    def _vjp(self) -> Vjp:
        definition = self._vjp_plan().kernel.definition
        assert isinstance(definition, Vjp)
        return definition

    def needs(self) -> tuple[str, ...]:
        read = self._vjp_plan().program.reads()
        return tuple(k for k in self._reads if k in read)

    def differentiates(self) -> tuple[str, ...]:
        return self._vjp().wrt

    def adjoint(self, name: str) -> Argument:
        return self._vjp_plan().program.argument(self._vjp().named(name))

    def transpose(
        self,
        device: HostProgram,
        primal: Callable[[str], Slot],
        cotangents: Mapping[str, Slot],
        adjoints: Mapping[str, Slot],
        vjp: object | None,
    ) -> None:
        self._runner.check_differentiable()
        plan = self._vjp_plan()
        named = self._vjp().named
        seeds = {named(k): slot for k, slot in cotangents.items()}
        out = {named(k): slot for k, slot in adjoints.items()}
        places: dict[tuple[str, bool], Slot] = {}
        for slot in slots(plan.program):
            name = slot.argument.name
            if slot.writes:
                found = out[name]
            elif name in seeds:
                found = seeds[name]
            elif name in self._reads:
                found = primal(name)
            else:
                found = device.read(self._private(slot.argument))
            places[name, slot.writes] = found
        plan.call_step(device, places, self._sizes)

    def _private(self, argument: Argument) -> Plane:
        """What the run starts from beside its planes: counts of zero, the limit, the sizes of the tapes."""
        if argument.name in self._zeros:
            return replace(self._zeros[argument.name], argument=argument)
        if argument.name == LIMIT:
            return replace(self._planes[LIMIT], argument=argument)
        return Plane(argument, np.array(self._sizes[argument.name], argument.type.dtype))

    def check_vjp(self, vjp: object) -> None:
        raise ReverseError(f"vjps[{self.name!r}]: the phase is reversed by eagle's own vjp of its run; leave it out")
