"""A whole run as one node: a phase of a hybrid trajectory, reversed by the vjp of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, final

import numpy as np

from hawk.diff import Vjp
from hawk.events import RULE, STATUS
from hawk.ir.program import Argument, Role
from hawk.run import LIMIT, STEPS

from ...devices.host import HostProgram, Slot
from ...errors import ReverseError
from ...plan import Plan, place
from ...planes import Array, Plane, new_array
from .node import Node

if TYPE_CHECKING:
    from ...runs.runner import Runner


@final
class PhaseNode(Node):
    """A run that each launch of the graph starts afresh, from what its planes then hold.

    The planes are those of the run; its params, and how each sample fared, are the node's own.

    Attributes, of the last launch: ``steps``, ``finished``, ``event_status`` and ``event_rule`` of every
    sample, as a run has them.
    """

    def __init__(self, name: str, runner: Runner) -> None:
        super().__init__(name, runner.samples)
        self._runner = runner
        self._plan = runner.run_plan
        step = {a.name: a for a in runner.plan.program.arguments}
        self._writes = {k: runner.bound.planes[k] for k, a in step.items() if a.role is Role.MUTABLE}
        self._params = {
            k: replace(runner.bound.planes[k], array=runner.bound.planes[k].array.copy())
            for k, a in step.items()
            if a.role is Role.PARAM
        }
        flags = [k for k, a in step.items() if a.role is Role.TERMINATED]
        own = [a for a in self._plan.program.arguments if a.name in (*flags, STEPS, STATUS, RULE)]
        self._outcome = {a.name: Plane(a, new_array(a, self.samples, np.zeros)) for a in own}
        self._planes = runner.bound.planes | self._params | self._outcome
        self._reads = {k: self._planes[k] for k in step if k not in flags}
        self.steps = self._outcome[STEPS].array
        self.finished = self._outcome[flags[0]].array if flags else np.zeros(self.samples, np.bool_)
        self._sizes: dict[str, int] = {}

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

    def reads(self) -> Mapping[str, Plane]:
        return self._reads

    def writes(self) -> Mapping[str, Plane]:
        return self._writes

    def params(self) -> Mapping[str, Plane]:
        return self._params

    def lower(self, device: HostProgram) -> None:
        for plane in self._outcome.values():
            device.zero(device.in_place(plane), plane.argument)
        self._plan.call_step(device, place(device, self._plan, self._planes))

    def check(self) -> None:
        self._runner.check_events(self.name, self.event_status)

    def fault(self) -> str:
        return self._runner.without_derivative(self.name, self.event_status)

    def _vjp_plan(self) -> Plan:
        """The vjp of the run, for as many steps as it may take."""
        from ...runs.reverse import schedule_for_all, vjp_plan

        schedule, self._sizes = schedule_for_all(self._runner)
        return vjp_plan(self._runner, schedule)

    def _vjp(self) -> Vjp:
        definition = self._vjp_plan().kernel.definition
        assert isinstance(definition, Vjp)
        return definition

    def needs(self) -> tuple[str, ...]:
        read = self._vjp_plan().reads
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
        plan = self._vjp_plan()
        named = self._vjp().named
        seeds = {named(k): slot for k, slot in cotangents.items()}
        out = {named(k): slot for k, slot in adjoints.items()}
        places: dict[tuple[str, bool], Slot] = {}
        for slot in plan.slots:
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
        if argument.name in self._outcome:
            return Plane(argument, new_array(argument, self.samples, np.zeros))
        number = self._runner.options.max_steps if argument.name == LIMIT else self._sizes[argument.name]
        return Plane(argument, np.array(number, argument.type.dtype))

    def check_vjp(self, vjp: object) -> None:
        raise ReverseError(f"vjps[{self.name!r}]: the phase is reversed by eagle's own vjp of its run; leave it out")
