"""What nodes that run one compiled kernel share: how the plan of its vjp reverses them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping

from hawk.diff import Vjp
from hawk.ir.program import Argument

from ...devices.host import HostProgram, Slot
from ...plan import Plan
from ...planes import Plane
from .node import Node


class CompiledNode(Node):
    """A node that is reversed by one vjp plan, whose arguments go by the node's own names."""

    def __init__(
        self,
        name: str,
        samples: int,
        reads: Mapping[str, Plane],
        writes: Mapping[str, Plane],
        params: Mapping[str, Plane],
    ) -> None:
        super().__init__(name, samples)
        self._reads = reads
        self._writes = writes
        self._params = params

    @abstractmethod
    def vjp_plan(self) -> Plan:
        """The vjp by all real inputs; its code is made when a reverse first needs it."""

    def private(self, device: HostProgram, argument: Argument) -> Slot:
        """Where the vjp finds an argument that is none of the node's reads, nor a seed."""
        raise AssertionError(f"{self.name}: its vjp reads {argument.name}, which is no plane of the node")

    def tape_sizes(self) -> Mapping[str, int]:
        """The params that give the capacities of the vjp's tapes."""
        return {}

    def reads(self) -> Mapping[str, Plane]:
        return self._reads

    def writes(self) -> Mapping[str, Plane]:
        return self._writes

    def params(self) -> Mapping[str, Plane]:
        return self._params

    def _vjp(self) -> Vjp:
        definition = self.vjp_plan().kernel.definition
        assert isinstance(definition, Vjp)
        return definition

    def needs(self) -> tuple[str, ...]:
        read = self.vjp_plan().reads
        return tuple(k for k in self._reads if k in read)

    def differentiates(self) -> tuple[str, ...]:
        return self._vjp().wrt

    def adjoint(self, name: str) -> Argument:
        return self.vjp_plan().program.argument(self._vjp().named(name))

    def transpose(
        self,
        device: HostProgram,
        primal: Callable[[str], Slot],
        cotangents: Mapping[str, Slot],
        adjoints: Mapping[str, Slot],
        vjp: object | None,
    ) -> None:
        plan = vjp if isinstance(vjp, Plan) else self.vjp_plan()
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
                found = self.private(device, slot.argument)
            places[name, slot.writes] = found
        plan.call_step(device, places, self.tape_sizes())
