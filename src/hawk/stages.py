"""Looking inside: ``HAWK_SHOW=ir,llvm`` prints those stages of every kernel compiled, ``HAWK_SHOW=all`` all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

STAGES = ("traced", "ir", "llvm", "optimised", "assembly")


def show(stage: str, kernel: str, make: Callable[[], str]) -> None:
    """Print a stage of a kernel to stderr if the environment asks for it."""
    wanted = os.environ.get("HAWK_SHOW", "")
    if wanted and (wanted == "all" or stage in wanted.split(",")):
        print(f"--- {stage} of {kernel}\n{make()}", file=sys.stderr)
