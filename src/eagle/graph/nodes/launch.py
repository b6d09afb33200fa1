"""A launch of one kernel, reversed by the kernel's vjp."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import final

from hawk.codegen.frame import slots
from hawk.diff import Vjp
from hawk.ir.printer import text
from hawk.ir.program import Argument, Role
from hawk.ir.types import precision

from ...devices.host import HostProgram, Slot
from ...errors import ReverseError
from ...plan import Bound, Plan, place
from ...planes import Plane
from .node import Node


@final
class LaunchNode(Node):
    """A bound plan as a node, with params in cells of its own."""

    def __init__(self, name: str, bound: Bound) -> None:
        super().__init__(name, bound.samples)
        self.plan: Plan = bound.plan
        self._params = {
            k: replace(p, array=p.array.copy()) for k, p in bound.planes.items() if p.argument.role is Role.PARAM
        }
        self.planes: dict[str, Plane] = bound.planes | self._params
        outputs = {a.name for a in self.plan.program.arguments if a.role in (Role.MUTABLE, Role.TERMINATED)}
        read = self.plan.program.reads()
        self._reads = {k: p for k, p in self.planes.items() if k in read or k not in outputs}
        self._writes = {k: p for k, p in self.planes.items() if k in outputs}

    def reads(self) -> Mapping[str, Plane]:
        return self._reads

    def writes(self) -> Mapping[str, Plane]:
        return self._writes

    def params(self) -> Mapping[str, Plane]:
        return self._params

    def lower(self, device: HostProgram) -> None:
        self.plan.call_step(device, place(device, self.plan, self.planes))

    def needs(self) -> tuple[str, ...]:
        read = self.plan.derivative.program(self.plan.mode).reads()
        return tuple(k for k in self._reads if k in read)

    def _vjp(self) -> Vjp:
        definition = self.plan.derivative.definition
        assert isinstance(definition, Vjp)
        return definition

    def differentiates(self) -> tuple[str, ...]:
        return self._vjp().wrt

    def adjoint(self, name: str) -> Argument:
        return self.plan.derivative.program(self.plan.mode).argument(self._vjp().named(name))

    def transpose(
        self,
        device: HostProgram,
        primal: Callable[[str], Slot],
        cotangents: Mapping[str, Slot],
        adjoints: Mapping[str, Slot],
        vjp: object | None,
    ) -> None:
        vjp = vjp if isinstance(vjp, Plan) else self.plan.vjp
        named = self._vjp().named
        seeds = {named(k): slot for k, slot in cotangents.items()}
        out = {named(k): slot for k, slot in adjoints.items()}
        places: dict[tuple[str, bool], Slot] = {}
        for slot in slots(vjp.program):
            name = slot.argument.name
            found = out[name] if slot.writes else seeds[name] if name in seeds else primal(name)
            places[name, slot.writes] = found
        vjp.call_step(device, places)

    def check_vjp(self, vjp: object) -> None:
        mine = f"node {self.name!r} runs the kernel {self.plan.name} ({self.plan.mode})"
        if not isinstance(vjp, Plan) or not isinstance(vjp.kernel.definition, Vjp):
            raise ReverseError(f"vjps[{self.name!r}]: {mine}; expected the plan of its vjp, found {vjp!r}")
        derivative = vjp.kernel.definition
        if vjp.mode != self.plan.mode:
            raise ReverseError(
                f"vjps[{self.name!r}]: {mine}, but {vjp.name} is built for {vjp.mode}; build it in the same mode"
            )
        real = precision(vjp.mode)
        if text(derivative.primal.program(real)) != text(self.plan.kernel.definition.program(real)):
            raise ReverseError(
                f"vjps[{self.name!r}]: {mine}, but {vjp.name} is the vjp of another kernel, {derivative.primal.name}; "
                f"build it of this one: hawk.diff.vjp({self.plan.name})"
            )
        if derivative.wrt != self.differentiates():
            raise ReverseError(
                f"vjps[{self.name!r}]: {vjp.name} differentiates by {', '.join(derivative.wrt)} only; build it by all "
                f"real inputs, {', '.join(self.differentiates())}"
            )
