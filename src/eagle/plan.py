"""Plans: kernels compiled for a target, ready to be bound to planes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import final

import hawk
from hawk.artifact import Bundle, Plugin
from hawk.codegen.compile import Entry, host_compiler
from hawk.codegen.frame import slots, tape_bytes
from hawk.diff import Vjp
from hawk.ir.program import Program, Role
from hawk.ir.types import precision

from .devices.host import HostProgram, Slot
from .errors import ArgumentError, Busy
from .exec import TARGETS, HostTeam
from .planes import Plane, bind_planes, check_samples


@final
class Plan:
    """A kernel compiled for the CPU at one precision.

    Attributes: ``kernel``, ``mode`` ("float64" or "float32"), ``program`` (its IR); ``slots``, the addresses
    its entry takes, and ``reads``, the arguments it reads.
    """

    def __init__(self, kernel: hawk.Kernel, mode: str, cache_dir: Path | None = None) -> None:
        self.kernel = kernel
        self.mode = mode
        self.program: Program = kernel.program(mode)
        self._cache_dir = cache_dir
        self.slots = slots(self.program)
        self.reads = self.program.reads()
        self._derived: dict[str, Plan] = {}

    @cached_property
    def _entry(self) -> Entry:
        return host_compiler().launch_entry(self.program, self._cache_dir)

    def compiled(self) -> Plan:
        """This plan, with its code made now, not when first needed."""
        self._entry  # noqa: B018
        return self

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def structure(self) -> type[HostTeam]:
        return HostTeam

    def bind(self, **planes: object) -> Bound:
        """Bind every argument to an array (a Param to a number), checked by name before anything runs.

        Planes are NumPy arrays of the plan's dtype, shape (n,) for a Scalar and (4, n) for a Vector[4], (n, 4)
        if it is marked samples_first; arrays that the kernel writes are written in place at each launch. Their
        memory may be laid out in any way (strided, reversed, broadcast, not aligned): what is not packed, each
        component's samples next to each other, is copied block by block at each launch. A Param's value is
        copied once, here.

        Raises ArgumentError for a missing, unknown or wrong kind of argument; PlaneError for a wrong dtype or
        shape, for an output that is read-only or whose elements share memory, for a table that is not contiguous
        and for arrays that overlap.
        """
        return Bound(self, bind_planes(self.name, self.program.arguments, planes))

    @cached_property
    def derivative(self) -> hawk.Kernel:
        """This kernel's vjp by all its real inputs. Raises DerivativeError where an op has no rule."""
        return hawk.Kernel(f"{self.name}_vjp", hawk.diff.vjp(self.kernel))

    @cached_property
    def vjp(self) -> Plan:
        """The plan of `derivative`, compiled when a reverse first needs it."""
        return Plan(self.derivative, self.mode, self._cache_dir)

    def derived(self, key: str, make: Callable[[], hawk.Kernel]) -> Plan:
        """A plan of a kernel made from this one's, compiled when first asked for and kept."""
        if key not in self._derived:
            self._derived[key] = Plan(make(), self.mode, self._cache_dir)
        return self._derived[key]

    def call_step(
        self,
        device: HostProgram,
        places: Mapping[tuple[str, bool], Slot],
        capacities: Mapping[str, int] | None = None,
    ) -> None:
        """Add a launch to a device program. Places are keyed by (argument, is written).

        `capacities` gives the params that size its tapes.
        """
        sums = any(s.argument.role in (Role.SUM, Role.TABLE_SUM) for s in self.slots)
        places_in_order = [places[s.argument.name, s.writes] for s in self.slots]
        if self.program.tapes:
            places_in_order.append(device.scratch_bytes(tape_bytes(self.program, self._entry.width, capacities or {})))
        device.call(self._entry.address, places_in_order, any_count=not sums and not self.program.tapes)

    def __repr__(self) -> str:
        arguments = ", ".join(a.name for a in self.program.arguments)
        return f"<plan of {self.name}({arguments}), {self.mode}, host>"


