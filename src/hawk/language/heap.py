"""The lists a kernel makes while it is traced, and how branches may change them."""

from __future__ import annotations

from typing import Any, final

from .errors import KernelError

Changes = dict[int, tuple[list[Any], list[Any]]]  # by id: the list, and what it holds at the end of a side


@final
class Heap:
    """Lists are shared and changeable, as in Python, so a branch must undo what it did before the other runs.

    Only lists made while tracing can be changed. A list made outside the innermost open branch is noted, with
    what it held, before its first change. A list that is one or another depending on the sample is frozen, and
    so are the lists it may be: a change of it would have to be seen in one of them.
    """

    def __init__(self) -> None:
        self._made: dict[int, tuple[list[Any], int]] = {}  # the list, and how many branches were open
        self._before: list[Changes] = []  # one for each open branch
        self._frozen: set[int] = set()

    def made(self, value: Any) -> Any:
        """Note that `value`, if it is a list, was made here."""
        if isinstance(value, list):
            self._made[id(value)] = (value, len(self._before))
        return value

    def made_inside(self, value: list[Any]) -> bool:
        """Whether a list was made in a branch that is no longer open."""
        return id(value) in self._made and self._made[id(value)][1] > len(self._before)

    def freeze(self, value: Any) -> Any:
        """Let no list in `value` be changed any more."""
        if isinstance(value, list):
            self._made[id(value)] = (value, len(self._before))  # held, so that its id stays its own
            self._frozen.add(id(value))
        if isinstance(value, (list, tuple)):
            for item in value:
                self.freeze(item)
        return value

    def change(self, value: list[Any]) -> None:
        """Call before changing a list; KernelError if it was not made by the kernel or is frozen."""
        if id(value) not in self._made:
            raise KernelError("a list made outside the kernel cannot be changed by it", "copy it first: list(...)")
        if id(value) in self._frozen:
            raise KernelError(
                "which list this is depends on the sample or on the trip of a loop: it cannot be changed",
                "copy it first: list(...)",
            )
        depth = self._made[id(value)][1]
        for before in self._before[depth:]:
            before.setdefault(id(value), (value, list(value)))

    def open(self) -> None:
        self._before.append({})

    def close(self) -> Changes:
        """Leave a branch: its changes, which are undone."""
        changes = {}
        for key, (value, before) in self._before.pop().items():
            changes[key] = (value, list(value))
            value[:] = before
        return changes
