"""Whose turn it is."""

from __future__ import annotations

import threading
from typing import final

from ..errors import Busy


@final
class Turn:
    """The right to run: one thread at a time; Busy, with no wait, for any other."""

    __slots__ = ("_lock", "_name")

    def __init__(self, name: str) -> None:
        self._lock = threading.Lock()
        self._name = name

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise Busy(f"another thread is running this run of {self._name}")

    def __exit__(self, *why: object) -> None:
        self._lock.release()
