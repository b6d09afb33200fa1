"""The lists a kernel makes while it is traced, and how branches may change them."""

from __future__ import annotations

from typing import Any, final

from .errors import KernelError

Changes = dict[int, tuple[list[Any], list[Any]]]  # by id: the list, and what it holds at the end of a side


@final
class Heap:
    """Lists are shared and changeable, as in Python, so a branch must undo what it did before the other runs.

    Only lists made while tracing can be changed. A list made outside the innermost open branch is noted, with
    what it held, before its first change.
    """

    def __init__(self) -> None:
        self._made: dict[int, tuple[list[Any], int]] = {}  # the list, and how many branches were open
        self._before: list[Changes] = []  # one for each open branch

    def made(self, value: Any) -> Any:
        """Note that `value`, and the lists in it, were made here."""
        if isinstance(value, list):
            self._made.setdefault(id(value), (value, len(self._before)))
        if isinstance(value, (list, tuple)):
            for item in value:
                self.made(item)
        return value

    def change(self, value: list[Any]) -> None:
        """Call before changing a list; KernelError if it was not made by the kernel."""
        if id(value) not in self._made:
            raise KernelError("a list made outside the kernel cannot be changed by it", "copy it first: list(...)")
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
