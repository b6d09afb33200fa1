"""Derivatives of one step of an orbit, judged by finite differences and by torch.

A body moves around a fixed one of gravitational parameter MU, one step of the classical Runge-Kutta method. From
that one definition hawk derives two more kernels: reverse mode (vjp, which pulls a seed back) and forward mode
(jvp, which pushes a tangent on). All three are built in float32 as one bundle, loaded, and run.

``--host`` compares both derivatives with central differences of a NumPy step in float64 and, where torch is
installed, with torch.autograd.grad and torch.func.jvp in float64. ``--device`` also times them against torch.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import eagle.exec
import eagle.plan
import hawk
import hawk.artifact
from hawk import Mutable, Param, Vector
from hawk import math as hm
from hawk.diff import ADJOINT_PREFIX, TANGENT_PREFIX, jvp, vjp
from raptor.schema import validate_manifest

try:
    import torch
except ImportError:
    torch = None

MU = 1.0
DT = 0.01
TOLERANCE = 1e-5  # of the largest entry; float32 rounds by 6e-8
CHECKED = 8  # samples compared with finite differences


def step_kernel() -> hawk.Kernel:
    """One Runge-Kutta step of (position, velocity) in the plane."""

    def rate(state):
        x, y, u, v = state
        r2 = x * x + y * y
        pull = -MU * hm.rsqrt(r2 * r2 * r2)
        return hm.vec(u, v, pull * x, pull * y)

    @hawk.kernel
    def rk4_step(x: Vector[4], dt: Param, x_next: Mutable[Vector[4]]):
        k1 = rate(x)
        k2 = rate(x + dt / 2 * k1)
        k3 = rate(x + dt / 2 * k2)
        k4 = rate(x + dt * k3)
        x_next = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return rk4_step


def seed_states(n: int, seed: int = 0) -> np.ndarray:
    """`n` orbits of small eccentricity, shape (4, n)."""
    rng = np.random.default_rng(seed)
    angle, stretch = 2 * np.pi * rng.random(n), 0.9 + 0.2 * rng.random(n)
    east, north = np.cos(angle), np.sin(angle)
    return np.stack([east, north, -stretch * north, stretch * east])


def plain_step(stack: Callable, state, dt: float):
    """The same step on arrays, with `stack` of numpy or torch."""

    def rate(s):
        pull = -MU * (s[0] * s[0] + s[1] * s[1]) ** -1.5
        return stack([s[2], s[3], pull * s[0], pull * s[1]])

    k1 = rate(state)
    k2 = rate(state + dt / 2 * k1)
    k3 = rate(state + dt / 2 * k2)
    k4 = rate(state + dt * k3)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def jacobian(state: np.ndarray, dt: float, h: float = 1e-6) -> np.ndarray:
    """Central differences in float64, shape (4 outputs, 4 inputs, n)."""
    columns = []
    for shift in h * np.eye(4)[:, :, None]:
        ahead, behind = plain_step(np.stack, state + shift, dt), plain_step(np.stack, state - shift, dt)
        columns.append((ahead - behind) / (2 * h))
    return np.stack(columns, axis=1)


class Derivatives:
    """The step and its two derivatives in float32, bound to the planes of one batch."""

    def __init__(self, state: np.ndarray, dt: float, target: str) -> None:
        primal, wrt = step_kernel(), ("x",)
        kernels = [
            primal,
            hawk.Kernel("rk4_step_vjp", vjp(primal, wrt=wrt)),
            hawk.Kernel("rk4_step_jvp", jvp(primal, wrt=wrt)),
        ]
        with tempfile.TemporaryDirectory() as folder:
            bundle = hawk.build(kernels, Path(folder), mode="float32", targets=(target,))
            validate_manifest(bundle.manifest)
            self.targets = bundle.manifest["exec_targets"]
            plugins = hawk.artifact.plugins(bundle)
        self.x = np.ascontiguousarray(state, np.float32)
        rng = np.random.default_rng(1)
        self.seed, self.tangent = rng.standard_normal((2, *self.x.shape)).astype(np.float32)
        self.x_next, self.pulled, self.pushed = (np.zeros_like(self.x) for _ in range(3))

        def bound(name: str, **planes: np.ndarray) -> eagle.plan.Bound:
            plan = eagle.plan.plan(plugins[name], structure=eagle.exec.TARGETS[target])
            return plan.bind(x=self.x, dt=dt, **planes)

        self.step = bound("rk4_step", x_next=self.x_next)
        planes = {f"{ADJOINT_PREFIX}_x_next": self.seed, f"{ADJOINT_PREFIX}_x": self.pulled}
        self.reverse = bound("rk4_step_vjp", **planes)
        planes = {f"{TANGENT_PREFIX}_x": self.tangent, f"{TANGENT_PREFIX}_x_next": self.pushed}
        self.forward = bound("rk4_step_jvp", **planes)


def torch_vjp(state, seed, dt: float):
    """<seed, step(state)> differentiated by torch's reverse mode."""
    state = state.detach().requires_grad_()
    (pulled,) = torch.autograd.grad(plain_step(torch.stack, state, dt), state, seed)
    return pulled


