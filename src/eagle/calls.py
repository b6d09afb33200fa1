"""Calling a kernel like a function on arrays: inputs converted, outputs allocated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from hawk.ir.program import PER_SAMPLE, Argument, Program, Role
from hawk.ir.types import PRECISIONS
from hawk.kernel import Kernel, runs_calls

from .errors import ArgumentError, PlaneError
from .plan import Plan
from .planes import WRITTEN, Array, described, new_array, samples_to_end, samples_to_place


@runs_calls
def call(kernel: Kernel, values: tuple[object, ...], named: Mapping[str, object]) -> Any:
    """`kernel` on `values` in argument order and `named` ones; see `hawk.Kernel.__call__`."""
    given = _given(_any_program(kernel), values, named)
    plan = _plan(kernel, _mode(kernel, given))
    arguments = {a.name: a for a in plan.program.arguments}
    inputs = {k: _Input.of(f"{plan.name}: {k}", arguments[k], v) for k, v in given.items()}
    samples = next((i.samples for i in inputs.values() if i.samples is not None), None)
    n = 1 if samples is None else samples
    planes = {k: i.plane(n) for k, i in inputs.items()}
    planes |= {a.name: new_array(a, n) for a in arguments.values() if a.name not in given}
    plan.bind(**planes).launch()
    found = [k for k in plan.program.returns or arguments if k not in given or k in plan.program.returns]
    results = tuple(_result(arguments[k], planes[k], samples is None) for k in found)
    in_a_tuple = len(results) > 1 or any(k.startswith("out0") for k in plan.program.returns)
    return results if in_a_tuple else results[0] if results else None


def _any_program(kernel: Kernel) -> Program:
    """The kernel's program at some precision: what its arguments are, but for their dtypes."""
    for plan in kernel.plans.values():
        return plan.program
    mode = next(mode for mode, real in PRECISIONS.items() if real in kernel.definition.precisions)
    return kernel.program(mode)


def _plan(kernel: Kernel, mode: str) -> Plan:
    plan = kernel.plans.get(mode)
    return plan if plan is not None else kernel.plans.setdefault(mode, Plan(kernel, mode))


def _given(program: Program, values: tuple[object, ...], named: Mapping[str, object]) -> dict[str, object]:
    """The values by name, in argument order. ArgumentError for one too many, one given twice, one missing."""
    every = [a.name for a in program.arguments]
    names = [k for k in every if k not in program.returns]
    usage = f"it is {program.name}({', '.join(names)})"
    if len(values) > len(names):
        raise ArgumentError(f"{program.name} takes {len(names)} arguments, {len(values)} were given; {usage}")
    given = dict(zip(names, values, strict=False))
    for name in named:
        if name in given:
            raise ArgumentError(f"{program.name}: {name} is given twice, as argument {names.index(name) + 1} and by name")
        if name not in every:
            raise ArgumentError(f"{program.name} has no argument {name}; {usage}")
    given |= named
    reads = program.reads()
    absent = [a for a in program.arguments if a.name not in given and (a.role not in WRITTEN or a.name in reads)]
    missing = [a.name for a in absent if a.role not in WRITTEN]
    if missing:
        raise ArgumentError(f"{program.name}: missing {', '.join(missing)}; {usage}")
    for a in absent:
        raise ArgumentError(
            f"{program.name}: {a.name} is {described(a)} and read before it is written, so it is not allocated: pass an "
            f"array, {a.name}=..., which is written in place"
        )
    return {k: given[k] for k in every if k in given}


def _mode(kernel: Kernel, given: Mapping[str, object]) -> str:
    """The precision that the arrays of reals have."""
    ours = {a.name: a for a in _any_program(kernel).arguments}
    found: dict[str, str] = {}
    for name, value in given.items():
        argument = ours[name]
        if argument.role is Role.PARAM or not argument.type.is_real or isinstance(value, (list, tuple, int, float)):
            continue
        array = np.asarray(value)
        mode = array.dtype.newbyteorder("=").name
        if array.ndim > 0 and mode in PRECISIONS:
            found.setdefault(mode, name)
    if len(found) > 1:
        (mode, name), (other, second) = found.items()
        raise ArgumentError(
            f"{kernel.name}: {name} is {mode} and {second} is {other}; a call computes in one precision: pass "
            f"{name}.astype(np.{other}) or {second}.astype(np.{mode})"
        )
    modes = [mode for mode, real in PRECISIONS.items() if real in kernel.definition.precisions]
    return next(iter(found), modes[0])


@final
@dataclass(frozen=True, slots=True)
class _Input:
    """One value of a call. `samples`: how many it has, None if it is the same for all."""

    argument: Argument
    value: object
    samples: int | None

    @classmethod
    def of(cls, where: str, argument: Argument, value: object) -> _Input:
        if argument.role is Role.PARAM:
            return cls(argument, value, None)
        if argument.role in WRITTEN:
            fits = argument.role in PER_SAMPLE and isinstance(value, np.ndarray) and value.ndim > 0
            return cls(argument, value, samples_to_end(argument, value).shape[-1] if fits else None)  # type: ignore[arg-type]
        array = _numbers(where, argument, value)
        if argument.role is Role.TABLE:
            return cls(argument, np.require(array, requirements="CA"), None)
        own = array.shape == argument.shape
        return cls(argument, array, None if own or array.ndim == 0 else samples_to_end(argument, array).shape[-1])

    def plane(self, samples: int) -> object:
        """What to bind."""
        value, shape = self.value, self.argument.shape
        if self.argument.role is not Role.SAMPLE or not isinstance(value, np.ndarray) or value.shape != shape:
            return value
        return samples_to_place(self.argument, np.broadcast_to(value[..., None], (*shape, samples)))


def _numbers(where: str, argument: Argument, value: object) -> Array:
    """An input as an array of its argument's dtype, with the values it was given."""
    dtype = argument.type.dtype
    masked = isinstance(value, np.ma.MaskedArray)
    try:
        array = np.asarray(None if masked else value)
    except ValueError:  # ragged
        array = np.asarray(None)
    kinds = "b" if dtype.kind == "b" else "iub" if dtype.kind in "iu" else "fiub"
    if array.dtype == dtype:
        return array
    if array.size == 0 and isinstance(value, (list, tuple)):
        return array.astype(dtype)
    if array.dtype.kind not in kinds:
        found = f"an array of {array.dtype}" if isinstance(value, np.ndarray) and not masked else type(value).__name__
        raise ArgumentError(f"{where} is {described(argument)}: expected numbers that fit {dtype}, found {found}")
    with np.errstate(over="ignore"):
        converted = array.astype(dtype)
    rounded = array.dtype.kind == "f" and array.dtype.itemsize > dtype.itemsize and not isinstance(value, (list, tuple))
    if (rounded and array.ndim > 0) or (dtype.kind in "iu" and not (converted == array).all()):
        raise PlaneError(
            f"{where} is {described(argument)}: found {array.dtype} values, which do not all fit {dtype}; pass "
            f"{argument.name}.astype(np.{dtype}) if that is meant"
        )
    return converted


def _result(argument: Argument, value: object, of_one: bool) -> Any:
    assert isinstance(value, np.ndarray)
    if argument.role not in PER_SAMPLE:
        return value[()]
    return samples_to_end(argument, value)[..., 0] if of_one else value
