"""Running a step until each sample is done, in place on the user's planes."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, final

import numpy as np

import hawk
from hawk.ir.program import Role
from hawk.events import RULE, STATUS, EventRun
from hawk.run import LIMIT, STEPS, Run

from ..errors import ArgumentError, Busy, EventError, PlaneError, RecordError
from ..plan import Bound, Plan, check_forward
from ..planes import Array, param_value
from .options import Options, Status
from .record import RunRecord
from .result import Result

_SLICE = 0.2  # seconds a native call should take, so that Ctrl-C and progress come through


def until_done(
    plan: Plan,
    *,
    max_steps: int,
    record: bool = False,
    window: int | str | None = None,
    memory_budget: int | None = None,
    events: str = "step",
    on_no_event: str = "raise",
    progress: bool = False,
    **planes: object,
) -> Runner:
    """A runner of a step kernel's plan: every sample steps until its Terminated is set, or `max_steps`.

    `planes` are the plan's arguments. Every Mutable is state, stepped in place; the Terminated plane may be
    left out. A sample whose Terminated is set from the start takes no step; a finished one is never touched
    again.

    ``record=True`` keeps the start state, so that `eagle.diff.reverse(runner.record, seeds)` can go back
    through the run; `window` steps lie between two states kept while it does, and `memory_budget` bytes cap
    what it holds. With ``events="refine"`` a sample stops inside its last step, where its stop rule begins
    to hold; `on_no_event` says what becomes of one that has no such place.

    Raises ArgumentError for an option by its name, and what `Plan.bind` raises for planes.
    """
    if isinstance(plan, (list, tuple)):
        raise ArgumentError("until_done takes one plan; a step made of several is not supported: write one kernel")
    if not isinstance(plan, Plan):
        raise ArgumentError(f"until_done takes a plan (eagle.deploy([kernel])), found {type(plan).__name__}")
    check_forward(plan.kernel)
    options = Options.checked(max_steps, record, window, memory_budget, events, on_no_event, progress)
    if record and plan.kernel.stepping.steps != 1:
        raise ArgumentError(
            f"record=True: {plan.name} takes steps={plan.kernel.stepping.steps!r} per launch; record a kernel of "
            "one step per launch, @hawk.kernel(steps=1)"
        )
    return Runner(plan, options, planes)


@final
class Runner:
    """A run in place on given planes.

    Attributes, after `run`: ``result``; ``finished``, ``steps`` and ``t_stop`` of every sample;
    ``event_status``, a `Status` a sample; ``record``.
    """

    def __init__(self, plan: Plan, options: Options, planes: Mapping[str, object]) -> None:
        self.plan = plan
        self.options = options
        self.run_plan = run_plan(plan, options)
        arguments = plan.program.arguments
        self._done = next((a.name for a in arguments if a.role is Role.TERMINATED), None)
        given = dict(planes)
        samples = _samples(plan, given)
        if self._done is not None and self._done not in given:
            given[self._done] = np.zeros(samples, np.bool_)
        self.steps = np.zeros(samples, np.int32)
        self._status, self.event_rule = np.zeros(samples, np.int32), np.full(samples, -1, np.int32)
        own: dict[str, object] = {STEPS: self.steps, LIMIT: options.max_steps}
        if options.events == "refine":
            own |= {STATUS: self._status, RULE: self.event_rule}
        self.bound: Bound = self.run_plan.bind(**given, **own)
        self.state = {a.name: self._array(a.name) for a in arguments if a.role is Role.MUTABLE}
        self._given = {k: a.copy() for k, a in self._start_planes().items()}
        self._lock = threading.Lock()
        self.generation = 0
        self._record: RunRecord | None = None
        self._result: Result | None = None

    def _array(self, name: str) -> Array:
        return self.bound.planes[name].array

    def _start_planes(self) -> dict[str, Array]:
        """The planes a run changes."""
        return self.state | ({self._done: self._array(self._done)} if self._done is not None else {})

    @property
    def samples(self) -> int:
        return self.bound.samples

    @property
    def planes(self) -> dict[str, Array]:
        """The arrays of the plan's arguments; a param's is its value."""
        return {a.name: self._array(a.name) for a in self.plan.program.arguments}

    @property
    def inputs(self) -> dict[str, Array]:
        """The planes and tables that the step only reads."""
        wanted = (Role.SAMPLE, Role.TABLE)
        return {a.name: self._array(a.name) for a in self.plan.program.arguments if a.role in wanted}

    def set_start(self, values: Mapping[str, object]) -> None:
        """Change start values, inputs and params by name; all are checked before any is changed."""
        arguments = {a.name: a for a in self.plan.program.arguments}
        new = []
        for name, value in values.items():
            if name not in arguments:
                raise ArgumentError(f"{self.plan.name} has no argument {name!r}; it has {', '.join(arguments)}")
            if arguments[name].role is Role.PARAM:
                new.append((name, param_value(f"{self.plan.name}: {name}", arguments[name], value)))
            else:
                array = np.asarray(value)
                if array.shape != self._array(name).shape or array.dtype.kind not in "fiub":
                    raise PlaneError(
                        f"{self.plan.name}: {name} has shape {self._array(name).shape}, found {array.dtype} {array.shape}"
                    )
                new.append((name, array))
        for name, array in new:
            self._array(name)[...] = array
            if name in self._given:
                self._given[name][...] = array

    @property
    def _active(self) -> Array:
        below = self.steps < self.options.max_steps
        return below if self._done is None else below & ~self._array(self._done)

    def run(self, steps: int | None = None) -> Result:
        """Start from what the planes hold and run every sample to its end; or `steps` steps at most, to be
        continued by the next call.

        Raises Busy while another thread runs it. Ctrl-C raises KeyboardInterrupt and leaves a run that the
        next call continues.
        """
        if steps is not None and (not isinstance(steps, int) or isinstance(steps, bool) or steps < 0):
            raise ArgumentError(f"run(steps={steps!r}): a number of steps, or None to run to the end")
        if not self._lock.acquire(blocking=False):
            raise Busy("another thread is running this run")
        try:
            if self._result is not None or self.generation == 0:
                self._begin()
            last = self.options.max_steps if steps is None else min(self.options.max_steps, self._reached + steps)
            self._advance(last)
            if steps is None or last == self.options.max_steps or not self._active.any():
                return self._end()
            return self._outcome(None)
        finally:
            self._lock.release()

    def _begin(self) -> None:
        self.generation += 1
        self._result = self._record = None
        self._reached = 0
        self._clear()
        if self.options.record:
            self._start = {k: a.copy() for k, a in self._start_planes().items()}

    def _clear(self) -> None:
        self.steps[...] = 0
        self._status[...] = Status.DONE
        self.event_rule[...] = -1

    def _advance(self, last: int) -> None:
        """Step all samples to `last` steps, in slices short enough for Ctrl-C and progress."""
        limit = self.bound.planes[LIMIT].array
        work = max(self.samples, 1)
        chunk = max(1, int(2e7) // work)
        with _bar(self) as bar:
            while True:
                target = min(last, self._reached + chunk)
                limit[...] = target
                start = time.perf_counter()
                self.bound.launch()
                spent = time.perf_counter() - start
                self._reached = target
                if target >= last or (chunk < last and not self._active.any()):
                    return
                bar.update(self)
                chunk = max(1, int(chunk * min(4.0, _SLICE / max(spent, 1e-6))))

    def _end(self) -> Result:
        self.check_events()
        if self.options.record:
            uniforms = {
                a.name: self._array(a.name).copy() for a in self.plan.program.arguments if a.role is Role.PARAM
            }
            self._record = RunRecord(self, self.generation, self._start, uniforms, self.steps.copy(), self.event_status)
        self._result = self._outcome(self._record)
        return self._result

    def check_events(self) -> None:
        """Raise EventError for a sample without an event, unless those are to count as zero."""
        if self.options.events != "refine" or self.options.on_no_event != "raise":
            return
        without = np.flatnonzero(np.isin(self.event_status, (Status.MAX_STEPS, Status.NO_CROSSING)))
        if without.size:
            first = int(without[0])
            status = Status(int(self.event_status[first]))
            raise EventError(
                f"{self.plan.name}: {without.size} of {self.samples} samples have no event, the first is sample {first}: "
                f"{status.message}. Pass on_no_event='zero' to let their stop times have derivative zero, or raise "
                "max_steps"
            )

    def check_differentiable(self) -> None:
        """Raise EventError for a sample whose event has no derivative."""
        check_differentiable(self.plan.name, self.event_status)

    def _outcome(self, record: RunRecord | None) -> Result:
        return Result(
            self.plan.name, self.state, self.steps, self.finished, self.event_status, self.t_stop, record
        )

    def reset(self) -> None:
        """Put the planes back to what they held when the runner was made."""
        for name, array in self._start_planes().items():
            array[...] = self._given[name]
        self._clear()
        self.generation += 1
        self._result = self._record = None
        self._reached = 0

    @property
    def finished(self) -> Array:
        """Whether each sample's stop rule has held; all False for a kernel without one."""
        if self._done is None:
            return np.zeros(self.samples, np.bool_)
        return self._array(self._done)

    @property
    def t_stop(self) -> Array | None:
        """The time plane: where each sample stopped. None if the kernel names no time plane."""
        name = self.plan.kernel.stepping.time
        return None if name is None else self.state[name]

    @property
    def event_status(self) -> Array:
        """A `Status` a sample, as int32."""
        return np.where(self.finished, self._status, np.int32(Status.MAX_STEPS))

    @property
    def record(self) -> RunRecord:
        """The record of the last complete run. Raises RecordError if there is none."""
        if not self.options.record:
            raise RecordError("this run is not recorded; pass record=True")
        if self._record is None:
            raise RecordError("there is no complete run to reverse; call run()")
        return self._record

    @property
    def result(self) -> Result:
        """The result of the last complete run. Raises RecordError before."""
        if self._result is None:
            raise RecordError("there is no complete run yet; call run()")
        return self._result

    def __repr__(self) -> str:
        return f"<run of {self.plan.name}, {self.samples} samples, at most {self.options.max_steps} steps>"


