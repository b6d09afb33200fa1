"""Running a step until each sample is done, in place on the user's planes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import final

import numpy as np

from hawk.events import RULE, STATUS
from hawk.ir.program import Role
from hawk.run import LIMIT, STEPS

from ..errors import ArgumentError, Busy, EventError, PlaneError, RecordError
from ..plan import Bound, Plan
from ..planes import Array, Plane, bind_plane, bind_planes, param_value
from .options import Options, Status, is_count
from .progress import progress_bar
from .record import RunRecord
from .result import Result
from .step import check_names, run_plan, step_plan
from .turn import Turn

_SLICE = 0.2  # seconds a native call should take, so that Ctrl-C and progress come through
_FIRST_SLICE = 200_000  # sample-steps, before it is known how long one takes
_MAX_STEPS = np.array(Status.MAX_STEPS, np.int32)


def until_done(
    plan: Plan | Sequence[Plan],
    *,
    max_steps: int,
    until: Plan | None = None,
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
    again. A list of plans is one step: each reads what the ones before it wrote, by the names of their planes.
    `until` is the plan of a kernel that only sets a Terminated: it is asked before the first step and after
    every step.

    ``record=True`` keeps the start state, so that `eagle.diff.reverse(runner.record, seeds)` can go back
    through the run; `window` steps lie between two states kept while it does, and `memory_budget` bytes cap
    what it holds. With ``events="refine"`` a sample stops inside its last step, where its stop rule begins
    to hold; `on_no_event` says what becomes of one that has no such place.

    Raises ArgumentError for an option by its name, and what `Plan.bind` raises for planes.
    """
    step = step_plan(plan, until)
    check_names(step)
    options = Options.checked(max_steps, record, window, memory_budget, events, on_no_event, progress)
    if record and step.kernel.stepping.steps != 1:
        raise ArgumentError(
            f"record=True: {step.name} takes steps={step.kernel.stepping.steps!r} per launch; record a kernel of "
            "one step per launch, @hawk.kernel(steps=1)"
        )
    return Runner(step, options, planes)


