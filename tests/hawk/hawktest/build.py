"""Programs for tests, put together from a body."""

from collections.abc import Mapping, Sequence

from hawk.ir.build import Builder
from hawk.ir.program import Argument, Place, Program, Role, Tape, Value
from hawk.ir.types import Type


class Kit:
    """A program under construction: read arguments, emit with `b`, write results, `program()`."""

    def __init__(self, name: str = "k") -> None:
        self.b = Builder()
        self._name = name
        self._arguments: list[Argument] = []
        self._inputs: list[tuple[Place, Value]] = []
        self._outputs: list[tuple[Place, Value]] = []

    def read(self, name: str, type: Type = Type.F64, role: Role = Role.SAMPLE) -> Value:
        """A new scalar argument, read."""
        self._arguments.append(Argument(name, role, (), type))
        self._inputs.append((Place(name, 0), Value(type)))
        return self._inputs[-1][1]

    def table(self, name: str, size: int, type: Type = Type.F64, role: Role = Role.TABLE) -> str:
        self._arguments.append(Argument(name, role, (size,), type))
        return name

    def write(self, name: str, value: Value, role: Role = Role.MUTABLE) -> None:
        """A scalar output; a new argument unless one of that name has been read."""
        if all(a.name != name for a in self._arguments):
            self._arguments.append(Argument(name, role, (), value.type))
        self._outputs.append((Place(name, 0), value))

    def program(self, tapes: Sequence[Tape] = (), **changes: object) -> Program:
        inputs, outputs = tuple(self._inputs), tuple(self._outputs)
        made = Program(self._name, tuple(self._arguments), inputs, tuple(self.b.body), outputs, tapes=tuple(tapes))
        return made.with_(**changes)


def one_of_each(calls: Mapping[str, tuple[str, Sequence[Type]]], apart: bool = False) -> Program:
    """One output a call: ``{output: (op, argument types)}``.

    The calls share arguments, one for a type and a position: ``f64_0``, ``f64_1``, ``bool_0``... Or, `apart`, each has
    its own: ``output_0``, ``output_1``...
    """
    kit = Kit()
    read: dict[str, Value] = {}
    results = {}
    for output, (op, types) in calls.items():
        names = [f"{output if apart else type.value}_{k}" for k, type in enumerate(types)]
        read |= {name: kit.read(name, type) for name, type in zip(names, types, strict=True) if name not in read}
        results[output] = kit.b(op, *(read[name] for name in names))
    for output, value in results.items():
        kit.write(output, value)
    return kit.program()
