"""vjp and jvp: derivatives as definitions of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

from ..ir.build import Builder
from ..ir.definition import Definition
from ..ir.passes import finish
from ..ir.program import Argument, Place, Program, Role, Value, walk
from ..ir.types import Type
from .activity import active_values
from .errors import DerivativeError
from .forward import Forward
from .loops import Schedule
from .reverse import Reverse

ADJOINT_PREFIX = "bar"
TANGENT_PREFIX = "dot"

_INPUTS = frozenset({Role.SAMPLE, Role.PARAM, Role.MUTABLE, Role.TABLE})
_OUTPUTS = frozenset({Role.MUTABLE, Role.SUM, Role.TABLE_SUM})


class Differentiable(Protocol):
    """A kernel, as `vjp` and `jvp` see it."""

    @property
    def definition(self) -> Definition: ...


K = TypeVar("K", bound=Differentiable)


class Derivative(Definition):
    """The vjp or the jvp of another definition by some of its arguments.

    Attributes: ``primal``; ``wrt``, the inputs it differentiates by.
    """

    kind: str
    prefix: str

    def __init__(
        self, primal: Definition, wrt: tuple[str, ...] | None, made: Mapping[Type, Program] | None = None
    ) -> None:
        super().__init__(f"{primal.name}_{self.kind}", made)
        self.primal = primal
        real = primal.precisions[0]
        self.wrt = check_wrt(primal.program(real), wrt)
        self.program(real)  # a missing rule is an error here, when the derivative is asked for

    @property
    def precisions(self) -> tuple[Type, ...]:
        return self.primal.precisions

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.primal, self.wrt)

    @property
    def order(self) -> int:
        """How many derivatives of this kind stand in a row of derivatives, this one included."""
        count, definition = 0, cast(Definition, self)
        while isinstance(definition, Derivative):
            count += definition.kind == self.kind
            definition = definition.primal
        return count

    def named(self, argument: str) -> str:
        """The plane of an argument's adjoint or tangent: ``bar_x``; ``bar2_x`` in the vjp of a vjp."""
        return f"{self.prefix}{self.order if self.order > 1 else ''}_{argument}"


