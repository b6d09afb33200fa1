"""What a run is asked for, checked before anything is built."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ..errors import ArgumentError


class Status(IntEnum):
    """How a sample's run stands. ``status.message`` says it in words."""

    DONE = 0
    MAX_STEPS = 1
    EVENT = 2
    NO_CROSSING = 3
    GRAZING = 4
    TIE = 5
    JUMP = 6

    @property
    def message(self) -> str:
        return _MESSAGES[self]


_MESSAGES = {
    Status.DONE: "its stop rule held at the end of a step",
    Status.MAX_STEPS: "it took max_steps steps and its stop rule did not hold",
    Status.EVENT: "it was stopped where its stop rule begins to hold, inside its last step",
    Status.NO_CROSSING: "its stop rule held at the end of its last step, but does not begin to hold inside that step",
    Status.GRAZING: "its stop rule is touched, not crossed: the time of the event has no derivative",
    Status.TIE: "two of its stop rules begin to hold at one time: the time of the event has no single derivative",
    Status.JUMP: "its stop rule jumps where it begins to hold, and crosses nothing: the time of the event has no "
    "derivative",
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run; `Options.checked` makes one or raises ArgumentError by name."""

    max_steps: int
    record: bool
    window: int | str | None
    memory_budget: int | None
    events: str
    on_no_event: str
    progress: bool

    @staticmethod
    def checked(
        max_steps: Any, record: Any, window: Any, memory_budget: Any, events: Any, on_no_event: Any, progress: Any
    ) -> Options:
        if not is_count(max_steps) or not 0 <= max_steps < 2**31:
            raise ArgumentError(f"max_steps={max_steps!r}: the most steps a sample may take, an integer from 0 on")
        for name, value in (("window", window), ("memory_budget", memory_budget)):
            if value is not None and not record:
                raise ArgumentError(
                    f"{name}={value!r} is for the reverse of a recorded run; pass record=True as well, or leave it out"
                )
        if window is not None and window != "full" and not (is_count(window) and window >= 1):
            raise ArgumentError(f"window={window!r}: a number of steps from 1 on, or 'full'")
        if memory_budget is not None and not (is_count(memory_budget) and memory_budget > 0):
            raise ArgumentError(f"memory_budget={memory_budget!r}: a number of bytes")
        if events not in ("step", "refine"):
            raise ArgumentError(f"events={events!r}: 'step' stops at the end of a step, 'refine' inside it")
        if on_no_event not in ("raise", "zero"):
            raise ArgumentError(
                f"on_no_event={on_no_event!r}: 'raise' refuses a sample without an event, 'zero' lets its stop time "
                "have derivative zero"
            )
        return Options(int(max_steps), bool(record), window, memory_budget, events, on_no_event, bool(progress))

    @property
    def steps_between(self) -> int:
        """The window: steps between two kept states, by default about the root of max_steps."""
        if self.window == "full":
            return max(self.max_steps, 1)
        if self.window is not None:
            return int(self.window)
        return min(max(math.isqrt(max(self.max_steps - 1, 0)) + 1, 16), 1024)


def is_count(value: Any) -> bool:
    """Whether a value is an integer, and no bool."""
    return isinstance(value, int) and not isinstance(value, bool)
