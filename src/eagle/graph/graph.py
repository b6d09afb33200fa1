"""Graphs: bound kernels in a row, launched by one call, recorded for a reverse."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import TYPE_CHECKING, Self, SupportsIndex, final

from ..devices.host import HostProgram
from ..errors import ArgumentError, Busy, GraphError, RecordError
from ..plan import Bound, check_forward
from ..planes import Plane, check_aliasing, described, param_value
from .nodes import LaunchNode, Node

if TYPE_CHECKING:
    from ..diff.record import GraphRecord, Recorder


@final
class Graph:
    """Steps that run one after the other, each on planes that the others may share.

    Which node feeds which is read from the planes' memory. ``add`` the steps, ``build`` once, ``launch``
    as often as you like; ``build(record=True)`` makes each launch leave a `record` that can be reversed.
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._programs: list[HostProgram] | None = None
        self._recorder: Recorder | None = None
        self._checked: list[Node] = []  # those that look at what a launch did

    # making

    def add(self, bound: Bound, name: str | None = None) -> Self:
        """Add a bound plan as the next step. `name` (default: the kernel's) is unique in the graph.

        Raises GraphError for a name in use, ArgumentError for what is no bound forward plan.
        """
        if not isinstance(bound, Bound):
            hint = "; bind its planes first: plan.bind(x=..., y=...)" if type(bound).__name__ == "Plan" else ""
            raise ArgumentError(f"Graph.add takes a bound plan, found {type(bound).__name__}{hint}")
        check_forward(bound.plan.kernel)
        return self.add_node(LaunchNode(bound.plan.name if name is None else name, bound))

    def add_node(self, node: Node, name: str | None = None) -> Self:
        """Add a node of any kind as the next step."""
        if self._programs is not None:
            raise GraphError("the graph is built; add its nodes before build()")
        if not isinstance(node, Node):
            raise ArgumentError(f"Graph.add_node takes a node, found {type(node).__name__}; a bound plan goes to add()")
        if node in self._nodes:
            raise GraphError(f"the node {node.name!r} is in this graph already; add a step once for each time it runs")
        node.name = self._free_name(node.name if name is None else name)
        self._nodes.append(node)
        return self

    def _free_name(self, name: str) -> str:
        if not isinstance(name, str) or not name or "." in name:
            raise GraphError(f"name={name!r}: a node's name is a non-empty string without a dot")
        if any(n.name == name for n in self._nodes):
            raise GraphError(f"name={name!r} is used by another node of this graph; give each its own: add(..., name=)")
        return name

    def build(self, record: bool = False) -> Self:
        """Fix the graph and prepare its launches; with ``record=True``, each leaves a record to reverse.

        Raises GraphError for an empty graph or one already built, PlaneError for planes that overlap in
        part, DerivativeError if a recorded kernel has no derivative.
        """
        if self._programs is not None:
            raise GraphError("the graph is built already")
        if not self._nodes:
            raise GraphError("the graph is empty: add() its steps before build()")
        check_aliasing(
            [(f"{n.name}.{k}", p) for n in self._nodes for k, p in [*n.reads().items(), *n.writes().items()]],
            within_one_launch=False,
        )
        recorder = None
        if record:
            from ..diff.record import Recorder

            recorder = Recorder(self._nodes)
        self._checked = [n for n in self._nodes if type(n).check is not Node.check]
        self._programs, self._recorder = self._lowered(recorder), recorder
        return self

    def _lowered(self, recorder: Recorder | None) -> list[HostProgram]:
        """One device program per batch size: nodes of different sizes share no plane."""
        programs: dict[int, HostProgram] = {}
        for node in self._nodes:
            device = programs.setdefault(node.samples, HostProgram(node.samples))
            if recorder is not None:
                recorder.save_before(node, device)
            node.lower(device)
        return list(programs.values())

    # running

    def launch(self, n: SupportsIndex = 1) -> None:
        """Run every step over all samples, `n` times.

        A recorded graph runs once a launch, and only when its last record has been reversed, kept or
        discarded. Raises GraphError before `build`, RecordError for a live record, ValueError for n != 1 on
        a recorded graph, Busy if another thread is launching or reversing it.
        """
        if self._programs is None:
            raise GraphError("the graph is not built; call build() before launch()")
        count = _count(n)
        if self._recorder is not None:
            self._recorder.launch(self._run, count)
        else:
            for _ in range(count):
                self._run()

    def _run(self) -> None:
        for program in self._programs or ():
            if not program.run():
                raise Busy("another thread is launching this graph")
        for node in self._checked:
            node.check()

    def update(self, values: Mapping[str, object] | None = None, /, **named: object) -> None:
        """Set params for the launches to come: ``update(k=2.0)`` in every node that has a k,
        ``update({"join.k": 2.0})`` in one.

        Raises ArgumentError for a name no node has or a value that is no number, PlaneError for a value of
        another shape, and RecordError while the last record is live: its reverse must see the params its
        launch used, so a record reversed before is void after. Nothing is changed when anything is refused.
        """
        new = [
            (plane.array, param_value(label, plane.argument, value))
            for name, value in {**(values or {}), **named}.items()
            for label, plane in self._params(name)
        ]
        if not new:
            return

        def write() -> None:
            for cell, number in new:
                cell[...] = number

        if self._recorder is not None:
            self._recorder.update(write)
        else:
            write()

    def _params(self, name: str) -> list[tuple[str, Plane]]:
        node_name, _, param = str(name).rpartition(".")
        found = [
            (f"{n.name}.{param}", n.params()[param])
            for n in self._nodes
            if param in n.params() and node_name in ("", n.name)
        ]
        if not found:
            choices = ", ".join(f"{n.name}.{k}" for n in self._nodes for k in n.params()) or "none"
            raise ArgumentError(f"update({name}=...): no node has a Param of that name; the graph has {choices}")
        return found

    @property
    def record(self) -> GraphRecord:
        """The record of the newest launch. Raises RecordError if the graph does not record or never ran."""
        if self._recorder is None:
            raise RecordError("this graph does not record its launches; build it with build(record=True)")
        return self._recorder.newest()

    @property
    def recorder(self) -> Recorder:
        """What the launches of a recorded graph share; for `eagle.diff.Reverse`."""
        if self._recorder is None:
            raise RecordError("this graph does not record its launches; build it with build(record=True)")
        return self._recorder

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(self._nodes)

    def __repr__(self) -> str:
        """One line a node: what it reads and writes, in order."""
        state = "not built" if self._programs is None else "recorded" if self._recorder is not None else "built"
        lines = [f"<graph of {len(self._nodes)} nodes, {state}"]
        for n in self._nodes:
            reads = ", ".join(f"{k}: {described(p.argument)}" for k, p in n.reads().items())
            lines.append(f"  {n.name}: ({reads}) -> {', '.join(n.writes())}  [{n.samples} samples]")
        return "\n".join(lines) + ">"


def _count(n: SupportsIndex) -> int:
    try:
        count = index(n)
    except TypeError:
        count = -1
    if count < 0:
        raise ValueError(f"launch({n!r}): the number of launches is an integer >= 0")
    return count