class Vjp(Derivative):
    """A vjp. `schedule` is for the vjp of a run: it adds the params it names to the arguments."""

    kind = "vjp"
    prefix = ADJOINT_PREFIX

    def __init__(
        self,
        primal: Definition,
        wrt: tuple[str, ...] | None,
        made: Mapping[Type, Program] | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        self.schedule = schedule
        super().__init__(primal, wrt, made)

    def __reduce__(self) -> tuple[Any, ...]:
        return Vjp, (self.primal, self.wrt, None, self.schedule)

    def make(self, real: Type) -> Program:
        program = self.primal.program(real)
        if program.tapes:
            raise DerivativeError(
                f"{program.name} runs loops back on tapes, and reverse mode does not go back through those. For second "
                "derivatives take jvp(vjp(kernel)) or vjp(jvp(kernel)): they hold the same numbers",
                None,
            )
        return finish(_vjp(self, program))


class Jvp(Derivative):
    kind = "jvp"
    prefix = TANGENT_PREFIX

    def make(self, real: Type) -> Program:
        return finish(_jvp(self, self.primal.program(real)))


def vjp(kernel: Differentiable, wrt: Iterable[str] | None = None) -> Vjp:
    """The vector-Jacobian product of a kernel: reverse mode.

    The derivative reads the kernel's inputs and, for every real output ``y``, its adjoint ``bar_y`` (the
    shape of ``y``); it writes ``bar_x`` = (dy/dx)^T bar_y for every ``x`` in `wrt`. The adjoint of a Param is
    one value, the canonical sum over the samples; that of a Table has the table's shape. A Mutable ``s``
    that is read before it is assigned has one plane ``bar_s``: the seed goes in, the derivative with respect
    to the value before the launch comes out.

    `wrt` names the inputs to differentiate by; all real ones if None. Make a kernel of the result with
    ``hawk.Kernel(name, vjp(kernel))``; it can be differentiated again.

    Raises ValueError for an unknown name in `wrt`, TypeError for one that is not real, DerivativeError when
    an op has no rule.
    """
    return Vjp(kernel.definition, None if wrt is None else tuple(wrt))


def jvp(kernel: Differentiable, wrt: Iterable[str] | None = None) -> Jvp:
    """The Jacobian-vector product of a kernel: forward mode.

    The derivative reads the kernel's inputs and the tangent ``dot_x`` of every ``x`` in `wrt`; it writes
    ``dot_y`` = (dy/dx) dot_x for every real output ``y``. A Mutable read before it is assigned has one plane
    ``dot_s``: the tangent of the old value goes in, that of the new one comes out.

    `wrt` and errors as in `vjp`.
    """
    return Jvp(kernel.definition, None if wrt is None else tuple(wrt))


def param_planes(kernel: K) -> K:
    """`kernel` with its Params read from one-value planes, as a recorded graph must bind it.

    Every kernel is made so: a Param is a plane of one value (of its shape), which a launch reads through its
    address and a derivative shares, so no number is ever compiled in. This is therefore `kernel` itself; it is
    for code that says so explicitly when it builds plugins to be recorded.

    Raises TypeError for what is no kernel.
    """
    if not isinstance(getattr(kernel, "definition", None), Definition):
        raise TypeError(f"param_planes takes a kernel, found {kernel!r}; decorate the function with @hawk.kernel")
    return kernel


def check_wrt(program: Program, wrt: tuple[str, ...] | None) -> tuple[str, ...]:
    """The inputs to differentiate by, in argument order."""
    inputs = [a for a in program.arguments if a.role in _INPUTS and (a.role is not Role.MUTABLE or _read(program, a))]
    real = [a.name for a in inputs if a.type.is_real]
    if wrt is None:
        return tuple(real)
    for name in wrt:
        if name not in {a.name for a in inputs}:
            choices = ", ".join(real) or "none"
            raise ValueError(f"wrt={name!r}: {program.name} has no input of that name; its real inputs are {choices}")
        if name not in real:
            kind = program.argument(name).type.value
            raise TypeError(f"wrt={name!r}: {program.name}.{name} holds {kind} values, which do not vary smoothly")
    return tuple(name for name in real if name in wrt)


def _read(program: Program, argument: Argument) -> bool:
    return argument.name in program.reads()


def _primal_arguments(program: Program) -> list[Argument]:
    """The primal's inputs as inputs of a derivative (a Mutable that is read is a plane to read)."""
    out = []
    for a in program.arguments:
        if a.role in (Role.MUTABLE, Role.TERMINATED):
            if _read(program, a):
                out.append(replace(a, role=Role.SAMPLE))
        elif a.role in _INPUTS:
            out.append(a)
    return out


def _by_index(program: Program, table: str) -> bool:
    """Whether a table is read at an index that differs between samples or trips."""
    return any(i.op == "table" and i.attr == table for i in walk(program.body))


def _real_outputs(program: Program) -> list[Argument]:
    return [a for a in program.arguments if a.role in _OUTPUTS and a.type.is_real]


def vjp_arguments(derivative: Vjp, program: Program) -> list[Argument]:
    """The arguments of a vjp: the primal's inputs, then the seeds, then what it writes."""
    wrt, adjoint_name = derivative.wrt, derivative.named
    arguments = _primal_arguments(program)
    for a in _real_outputs(program):
        seed = {Role.MUTABLE: Role.SAMPLE, Role.SUM: Role.PARAM, Role.TABLE_SUM: Role.TABLE}[a.role]
        both = a.role is Role.MUTABLE and a.name in wrt
        arguments.append(replace(a, name=adjoint_name(a.name), role=Role.MUTABLE if both else seed))
    for wanted in wrt:
        a = program.argument(wanted)
        if a.role is not Role.MUTABLE:
            by_index = a.role is Role.TABLE and _by_index(program, wanted)
            role = Role.MUTABLE if a.role is Role.SAMPLE else Role.TABLE_SUM if by_index else Role.SUM
            arguments.append(replace(a, name=adjoint_name(a.name), role=role))
    if derivative.schedule is not None:
        arguments += [Argument(p, Role.PARAM, (), Type.I32) for p in derivative.schedule.params]
    _check_names(derivative.name, arguments)
    return arguments


def _vjp(derivative: Vjp, program: Program) -> Program:
    name, wrt, adjoint_name = derivative.name, derivative.wrt, derivative.named
    arguments = vjp_arguments(derivative, program)
    scattered = frozenset(w for w in wrt if program.argument(w).role is Role.TABLE and _by_index(program, w))
    tables = {a.name: adjoint_name(a.name) for a in program.arguments if a.role in (Role.TABLE, Role.TABLE_SUM)}
    varied = [v for place, v in program.inputs if place.argument in wrt]
    b = Builder()
    sizes = {p: Value(Type.I32) for p in (derivative.schedule.params if derivative.schedule else ())}
    active = active_values(program.body, varied, scattered)
    loops = [i for i in program.body if i.op == "loop"]  # a run's own stands last: a stop rule may come before
    scheduled = loops[-1] if derivative.schedule is not None else None
    engine = Reverse(program.name, b, active, tables, derivative.schedule, scheduled, sizes)
    inputs = _clone_inputs(program, engine.env)
    inputs += [(Place(name, 0), value) for name, value in sizes.items()]
    engine.primal(program.body)
    for place, value in program.outputs:
        if value.type.is_real:
            seed_value = Value(value.type)
            inputs.append((Place(adjoint_name(place.argument), place.component), seed_value))
            engine.give(value, seed_value)
    engine.transpose(program.body)
    found = {place: engine.adjoints[v].value for place, v in program.inputs if v in engine.adjoints}
    outputs_ = []
    for wanted in wrt:
        a = program.argument(wanted)
        for k in range(a.size):
            adjoint = found.get(Place(wanted, k))
            if wanted not in scattered:
                adjoint = adjoint if adjoint is not None else b.const(0.0, a.type)
                outputs_.append((Place(adjoint_name(wanted), k), adjoint))
            elif adjoint is not None:
                b.scatter(adjoint_name(wanted), b.const(k, Type.I32), adjoint)
    return Program(name, tuple(arguments), tuple(inputs), tuple(b.body), tuple(outputs_), tapes=tuple(engine.tapes),
                   effects=frozenset(adjoint_name(t) for t in scattered))  # fmt: skip


def _jvp(derivative: Jvp, program: Program) -> Program:
    name, wrt, tangent_name = derivative.name, derivative.wrt, derivative.named
    arguments = _primal_arguments(program)
    for wanted in wrt:
        a = program.argument(wanted)
        if a.role is not Role.MUTABLE:
            arguments.append(replace(a, name=tangent_name(wanted)))
    for a in _real_outputs(program):
        arguments.append(replace(a, name=tangent_name(a.name)))
    _check_names(name, arguments)
    tables = {a.name: tangent_name(a.name) for a in program.arguments if a.role in (Role.TABLE, Role.TABLE_SUM)}
    tables |= {t.name: tangent_name(t.name) for t in program.tapes}
    wanted_tables = frozenset(w for w in wrt if program.argument(w).role is Role.TABLE)
    varied = [v for place, v in program.inputs if place.argument in wrt]
    b = Builder()
    engine = Forward(program.name, b, active_values(program.body, varied, wanted_tables), tables)
    inputs = _clone_inputs(program, engine.env)
    for place, value in program.inputs:
        if place.argument in wrt and value.type.is_real:
            engine.tangents[value] = Value(value.type)
            inputs.append((Place(tangent_name(place.argument), place.component), engine.tangents[value]))
    engine.block(program.body)
    outputs = tuple(
        (Place(tangent_name(place.argument), place.component), engine.tangent(value))
        for place, value in program.outputs
        if value.type.is_real
    )
    tapes = [replace(t, name=tables[t.name]) for t in program.tapes if t.name in engine.stored]
    return Program(name, tuple(arguments), tuple(inputs), tuple(b.body), outputs, tapes=(*program.tapes, *tapes),
                   effects=frozenset(tangent_name(e) for e in program.effects))  # fmt: skip


def _clone_inputs(program: Program, env: dict[Value, Value]) -> list[tuple[Place, Value]]:
    inputs = []
    for place, value in program.inputs:
        env[value] = Value(value.type)
        inputs.append((place, env[value]))
    return inputs


def _check_names(kernel: str, arguments: list[Argument]) -> None:
    names = [a.name for a in arguments]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"{kernel}: the derivative needs a plane named {name!r}, and the kernel has an argument of that "
                "name already; rename it"
            )