@final
class Runner:
    """A run in place on given planes.

    Attributes: ``planes``, the arrays of the plan's arguments (a param's is its value, read-only: `set_start`
    changes it); after `run`: ``result``; ``finished``, ``steps`` and ``t_stop`` of every sample;
    ``event_status``, a `Status` a sample; ``event_rule``, which comparison of the stop rule began to hold in a
    refined run, counted from 0 as it is written (-1 for none); ``record``.
    """

    def __init__(self, plan: Plan, options: Options, planes: Mapping[str, object]) -> None:
        self.plan = plan
        self.options = options
        self.run_plan = run_plan(plan, options)
        arguments = plan.program.arguments
        done = next((a.name for a in arguments if a.role is Role.TERMINATED), None)
        samples = _samples(plan, planes)
        given = dict(planes)
        if done is not None and done not in given:
            given[done] = np.zeros(samples, np.bool_)
        self.steps, self._status, self.event_rule = np.zeros((3, samples), np.int32)
        bound = bind_planes(plan.name, arguments, given)
        self._limit = np.array(options.max_steps, np.int32)
        own = {STEPS: self.steps, LIMIT: self._limit, STATUS: self._status, RULE: self.event_rule}
        bound |= {a.name: Plane(a, own[a.name]) for a in self.run_plan.program.arguments if a.name not in bound}
        self.bound = Bound(self.run_plan, bound)
        self._arrays = {a.name: self.bound.planes[a.name].array for a in arguments}
        self._refuse_inputs_on_state()
        self.state = MappingProxyType({a.name: self._arrays[a.name] for a in arguments if a.role is Role.MUTABLE})
        self.finished = np.zeros(samples, np.bool_) if done is None else self._arrays[done]
        self._started = dict(self.state) if done is None else {**self.state, done: self.finished}
        # Copies that are replaced, never written: records refer to them.
        self._given = {k: a.copy() for k, a in self._started.items()}
        self._uniforms = {a.name: self._arrays[a.name].copy() for a in arguments if a.role is Role.PARAM}
        self._start = self._given
        self.planes: Mapping[str, Array] = MappingProxyType(
            self._arrays | {k: _read_only(self._arrays[k]) for k in self._uniforms}
        )
        self._turn = Turn(plan.name)
        self._inputs_turn = threading.Lock()
        self._readers = 0  # reverses that read the inputs
        self._underway = False
        self._reached = 0
        self.generation = 0
        self._record: RunRecord | None = None
        self._result: Result | None = None

    def _refuse_inputs_on_state(self) -> None:
        """A run writes its state again and again: an input on the same memory would not stay what it was."""
        roles = {a.name: a.role for a in self.plan.program.arguments}
        state = [k for k, role in roles.items() if role in (Role.MUTABLE, Role.TERMINATED)]
        for name in (k for k, role in roles.items() if role in (Role.SAMPLE, Role.TABLE)):
            for other in state:
                if np.shares_memory(self._arrays[name], self._arrays[other]):
                    raise PlaneError(
                        f"{self.plan.name}: {name} is read at every step and shares memory with {other}, which the run "
                        f"writes; pass a copy as {name}, or read {other} in the kernel instead"
                    )

    @property
    def samples(self) -> int:
        return self.bound.samples

    @property
    def inputs(self) -> dict[str, Array]:
        """The planes and tables that the step only reads."""
        return {k: a for k, a in self._arrays.items() if k not in self._started and k not in self._uniforms}

    # running

    def run(self, steps: int | None = None) -> Result:
        """Start from what the planes hold and run every sample to its end; or `steps` steps at most, to be
        continued by the next call.

        Raises Busy while another thread runs it, EventError for a refined run with samples that have no event.
        Ctrl-C raises KeyboardInterrupt and leaves a run that the next call continues, to the same bits.
        """
        with self._turn:
            if not self._underway:
                self._begin(None)
            return self._run(steps)

    def restart(self, start: Mapping[str, object]) -> Result:
        """Set what is named in `start` (as `set_start`), put the planes back to the start and run to the end."""
        with self._turn:
            if start:
                self._set_start(start)
            self._put_back()
            self._begin(self._given)
            return self._run(None)

    def _begin(self, start: dict[str, Array] | None) -> None:
        """Begin a run from what the planes hold, of which `start` is a copy if there is one already."""
        self.steps.fill(0)
        if self.options.events == "refine":
            self._status.fill(Status.DONE)
            self.event_rule.fill(-1)
        if self.options.record:
            self._start = start if start is not None else {k: a.copy() for k, a in self._started.items()}
        self.generation += 1
        self._result = self._record = None
        self._reached = 0
        self._underway = True

    def _run(self, steps: int | None) -> Result:
        most = self.options.max_steps
        last = most
        if steps is not None:
            if not is_count(steps) or steps < 0:
                raise ArgumentError(f"run(steps={steps!r}): a number of steps, or None to run to the end")
            last = min(most, self._reached + steps)
        self._advance(last)
        if last == most or not self._active().any():
            return self._end()
        return self._outcome(self.event_status, None)

    def _active(self) -> Array:
        """The samples that are neither finished nor at their last step."""
        return (self.steps < self.options.max_steps) & ~self.finished

    def _advance(self, last: int) -> None:
        """Step all samples to `last` steps, in slices short enough for Ctrl-C and progress."""
        chunk = max(1, _FIRST_SLICE // max(self.samples, 1))
        if last <= self._reached + chunk and not self.options.progress:
            self._step_to(last)
            return
        with progress_bar(self.plan.name, self.samples, self.options.progress) as show:
            while self._reached < last:
                before, start = self._reached, time.perf_counter()
                self._step_to(min(last, before + chunk))
                spent = time.perf_counter() - start
                active = np.count_nonzero(self._active())
                show(self.samples - int(active))
                if not active:
                    break
                chunk = max(1, int(chunk * min(8.0, _SLICE / max(spent, 1e-6))))

    def _step_to(self, target: int) -> None:
        self._limit[...] = target
        self.bound.launch()
        self._reached = target

    def _end(self) -> Result:
        status = self.event_status
        self.check_events(self.plan.name, status)
        if self.options.record:
            self._record = RunRecord(self, self.generation, self._start, self._uniforms, self.steps.copy(), status)
        self._result = self._outcome(status, self._record)
        self._underway = False
        return self._result

    def _outcome(self, status: Array, record: RunRecord | None) -> Result:
        return Result(self.plan.name, self.state, self.steps, self.finished, status, self.t_stop, record)

    # starting again

    def reset(self) -> None:
        """Put the planes back to what they held when the runner was made, or were set to since.

        Raises Busy while another thread runs it."""
        with self._turn:
            self._put_back()
            self.steps.fill(0)
            self._underway = False
            self._result = None

    def _put_back(self) -> None:
        for name, array in self._started.items():
            array[...] = self._given[name]

    def set_start(self, values: Mapping[str, object]) -> None:
        """Change start values, inputs and params by name, for the runs to come.

        All are checked before any is changed. Raises ArgumentError for a name that is no argument, PlaneError
        for a value of another shape or kind, RecordError for a run that is under way, Busy while another thread
        runs it.
        """
        with self._turn:
            if self._underway:
                raise RecordError("this run is under way; run() it to its end, or give it up with reset()")
            self._set_start(values)

    def _set_start(self, values: Mapping[str, object]) -> None:
        new = {name: self._checked(name, value) for name, value in values.items()}
        with self._inputs_turn:
            if not self.inputs.keys().isdisjoint(new):
                if self._readers:
                    raise Busy(f"a reverse is reading the inputs of {self.plan.name}; set them when that is done")
                self._record = None
            for name, array in new.items():
                self._arrays[name][...] = array
        self._given = self._given | {k: v for k, v in new.items() if k in self._given}
        self._uniforms = self._uniforms | {k: v for k, v in new.items() if k in self._uniforms}

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the inputs still while a reverse reads them."""
        with self._inputs_turn:
            self._readers += 1
        try:
            yield
        finally:
            with self._inputs_turn:
                self._readers -= 1

    def _checked(self, name: str, value: object) -> Array:
        """A value for an argument, as an array of its own."""
        argument = next((a for a in self.plan.program.arguments if a.name == name), None)
        where = f"{self.plan.name}: {name}"
        if argument is None:
            raise ArgumentError(f"{self.plan.name} has no argument {name!r}; it has {', '.join(self._arrays)}")
        if argument.role is Role.PARAM:
            return param_value(where, argument, value)
        array, own = np.array(value), self._arrays[name]
        if isinstance(value, np.ndarray) and name in self._given and np.shares_memory(value, own):
            raise PlaneError(
                f"{where}: the array given is the plane that the run steps, so it holds the end of the last run, not a "
                "start; pass a copy of the start, or leave it out to begin where the simulation began"
            )
        if array.shape != own.shape or not np.can_cast(array.dtype, own.dtype, "same_kind"):
            raise PlaneError(f"{where} is {own.dtype} of shape {own.shape}, found {array.dtype} of shape {array.shape}")
        if not own.flags.writeable:
            raise PlaneError(
                f"{where} was given as a read-only array, so its values cannot be set; give a writable one"
            )
        return array.astype(own.dtype)

    # stopping here and going on elsewhere

    def save(self, path: str | Path) -> None:
        """Write the run as it stands to one file; ``eagle.resume(path)`` goes on with it, in any process.

        Raises SavedRunError for a kernel that is not traced from source, OSError if the file cannot be
        written (an older one then stays), Busy while another thread runs it.
        """
        from .saved import save

        with self._turn:
            save(self, path)

    def standing(self) -> tuple[dict[str, int], dict[str, Array]]:
        """Where the run stands: how far it is, and every array that it needs to go on."""
        how_far = {"generation": self.generation, "reached": self._reached, "underway": int(self._underway)}
        how_far |= {"has result": int(self._result is not None), "has record": int(self._record is not None)}
        arrays = {f"plane {k}": a for k, a in self._arrays.items()}
        arrays |= {f"given {k}": a for k, a in self._given.items()} | {f"start {k}": a for k, a in self._start.items()}
        if (record := self._record) is not None:
            arrays |= {f"record start {k}": a for k, a in record.start.items()}
            arrays |= {f"record uniform {k}": a for k, a in record.uniforms.items()}
            arrays |= {"record steps": record.steps, "record status": record.status}
        return how_far, arrays | {"steps": self.steps, "status": self._status, "rule": self.event_rule}

    def take_up(self, how_far: Mapping[str, int], arrays: Mapping[str, Array]) -> None:
        """Stand where another run stood (`standing`); the planes hold its values already."""
        self.steps[...], self._status[...], self.event_rule[...] = (arrays[k] for k in ("steps", "status", "rule"))
        self._given = {k: arrays[f"given {k}"] for k in self._given}
        self._start = {k: arrays[f"start {k}"] for k in self._start}
        self.generation, self._reached = how_far["generation"], how_far["reached"]
        self._underway = bool(how_far["underway"])
        if how_far["has record"]:
            uniforms = {k: arrays[f"record uniform {k}"] for k in self._uniforms}
            start = {k: arrays[f"record start {k}"] for k in self._start}
            steps, status = arrays["record steps"], arrays["record status"]
            self._record = RunRecord(self, self.generation, start, uniforms, steps, status)
        if how_far["has result"]:
            self._result = self._outcome(self.event_status, self._record)

    # what came of it

    def check_events(self, name: str, statuses: Array) -> None:
        """Raise EventError for a sample without an event, unless those are to count as zero."""
        if self.options.events != "refine" or self.options.on_no_event != "raise":
            return
        without = np.flatnonzero((statuses == Status.MAX_STEPS) | (statuses == Status.NO_CROSSING))
        if without.size:
            first = int(without[0])
            raise EventError(
                f"{name}: {without.size} of {self.samples} samples have no event, the first is sample {first}: "
                f"{Status(int(statuses[first])).message}. Pass on_no_event='zero' to let their stop times have "
                f"derivative zero{', or raise max_steps' if statuses[first] == Status.MAX_STEPS else ''}"
            )

    def without_derivative(self, name: str, statuses: Array) -> str:
        """Why samples that ended like this have no derivative; empty if they have."""
        if self.options.events != "refine":
            return ""
        for status in (Status.GRAZING, Status.TIE, Status.JUMP):
            found = np.flatnonzero(statuses == status)
            if found.size:
                return (
                    f"{name}: the events of {found.size} of {self.samples} samples have no derivative, the first is "
                    f"sample {int(found[0])}: {status.message}. Leave these samples out of the run, or use "
                    "events='step'"
                )
        return ""

    def is_current(self, record: RunRecord) -> bool:
        """Whether the planes and tables that the step only reads are still those of a record."""
        return record is self._record

    @property
    def t_stop(self) -> Array | None:
        """The time plane: where each sample stopped. None if the kernel names no time plane."""
        name = self.plan.kernel.stepping.time
        return None if name is None else self.state[name]

    @property
    def event_status(self) -> Array:
        """A `Status` a sample, as int32."""
        return self.statuses(self.finished, self._status)

    def statuses(self, finished: Array, located: Array) -> Array:
        """A `Status` a sample: of those finished, how they were located by a refined run."""
        if self.options.events == "step":
            return (~finished).astype(np.int32)  # DONE or MAX_STEPS
        return np.where(finished, located, _MAX_STEPS)

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
        how = ", refined" * (self.options.events == "refine") + ", recorded" * self.options.record
        return f"<run of {self.plan.name}, {self.samples:,} samples, at most {self.options.max_steps:,} steps{how}>"


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def _samples(plan: Plan, given: Mapping[str, object]) -> int:
    for a in plan.program.arguments:
        value = given.get(a.name)
        if a.role in (Role.SAMPLE, Role.MUTABLE) and isinstance(value, np.ndarray) and value.ndim:
            return int(value.shape[0] if a.samples_first else value.shape[-1])
    planes = [a for a in plan.program.arguments if a.role in (Role.SAMPLE, Role.MUTABLE) and a.name in given]
    if planes:
        bind_plane(plan.name, planes[0], given[planes[0].name])  # says what is wrong with it
    raise PlaneError(f"{plan.name}: no plane is given, so the number of samples is unknown")
