"""A program: one sample's step as a pure function from input places to output places.

The IR is SSA with structured regions. A `Program` reads every input place once, before anything else,
and writes every output place once, at its end; that is the launch rule of the language ("reads its
planes as they were"), so aliasing never needs analysis here. Values carry a type and nothing else;
names are given by the printer, in order of appearance, so that equal programs print equal text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from .types import Type


@dataclass(frozen=True, slots=True)
class Span:
    """Where in the user's source an instruction comes from."""

    file: str
    line: int
    column: int
    text: str  # the user's source line, stripped

    def __str__(self) -> str:
        return f'File "{self.file}", line {self.line}'


class Value:
    """An SSA value: identity and type."""

    __slots__ = ("type",)

    def __init__(self, type: Type) -> None:
        self.type = type


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A nested block: parameters, instructions, and the values it yields.

    The regions of ``if`` have no parameters. The region of ``loop`` has the trip index (I32) and the
    carried values as parameters; it yields ``again`` (BOOL) and the next carried values. The region of
    ``custom`` reads nothing from outside.
    """

    params: tuple[Value, ...]
    body: tuple[Instr, ...]
    yields: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Instr:
    """One operation.

    `attr` is the number of a ``const``, the argument of a ``table`` or ``scatter``, the tape of a ``load`` or
    ``store``.
    """

    op: str
    args: tuple[Value, ...]
    results: tuple[Value, ...]
    attr: object = None
    regions: tuple[Region, ...] = ()
    span: Span | None = None
    frozen: bool = False  # a primal op inside a derivative: no pass may change how it rounds

    @property
    def result(self) -> Value:
        (value,) = self.results
        return value


class Role(Enum):
    """What an argument is to a launch."""

    SAMPLE = "sample"  # read, one value (of its shape) per sample
    PARAM = "param"  # read, one value for the batch
    MUTABLE = "mutable"  # written per sample; read too when a place of it is an input
    TERMINATED = "terminated"  # a MUTABLE bool: the stop flag of a run
    TABLE = "table"  # one array shared by all samples, read by index
    SUM = "sum"  # written, one value for the batch: the canonical sum over the samples
    TABLE_SUM = "table_sum"  # written, the shape of a table: scatter-added contributions

    __hash__ = object.__hash__  # members are single: Enum's own hash, in Python, is looked up all the time


PER_SAMPLE = frozenset({Role.SAMPLE, Role.MUTABLE, Role.TERMINATED})


@dataclass(frozen=True, slots=True)
class Argument:
    """One named argument: its role, its shape per sample (or as a whole for tables), its scalar type."""

    name: str
    role: Role
    shape: tuple[int, ...]
    type: Type
    axes: tuple[str, ...] = ()  # the names of a table's axes
    samples_first: bool = False  # the plane's sample axis is its first, not its last

    @property
    def size(self) -> int:
        """Scalars per sample (or in the whole table)."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size


@dataclass(frozen=True, slots=True)
class Place:
    """One scalar of an argument: its flat (row-major) component."""

    argument: str
    component: int


@dataclass(frozen=True, slots=True)
class Tape:
    """Local memory of one sample: `capacity` values that the reverse of a loop keeps.

    The capacity is a number, or the name of an I32 param that gives it at each launch.
    """

    name: str
    type: Type
    capacity: int | str

    def rows(self, params: Mapping[str, int]) -> int:
        return self.capacity if isinstance(self.capacity, int) else int(params[self.capacity])


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A kernel's IR. `returns` names output arguments that a call of the kernel allocates and returns."""

    name: str
    arguments: tuple[Argument, ...]
    inputs: tuple[tuple[Place, Value], ...]
    body: tuple[Instr, ...]
    outputs: tuple[tuple[Place, Value], ...]
    returns: tuple[str, ...] = ()
    effects: frozenset[str] = field(default=frozenset())  # arguments written by `scatter`
    tapes: tuple[Tape, ...] = ()

    def argument(self, name: str) -> Argument:
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise KeyError(name)

    def reads(self) -> frozenset[str]:
        """The arguments whose values (before the launch) the program reads."""
        tables = {str(i.attr) for i in walk(self.body) if i.op == "table"}
        return frozenset({place.argument for place, _ in self.inputs} | tables)

    def writes(self) -> frozenset[str]:
        return frozenset({place.argument for place, _ in self.outputs} | self.effects)

    def with_(self, **changes: object) -> Program:
        return replace(self, **changes)  # type: ignore[arg-type]


def walk(body: tuple[Instr, ...]) -> Iterator[Instr]:
    """Every instruction, regions included, in order."""
    for instr in body:
        yield instr
        for region in instr.regions:
            yield from walk(region.body)
