"""The kernels that the tests of bundles build, and how a plugin is run."""

# ruff: noqa: F841 - kernels assign to their outputs

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

import eagle
import hawk
from hawk import Mutable, Param, Scalar, Table, Vector
from hawk import math as hm
from hawk.diff import jvp, vjp
from hawk.ir.program import PER_SAMPLE, Program, Role
from raptor.schema import manifest_digest

STIFFNESS = 2.5


@hawk.kernel
def swing(s: Mutable[Vector[2]], dt: Param, force: Mutable[Scalar]):
    """A step of a pendulum, in place."""
    force = -STIFFNESS * hm.sin(s[0])
    s = hm.vec(s[0] + dt * s[1], s[1] + dt * force)


@hawk.kernel
def mixed(x: Vector[2], w: Table["row":4, "column":2], y: Mutable[Scalar]):
    row = 0
    if x[0] > 0.5:
        row = 2
    y = w.at(row=row, column=1) * hm.tanh(x[0]) + w.at(row=3, column=0) * x[1]


def derived() -> list[hawk.Kernel]:
    return [
        hawk.Kernel("swing_vjp", vjp(swing)),
        hawk.Kernel("swing_jvp", jvp(swing, wrt=("s",))),
        hawk.Kernel("mixed_vjp", vjp(mixed)),
        hawk.Kernel("mixed_twice", jvp(hawk.Kernel("first", vjp(mixed)), wrt=("x",))),
    ]


def everything() -> list[hawk.Kernel]:
    return [swing, mixed, *derived()]


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


def outputs(plan: eagle.plan.Plan) -> dict[str, np.ndarray]:
    """What a launch of a plan on `planes` writes."""
    given = planes(plan.program)
    plan.bind(**given).launch()
    return {name: given[name] for name in sorted(plan.program.writes())}


def digest(plan: eagle.plan.Plan) -> str:
    """The bits of `outputs` as one line."""
    return hashlib.sha256(b"".join(a.tobytes() for a in outputs(plan).values())).hexdigest()


def reseal(folder: Path, **changes: object) -> dict[str, Any]:
    """Change entries of a bundle's manifest, its digest included."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text()) | changes
    manifest["sha256"] = manifest_digest(manifest)
    path.write_text(json.dumps(manifest))
    return manifest
