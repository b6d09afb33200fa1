"""Assignment: to names, to components, to tuples of targets."""

from __future__ import annotations

import ast
import operator
from typing import Any

import numpy as np

from .bundles import Bundle, as_bundle
from .calls import native
from .errors import KernelError
from .frames import Frame
from .structure import name_of
from .tracer import Tracer
from .values import Traced

LARGEST = 64  # items of a sequence that the kernel can index: an index is a choice among all of them


def iterate(t: Tracer, value: Any) -> list[Any]:
    """What iterating over a value gives, all of it known while tracing."""
    return list(native(f"{name_of(value)} cannot be iterated", lambda: list(value)))


def as_vector(value: Any) -> Any:
    """A sequence or array of constants as a vector or matrix, to be indexed by the kernel."""
    if len(value) > LARGEST:
        raise KernelError(f"{name_of(value)} indexed by the kernel", "pass it as a Table and read it with .at")
    return as_bundle(value)


def assign(t: Tracer, frame: Frame, target: ast.expr, value: Any) -> None:
    """Bind a target: a name, a component, or a tuple of targets."""
    with t.at(frame, target):
        if isinstance(target, ast.Name):
            frame.bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            _unpack(t, frame, target.elts, value)
        elif isinstance(target, ast.Subscript):
            _set_item(t, frame, target, value)
        elif isinstance(target, ast.Attribute):
            raise KernelError(f"a kernel changes no objects: .{target.attr} = ...", "keep the value in a local name")
        else:
            raise KernelError(f"nothing can be assigned to {ast.unparse(target)}")


def _unpack(t: Tracer, frame: Frame, targets: list[ast.expr], value: Any) -> None:
    values = iterate(t, value)
    star = next((k for k, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
    if len(values) != len(targets) if star is None else len(values) < len(targets) - 1:
        wanted = f"at least {len(targets) - 1}" if star is not None else str(len(targets))
        raise KernelError(f"{name_of(value)} unpacked into {wanted} names", "give a name to every component")
    if star is not None:
        after = len(targets) - star - 1
        middle = t.heap.made(values[star : len(values) - after])
        starred = targets[star]
        assert isinstance(starred, ast.Starred)
        targets = [*targets[:star], starred.value, *targets[star + 1 :]]
        values = [*values[:star], middle, *values[len(values) - after :]]
    for target, part in zip(targets, values, strict=True):
        assign(t, frame, target, part)


def _set_item(t: Tracer, frame: Frame, target: ast.Subscript, value: Any) -> None:
    container, index = t.evaluate(frame, target.value), t.evaluate(frame, target.slice)
    set_item(t, frame, target, container, index, value)


def set_item(t: Tracer, frame: Frame, target: ast.Subscript, container: Any, index: Any, value: Any) -> None:
    """``container[index] = value``; a vector is a value, so its name (or item) gets a new one."""
    if isinstance(container, np.ndarray):
        container = as_vector(container)
    if isinstance(container, Bundle):
        assign(t, frame, target.value, container.replaced(index, value))
    elif isinstance(container, list):
        t.heap.change(container)
        if isinstance(index, Traced):
            container[:] = as_vector(container).replaced(index, value).items
            return
        native(f"{name_of(container)}[...] = ...", operator.setitem, container, index, value)
    else:
        raise KernelError(f"{name_of(container)} cannot be changed", "use a Vector or a list made in the kernel")