def torch_jvp(state, tangent, dt: float):
    """The step differentiated along `tangent` by torch's forward mode."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch loads forward mode by a function it deprecates
        return torch.func.jvp(lambda s: plain_step(torch.stack, s, dt), (state,), (tangent,))[1]


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, in units of the largest entry."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def compare(d: Derivatives, dt: float) -> dict[str, float]:
    """Both derivatives against each judge there is."""
    state, seed, tangent = (a.astype(np.float64) for a in (d.x, d.seed, d.tangent))
    few = slice(None), slice(CHECKED)
    slopes = jacobian(state[few], dt)
    pulled, pushed = np.einsum("oin,on->in", slopes, seed[few]), np.einsum("oin,in->on", slopes, tangent[few])
    samples = slopes.shape[-1]
    errors = {
        f"vjp vs float64 FD ({samples} samples)": relative_error(d.pulled[few], pulled),
        f"jvp vs float64 FD ({samples} samples)": relative_error(d.pushed[few], pushed),
    }
    if torch is not None:
        at, back, along = (torch.from_numpy(a) for a in (state, seed, tangent))
        errors["vjp vs torch.autograd.grad (CPU)"] = relative_error(d.pulled, torch_vjp(at, back, dt).numpy())
        errors["jvp vs torch.func.jvp (CPU)"] = relative_error(d.pushed, torch_jvp(at, along, dt).numpy())
    return errors


def run_demo(batch: int = 1024, target: str = "host", dt: float = DT) -> dict[str, float]:
    """Build, run and compare; prints the errors and returns them. Raises AssertionError if one is too large."""
    d = Derivatives(seed_states(batch), dt, target)
    d.reverse.launch()
    d.forward.launch()
    print(f"{'target':33}: {target} (manifest exec_targets {d.targets})")
    print(f"{'batch x dt':33}: {batch} x {dt}")
    errors = compare(d, dt)
    for what, error in errors.items():
        print(f"{what:33}: max relative error = {error:.3e} (tolerance {TOLERANCE:.0e})")
    if torch is None:
        print(f"{'torch':33}: not installed, so not compared with it")
    wrong = [what for what, error in errors.items() if not error <= TOLERANCE]
    assert not wrong, f"beyond the tolerance: {', '.join(wrong)}"
    return errors


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The median time of a call, after one that warms up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def time_against_torch(batch: int, repeats: int, dt: float = DT) -> None:
    """Print the times of all three for `batch` samples in float32, torch's on a GPU if it sees one."""
    if torch is None:
        print("timings: torch is not installed, so there is nothing to time against")
        return
    gpu = torch.cuda.is_available()
    where = torch.cuda.get_device_name() if gpu else "CPU"
    if not gpu:
        print("timings: torch sees no GPU here, so both run on the CPU")
    elif "cuda" not in eagle.exec.TARGETS:
        print(f"timings: torch runs on {where}; eagle has no GPU target here and runs on the CPU")
    d = Derivatives(seed_states(batch), dt, "host")
    x, seed, tangent = (torch.from_numpy(a).to("cuda" if gpu else "cpu") for a in (d.x, d.seed, d.tangent))

    def finished(work: Callable, *args: object) -> Callable[[], None]:
        def call() -> None:
            work(*args)
            if gpu:
                torch.cuda.synchronize()

        return call

    ours = [seconds(bound.launch, repeats) for bound in (d.step, d.reverse, d.forward)]
    theirs = [
        seconds(finished(plain_step, torch.stack, x, dt), repeats),
        seconds(finished(torch_vjp, x, seed, dt), repeats),
        seconds(finished(torch_jvp, x, tangent, dt), repeats),
    ]
    print(f"{f'ms for {batch:,} samples':24}{'eagle, CPU':>12}{f'torch, {where}':>20}")
    for name, own, other in zip(("step", "vjp", "jvp"), ours, theirs, strict=True):
        print(f"{name:24}{1e3 * own:12.3f}{1e3 * other:20.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", action="store_true", help="compare on the CPU (the default)")
    parser.add_argument("--device", action="store_true", help="compare, and time against torch (on a GPU if any)")
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    parser.add_argument("--out", help="ignored: this example draws nothing")
    options = parser.parse_args()
    run_demo(batch=64 if options.quick else 1024)
    if options.device:
        time_against_torch(*((4096, 3) if options.quick else (1_000_000, 15)))


if __name__ == "__main__":
    main()
