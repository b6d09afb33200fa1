"""The reverse of a recorded run: one native call that replays each block and steps the adjoint back through it.

How the states between the start and the end are kept (`hawk.diff.loops.Schedule`) changes time and memory,
never a bit: all of them where they fit into the cache of a core, else the start of every window, each window
being run again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import hawk
from hawk.diff import Vjp
from hawk.diff.loops import Schedule
from hawk.ir.program import Argument, Role
from hawk.run import LIMIT

from .. import _native
from ..devices.host import HostProgram
from ..diff.gradients import Gradients, Names
from ..errors import ReverseError, SeedError
from ..plan import Plan, place
from ..planes import Array, Plane, new_array
from .record import RunRecord
from .runner import Runner

WINDOW, CHECKPOINTS = "_window", "_checkpoints"
Sizes = dict[str, int]  # of tapes, by the params that give them
_FULL = Schedule(WINDOW)
_WINDOWS = Schedule(WINDOW, CHECKPOINTS)
_CACHE = 1 << 19  # bytes of states that stay in a core's cache
_LITTLE = 1 << 27  # bytes that any machine has
_LANES = 16


def reverse_run(record: RunRecord, seeds: Mapping[str, object], vjps: Mapping[str, object] | None) -> Gradients:
    """The gradients of a recorded run. Errors as in `eagle.diff.reverse`."""
    runner = record.runner
    if vjps:
        raise ReverseError(f"vjps={list(vjps)}: this run has no nodes of your own; its kernel's vjp is built by eagle")
    record.check_differentiable()
    given = checked_seeds(runner, seeds)
    steps = int(record.steps.max(initial=0))
    passes = Passes.of(runner, steps)
    schedule, sizes = schedule_for(runner, steps, passes.budget)
    plan = vjp_plan(runner, schedule)
    definition = plan.kernel.definition
    assert isinstance(definition, Vjp)
    outputs = {name: _output(runner, name, given) for name in definition.wrt}
    arrays = {**record.uniforms, **record.inputs(), **record.start}
    arrays |= {definition.named(name): array for name, array in outputs.items()}
    numbers = sizes | {LIMIT: runner.options.max_steps}
    planes = {a.name: Plane(a, _array(a, arrays, numbers, runner.samples)) for a in plan.program.arguments}
    device = HostProgram(runner.samples)
    plan.call_step(device, place(device, plan, planes), sizes)
    if passes.count > 1:
        device.passes(passes.samples // _native.BLOCK)
    device.run()
    names = Names([(name, (runner.plan.name,)) for name in outputs])
    return Gradients(names, list(outputs.values()), record.generation, passes.count)


def _output(runner: Runner, name: str, seeds: Mapping[str, Array]) -> Array:
    """Where a gradient is written; for a state plane its seed stands there first."""
    like = runner.planes[name]
    return seeds[name] if name in seeds else np.zeros(like.shape, like.dtype)


def _array(a: Argument, arrays: Mapping[str, Array], numbers: Mapping[str, int], samples: int) -> Array:
    """What a vjp reads or writes; a run starts from counts of 0."""
    if a.name in arrays:
        return arrays[a.name]
    return np.array(numbers[a.name], a.type.dtype) if a.role is Role.PARAM else new_array(a, samples, np.zeros)


def checked_seeds(runner: Runner, seeds: Mapping[str, object]) -> dict[str, Array]:
    """The seeds as arrays of their own, of the planes' dtypes. Raises SeedError by name."""
    if not isinstance(seeds, Mapping):
        raise SeedError(f'seeds maps outputs to arrays, {{"x": dJ_dx}}, found {type(seeds).__name__}')
    real = {k: a for k, a in runner.state.items() if a.dtype.kind == "f"}
    given = {}
    for name, seed in seeds.items():
        if name not in real:
            raise SeedError(_no_output(runner, name, list(real)))
        try:
            array = np.asarray(seed)
            if array.dtype.kind not in "fiub":
                raise ValueError
        except ValueError:
            raise SeedError(f"the seed of {name} is no array of numbers: found {type(seed).__name__}") from None
        if array.shape != real[name].shape:
            raise SeedError(
                f"the seed of {name} is dJ/d({name}), one value per sample: expected shape {real[name].shape}, found "
                f"{array.shape}"
            )
        given[name] = array.astype(real[name].dtype)
    return given


