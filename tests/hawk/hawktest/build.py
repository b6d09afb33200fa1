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
        made = Program(self._name, tuple(self._arguments), tuple(self._inputs), tuple(self.b.body), tuple(self._outputs),
                       tapes=tuple(tapes))  # fmt: skip
        return made.with_(**changes)


def one_of_each(calls: Mapping[str, tuple[str, Sequence[Type]]]) -> Program:
    """One output a call: ``{output: (op, argument types)}``; the arguments of one type are shared, ``f64_0``, ``f64_1``..."""
    kit = Kit()
    read: dict[tuple[Type, int], Value] = {}
    results = {}
    for output, (op, types) in calls.items():
        args = []
        for k, type in enumerate(types):
            if (type, k) not in read:
                read[type, k] = kit.read(f"{type.value}_{k}", type)
            args.append(read[type, k])
        results[output] = kit.b(op, *args)
    for output, value in results.items():
        kit.write(output, value)
    return kit.program()
