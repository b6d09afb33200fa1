"""What a kernel's arguments are annotated with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from ..ir.program import Argument, Role
from ..ir.types import Type
from .bundles import Bundle
from .errors import KernelError
from .values import as_real


@final
@dataclass(frozen=True, slots=True)
class Annotation:
    """A role, a shape, a type. ``Vector[3](x, y, z)`` builds a vector inside a kernel."""

    shape: tuple[int, ...] = ()
    type: Type = Type.REAL
    role: Role = Role.SAMPLE
    axes: tuple[str, ...] = ()
    samples_first: bool = False

    def argument(self, name: str) -> Argument:
        return Argument(name, self.role, self.shape, self.type, self.axes, self.samples_first)

    def __call__(self, *components: object) -> Bundle:
        """A vector or matrix of real components, row by row; as many as the shape has."""
        if not self.shape or self.type is not Type.REAL or self.role is not Role.SAMPLE:
            raise KernelError(f"{self} is an annotation, it builds no value", "build one with hm.vec(...)")
        if len(components) != self.argument("").size:
            raise KernelError(f"{self} takes {self.argument('').size} components, got {len(components)}")
        return Bundle(self.shape, tuple(as_real(c) for c in components))

    def __repr__(self) -> str:
        if self.role is Role.TABLE:
            return f"Table[{', '.join(f'{a!r}:{n}' for a, n in zip(self.axes, self.shape, strict=True))}]"
        names = {Type.REAL: "Scalar", Type.I32: "Int32", Type.U32: "UInt32", Type.BOOL: "Bool"}
        inner = names[self.type]
        if self.shape:
            inner = f"{'Vector' if len(self.shape) == 1 else 'Matrix'}[{', '.join(map(str, self.shape))}]"
        if self.samples_first:
            inner = f"samples_first({inner})"
        wrap = {
            Role.SAMPLE: "{}",
            Role.PARAM: "Param[{}]",
            Role.MUTABLE: "Mutable[{}]",
            Role.TERMINATED: "Terminated",
        }
        return wrap[self.role].format(inner)


Scalar = Annotation()
"""One real per sample: a plane of shape (n,)."""
Int32 = Annotation(type=Type.I32)
"""One 32-bit integer per sample."""
UInt32 = Annotation(type=Type.U32)
"""One unsigned 32-bit integer per sample."""
Bool = Annotation(type=Type.BOOL)
"""One bool per sample."""
Terminated = Annotation(type=Type.BOOL, role=Role.TERMINATED)
"""The stop flag of a run: a Mutable bool, True when the sample is done."""


@final
class Vector:
    """``Vector[n]``: n reals per sample, a plane of shape (n, samples).

    Inside a kernel a vector is a value, as a number is: assignment copies it and ``v[0] = ...`` changes
    only `v`.
    """

    def __class_getitem__(cls, extent: object) -> Annotation:
        return Annotation(_extents("Vector", "Vector[3]", extent, 1))


@final
class Matrix:
    """``Matrix[rows, columns]``: a plane of shape (rows, columns, samples)."""

    def __class_getitem__(cls, extents: object) -> Annotation:
        return Annotation(_extents("Matrix", "Matrix[2, 3]", extents, 2))


@final
class Param:
    """One value for the whole batch: ``Param`` (a real), ``Param[Vector[n]]``, ``Param[Int32]``, ..."""

    def __class_getitem__(cls, inner: object) -> Annotation:
        return replace(_inner("Param", inner), role=Role.PARAM)


@final
class Mutable:
    """A plane the kernel writes: ``Mutable[Scalar]``, ``Mutable[Vector[n]]``, ``Mutable[Int32]``, ...

    Read before it is assigned, it is the value in its plane; assigned on some paths only, it keeps that
    value on the others.
    """

    def __class_getitem__(cls, inner: object) -> Annotation:
        return replace(_inner("Mutable", inner), role=Role.MUTABLE)


@final
class Table:
    """``Table["h":8, "i":2]``: one array of reals shared by all samples, read with ``.at(h=..., i=...)``."""

    def __class_getitem__(cls, axes: object) -> Annotation:
        names, extents = [], []
        for axis in axes if isinstance(axes, tuple) else (axes,):
            named = isinstance(axis, slice) and isinstance(axis.start, str) and axis.step is None
            if not named or not axis.start.isidentifier():
                raise KernelError(f"Table[{axis!r}] needs a name and a size for each axis", 'write Table["i":16]')
            names.append(axis.start)
            extents.append(_extent("Table", axis.stop))
        if len(set(names)) < len(names):
            raise KernelError(f"Table has two axes named {max(names, key=names.count)!r}", "give each its own name")
        return Annotation(tuple(extents), role=Role.TABLE, axes=tuple(names))


def samples_first(annotation: object) -> Annotation:
    """Mark a plane whose sample axis comes first: ``samples_first(Vector[3])`` is (samples, 3)."""
    return replace(resolve(annotation), samples_first=True)


def samples_last(annotation: object) -> Annotation:
    """Mark a plane whose sample axis comes last, as all do by default."""
    return replace(resolve(annotation), samples_first=False)


def resolve(annotation: object) -> Annotation:
    """The annotation a user wrote, as an `Annotation`; KernelError with what to write instead."""
    if isinstance(annotation, Annotation):
        return annotation
    if annotation is Param:
        return replace(Scalar, role=Role.PARAM)
    if annotation in (Vector, Matrix, Mutable, Table):
        examples = {
            Vector: "Vector[3]",
            Matrix: "Matrix[2, 2]",
            Mutable: "Mutable[Scalar]",
            Table: 'Table["i":16]',
        }
        name = annotation.__name__
        raise KernelError(f"{name} alone does not say of what", f"write for example {examples[annotation]}")
    name = annotation.__name__ if isinstance(annotation, type) else repr(annotation)
    raise KernelError(f"{name} is not an annotation of hawk", _suggestion(annotation))


def _suggestion(annotation: object) -> str:
    ours = {
        float: "hawk.Scalar (or hawk.Param)",
        int: "hawk.Int32 (or hawk.Param[hawk.Int32])",
        bool: "hawk.Bool",
    }
    if isinstance(annotation, type) and annotation in ours:
        return f"write {ours[annotation]}"
    return "write Scalar, Vector[n], Matrix[r, c], Int32, UInt32, Bool, Param, Mutable[...], Table[...], Terminated"


def _inner(outer: str, inner: object) -> Annotation:
    found = resolve(inner)
    if found.role is not Role.SAMPLE:
        raise KernelError(f"{outer}[{found}] nests two roles", f"write {outer}[...] around Scalar, Vector[n], ...")
    return found


def _extents(what: str, example: str, extents: object, count: int) -> tuple[int, ...]:
    given = extents if isinstance(extents, tuple) else (extents,)
    if len(given) != count:
        raise KernelError(f"{what}{list(given)} has {len(given)} sizes", f"write for example {example}")
    return tuple(_extent(what, extent) for extent in given)


def _extent(what: str, extent: object) -> int:
    if isinstance(extent, bool) or not isinstance(extent, int) or extent < 1:
        raise KernelError(f"{what}: a size is a whole number from 1, not {extent!r}")
    return int(extent)
