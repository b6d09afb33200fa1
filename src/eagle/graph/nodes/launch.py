"""A launch of one kernel, reversed by the kernel's vjp."""

from __future__ import annotations

from dataclasses import replace
from typing import final

from hawk.diff import Vjp
from hawk.ir.printer import text
from hawk.ir.program import Role
from hawk.ir.types import precision

from ...devices.host import HostProgram
from ...errors import ReverseError
from ...plan import Bound, Plan, place
from ...planes import Plane
from .compiled import CompiledNode


@final
class LaunchNode(CompiledNode):
    """A bound plan as a node, with params in cells of its own."""

    def __init__(self, name: str, bound: Bound) -> None:
        self.plan: Plan = bound.plan
        params = {k: replace(p, array=p.array.copy()) for k, p in bound.planes.items() if p.argument.role is Role.PARAM}
        self.planes: dict[str, Plane] = bound.planes | params
        outputs = {a.name for a in self.plan.program.arguments if a.role in (Role.MUTABLE, Role.TERMINATED)}
        reads = {k: p for k, p in self.planes.items() if k in self.plan.reads or k not in outputs}
        writes = {k: p for k, p in self.planes.items() if k in outputs}
        super().__init__(name, bound.samples, reads, writes, params)

    def vjp_plan(self) -> Plan:
        return self.plan.vjp

    def lower(self, device: HostProgram) -> None:
        self.plan.call_step(device, place(device, self.plan, self.planes))

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
