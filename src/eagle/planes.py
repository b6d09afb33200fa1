"""Planes: NumPy arrays as the arguments of a kernel over all samples, checked by name before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hawk.ir.program import PER_SAMPLE, Argument, Role
from hawk.ir.types import PRECISIONS, Type

from .errors import ArgumentError, PlaneError

Array = NDArray[Any]

WRITTEN = frozenset({Role.MUTABLE, Role.TERMINATED, Role.SUM, Role.TABLE_SUM})
_SCALARS = {Type.I32: "Int32", Type.U32: "UInt32", Type.BOOL: "Bool"}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a plane's scalars lie, in bytes from its first.

    The components fall into groups of equally many, evenly spaced by `component`; `groups` says where each
    starts. All but odd views of matrices are one group.
    """

    sample: int
    component: int
    groups: tuple[int, ...] = (0,)


@dataclass(frozen=True, eq=False)  # no slots: what is asked of a plane again and again is kept
class Plane:
    """An array in an argument's place. For a param: a one-value array of its own."""

    argument: Argument
    array: Array

    @cached_property
    def by_component(self) -> Array:
        """The array with its sample axis last, whatever the user's is."""
        return samples_to_end(self.argument, self.array)

    def over(self, by_component: Array) -> Plane:
        """The same argument on another array, given with its sample axis last."""
        return Plane(self.argument, samples_to_place(self.argument, by_component))

    @property
    def samples(self) -> int:
        return int(self.array.shape[0 if self.argument.samples_first else -1])

    @cached_property
    def layout(self) -> Layout:
        a = self.by_component
        if self.argument.role not in PER_SAMPLE:
            return Layout(0, a.itemsize)
        shape, (*strides, sample) = a.shape[:-1], a.strides
        if len(shape) < 2:
            return Layout(sample, strides[0] if shape else 0)
        (rows, columns), (row, column) = shape, strides
        if columns == 1:
            return Layout(sample, row)
        even = rows == 1 or row == columns * column
        return Layout(sample, column, (0,) if even else tuple(row * k for k in range(rows)))

    @cached_property
    def packed(self) -> bool:
        """Whether a compiled kernel can work on it in place: its samples lie next to each other, its components
        are evenly spaced, all aligned. Other planes are copied block by block."""
        a = self.by_component
        if not a.flags.aligned or a.flags.c_contiguous:
            return bool(a.flags.aligned)
        layout = self.layout
        return len(layout.groups) == 1 and layout.sample == a.itemsize

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for two planes of the same memory seen the same way; an empty array is like no other."""
        a = self.by_component
        if not a.size:
            return (id(self.array),)
        strides = tuple(s if n > 1 else 0 for n, s in zip(a.shape, a.strides, strict=True))
        return a.__array_interface__["data"][0], a.shape, strides, a.dtype.str


def _turned(argument: Argument) -> bool:
    return argument.samples_first and bool(argument.shape) and argument.role in PER_SAMPLE


def samples_to_end(argument: Argument, array: Array) -> Array:
    """A view of an argument's array with the sample axis last."""
    return array.transpose(*range(1, array.ndim), 0) if _turned(argument) else array


def samples_to_place(argument: Argument, array: Array) -> Array:
    """A view, with the sample axis where the argument has it, of an array that has it last."""
    return array.transpose(array.ndim - 1, *range(array.ndim - 1)) if _turned(argument) else array


def new_array(argument: Argument, samples: int, make: Callable[..., Array] = np.empty) -> Array:
    """An array for an argument, packed in memory whichever its sample axis is."""
    shape = (*argument.shape, samples) if argument.role in PER_SAMPLE else argument.shape
    return samples_to_place(argument, make(shape, argument.type.dtype))


def described(argument: Argument) -> str:
    """An argument as its annotation reads: ``Vector[4]``."""
    if argument.role is Role.TABLE:
        return f"Table{list(argument.shape)}"
    if argument.role is Role.TERMINATED:
        return "Terminated"
    base = _SCALARS.get(argument.type, "Scalar")
    if argument.shape:
        base = f"{'Vector' if len(argument.shape) == 1 else 'Matrix'}{list(argument.shape)}"
        if argument.samples_first and argument.role in PER_SAMPLE:
            base = f"samples_first({base})"
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
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        hint = ", whose mask a kernel does not see; pass its .filled(...)" if isinstance(value, np.ndarray) else ""
        raise ArgumentError(
            f"{where} is {described(argument)}: expected a NumPy array of {argument.type.dtype} with shape "
            f"{_shape_text(argument)}, found {type(value).__name__}{hint}"
        )
    array = np.asarray(value)  # of a memmap or a matrix, what lies below
    fault = _fault(argument, array)
    if fault:
        raise PlaneError(f"{where} is {described(argument)}{fault}")
    return Plane(argument, array)


def _shape_text(argument: Argument) -> str:
    if argument.role not in PER_SAMPLE:
        return str(argument.shape)
    extents = [*map(str, argument.shape)]
    extents.insert(0 if argument.samples_first else len(extents), "n")
    return f"({', '.join(extents)}{',' if not argument.shape else ''})"


