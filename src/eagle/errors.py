"""Everything eagle raises by a name of its own."""

from __future__ import annotations


class PlaneError(ValueError):
    """An array that cannot be the plane it is given as: dtype, shape, layout, aliasing, read-only."""


class ArgumentError(TypeError):
    """A plane is missing, unknown, or not an array at all."""


class GraphError(ValueError):
    """A graph that cannot be built: a name used twice, planes that overlap in part, a step that is none."""


class SeedError(ValueError):
    """A seed that names no output, names more than one, or is not one value per sample."""


class RecordError(RuntimeError):
    """A record used against its rules: live when the next launch comes, stale when it is reversed."""


class EventError(RuntimeError):
    """A sample of a refined run that has no event, or one whose event has no derivative."""


class SavedRunError(ValueError):
    """A run that cannot be saved, or a file that is no saved run, damaged, or of another version."""


class ReverseError(ValueError):
    """A node that cannot be reversed, or a vjp that is not that node's."""


class Busy(RuntimeError):
    """Another thread is using the same object: a graph being launched or reversed, a Reverse running."""


class UnknownName(KeyError):
    """A name a mapping does not hold, or one that stands for several of its entries."""

    def __str__(self) -> str:
        return str(self.args[0])
