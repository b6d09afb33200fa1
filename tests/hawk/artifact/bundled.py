"""The kernels that the tests of bundles build."""

import json
from pathlib import Path
from typing import Any

import hawk
from hawk import Mutable, Param, Scalar, Table, Vector
from hawk import math as hm
from hawk.diff import jvp, vjp
from raptor.schema import manifest_digest

STIFFNESS = 2.5


@hawk.kernel(steps=4, time="t", time_step="dt")
def swing(s: Mutable[Vector[2]], t: Mutable[Scalar], dt: Param, force: Mutable[Scalar]):
    """A step of a pendulum, in place."""
    t = t + dt
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


def reseal(folder: Path, **changes: object) -> dict[str, Any]:
    """Change entries of a bundle's manifest, its digest included."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text()) | changes
    manifest["sha256"] = manifest_digest(manifest)
    path.write_text(json.dumps(manifest))
    return manifest
