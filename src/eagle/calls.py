"""Calling a kernel like a function on arrays: inputs converted, outputs allocated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from hawk.codegen.frame import slots
from hawk.ir.program import PER_SAMPLE, Argument, Role
from hawk.ir.types import PRECISIONS
from hawk.kernel import Kernel, runs_calls

from .devices.host import HostProgram
from .errors import ArgumentError, PlaneError
from .plan import Plan
from .planes import WRITTEN, Array, bind_plane, check_samples, described, new_array, samples_to_end, samples_to_place


@runs_calls
@final
class Function:
    """A kernel as a function on arrays, ready for ``hawk.Kernel.__call__``."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._modes = [mode for mode, real in PRECISIONS.items() if real in kernel.definition.precisions]
        program = kernel.program(self._modes[0])
        self._arguments = {a.name: a for a in program.arguments}
        self._returns = program.returns
        self._in_order = [k for k in self._arguments if k not in program.returns]
        self._read = program.reads()
        self._launchers: dict[str, Launcher] = {}

    def __call__(self, values: tuple[object, ...], named: Mapping[str, object]) -> Any:
        given = self._given(values, named)
        launcher = self._launcher(self._mode(given) or self._modes[0])
        arguments = launcher.arguments
        planes = {k: _converted(f"{self._kernel.name}: {k}", arguments[k], v) for k, v in given.items()}
        counts = [n for k, v in planes.items() if (n := _samples(arguments[k], v)) is not None]
        samples = counts[0] if counts else 1
        planes = {k: _spread(arguments[k], v, samples) for k, v in planes.items()}
        outputs = {k: new_array(a, samples) for k, a in arguments.items() if k not in given}
        launcher.launch(planes, outputs, samples)

        results = [_result(arguments[k], (planes | outputs)[k], bool(counts)) for k in self._returns or outputs]
        in_a_tuple = len(results) > 1 or any(k.startswith("out0") for k in self._returns)
        return tuple(results) if in_a_tuple else results[0] if results else None

    def _launcher(self, mode: str) -> Launcher:
        if mode not in self._launchers:
            plans = self._kernel.plans
            if mode not in plans:
                plans[mode] = Plan(self._kernel, mode)
            self._launchers[mode] = Launcher(plans[mode])
        return self._launchers[mode]

    def _given(self, values: tuple[object, ...], named: Mapping[str, object]) -> dict[str, object]:
        """The values by name. ArgumentError for one too many, given twice, unknown or missing."""
        name, usage = self._kernel.name, f"it is {self._kernel.name}({', '.join(self._in_order)})"
        if len(values) > len(self._in_order):
            raise ArgumentError(f"{name} takes {len(self._in_order)} arguments, {len(values)} were given; {usage}")
        given = dict(zip(self._in_order, values, strict=False))
        for k in named:
            if k in given:
                raise ArgumentError(f"{name}: {k} is given twice, in place {self._in_order.index(k) + 1} and by name")
            if k not in self._arguments:
                raise ArgumentError(f"{name} has no argument {k}; {usage}")
        given |= named
        absent = [a for k, a in self._arguments.items() if k not in given]
        missing = [a.name for a in absent if a.role not in WRITTEN]
        if missing:
            raise ArgumentError(f"{name}: missing {', '.join(missing)}; {usage}")
        for a in absent:
            if a.name in self._read:
                raise ArgumentError(
                    f"{name}: {a.name} is {described(a)} and read before it is written, so it is not allocated: pass "
                    f"an array, {a.name}=..., which is written in place"
                )
        return given

    def _mode(self, given: Mapping[str, object]) -> str | None:
        """The precision that the arrays of reals have, None if there are none. Lists and numbers have no say."""
        found: dict[str, str] = {}
        for k, value in given.items():
            a = self._arguments[k]
            if not a.type.is_real or a.role is Role.PARAM or isinstance(value, (list, tuple, int, float)):
                continue
            array = np.asarray(value)
            mode = array.dtype.newbyteorder("=").name
            if array.ndim > 0 and mode in PRECISIONS:
                found.setdefault(mode, k)
        if len(found) > 1:
            (mode, k), (other, second) = found.items()
            raise PlaneError(
                f"{self._kernel.name}: {k} is {mode} and {second} is {other}; a call computes in one precision: pass "
                f"{k}.astype(np.{other}) or {second}.astype(np.{mode})"
            )
        return next(iter(found), None)


