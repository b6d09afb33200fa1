"""The record of a run: its start, its uniforms, each sample's steps. The reverse replays it from these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, final

from ..diff.base import Record
from ..diff.gradients import Gradients
from ..errors import EventError, RecordError
from ..planes import Array

if TYPE_CHECKING:
    from .runner import Runner


@final
class RunRecord(Record):
    """One complete run, ready to be reversed.

    Attributes: ``generation``, which run of its runner it is, counted from 1; ``steps``, the steps each
    sample took (int32, shape (n,)); ``status``, a `Status` a sample.

    The start state and the params are copies. The planes and tables that the step only reads are not: keep
    them as they are until the reverse, or `keep` the record.
    """

    def __init__(
        self,
        runner: Runner,
        generation: int,
        start: Mapping[str, Array],
        uniforms: Mapping[str, Array],
        steps: Array,
        status: Array,
        inputs: Mapping[str, Array] | None = None,
    ) -> None:
        self.runner = runner
        self.generation = generation
        self.start = start
        self.uniforms = uniforms
        self.steps = steps
        self.status = status
        self._inputs = inputs  # copies of what the step only reads, if kept

    @property
    def live(self) -> bool:
        """False: a run does not wait for its record to be reversed."""
        return False

    @property
    def nbytes(self) -> int:
        held = [*self.start.values(), *self.uniforms.values(), self.steps, *(self._inputs or {}).values()]
        return sum(array.nbytes for array in held)

    def keep(self) -> RunRecord:
        """A record with copies of the planes and tables that the step only reads, valid after later runs."""
        if self._inputs is not None:
            return self
        self.check_current()
        copies = {name: array.copy() for name, array in self.inputs().items()}
        return RunRecord(self.runner, self.generation, self.start, self.uniforms, self.steps, self.status, copies)

    def discard(self) -> None:
        """Nothing to do: a run's record is in no run's way."""

    def inputs(self) -> Mapping[str, Array]:
        """The planes and tables that the step only reads."""
        return self._inputs if self._inputs is not None else self.runner.inputs

    def check_current(self) -> None:
        """Raise RecordError if the planes and tables that the step only reads may hold other values by now."""
        if self._inputs is not None or self.runner.is_current(self):
            return
        newest = self.runner.generation
        why = f"and the current one is {newest}" if newest != self.generation else "and inputs were set since"
        raise RecordError(
            f"this record is of run {self.generation}, {why}; its inputs may hold newer values. keep() a record to "
            "reverse it after later runs"
        )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold what the record reads still, and know that it is what the run read."""
        with self.runner.reading() if self._inputs is None else nullcontext():
            self.check_current()
            yield

    def check_differentiable(self) -> None:
        """Raise EventError if the event of a sample has no derivative."""
        fault = self.runner.without_derivative(self.runner.plan.name, self.status)
        if fault:
            raise EventError(fault)

    def reverse(self, seeds: Mapping[str, object], vjps: Mapping[str, object] | None, strict: bool) -> Gradients:
        from .reverse import reverse_run

        with self.reading():
            return reverse_run(self, seeds, vjps)
