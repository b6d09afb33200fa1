"""What a node is to its graph: what it touches, its steps forward, what its reverse needs, its steps back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from hawk.ir.program import Argument

from ...devices.host import HostProgram, Slot
from ...planes import Plane


class Node(ABC):
    """One step of a graph. Arguments go by the names the node itself gives them."""

    def __init__(self, name: str, samples: int) -> None:
        self.name = name
        self.samples = samples

    @abstractmethod
    def reads(self) -> Mapping[str, Plane]:
        """The planes it reads, params and tables included, in argument order."""

    @abstractmethod
    def writes(self) -> Mapping[str, Plane]:
        """The planes it writes."""

    @abstractmethod
    def params(self) -> Mapping[str, Plane]:
        """The cells of its params, which belong to the node and which `Graph.update` sets."""

    @abstractmethod
    def lower(self, device: HostProgram) -> None:
        """Add its steps to the forward program."""

    def check(self) -> None:  # noqa: B027 - most nodes do all they are asked
        """Raise, after a launch, for what the node could not do; nothing by default."""

    def fault(self) -> str:
        """Why the last launch of the node cannot be reversed; empty, by default, if it can."""
        return ""

    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """The reads whose values before the node its reverse reads again.

        Raises DerivativeError or ReverseError for a node that has no reverse.
        """

    @abstractmethod
    def differentiates(self) -> tuple[str, ...]:
        """The reads that its reverse gives adjoints for."""

    @abstractmethod
    def adjoint(self, name: str) -> Argument:
        """How the adjoint of a read that it differentiates is written: per sample, or as which kind of sum."""

    @abstractmethod
    def transpose(
        self,
        device: HostProgram,
        primal: Callable[[str], Slot],
        cotangents: Mapping[str, Slot],
        adjoints: Mapping[str, Slot],
        vjp: object | None,
    ) -> None:
        """Add its reverse: from the primals it read and the cotangents of its writes to adjoints of its reads.

        `vjp` is the user's own, checked by `check_vjp`, or None.
        """

    @abstractmethod
    def check_vjp(self, vjp: object) -> None:
        """ReverseError unless `vjp` is one that this node can be reversed by."""
