"""One Runge-Kutta step of a two-body orbit in float64: eagle, Numba without fastmath, and NumPy, on one thread.

The three compute the same formula. Numba's loop is written as its users write it, one sample at a time with the
state in scalars. CPU time.
"""

from __future__ import annotations

import os
import time

os.environ["OMP_NUM_THREADS"] = "1"  # before the first run

import numba
import numpy as np
from harness import interleaved, shown, table
from models import orbit
from numpy.typing import NDArray

import eagle

Array = NDArray[np.float64]
DT = 0.01


@numba.njit(inline="always")
def pull(x, y):  # type: ignore[no-untyped-def]
    r2 = x * x + y * y
    w = -1.0 / (r2 * np.sqrt(r2))
    return w * x, w * y


@numba.njit(fastmath=False)
def orbit_numba(s: Array, dt: float, after: Array) -> None:
    for i in range(s.shape[1]):
        x, y, u, v = s[0, i], s[1, i], s[2, i], s[3, i]
        h = dt / 2
        a1, b1 = pull(x, y)
        u2, v2 = u + h * a1, v + h * b1
        a2, b2 = pull(x + h * u, y + h * v)
        u3, v3 = u + h * a2, v + h * b2
        a3, b3 = pull(x + h * u2, y + h * v2)
        u4, v4 = u + dt * a3, v + dt * b3
        a4, b4 = pull(x + dt * u3, y + dt * v3)
        h = dt / 6
        after[0, i] = x + h * (u + 2 * u2 + 2 * u3 + u4)
        after[1, i] = y + h * (v + 2 * v2 + 2 * v3 + v4)
        after[2, i] = u + h * (a1 + 2 * a2 + 2 * a3 + a4)
        after[3, i] = v + h * (b1 + 2 * b2 + 2 * b3 + b4)


def slope_numpy(s: Array) -> Array:
    r2 = s[0] * s[0] + s[1] * s[1]
    w = -1.0 / (r2 * np.sqrt(r2))
    return np.stack([s[2], s[3], w * s[0], w * s[1]])


def orbit_numpy(s: Array, dt: float, after: Array) -> None:
    k1 = slope_numpy(s)
    k2 = slope_numpy(s + dt / 2 * k1)
    k3 = slope_numpy(s + dt / 2 * k2)
    k4 = slope_numpy(s + dt * k3)
    after[:] = s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def main() -> None:
    for n in (10_000, 1_000_000):
        angle = np.linspace(0, 6, n)
        s = np.array([np.cos(angle), np.sin(angle), -0.9 * np.sin(angle), 0.9 * np.cos(angle)])
        ours, theirs, numpys = np.zeros_like(s), np.zeros_like(s), np.zeros_like(s)
        bound = eagle.deploy([orbit])[0].bind(s=s, dt=DT, after=ours)
        works = {
            "eagle": bound.launch,
            "Numba": lambda: orbit_numba(s, DT, theirs),  # noqa: B023
            "NumPy": lambda: orbit_numpy(s, DT, numpys),  # noqa: B023
        }
        times = interleaved(works, clock=time.process_time, seconds=0.01)
        assert np.allclose(ours, theirs, rtol=1e-14, atol=1e-14)
        assert np.allclose(ours, numpys, rtol=1e-14, atol=1e-14)
        rows = [
            (name, shown(t.median / n), shown(t.least / n), f"{t.ratio(times['eagle']):.2f}", target)
            for (name, t), target in zip(times.items(), ("", "4", ""), strict=True)
        ]
        head = ("", "a step, median", "least", "eagle times faster", "target")
        table(f"RK4 step of two bodies, {n:,} samples, float64, one thread", head, rows)


if __name__ == "__main__":
    main()
