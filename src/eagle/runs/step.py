"""What a run steps: one plan made of the step's plans and its stop rule, and the plan of the whole run."""

from __future__ import annotations

from collections.abc import Sequence

import hawk
from hawk.compose import Composed
from hawk.events import EventRun
from hawk.ir.program import Role
from hawk.run import Run

from ..errors import ArgumentError
from ..plan import Plan, check_forward
from .options import Options


def step_plan(plan: object, until: object) -> Plan:
    """One plan for a step of several and its stop rule; ArgumentError for what does not fit together."""
    plans = [_checked(p) for p in (plan if isinstance(plan, (list, tuple)) else [plan])]
    rule = None if until is None else _checked(until)
    if not plans:
        raise ArgumentError("until_done was given an empty list: a step is at least one plan")
    if len(plans) == 1 and rule is None:
        return plans[0]
    if len({p.mode for p in [*plans, *([rule] if rule else [])]}) > 1:
        raise ArgumentError("the plans of one step are built for different precisions; deploy them with one mode")
    if rule is not None:
        _check_rule(plans, rule)
    parts = [p.kernel.definition for p in plans]
    last = rule.kernel.definition if rule is not None else None
    timed = next((p.kernel.stepping for p in plans if p.kernel.stepping.time is not None), plans[0].kernel.stepping)

    def make() -> hawk.Kernel:
        try:
            definition = Composed(parts, last)
        except ValueError as error:
            raise ArgumentError(str(error)) from None
        return hawk.Kernel(definition.name, definition, None, timed)

    return plans[0].derived(f"step {[id(d) for d in (*parts, last)]}", make)


_OPTIONS = frozenset("plan kernel max_steps until record window memory_budget events on_no_event progress mode".split())


def check_names(step: Plan) -> None:
    """ArgumentError for a plane that goes by the name of an option of a run."""
    for a in step.program.arguments:
        if a.name in _OPTIONS:
            raise ArgumentError(f"{step.name}: its argument {a.name} has the name of an option of a run; rename it")


def _checked(plan: object) -> Plan:
    if not isinstance(plan, Plan):
        raise ArgumentError(f"until_done takes plans (eagle.deploy([kernel])), found {type(plan).__name__}")
    check_forward(plan.kernel)
    return plan


def _check_rule(plans: Sequence[Plan], rule: Plan) -> None:
    outputs = [a for a in rule.program.arguments if a.role in (Role.MUTABLE, Role.TERMINATED)]
    if [a.role for a in outputs] != [Role.TERMINATED]:
        raise ArgumentError(f"until={rule.name}: a stop rule writes one Terminated and nothing else")
    for p in plans:
        if any(a.role is Role.TERMINATED for a in p.program.arguments):
            raise ArgumentError(f"until={rule.name}: {p.name} has a Terminated of its own; a run has one stop rule")


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
