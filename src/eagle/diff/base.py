"""What every record is, of a graph or of a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from .gradients import Gradients


class Record(ABC):
    """What one launch or run left for its reverse.

    Attributes: ``generation``, which launch of its graph or run it is, counted from 1.
    """

    generation: int
    called = "record"  # in its repr

    @property
    @abstractmethod
    def live(self) -> bool:
        """Whether it still stands in the way of the next launch."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The bytes it holds beside the planes themselves."""

    @abstractmethod
    def keep(self) -> Record:
        """A copy of all that the reverse reads, valid however often the graph or the run goes on."""

    @abstractmethod
    def discard(self) -> None:
        """Give the record up, so that nothing waits for its reverse."""

    @abstractmethod
    def reverse(self, seeds: Mapping[str, object], vjps: Mapping[str, object] | None, strict: bool) -> Gradients:
        """What `eagle.diff.reverse` does with it."""

    def __repr__(self) -> str:
        state = "live" if self.live else "not live"
        return f"<{self.called} of generation {self.generation}, {state}, {self.nbytes:,} bytes>"
