"""Planes: NumPy arrays as the arguments of a kernel over all samples, checked by name before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hawk.ir.program import PER_SAMPLE, Argument, Role
from hawk.ir.types import PRECISIONS, Type

from .errors import ArgumentError, PlaneError

Array = NDArray[Any]

WRITTEN = frozenset({Role.MUTABLE, Role.TERMINATED, Role.SUM, Role.TABLE_SUM})
_SCALARS = {Type.I32: "Int32", Type.U32: "UInt32", Type.BOOL: "Bool"}


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """An array in an argument's place. For a param: a one-value array of its own."""

    argument: Argument
    array: Array

    @property
    def samples(self) -> int:
        return int(self.array.shape[-1])

    @property
    def component_stride(self) -> int:
        """Bytes from one component of a sample to the next."""
        a = self.array
        if self.argument.role in PER_SAMPLE:
            return int(a.strides[-2]) if a.ndim > 1 else int(a.nbytes)
        return int(a.itemsize)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for two planes of the same memory seen the same way; an empty array is like no other."""
        a = self.array
        if not a.size:
            return (id(a),)
        return a.__array_interface__["data"][0], a.shape, a.strides, a.dtype.str


def described(argument: Argument) -> str:
    """An argument as its annotation reads: ``Vector[4]``."""
    if argument.role is Role.TABLE:
        return f"Table{list(argument.shape)}"
    if argument.role is Role.TERMINATED:
        return "Terminated"
    base = _SCALARS.get(argument.type, "Scalar")
    if argument.shape:
        base = f"{'Vector' if len(argument.shape) == 1 else 'Matrix'}{list(argument.shape)}"
    if argument.role is Role.PARAM:
        return "Param" if base == "Scalar" else f"Param[{base}]"
    if argument.role is Role.SUM:
        return f"the sum over the samples of a {base}"
    return f"Mutable[{base}]" if argument.role is Role.MUTABLE else base


def check_names(kernel: str, arguments: Iterable[Argument], given: Iterable[str]) -> None:
    """ArgumentError for a missing or an unknown plane."""
    wanted = [a.name for a in arguments]
    given = list(given)
    missing = [name for name in wanted if name not in given]
    unknown = [name for name in given if name not in wanted]
    if missing:
        raise ArgumentError(f"{kernel}: missing {', '.join(missing)}; its planes are {', '.join(wanted)}")
    if unknown:
        raise ArgumentError(f"{kernel}: no plane is named {', '.join(unknown)}; its planes are {', '.join(wanted)}")


def bind_planes(kernel: str, arguments: Iterable[Argument], given: Mapping[str, object]) -> dict[str, Plane]:
    """The planes of one launch, each checked, then all of them together (sample counts, aliasing)."""
    arguments = tuple(arguments)
    check_names(kernel, arguments, given)
    planes = {a.name: bind_plane(kernel, a, given[a.name]) for a in arguments}
    check_samples(kernel, planes.values())
    check_aliasing([(f"{kernel}: {p.argument.name}", p) for p in planes.values()])
    return planes


def bind_plane(kernel: str, argument: Argument, value: object) -> Plane:
    """One argument's plane; PlaneError or ArgumentError, naming it, for a value that cannot be one."""
    where = f"{kernel}: {argument.name}"
    if argument.role is Role.PARAM:
        return Plane(argument, param_value(where, argument, value))
    if not isinstance(value, np.ndarray):
        raise ArgumentError(
            f"{where} is {described(argument)}: expected a NumPy array of {argument.type.dtype} with shape "
            f"{_shape_text(argument)}, found {type(value).__name__}"
        )
    _check_array(where, argument, value)
    return Plane(argument, value)


def _shape_text(argument: Argument) -> str:
    if argument.role in PER_SAMPLE:
        return f"({', '.join([*map(str, argument.shape), 'n'])}{',' if not argument.shape else ''})"
    return str(argument.shape)


