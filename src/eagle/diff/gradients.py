"""What a reverse returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, final

from ..errors import UnknownName
from ..planes import Array


@dataclass(frozen=True, slots=True)
class Report:
    """How a gradient was computed.

    ``generation``: the launch that was reversed. ``bitwise``: per key, whether the gradient has the same bits
    for every thread count and every run. ``chunks``: the passes it took.
    """

    generation: int
    bitwise: Mapping[str, bool]
    chunks: int = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One gradient: the argument's name, the nodes that read it under that name, in order, and its key."""

    name: str
    nodes: tuple[str, ...]
    key: str


class Names:
    """The keys of a reverse's gradients, and what else they may be called."""

    def __init__(self, entries: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        names = [name for name, _ in entries]
        self.entries = tuple(
            Entry(name, nodes, name if names.count(name) == 1 else f"{nodes[0]}.{name}") for name, nodes in entries
        )
        self.bitwise = MappingProxyType({e.key: True for e in self.entries})
        self._index = {e.key: k for k, e in enumerate(self.entries)}
        for k, e in enumerate(self.entries):
            for node in e.nodes:
                self._index.setdefault(f"{node}.{e.name}", k)

    def find(self, name: str) -> int:
        found = self._index.get(name)
        if found is None:
            raise UnknownName(self._unknown(name))
        return found

    def named(self, name: str) -> list[int]:
        """The entries of one plain name, in node order."""
        found = [k for k, e in enumerate(self.entries) if e.name == name]
        if not found:
            raise UnknownName(self._unknown(name))
        return found

    def _unknown(self, name: object) -> str:
        choices = [e.key for e in self.entries if e.name == name]
        if choices:
            return (
                f"{name!r} names several gradients: {', '.join(choices)}. Name one of them, or add them up with "
                f"total({name!r})"
            )
        return f"no gradient is named {name!r}; there are {', '.join(e.key for e in self.entries)}"


@final
class Gradients(Mapping[str, Any]):
    """The gradients of one reverse: a read-only mapping from plane names to arrays.

    A per-sample input has a gradient of its own shape, in sample order; a param or a table, which all
    samples share, has one of its shape, summed over the samples. A name that stands for several planes is
    written ``"node.plane"``. A plane bound under two names has a gradient by each of them; the derivative
    by the array is their sum.

    Attributes: ``report``, how they were computed; ``entries``, what each key stands for, in order.
    """

    __slots__ = ("_arrays", "_chunks", "_generation", "_names")

    def __init__(self, names: Names, arrays: Sequence[Array], generation: int, chunks: int = 1) -> None:
        self._names = names
        self._arrays = arrays
        self._generation = generation
        self._chunks = chunks

    @property
    def report(self) -> Report:
        return Report(self._generation, self._names.bitwise, self._chunks)

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self._names.entries

    def entry(self, name: str) -> Entry:
        """What a key, or another name of the same gradient, stands for. Raises UnknownName as ``[]`` does."""
        return self._names.entries[self._names.find(name)]

    def __getitem__(self, name: str) -> Any:
        return self._arrays[self._names.find(name)][()]

    def __iter__(self) -> Iterator[str]:
        return (e.key for e in self._names.entries)

    def __len__(self) -> int:
        return len(self._names.entries)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._names._index

    def total(self, name: str) -> Any:
        """The gradients of every node's `name` added up, in node order: the derivative by one value that is
        given to all of them. Raises UnknownName if no node has it, ValueError if their shapes differ."""
        arrays = [self._arrays[k] for k in self._names.named(name)]
        if len({a.shape for a in arrays}) > 1:
            raise ValueError(
                f"total({name!r}): the nodes' gradients have different shapes, {[a.shape for a in arrays]}"
            )
        total = arrays[0]
        for array in arrays[1:]:
            total = total + array
        return total[()]

    def __repr__(self) -> str:
        def shown(array: Array) -> str:
            return f"{array[()]:.6g}" if array.ndim == 0 else f"{array.dtype}{list(array.shape)}"

        items = ", ".join(f"{e.key}: {shown(a)}" for e, a in zip(self._names.entries, self._arrays, strict=True))
        return f"<gradients {items}>"
