"""Forward mode through a run, and Hessian-vector products: forward over reverse."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

import hawk
from hawk.diff import Derivative, Jvp
from hawk.ir.program import PER_SAMPLE, Role
from hawk.run import LIMIT

from ..devices.host import HostProgram
from ..errors import ArgumentError, SeedError
from ..plan import Plan, place
from ..planes import Array, bind_planes
from .record import RunRecord
from .reverse import checked_seeds, schedule_for, vjp_plan
from .runner import Runner
from .simulation import Simulation

Run = RunRecord | Runner | Simulation


def forward(run: Run, tangents: Mapping[str, object]) -> Mapping[str, Array]:
    """Carry tangents along a recorded run: how its end moves when its start and its params move.

    `tangents` maps state planes (their start), inputs, params and tables to a direction of the same shape;
    what is not named does not move. Returns, for every real state plane, the directional derivative of its
    end, of the plane's shape and dtype. The times of refined events move along.

    `run` is a record, or a run or simulation with one. Raises RecordError if there is none or it is stale,
    SeedError for a tangent by its name, EventError for a sample whose event has no derivative.
    """
    record = _record(run)
    with record.reading():
        return _forward(record, tangents)


def _forward(record: RunRecord, tangents: Mapping[str, object]) -> Mapping[str, Array]:
    runner = record.runner
    given = _checked_tangents(runner, tangents)
    names = tuple(given)
    run_plan = runner.run_plan
    plan = run_plan.derived(
        f"jvp {names}", lambda: hawk.Kernel(f"{run_plan.name}_jvp", Jvp(run_plan.kernel.definition, names))
    )
    return _pushed(record, plan, given, {}, {name: name for name in _real_state(runner)})


def hvp(run: Run, seeds: Mapping[str, object], tangents: Mapping[str, object]) -> Mapping[str, Array]:
    """The Hessian of J = <seeds, end of the run> times a direction, without the Hessian.

    `seeds` are those of `eagle.diff.reverse`, `tangents` those of `forward`. Returns, for every real input
    and start value, the derivative along the direction of its gradient: the tangent of what
    ``reverse(record, seeds)`` returns under that name, with the seeds held fixed. The times of refined events
    move along, to second order.

    Errors as in `forward` and `reverse`.
    """
    record = _record(run)
    with record.reading():
        return _hvp(record, seeds, tangents)


def _hvp(record: RunRecord, seeds: Mapping[str, object], tangents: Mapping[str, object]) -> Mapping[str, Array]:
    runner = record.runner
    cotangents = checked_seeds(runner, seeds)
    given = _checked_tangents(runner, tangents)
    schedule, sizes = schedule_for(runner, int(record.steps.max(initial=0)))
    back = vjp_plan(runner, schedule)
    definition = back.kernel.definition
    assert isinstance(definition, Derivative)
    names = tuple(given)
    plan = back.derived(f"jvp {names}", lambda: hawk.Kernel(f"{back.name}_jvp", Jvp(definition, names)))
    values: dict[str, object] = dict(sizes)
    for name, array in _real_state(runner).items():
        values[definition.named(name)] = cotangents.get(name, np.zeros_like(array))
    return _pushed(record, plan, given, values, {name: definition.named(name) for name in definition.wrt})


def _record(run: Run) -> RunRecord:
    if isinstance(run, (Runner, Simulation)):
        run = run.record
    if not isinstance(run, RunRecord):
        raise ArgumentError(f"expected a recorded run or its record, found {type(run).__name__}")
    run.check_differentiable()
    return run


def _real_state(runner: Runner) -> dict[str, Array]:
    return {k: a for k, a in runner.state.items() if a.dtype.kind == "f"}


def _checked_tangents(runner: Runner, tangents: Mapping[str, object]) -> dict[str, Array]:
    real = {k: a for k, a in runner.planes.items() if a.dtype.kind == "f"}
    given = {}
    for name, tangent in tangents.items():
        if name not in real:
            raise SeedError(f"tangents[{name!r}]: the run has no real input of that name; it has {', '.join(real)}")
        array = np.asarray(tangent)
        if array.dtype.kind not in "fiub" or array.shape != real[name].shape:
            raise SeedError(
                f"tangents[{name!r}] is a direction of {name}: expected numbers of shape {real[name].shape}, found "
                f"{array.dtype} {array.shape}"
            )
        given[name] = array.astype(real[name].dtype)
    if not given:
        raise SeedError(f"tangents is empty: name what moves, of {', '.join(real)}")
    return {name: given[name] for name in real if name in given}


def _pushed(
    record: RunRecord, plan: Plan, tangents: Mapping[str, Array], more: Mapping[str, object], results: Mapping[str, str]
) -> Mapping[str, Array]:
    """Run a jvp of the run's program; `results` maps what is asked for to the arguments whose tangents it is."""
    runner, definition = record.runner, plan.kernel.definition
    assert isinstance(definition, Jvp)
    values: dict[str, Any] = {**record.uniforms, **record.inputs(), **record.start, **more}
    values[LIMIT] = runner.options.max_steps
    values |= {definition.named(name): tangent.copy() for name, tangent in tangents.items()}
    arguments = plan.program.arguments
    for a in arguments:
        if a.name not in values:
            shape = (*a.shape, runner.samples) if a.role in PER_SAMPLE else a.shape
            values[a.name] = 0 if a.role is Role.PARAM else np.zeros(shape, a.type.dtype)
    planes = bind_planes(plan.name, arguments, {a.name: values[a.name] for a in arguments})
    device = HostProgram(runner.samples)
    plan.call_step(device, place(device, plan, planes), {k: v for k, v in more.items() if isinstance(v, int)})
    device.run()
    found = {name: planes[definition.named(argument)].array for name, argument in results.items()}
    return MappingProxyType(found)
