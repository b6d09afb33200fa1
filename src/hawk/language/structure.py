"""Values as trees of scalars, so that paths can be merged and loops can carry them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .bundles import Bundle, as_bundle
from .values import Traced, describe, is_scalar, plain


@final
class Fixed:
    """A part of a value that holds no numbers of the kernel: two are equal if they are the same object."""

    __slots__ = ("object",)

    def __init__(self, object: Any) -> None:
        self.object = object

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fixed):
            return False
        a, b = self.object, other.object
        return a is b or (isinstance(a, (str, bytes, np.dtype)) and type(a) is type(b) and bool(a == b))

    def __hash__(self) -> int:
        return 0


@final
@dataclass(frozen=True, slots=True)
class Tree:
    """The shape of a value: how its scalars are arranged. `kind` is None for a scalar."""

    kind: Any = None
    children: tuple[Tree, ...] = ()

    @property
    def has_list(self) -> bool:
        return self.kind is list or any(child.has_list for child in self.children)

    @property
    def is_fixed(self) -> bool:
        """Whether a part of it is no number: a loop cannot carry it."""
        return isinstance(self.kind, Fixed) or any(child.is_fixed for child in self.children)


SCALAR = Tree()


def flatten(value: Any, leaves: list[Any]) -> Tree:
    """The shape of `value`; its scalars are appended to `leaves`."""
    if is_scalar(value):
        leaves.append(plain(value))
        return SCALAR
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and 1 <= value.ndim <= 2 and value.size <= 64:
        value = as_bundle(value)
    if isinstance(value, Bundle):
        leaves.extend(value.items)
        return Tree(value.shape, (SCALAR,) * len(value.items))
    if isinstance(value, (list, tuple)):
        return Tree(type(value), tuple(flatten(item, leaves) for item in value))
    if isinstance(value, dict):
        return Tree((dict, *map(Fixed, value)), tuple(flatten(item, leaves) for item in value.values()))
    if is_record(value) and holds(value, Traced):
        return Tree(type(value), tuple(flatten(item, leaves) for item in fields(value)))
    return Tree(Fixed(value))


def rebuild(tree: Tree, leaves: Iterator[Any]) -> Any:
    """The value of shape `tree` whose scalars are `leaves`."""
    if tree.kind is None:
        return next(leaves)
    if isinstance(tree.kind, Fixed):
        return tree.kind.object
    items = [rebuild(child, leaves) for child in tree.children]
    if isinstance(tree.kind, tuple) and tree.kind and tree.kind[0] is dict:
        return {key.object: item for key, item in zip(tree.kind[1:], items, strict=True)}
    if isinstance(tree.kind, tuple):
        return Bundle(tree.kind, tuple(items))
    if dataclasses.is_dataclass(tree.kind):
        return _record(tree.kind, items)
    return tree.kind._make(items) if is_named(tree.kind) else tree.kind(items)


def is_named(cls: Any) -> bool:
    """Whether a class is a NamedTuple."""
    return isinstance(cls, type) and issubclass(cls, tuple) and "_fields" in vars(cls)


def is_record(value: Any) -> bool:
    """Whether a value is an instance of a dataclass."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def fields(value: Any) -> list[Any]:
    return [getattr(value, f.name) for f in dataclasses.fields(value)]


def _record(cls: Any, items: list[Any]) -> Any:
    value = object.__new__(cls)
    for f, item in zip(dataclasses.fields(cls), items, strict=True):
        object.__setattr__(value, f.name, item)
    return value


def holds(value: Any, *kinds: type) -> bool:
    """Whether a value is of one of `kinds`, or a part of it is."""
    if isinstance(value, kinds):
        return True
    if isinstance(value, Bundle):
        return any(isinstance(item, kinds) for item in value.items)
    if isinstance(value, dict):
        return any(holds(item, *kinds) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(holds(item, *kinds) for item in value)
    return is_record(value) and any(holds(item, *kinds) for item in fields(value))


def name_of(value: Any) -> str:
    """How a message names a value with its shape."""
    if isinstance(value, Bundle):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return describe(value)
