"""What a run leaves."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ..planes import Array
from .options import Status

if TYPE_CHECKING:
    from .record import RunRecord


@final
class Result:
    """The end of a run: ``result.x`` is the plane ``x``, as the run left it.

    Attributes: ``state``, the state planes by name; ``steps``, the steps each sample took (int32);
    ``finished``, whether its stop rule held (bool); ``status``, a `Status` a sample; ``t_stop``, the time at
    which each stopped (None if the kernel names no time plane); ``record``, for `eagle.diff.reverse` (None
    unless recorded). A plane that has one of these names is found in ``state`` only. The arrays are the run's
    own planes: the next run writes them again.
    """

    def __init__(
        self,
        kernel: str,
        state: Mapping[str, Array],
        steps: Array,
        finished: Array,
        status: Array,
        t_stop: Array | None,
        record: RunRecord | None,
    ) -> None:
        self._kernel = kernel
        self.state = state
        self.steps = steps
        self.finished = finished
        self.status = status
        self.t_stop = t_stop
        self.record = record

    def __getattr__(self, name: str) -> Array:
        state = self.__dict__.get("state", {})
        if name in state:
            return state[name]
        raise AttributeError(
            f"a result of {self.__dict__.get('_kernel')} has no {name!r}; its state is {', '.join(state)}"
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.state]

    def __repr__(self) -> str:
        n = len(self.steps)
        if n == 0:
            return f"<{self._kernel}: 0 samples>"
        done = int(np.count_nonzero(self.finished))
        return (
            f"<{self._kernel}: {done:,} of {n:,} samples finished, {int(self.steps.min()):,} to "
            f"{int(self.steps.max()):,} steps, {int(self.steps.sum(dtype=np.int64)):,} in all>"
        )

    def _repr_html_(self) -> str:
        """A table: the outcomes, and each state plane's range."""
        rows = [("samples", f"{len(self.steps):,}")]
        for status in Status:
            count = int(np.count_nonzero(self.status == status))
            if count:
                rows.append((status.name.lower().replace("_", " "), f"{count:,}: {status.message}"))
        for name, plane in self.state.items():
            if plane.size and plane.dtype.kind in "fi":
                rows.append((name, f"{plane.dtype} {plane.shape}, {plane.min():.6g} to {plane.max():.6g}"))
        cells = "".join(
            f"<tr><th style='text-align:left'>{a}</th><td style='text-align:left'>{b}</td></tr>" for a, b in rows
        )
        return f"<table><caption>{self._kernel}</caption>{cells}</table>"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "state": dict(self.state), "record": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, state=MappingProxyType(state["state"]))
