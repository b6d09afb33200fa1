"""Writing LLVM IR as text: one function at a time, control flow as context managers.

Text is several times faster to make than builder objects, and it is what a golden test compares.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple


class Operand(NamedTuple):
    """An LLVM value with its type; in a format string it prints as both."""

    type: str
    text: str

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


def hex_double(number: float) -> str:
    """A floating-point literal, exact (also for float: LLVM writes a float as the double of its value)."""
    return "0x" + struct.pack(">d", number).hex().upper()


def phi_text(incoming: Sequence[tuple[Operand, str]]) -> str:
    edges = ", ".join(f"[ {value.text}, %{label} ]" for value, label in incoming)
    return f"phi {incoming[0][0].type} {edges}"


# Instructions whose result depends on more than their text; and so does what reads memory under a mask.
_MEMORY = ("load", "phi", "alloca")


class Function:
    """The lines of one function: fresh names, labels, instructions."""

    def __init__(self, name: str, signature: str) -> None:
        self.name = name
        self._head = f"define void @{name}({signature}) #0 {{"
        self._lines: list[str] = []
        self._count = 0
        self.declarations: set[str] = set()
        self.globals: dict[str, str] = {}
        self.block = ""
        self._known: list[dict[str, Operand]] = [{}]  # what is computed already, one dict a scope
        self.start("entry")

    def fresh(self, stem: str = "t") -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def start(self, label: str) -> None:
        """Begin the block `label`; the previous one must have been ended."""
        self._lines.append(f"{label}:")
        self.block = label

    def line(self, text: str) -> None:
        self._lines.append(f"  {text}")

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Blocks that control may not pass through: what they compute is not known after them."""
        self._known.append({})
        try:
            yield
        finally:
            self._known.pop()

    def value(self, type: str, text: str) -> Operand:
        """An instruction with a result of `type`. One that was computed in this scope is not computed again."""
        for known in reversed(self._known):
            if text in known:
                return known[text]
        name = f"%{self.fresh()}"
        self._lines.append(f"  {name} = {text}")
        result = Operand(type, name)
        if not text.startswith(_MEMORY) and "@llvm.masked" not in text:
            self._known[-1][text] = result
        return result

    def call(self, result: str, function: str, args: Sequence[Operand]) -> Operand:
        """Call an intrinsic; declares it."""
        self.declare(result, function, args)
        return self.value(result, f"call {result} @{function}({', '.join(map(str, args))})")

    def call_void(self, function: str, args: Sequence[Operand]) -> None:
        self.declare("void", function, args)
        self.line(f"call void @{function}({', '.join(map(str, args))})")

    def declare(self, result: str, function: str, args: Sequence[Operand]) -> None:
        self.declarations.add(f"declare {result} @{function}({', '.join(a.type for a in args)})")

    def jump(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch(self, condition: Operand, then: str, other: str) -> None:
        self.line(f"br {condition}, label %{then}, label %{other}")

    def phi(self, incoming: Sequence[tuple[Operand, str]]) -> Operand:
        """The value of whichever block control came from."""
        first = incoming[0][0]
        if all(value == first for value, _ in incoming):
            return first
        return self.value(first.type, phi_text(incoming))

    def placeholder(self) -> int:
        """A line to be written later (a phi whose back edge is not known yet)."""
        self._lines.append("")
        return len(self._lines) - 1

    def fill(self, index: int, text: str) -> None:
        self._lines[index] = f"  {text}"

    def constant_table(self, element: str, literals: Sequence[str]) -> str:
        """The name of a private constant array; equal tables share one."""
        body = f"[{len(literals)} x {element}] [{', '.join(f'{element} {x}' for x in literals)}]"
        if body not in self.globals:
            self.globals[body] = f"@{self.name}.table{len(self.globals)}"
        return self.globals[body]

    def text(self, attributes: str) -> str:
        tables = [f"{name} = private unnamed_addr constant {body}, align 64" for body, name in self.globals.items()]
        parts = [
            *tables,
            self._head,
            *self._lines,
            "}",
            *sorted(self.declarations),
            f"attributes #0 = {{ {attributes} }}",
        ]
        return "\n".join(parts) + "\n"