def _no_output(runner: Runner, name: object, real: list[str]) -> str:
    if name in runner.planes and name not in runner.state:
        return (
            f"seeds[{name!r}]: {name} is an input. A seed is dJ/d(output); the gradient with respect to {name} is "
            f"grads[{name!r}] in what reverse returns"
        )
    return f"seeds[{name!r}]: the run has no real state of that name; it has {', '.join(real)}"


def vjp_plan(runner: Runner, schedule: Schedule) -> Plan:
    run = runner.run_plan
    key = "vjp full" if schedule.checkpoints is None else "vjp windows"
    return run.derived(key, lambda: hawk.Kernel(f"{run.name}_vjp", Vjp(run.kernel.definition, None, schedule=schedule)))


def schedule_for(runner: Runner, steps: int, budget: int = _CACHE << 8) -> tuple[Schedule, Sizes]:
    """How to keep states for runs of at most `steps` steps, and the sizes of the tapes."""
    room = min(_CACHE, budget // (2 * max(_native.threads(), 1)))
    return _schedule(runner, max(steps, 1), runner.options.steps_between, room)


def schedule_for_all(runner: Runner) -> tuple[Schedule, Sizes]:
    """The same before it is known how many steps a run takes: the tapes are as small as they can be for max_steps."""
    most = max(runner.options.max_steps, 1)
    window = math.isqrt(most - 1) + 1 if runner.options.window is None else runner.options.steps_between
    return _schedule(runner, most, window, _CACHE)


def _schedule(runner: Runner, steps: int, window: int, room: int) -> tuple[Schedule, Sizes]:
    if window >= steps or steps * state_bytes(runner) * _LANES <= room:
        return _FULL, {WINDOW: steps}
    return _WINDOWS, {WINDOW: window, CHECKPOINTS: -(-steps // window)}


def state_bytes(runner: Runner) -> int:
    """The bytes of one sample's state."""
    return sum(a.size * a.type.dtype.itemsize for a in _carried(runner))


def _carried(runner: Runner) -> list[Argument]:
    return [a for a in runner.plan.program.arguments if a.role in (Role.MUTABLE, Role.TERMINATED)]


@dataclass(frozen=True, slots=True)
class Passes:
    """How many samples are reversed at a time under a memory budget: 256 * 2**q of them, or all.

    What one sample holds is counted for `max_steps` if a budget is given, so that it does not depend on the data
    whether it is enough; else for the steps that were taken.
    """

    samples: int
    count: int
    budget: int

    @staticmethod
    def of(runner: Runner, steps: int) -> Passes:
        """Raises MemoryError, with the bytes and the fix, for a budget under one pass."""
        options = runner.options
        most = max(options.max_steps if options.memory_budget is not None else steps, 1)
        window = min(options.steps_between, most)
        kept = most if options.window == "full" else -(-most // window) + window
        each = kept * state_bytes(runner) + _adjoint_bytes(runner)
        n = max(runner.samples, 1)
        budget = _budget(options.memory_budget, each * n)
        if each * n <= budget:
            return Passes(n, 1, budget)
        held = f"one sample holds {kept} states, {each:,} bytes (max_steps={options.max_steps}, window={window})"
        fix = "raise memory_budget, lower max_steps, or set window"
        if each > budget:
            raise MemoryError(f"memory_budget={budget:,} bytes cannot hold one sample: {held}; {fix}")
        if each * _native.BLOCK > budget:
            raise MemoryError(
                f"memory_budget={budget:,} bytes holds {budget // each} samples, and a pass needs {_native.BLOCK}, "
                f"{each * _native.BLOCK:,} bytes, to keep the sums' bits: {held}; {fix}"
            )
        size = _native.BLOCK
        while size * 2 * each <= budget:
            size *= 2
        return Passes(size, -(-n // size), budget)


def _budget(given: int | None, wanted: int) -> int:
    """The bytes a reverse may hold: by default half of what is free, looked up only if much is wanted."""
    if given is not None:
        return given
    return _LITTLE if wanted <= _LITTLE else _available() // 2


def _adjoint_bytes(runner: Runner) -> int:
    """The adjoints of one sample: its state, its inputs and its shares of the params."""
    wanted = (Role.MUTABLE, Role.SAMPLE, Role.PARAM)
    return sum(
        a.size * a.type.dtype.itemsize for a in runner.plan.program.arguments if a.role in wanted and a.type.is_real
    )


def _available() -> int:
    """The bytes of free memory of this machine."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
