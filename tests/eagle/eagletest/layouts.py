"""Views of every kind to bind as planes, each inside a buffer whose other bytes must not change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """How to get a view of some shape, samples last: the shape of the array it is cut from, and the cut."""

    around: Callable[[Shape], Shape]
    cut: Callable[[Array, Shape], Array]
    start: int = 64  # bytes into the buffer

    def view(self, shape: Shape, dtype: np.dtype) -> tuple[Array, Array]:
        """The view and its buffer."""
        around = self.around(shape)
        size = int(np.prod(around)) * dtype.itemsize
        buffer = np.full(size + 128, 0xA5, np.uint8)
        view = self.cut(buffer[self.start : self.start + size].view(dtype).reshape(around), shape)
        assert view.shape == shape
        return view, buffer


ANY = {
    "packed": Layout(lambda s: s, lambda a, s: a),
    "reversed": Layout(lambda s: s, lambda a, s: a[..., ::-1]),
    "every other": Layout(lambda s: (*s[:-1], 2 * s[-1]), lambda a, s: a[..., ::2]),
    "every third, reversed": Layout(lambda s: (*s[:-1], 3 * s[-1]), lambda a, s: a[..., ::-3]),
    "part of more samples": Layout(lambda s: (*s[:-1], s[-1] + 5), lambda a, s: a[..., 3 : 3 + s[-1]]),
    "transposed": Layout(lambda s: s[::-1], lambda a, s: a.T),
    "columns of a table": Layout(
        lambda s: (s[-1], int(np.prod(s[:-1])) + 3),
        lambda a, s: np.moveaxis(a[:, 2:-1].reshape(s[-1], *s[:-1]), 0, -1),
    ),
    "not aligned": Layout(lambda s: s, lambda a, s: a, start=65),
}
"""For planes of any shape."""

OF_COMPONENTS = {
    "components reversed": Layout(lambda s: s, lambda a, s: a[::-1]),
    "components apart": Layout(lambda s: (3 * s[0], *s[1:]), lambda a, s: a[::3]),
    "last components apart": Layout(lambda s: (*s[:-2], 2 * s[-2] + 1, s[-1]), lambda a, s: a[..., 1::2, :]),
    "all apart": Layout(lambda s: (*s[:-2], s[-2] + 1, 2 * s[-1]), lambda a, s: a[..., 1:, ::2]),
    "columns of matrices": Layout(lambda s: (s[-1], *s[:-2], s[-2] + 3), lambda a, s: np.moveaxis(a[..., 2:-1], 0, -1)),
}
"""For planes of vectors and matrices."""

LAYOUTS = ANY | OF_COMPONENTS


def fitting(name: str, shape: Shape) -> Layout:
    """The layout of a name, or for a plane that has no components one like it."""
    return LAYOUTS[name] if len(shape) > 1 or name in ANY else LAYOUTS["every other"]


@dataclass
class Guarded:
    """Values, samples last, in a view of some layout, and the buffer around it."""

    layout: Layout
    start: Array
    samples_first: bool = False
    view: Array = field(init=False)

    def __post_init__(self) -> None:
        self.view, self._buffer = self.layout.view(self.start.shape, self.start.dtype)
        self.view[...] = self.start
        self._at_first = self._buffer.copy()

    @property
    def array(self) -> Array:
        """What to bind."""
        return np.moveaxis(self.view, -1, 0) if self.samples_first else self.view

    @property
    def values(self) -> Array:
        """A packed copy, samples last."""
        return self.view.copy(order="C")

    def check(self) -> None:
        """Nothing outside the view has been written."""
        now = self.values
        self.view[...] = self.start
        np.testing.assert_array_equal(self._buffer, self._at_first)
        self.view[...] = now
