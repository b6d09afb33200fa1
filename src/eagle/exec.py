"""Where and how plans run."""

from __future__ import annotations

from typing import final


@final
class HostTeam:
    """The CPU: blocks of 256 samples dealt to a team of threads (``OMP_NUM_THREADS``), lanes within a block."""


TARGETS = {"host": HostTeam}