def check_differentiable(name: str, statuses: Array) -> None:
    """Raise EventError for a sample whose event has no derivative."""
    for status in (Status.GRAZING, Status.TIE, Status.JUMP):
        found = np.flatnonzero(statuses == status)
        if found.size:
            raise EventError(
                f"{name}: the events of {found.size} samples have no derivative, the first is sample {int(found[0])}: "
                f"{status.message}. Leave these samples out of the run, or use events='step'"
            )


def run_plan(plan: Plan, options: Options) -> Plan:
    """The plan of the whole run of a step, compiled when first needed and kept beside the step's."""
    step = plan.kernel.definition
    if options.events == "step":
        return plan.derived("run", lambda: hawk.Kernel(f"{plan.name}_run", Run(step)))
    time_step = plan.kernel.stepping.time_step
    if time_step is None:
        raise ArgumentError(
            f"events='refine': {plan.name} names no time step; declare it with @hawk.kernel(time=..., time_step=...)"
        )
    return plan.derived("event run", lambda: hawk.Kernel(f"{plan.name}_event_run", EventRun(step, time_step)))


def _samples(plan: Plan, given: Mapping[str, object]) -> int:
    for a in plan.program.arguments:
        value = given.get(a.name)
        if a.role in (Role.SAMPLE, Role.MUTABLE) and isinstance(value, np.ndarray) and value.ndim:
            return int(value.shape[0] if a.samples_first else value.shape[-1])
    raise PlaneError(f"{plan.name}: no plane is given, so the number of samples is unknown")


class _bar:
    """A progress bar by tqdm, if asked for: finished samples."""

    def __init__(self, runner: Runner) -> None:
        self._bar: Any = None
        if runner.options.progress:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=runner.samples, unit="samples", desc=runner.plan.name)

    def __enter__(self) -> _bar:
        return self

    def update(self, runner: Runner) -> None:
        if self._bar is not None:
            self._bar.n = runner.samples - int(np.count_nonzero(runner._active))
            self._bar.refresh()

    def __exit__(self, kind: object, *rest: object) -> None:
        if self._bar is not None:
            if kind is None:
                self._bar.n = self._bar.total
            self._bar.close()