def _check_array(where: str, argument: Argument, array: Array) -> None:
    what = f"{where} is {described(argument)}"
    dtype = argument.type.dtype
    if array.dtype != dtype:
        fix = f"pass {argument.name}.astype(np.{dtype})"
        if argument.type.is_real and str(array.dtype) in PRECISIONS:
            fix += f", or deploy with mode={str(array.dtype)!r}"
        raise PlaneError(f"{what}: found dtype {array.dtype}, expected {dtype}. Nothing is converted silently: {fix}")
    per_sample = argument.role in PER_SAMPLE
    lead = array.shape[:-1] if per_sample else array.shape
    if array.ndim != len(argument.shape) + per_sample or lead != argument.shape:
        hint = ""
        if (
            per_sample
            and argument.shape
            and array.ndim == len(argument.shape) + 1
            and array.shape[1:] == argument.shape
        ):
            hint = ". The sample axis comes last: pass np.ascontiguousarray(np.moveaxis(array, 0, -1))"
        raise PlaneError(f"{what}: expected shape {_shape_text(argument)}, found {array.shape}{hint}")
    if not array.flags.aligned:
        raise PlaneError(f"{what}: the array is not aligned; pass a copy of it")
    if not _is_packed(argument, array):
        raise PlaneError(
            f"{what}: its samples are not next to each other in memory (strides {array.strides}); "
            f"pass np.ascontiguousarray(...), and copy the result back if it is an output"
        )
    if argument.role in WRITTEN and not array.flags.writeable:
        raise PlaneError(f"{what}: the kernel writes it, and the array is read-only; pass a writable copy")


def _is_packed(argument: Argument, array: Array) -> bool:
    if argument.role not in PER_SAMPLE:
        return bool(array.flags.c_contiguous)
    if array.size == 0:
        return True
    if array.shape[-1] > 1 and array.strides[-1] != array.itemsize:
        return False
    # the components of a matrix must be evenly spaced: row stride = columns * column stride
    return array.ndim < 3 or array.strides[0] == array.shape[1] * array.strides[1] or array.shape[0] == 1


def param_value(where: str, argument: Argument, value: object) -> Array:
    """A param's value as an array of its own: what is bound later changes nothing."""
    try:
        given = np.asarray(value)
    except ValueError:
        given = np.asarray(None)
    if given.dtype.kind not in "fiub":
        raise ArgumentError(f"{where} is {described(argument)}: expected a number, found {type(value).__name__}")
    if given.shape != argument.shape:
        per_sample = " (for one value per sample, declare it Scalar)" if given.ndim == 1 and not argument.shape else ""
        raise PlaneError(
            f"{where} is {described(argument)}, one value for the whole batch: expected shape "
            f"{argument.shape}, found {given.shape}{per_sample}"
        )
    if argument.type.is_int and given.dtype.kind == "f":
        raise PlaneError(f"{where} holds {argument.type.dtype} values: found {value!r}; pass an integer")
    if argument.type.is_int and not (given == given.astype(argument.type.dtype)).all():
        bounds = np.iinfo(argument.type.dtype)
        raise PlaneError(f"{where} holds {argument.type.dtype} values, {bounds.min} to {bounds.max}: found {value!r}")
    with np.errstate(over="ignore"):
        return np.array(given, argument.type.dtype, order="C")


def check_samples(kernel: str, planes: Iterable[Plane]) -> int:
    """The number of samples; PlaneError if two planes disagree or none tells."""
    first: Plane | None = None
    for plane in planes:
        if plane.argument.role not in PER_SAMPLE:
            continue
        if first is None:
            first = plane
        elif plane.samples != first.samples:
            raise PlaneError(
                f"{kernel}: {first.argument.name} has {first.samples} samples and {plane.argument.name} has "
                f"{plane.samples}; every plane of a launch has the same number"
            )
    if first is None:
        raise PlaneError(f"{kernel}: no argument is a plane, so the number of samples is unknown; add a Scalar")
    return first.samples


def written(plane: Plane) -> bool:
    return plane.argument.role in WRITTEN


def check_aliasing(planes: list[tuple[str, Plane]], within_one_launch: bool = True) -> None:
    """PlaneError for planes whose order of reading and writing would matter.

    The same array in two places is fine while at most one of them is written. Views that overlap only in
    part are refused when one is written; within one launch, so are two written places on one array.
    """
    spans = sorted(((*_bounds(p.array), name, p) for name, p in planes if p.array.size), key=lambda s: s[0])
    for k, (_, end, name, plane) in enumerate(spans):
        for low, _, other_name, other in spans[k + 1 :]:
            if low >= end:
                break
            if not (written(plane) or written(other)):
                continue
            if plane.key == other.key:
                if Role.TABLE in (plane.argument.role, other.argument.role):
                    raise PlaneError(
                        f"{name} and {other_name} are the same array, one as a table, which any sample reads anywhere, "
                        "and one as a plane that is written; give each its own"
                    )
                if within_one_launch and written(plane) and written(other):
                    raise PlaneError(f"{name} and {other_name} are written to the same array; give each its own")
            elif np.shares_memory(plane.array, other.array):
                raise PlaneError(
                    f"{name} and {other_name} overlap in memory, but are not the same view of it, and one is "
                    "written; pass the same array or separate ones"
                )


def _bounds(array: Array) -> tuple[int, int]:
    return np.lib.array_utils.byte_bounds(array)
