"""How the tests of bundles run a plan; used by child processes too."""

import hashlib
from typing import Any

import numpy as np

from eagle.plan import Plan
from hawk.ir.program import PER_SAMPLE, Program, Role


def planes(program: Program, n: int = 300) -> dict[str, Any]:
    """Values for every argument; outputs start as zeros."""
    rng = np.random.default_rng(5)
    made = {}
    for a in program.arguments:
        shape = (*a.shape, n) if a.role in PER_SAMPLE else a.shape
        written = a.role in (Role.SUM, Role.TABLE_SUM) or (a.role is Role.MUTABLE and a.name not in program.reads())
        values = np.zeros(shape) if written else rng.normal(size=shape)
        made[a.name] = values.astype(a.type.dtype) if shape or a.role is not Role.PARAM else float(values)
    return made


def outputs(plan: Plan) -> dict[str, np.ndarray]:
    """What a launch of a plan on `planes` writes."""
    given = planes(plan.program)
    plan.bind(**given).launch()
    return {name: given[name] for name in sorted(plan.program.writes())}


def digest(plan: Plan) -> str:
    """The bits of `outputs` as one line."""
    return hashlib.sha256(b"".join(a.tobytes() for a in outputs(plan).values())).hexdigest()
