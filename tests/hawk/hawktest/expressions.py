"""Programs of one expression, to and from text: ``add(mul(x, y), 1.0)``.

Arguments by name: ``x y z w`` are reals, ``i j`` i32, ``u v`` u32, ``c d`` bools. Numbers are constants: floats are
reals, ints i32, bools bools. ``and_``, ``or_`` and ``not_`` are the ops that Python has words for, and ``i64(i)`` is
a cast.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from hawk.ir.build import Builder
from hawk.ir.interpret import Array
from hawk.ir.ops import OPS
from hawk.ir.program import Argument, Instr, Place, Program, Role, Value
from hawk.ir.types import Type

from .samples import special_values

_KINDS = {"xyzw": Type.REAL, "ij": Type.I32, "uv": Type.U32, "cd": Type.BOOL}
_WORDS = {"and": "and_", "or": "or_", "not": "not_"}
Constant = float | int | bool


def program_of(expression: str, real: Type = Type.F64, frozen: bool = False) -> Program:
    """The program that writes an expression to ``out``."""
    b = Builder()
    b.frozen = frozen
    inputs = {}
    for names, kind in _KINDS.items():
        inputs |= {name: Value(real if kind is Type.REAL else kind) for name in names}

    def value(item: Value | Constant) -> Value:
        if isinstance(item, Value):
            return item
        kind = Type.BOOL if isinstance(item, bool) else Type.I32 if isinstance(item, int) else real
        return b.const(item, kind)

    def call(op: str, *args: Value | Constant) -> Value:
        return b(op, *map(value, args))

    names: dict[str, Value | Callable[..., Value]] = dict(inputs)
    names |= {_WORDS.get(op, op): partial(call, op) for op in OPS}
    names |= {t.value: partial(lambda t, item: b.emit("cast", [value(item)], [t])[0], t) for t in Type}
    result = value(eval(expression, {"__builtins__": {}}, names))
    arguments = [Argument(name, Role.SAMPLE, (), v.type) for name, v in inputs.items()]
    arguments.append(Argument("out", Role.MUTABLE, (), result.type))
    places = tuple((Place(name, 0), v) for name, v in inputs.items())
    return Program("k", tuple(arguments), places, tuple(b.body), ((Place("out", 0), result),))


def expression_of(program: Program) -> str:
    """What a program without regions writes, as text."""
    names = {value: place.argument for place, value in program.inputs}
    for instr in program.body:
        names[instr.result] = _written(instr, [names[a] for a in instr.args])
    ((_, result),) = program.outputs
    return names[result]


def _written(instr: Instr, args: list[str]) -> str:
    if instr.op == "const":
        return repr(instr.attr)
    name = instr.result.type.value if instr.op == "cast" else _WORDS.get(instr.op, instr.op)
    return f"{name}({', '.join(args)})"


def special_planes(program: Program, count: int = 3000) -> dict[str, Array]:
    """Special values in every argument, drawn for each sample."""
    rng = np.random.default_rng(7)
    return {a.name: rng.choice(special_values(a.type), count) for a in program.arguments if a.role is Role.SAMPLE}