def _fault(argument: Argument, array: Array) -> str:
    """Why an array cannot be an argument's plane; nothing if it can."""
    dtype = argument.type.dtype
    if array.dtype != dtype:
        fix = f"pass {argument.name}.astype(np.{dtype})"
        if argument.type.is_real and str(array.dtype) in PRECISIONS:
            fix += f", or deploy with mode={str(array.dtype)!r}"
        return f": found dtype {array.dtype}, expected {dtype}. Nothing is converted silently: {fix}"
    if not _has_shape(argument, array):
        hint = _other_sample_axis(argument, array)
        return f": expected shape {_shape_text(argument)}, found {array.shape}{hint}"
    if argument.role not in PER_SAMPLE and not (array.flags.c_contiguous and array.flags.aligned):
        return (
            f", which all samples share: the array is not contiguous or not aligned (strides {array.strides}); pass "
            f"np.require({argument.name}, requirements='CA')"
        )
    if argument.role not in WRITTEN:
        return ""
    if not array.flags.c_contiguous and _overlaps_itself(array):
        return (
            f": the kernel writes it, and some of its elements are the same memory (shape {array.shape}, strides "
            f"{array.strides}); pass an array whose elements are apart"
        )
    if not array.flags.writeable:
        return ": the kernel writes it, and the array is read-only; pass a writable copy"
    return ""


def _has_shape(argument: Argument, array: Array) -> bool:
    if argument.role not in PER_SAMPLE:
        return array.shape == argument.shape
    components = array.shape[1:] if argument.samples_first else array.shape[:-1]
    return array.ndim == len(argument.shape) + 1 and components == argument.shape


def _other_sample_axis(argument: Argument, array: Array) -> str:
    """What to do if the array would fit with its sample axis at the other end."""
    other = replace(argument, samples_first=not argument.samples_first)
    if argument.role not in PER_SAMPLE or not argument.shape or not _has_shape(other, array):
        return ""
    end, axes, mark = "last", "0, -1", "samples_first"
    if argument.samples_first:
        end, axes, mark = "first", "-1, 0", "samples_last"
    return (
        f". The sample axis comes {end}: pass np.moveaxis({argument.name}, {axes}), a view that needs no copy, or mark "
        f"it hawk.{mark}(...) in the kernel"
    )


def _overlaps_itself(array: Array) -> bool:
    """Whether two elements share memory: two that differ in their first index, or two within one item."""
    if array.size < 2:
        return False
    return array.ndim > 0 and (np.shares_memory(array[:1], array[1:]) or _overlaps_itself(array[0]))


def param_value(where: str, argument: Argument, value: object) -> Array:
    """A param's value as an array of its own: what is bound later changes nothing."""
    if type(value) is float and argument.type is Type.F64 and not argument.shape:
        return np.array(value)
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
    spans = sorted(_bounds(p.array) for _, p in planes if p.array.size)
    if all(end <= low for (_, end), (low, _) in pairwise(spans)):
        return
    views: dict[object, list[tuple[str, Plane]]] = {}
    for name, plane in planes:
        if plane.array.size:
            views.setdefault(plane.key, []).append((name, plane))
    found = []
    for same in views.values():
        _check_one_view(same, within_one_launch)
        writer = next((name for name, plane in same if written(plane)), None)
        found.append((*_bounds(same[0][1].array), same[0][1].array, same[0][0], writer))
    found.sort(key=lambda view: view[0])
    for k, (_, end, array, name, writer) in enumerate(found):
        for low, _, other, other_name, other_writer in islice(found, k + 1, None):
            if low >= end:
                break
            if (writer or other_writer) and np.shares_memory(array, other):
                raise PlaneError(
                    f"{writer or name} and {other_name if writer else other_writer} overlap in memory, but are not the "
                    "same view of it, and one is written; pass the same array or separate ones"
                )


def _check_one_view(same: list[tuple[str, Plane]], within_one_launch: bool) -> None:
    """PlaneError for one view in several places of which too many are written."""
    writers = [name for name, plane in same if written(plane)]
    tables = [name for name, plane in same if plane.argument.role is Role.TABLE]
    if writers and tables:
        first, second = dict.fromkeys(name for name, _ in same if name in (writers[0], tables[0]))
        raise PlaneError(
            f"{first} and {second} are the same array, one as a table, which any sample reads anywhere, and one as a "
            "plane that is written; give each its own"
        )
    if within_one_launch and len(writers) > 1:
        raise PlaneError(f"{writers[0]} and {writers[1]} are written to the same array; give each its own")


def _bounds(array: Array) -> tuple[int, int]:
    """The first byte of an array and the one after its last."""
    start = int(array.__array_interface__["data"][0])
    if array.flags.c_contiguous:
        return start, start + array.nbytes
    reaches = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    below, above = sum(min(r, 0) for r in reaches), sum(max(r, 0) for r in reaches)
    return start + below, start + above + array.itemsize
