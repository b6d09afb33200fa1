"""Text of a program: for people, for tests, for files, and (being canonical) as the key of the object cache.

`parse` reads it back. All of a program is in it but the spans. A program whose instructions are all frozen is
marked in its first line; in any other each frozen instruction has a ``!`` after its op.
"""

from __future__ import annotations

import math

from .program import Instr, Program, Region, Value, walk


def text(program: Program) -> str:
    """The program as text. Values are numbered in order of appearance: equal programs print equal text."""
    return "\n".join(_Printer(program).lines())


class _Printer:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._names: dict[Value, str] = {}
        frozen = [i.frozen for i in walk(program.body)]
        self._all_frozen = bool(frozen) and all(frozen)

    def lines(self) -> list[str]:
        p = self._program
        out = [f"kernel {p.name}{' frozen' if self._all_frozen else ''}"]
        for a in p.arguments:
            shape = "x".join(map(str, a.shape)) or "scalar"
            marks = "".join(
                [f" axes={','.join(a.axes)}" if a.axes else "", " samples_first" if a.samples_first else ""]
            )
            out.append(f"  {a.role.value} {a.name}: {shape} {a.type.value}{marks}")
        out += [f"  tape {t.name}: {t.capacity} {t.type.value}" for t in p.tapes]
        if p.effects:
            out.append(f"  effects {', '.join(sorted(p.effects))}")
        for place, value in p.inputs:
            out.append(f"  {self._new(value)} = read {place.argument}[{place.component}] : {value.type.value}")
        out += self._block(p.body, "  ")
        for place, value in p.outputs:
            out.append(f"  write {place.argument}[{place.component}] = {self._names[value]}")
        if p.returns:
            out.append(f"  return {', '.join(p.returns)}")
        return out

    def _new(self, value: Value) -> str:
        name = f"%{len(self._names)}"
        self._names[value] = name
        return name

    def _block(self, body: tuple[Instr, ...], indent: str) -> list[str]:
        out = []
        for instr in body:
            args = [self._names[a] for a in instr.args]
            if instr.op == "const":
                args = [_number(instr.attr)]
            elif instr.attr is not None:
                args.insert(0, str(instr.attr))
            regions = [self._region(r, indent) for r in instr.regions]
            left = ", ".join(self._new(r) for r in instr.results)
            types = ", ".join(r.type.value for r in instr.results)
            head = f"{left} = " if left else ""
            tail = f" : {types}" if types else ""
            op = f"{instr.op}!" if instr.frozen and not self._all_frozen else instr.op
            out.append(f"{indent}{head}{' '.join([op, *args])}{tail}")
            for region in regions:
                out += region
        return out

    def _region(self, region: Region, indent: str) -> list[str]:
        head = ", ".join(f"{self._new(p)} {p.type.value}" for p in region.params)
        lines = [f"{indent}({head}) {{" if head else f"{indent}{{"]
        lines += self._block(region.body, indent + "  ")
        lines.append(f"{indent}  yield {', '.join(self._names[v] for v in region.yields)}".rstrip())
        lines.append(f"{indent}}}")
        return lines


def _number(number: object) -> str:
    """Exact and distinct: 0.0, -0.0 and 0 differ, and so do the signs of NaN."""
    if isinstance(number, float):
        sign = "-" if number != number and math.copysign(1.0, number) < 0 else ""
        return sign + float.__repr__(number)
    return repr(number)