@final
class Bound:
    """A plan bound to planes: one launch, to be run or added to a graph. It never changes."""

    def __init__(self, plan: Plan, planes: Mapping[str, Plane]) -> None:
        self.plan = plan
        self.planes = dict(planes)
        self.samples = check_samples(plan.name, self.planes.values())

    @cached_property
    def _device(self) -> HostProgram:
        device = HostProgram(self.samples)
        self.plan.call_step(device, place(device, self.plan, self.planes))
        return device

    def launch(self) -> None:
        """Run the kernel once over all samples. Raises Busy if another thread is launching it."""
        if not self._device.run():
            raise Busy(f"{self.plan.name}: another thread is launching this binding; bind one for each thread")

    def rebind(self, **planes: object) -> Bound:
        """A binding with some arguments changed, the others kept. Errors as in `Plan.bind`."""
        given = {name: plane.array for name, plane in self.planes.items()} | planes
        return self.plan.bind(**given)

    def __repr__(self) -> str:
        return f"<{self.plan.name} bound to {self.samples} samples>"


def place(device: HostProgram, plan: Plan, planes: Mapping[str, Plane]) -> dict[tuple[str, bool], Slot]:
    """The places of a plan's arguments in a device program, each bound to its plane."""
    places = {}
    for slot in plan.slots:
        name, plane = slot.argument.name, planes[slot.argument.name]
        if slot.argument.role in (Role.SUM, Role.TABLE_SUM):
            places[name, True] = device.sum(slot.argument, plane.array)
        elif slot.writes:
            places[name, True] = device.write(plane)
        else:
            places[name, False] = device.read(plane) if name in plan.reads else device.unused(plane)
    return places


def plan(plugin: Plugin, structure: type[HostTeam] = HostTeam) -> Plan:
    """The plan of one built kernel (`hawk.artifact.plugins`), for a structure of `eagle.exec`.

    Raises ArgumentError for what is no plugin or no structure of this machine.
    """
    if not isinstance(plugin, Plugin):
        several = isinstance(plugin, (Bundle, Mapping))
        hint = "pick one: plugins(bundle)[name]" if several else "the plan of a kernel: eagle.deploy([kernel])"
        raise ArgumentError(f"plan() takes a plugin of hawk.artifact.plugins(bundle), found {plugin!r}; {hint}")
    if structure not in TARGETS.values():
        raise ArgumentError(f"structure={structure!r}: the structures of this machine are eagle.exec.HostTeam")
    return Plan(plugin.kernel, plugin.mode).compiled()


def auto(
    kernels: Sequence[hawk.Kernel],
    targets: Sequence[str] = ("host",),
    *,
    mode: str = "float64",
    cache_dir: str | Path | None = None,
) -> list[Plan]:
    """Compile kernels for this machine and return their plans, in order. Also called ``eagle.deploy``.

    `mode` is the precision, "float64" or "float32". Objects are kept in `cache_dir` (None: the user's cache
    folder, or ``HAWK_CACHE_DIR``) and found there by the next process. A vjp is built when a reverse first
    needs it, and kept beside its kernel.

    Raises ArgumentError for what is no forward kernel, ValueError for an unknown target or mode.
    """
    if isinstance(kernels, hawk.Kernel) or not isinstance(kernels, Iterable):
        raise ArgumentError("eagle.deploy takes a list of kernels: eagle.deploy([kernel])")
    if isinstance(targets, str) or not isinstance(targets, Sequence) or not targets:
        raise ValueError(f'targets={targets!r}: expected a list of targets, for example targets=("host",)')
    for target in targets:
        if target not in TARGETS:
            raise ValueError(f"targets={targets!r}: {target!r} is not a target of this machine; it has 'host'")
    precision(mode)
    kernels = list(kernels)
    for kernel in kernels:
        check_forward(kernel)
    folder = None if cache_dir is None else Path(cache_dir)
    return [Plan(kernel, mode, folder).compiled() for kernel in kernels]


def check_forward(kernel: object) -> None:
    """ArgumentError unless `kernel` is a kernel that can be a step forward."""
    if not isinstance(kernel, hawk.Kernel):
        hint = "; decorate it with @hawk.kernel" if callable(kernel) else ""
        raise ArgumentError(f"expected a hawk kernel, found {kernel!r}{hint}")
    if isinstance(kernel.definition, Vjp):
        raise ArgumentError(
            f"{kernel.name} is a vjp: it belongs to a reverse, never to a forward step. "
            "eagle.diff.reverse builds and runs it for you"
        )


__all__ = ["Bound", "Plan", "auto", "plan"]