@final
class Launcher:
    """A plan for calls: the device program of its newest batch size is kept for the next call."""

    def __init__(self, plan: Plan) -> None:
        self.arguments = {a.name: a for a in plan.program.arguments}
        self._plan = plan
        self._program: HostProgram | None = None

    def launch(self, given: Mapping[str, object], outputs: Mapping[str, Array], samples: int) -> None:
        """Run the plan once, on values given and on outputs that nothing else refers to."""
        if any(self.arguments[k].role in WRITTEN for k in given) or self._plan.program.tapes:
            self._plan.bind(**given, **outputs).launch()
            return
        planes = {k: bind_plane(self._plan.name, a, given[k]) for k, a in self.arguments.items() if k in given}
        check_samples(self._plan.name, planes.values())
        arrays = (*(p.array for p in planes.values()), *outputs.values())
        in_place = all(p.by_component.flags.c_contiguous and p.array.flags.aligned for p in planes.values())
        if not in_place or not self._program_for(samples).run_with(arrays):  # or a call of another thread is running
            self._plan.bind(**given, **outputs).launch()

    def _program_for(self, samples: int) -> HostProgram:
        program = self._program
        if program is None or program.samples != samples:
            program = self._program = self._made(samples)
        return program

    def _made(self, samples: int) -> HostProgram:
        """The launch with every array given when it is run: what is read, then what is written."""
        program = self._plan.program
        written = program.writes()
        order = sorted(self.arguments, key=lambda k: k in written)
        device = HostProgram(samples, len(order), len(written))
        places = {}
        for slot in slots(program):
            a = slot.argument
            place = device.late_sum if a.role in (Role.SUM, Role.TABLE_SUM) else device.late
            places[a.name, slot.writes] = place(a, order.index(a.name))
        self._plan.call_step(device, places)
        return device


def _converted(where: str, argument: Argument, value: object) -> object:
    """An input as an array of its argument's dtype; a param and an output as they are."""
    if argument.role is Role.PARAM or argument.role in WRITTEN:
        return value
    array = _numbers(where, argument, value)
    return np.require(array, requirements=("C", "A")) if argument.role is Role.TABLE else array


def _numbers(where: str, argument: Argument, value: object) -> Array:
    """An input as an array of its argument's dtype. Errors for what is no number and for values that do not fit."""
    dtype = argument.type.dtype
    if type(value) is np.ndarray and value.dtype == dtype:
        return value
    masked = isinstance(value, np.ma.MaskedArray)
    try:
        array = np.asarray(None if masked else value)
    except ValueError:  # ragged
        array = np.asarray(None)
    if array.dtype == dtype or (isinstance(value, list) and not array.size):
        return array.astype(dtype, copy=False)
    if array.dtype.kind not in {"b": "b", "f": "fiub"}.get(dtype.kind, "iub"):
        found = f"{array.dtype} values" if array.dtype.kind in "fiubc" else type(value).__name__
        raise ArgumentError(f"{where} is {described(argument)}: expected numbers that fit {dtype}, found {found}")
    with np.errstate(over="ignore"):
        converted = array.astype(dtype)
    wider = isinstance(value, np.ndarray) and array.dtype.kind == "f" and array.dtype.itemsize > dtype.itemsize
    if wider or (dtype.kind != "f" and not (converted == array).all()):
        raise PlaneError(
            f"{where} is {described(argument)}: found {array.dtype} values that may not fit {dtype}; pass "
            f"{argument.name}.astype(np.{dtype}) if that is meant"
        )
    return converted


def _samples(argument: Argument, value: object) -> int | None:
    """How many samples a value has; None if it is the same for all."""
    if argument.role in PER_SAMPLE and isinstance(value, np.ndarray) and value.ndim == len(argument.shape) + 1:
        return int(samples_to_end(argument, value).shape[-1])
    return None


def _spread(argument: Argument, value: object, samples: int) -> object:
    """An input that is the same for all samples as a plane; every other value as it is."""
    if argument.role is not Role.SAMPLE or not isinstance(value, np.ndarray) or value.shape != argument.shape:
        return value
    return samples_to_place(argument, np.broadcast_to(value[..., None], (*argument.shape, samples)))


def _result(argument: Argument, value: Any, of_samples: bool) -> Any:
    """An output as it is returned: without its sample axis if no input has one, and a number as a number."""
    if argument.role not in PER_SAMPLE:
        return value[()]
    return value if of_samples else samples_to_end(argument, value)[..., 0][()]
