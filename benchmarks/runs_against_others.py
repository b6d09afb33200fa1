"""The pendulum until done in eagle, JAX and Warp on the CPU, float64.

JAX: one `while_loop` over the whole batch under `jit`, finished samples masked. Warp: a kernel with a `while` loop, a
thread a sample. CPU time of all threads; each in a process of its own. What is not installed is left out.

    pip install jax warp-lang
"""

from __future__ import annotations

from harness import in_process, table

COMMON = """
import time
import numpy as np

n = 200_000
until, angle = np.linspace(0.5, 3.0, n), np.linspace(0.5, 1.5, n)

def report(work, steps, rounds=5):
    work()
    cpu, wall = [], []
    for _ in range(rounds):
        start = time.process_time(), time.perf_counter()
        end = work()
        cpu.append(time.process_time() - start[0])
        wall.append(time.perf_counter() - start[1])
    print(min(cpu) / steps * 1e9, min(wall) / steps * 1e9, float(np.sum(end)))
"""
EAGLE = """
import eagle
from models import pendulum

planes = dict(t_end=until, angle=angle.copy(), speed=np.zeros(n), t=np.zeros(n))
run = eagle.simulation(pendulum, dt=0.01, friction=0.3, **planes, max_steps=400)
steps = run.run().steps.sum(dtype=np.int64)
report(lambda: run.run().angle, steps)
"""
JAX = """
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

def going(state):
    angle, speed, t, steps, limit = state
    return jnp.any((t < limit) & (steps < 400))

def step(state):
    angle, speed, t, steps, limit = state
    on = (t < limit) & (steps < 400)
    new = angle + 0.01 * speed, speed - 0.01 * (jnp.sin(angle) + 0.3 * speed), t + 0.01, steps + 1
    return (*(jnp.where(on, a, b) for a, b in zip(new, (angle, speed, t, steps))), limit)

@jax.jit
def run(angle, until):
    zero = jnp.zeros_like(angle)
    return jax.lax.while_loop(going, step, (angle, zero, zero, jnp.zeros(angle.shape, jnp.int32), until))

a, u = jnp.asarray(angle), jnp.asarray(until)
steps = int(np.asarray(run(a, u)[3]).sum(dtype=np.int64))
report(lambda: np.asarray(run(a, u)[0].block_until_ready()), steps)
"""
WARP = """
import tempfile
import warp as wp

wp.config.quiet = True

source = '''
import warp as wp

@wp.kernel
def swing(angle: wp.array(dtype=wp.float64), until: wp.array(dtype=wp.float64), end: wp.array(dtype=wp.float64),
          taken: wp.array(dtype=wp.int32)):
    i = wp.tid()
    x = angle[i]
    v = wp.float64(0.0)
    t = wp.float64(0.0)
    steps = wp.int32(0)
    dt = wp.float64(0.01)
    while t < until[i] and steps < 400:
        y = x + dt * v
        v = v - dt * (wp.sin(x) + wp.float64(0.3) * v)
        x = y
        t = t + dt
        steps = steps + 1
    end[i] = x
    taken[i] = steps
'''
import importlib.util, pathlib
path = pathlib.Path(tempfile.mkdtemp(), "swing_kernel.py")
path.write_text(source)
spec = importlib.util.spec_from_file_location("swing_kernel", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
wp.set_device("cpu")
wp.set_module_options({"enable_backward": False}, module)
a, u = wp.array(angle, dtype=wp.float64), wp.array(until, dtype=wp.float64)
end, taken = wp.zeros(n, dtype=wp.float64), wp.zeros(n, dtype=wp.int32)

def run():
    wp.launch(module.swing, dim=n, inputs=[a, u, end, taken])
    wp.synchronize()
    return end.numpy()

run()
report(run, taken.numpy().sum(dtype=np.int64))
"""


def installed(module: str) -> bool:
    try:
        in_process(f"import {module}")
    except RuntimeError:
        return False
    return True


def main() -> None:
    found = {}
    for name, module, code, threads in (
        ("eagle, 1 thread", "eagle", EAGLE, {"OMP_NUM_THREADS": "1"}),
        ("eagle", "eagle", EAGLE, {}),
        ("JAX", "jax", JAX, {}),
        ("Warp (1 thread)", "warp", WARP, {}),
    ):
        if not installed(module):
            print(f"{module} is not installed: left out")
            continue
        found[name] = [float(x) for x in in_process(COMMON + code, **threads).splitlines()[-1].split()]
    cpu, value = found["eagle, 1 thread"][0], found["eagle"][2]
    wall = found["eagle"][1]
    for name, (_, _, theirs) in found.items():
        assert abs(theirs - value) < 1e-6 * abs(value), f"{name} computes something else"
    rows = [(k, f"{c:.2f}", f"{w:.2f}", f"{c / cpu:.1f}", f"{w / wall:.1f}") for k, (c, w, _) in found.items()]
    head = ("ns a useful sample-step", "CPU", "wall", "of eagle's on 1 thread, CPU", "of eagle's, wall")
    table("The pendulum, 200,000 samples, float64 (target: 10)", head, rows)


if __name__ == "__main__":
    main()
