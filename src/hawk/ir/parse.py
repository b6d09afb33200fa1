"""A program from its text: the inverse of `printer.text`."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import zip_longest
from typing import NoReturn, TypeVar, final

from .ops import OPS, STRUCTURED
from .printer import text
from .program import Argument, Instr, Place, Program, Region, Role, Tape, Value
from .types import Type

_T = TypeVar("_T")

_VALUES = r"%\d+(?:, %\d+)*"
_HEAD = re.compile(r"kernel (?P<name>\S+)(?P<frozen> frozen)?")
_ARGUMENT = re.compile(
    rf"(?P<role>{'|'.join(role.value for role in Role)}) (?P<name>\S+): (?P<shape>scalar|\d+(?:x\d+)*) (?P<type>\w+)"
    r"(?: axes=(?P<axes>\S+))?(?P<first> samples_first)?"
)
_TAPE = re.compile(r"tape (?P<name>\S+): (?P<capacity>\S+) (?P<type>\w+)")
_EFFECTS = re.compile(r"effects (?P<names>.+)")
_READ = re.compile(r"(?P<value>%\d+) = read (?P<name>\S+)\[(?P<component>\d+)\] : (?P<type>\w+)")
_WRITE = re.compile(r"write (?P<name>\S+)\[(?P<component>\d+)\] = (?P<value>%\d+)")
_RETURN = re.compile(r"return (?P<names>.+)")
_INSTR = re.compile(
    rf"(?:(?P<results>{_VALUES}) = )?(?P<op>\w+)(?P<frozen>!)?(?P<words>(?: [^\s:]+)*)(?: : (?P<types>\w+(?:, \w+)*))?"
)
_OPEN = re.compile(r"(?:\((?P<params>%\d+ \w+(?:, %\d+ \w+)*)\) )?\{")
_YIELD = re.compile(rf"yield(?: (?P<values>{_VALUES}))?")

_NAMED = frozenset({"table", "scatter", "load", "store"})  # ops with the name of an argument or a tape
_SILENT = frozenset({"scatter", "store"})  # ops without a result
_REGIONS = {"if": 2, "loop": 1, "custom": 1}
_AFTER = frozenset({"write", "return", "yield"})  # lines that follow a block


@final
class ParseError(ValueError):
    """Text that is no program: names the line, its number, and what is wrong there."""


def parse(source: str) -> Program:
    """The program that `printer.text` prints as `source` (a last newline apart), without spans.

    Only what the printer writes is accepted, so ``text(parse(s)) == s``. Types and scopes are the verifier's to
    check. Raises ParseError.
    """
    lines = source.removesuffix("\n").split("\n")
    program = _Parser(lines).program()
    for k, (found, meant) in enumerate(zip_longest(lines, text(program).split("\n"))):
        if found != meant:
            raise ParseError(f"line {k + 1}: expected {meant!r}, found {found!r}")
    return program


class _Parser:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self._values: dict[str, Value] = {}
        self._all_frozen = False

    def program(self) -> Program:
        head = self._need(_HEAD, "kernel NAME")
        self._all_frozen = head["frozen"] is not None
        arguments = self._many(_ARGUMENT, self._argument)
        tapes = self._many(_TAPE, lambda m: Tape(m["name"], self._type(m["type"]), _capacity(m["capacity"])))
        effects = self._many(_EFFECTS, lambda m: m["names"].split(", "))
        inputs = self._many(_READ, lambda m: (self._place(m), self._define(m["value"], m["type"])))
        body = self._block()
        outputs = self._many(_WRITE, lambda m: (self._place(m), self._value(m["value"])))
        returns = self._many(_RETURN, lambda m: m["names"].split(", "))
        if self._at < len(self._lines):
            self._fail("expected an instruction, a write, or the end")
        return Program(head["name"], arguments, inputs, body, outputs, tuple(n for names in returns for n in names),
                       frozenset(n for names in effects for n in names), tapes)  # fmt: skip

    # lines

    def _line(self) -> str:
        return self._lines[self._at].strip(" ") if self._at < len(self._lines) else ""

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The match of the current line, which is then behind us; None if it is another kind of line."""
        match = pattern.fullmatch(self._line())
        self._at += match is not None
        return match

    def _need(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        match = self._take(pattern)
        if match is None:
            self._fail(f"expected {what}")
        return match

    def _many(self, pattern: re.Pattern[str], make: Callable[[re.Match[str]], _T]) -> tuple[_T, ...]:
        made = []
        while match := self._take(pattern):
            made.append(make(match))
        return tuple(made)

    def _fail(self, what: str, behind: int = 0) -> NoReturn:
        """`behind` is 1 for a line already taken."""
        at = self._at - behind
        found = repr(self._lines[at]) if at < len(self._lines) else "the end of the text"
        raise ParseError(f"line {at + 1}: {what}, found {found}")

    # parts of a line; the line is taken already

    def _argument(self, m: re.Match[str]) -> Argument:
        shape = () if m["shape"] == "scalar" else tuple(map(int, m["shape"].split("x")))
        axes = tuple(m["axes"].split(",")) if m["axes"] else ()
        return Argument(m["name"], Role(m["role"]), shape, self._type(m["type"]), axes, m["first"] is not None)

    def _place(self, m: re.Match[str]) -> Place:
        return Place(m["name"], int(m["component"]))

    def _type(self, name: str) -> Type:
        try:
            return Type(name)
        except ValueError:
            self._fail(f"{name!r} is no type ({', '.join(t.value for t in Type)})", behind=1)

    def _define(self, name: str, type: str) -> Value:
        if name in self._values:
            self._fail(f"{name} is defined twice", behind=1)
        self._values[name] = Value(self._type(type))
        return self._values[name]

    def _value(self, name: str) -> Value:
        if name not in self._values:
            self._fail(f"{name} is not defined before it is used", behind=1)
        return self._values[name]

    # instructions

    def _block(self) -> tuple[Instr, ...]:
        """The instructions up to a line that is none (a write, a yield, the end)."""
        body = []
        while (match := _INSTR.fullmatch(self._line())) and match["op"] not in _AFTER:
            self._at += 1
            body.append(self._instr(match))
        return tuple(body)

    def _instr(self, m: re.Match[str]) -> Instr:
        op, words = m["op"], m["words"].split()
        if op not in OPS:
            self._fail(f"{op!r} is no op", behind=1)
        attr: object = None
        if op == "const" or op in _NAMED:
            if not words:
                self._fail(f"{op} needs a {'number' if op == 'const' else 'name'}", behind=1)
            word = words.pop(0)
            attr = self._number(word) if op == "const" else word
        args = tuple(self._value(word) for word in words)
        names = m["results"].split(", ") if m["results"] else []
        types = m["types"].split(", ") if m["types"] else []
        if len(names) != len(types):
            self._fail(f"{len(names)} results and {len(types)} types", behind=1)
        self._count(op, len(args), len(names))
        results = tuple(self._define(name, type) for name, type in zip(names, types, strict=True))
        regions = tuple(self._region() for _ in range(_REGIONS.get(op, 0)))
        return Instr(op, args, results, attr, regions, frozen=self._all_frozen or m["frozen"] is not None)

    def _count(self, op: str, args: int, results: int) -> None:
        arity = OPS[op].arity
        least = {"loop": 2, "custom": results}.get(op)
        if args != arity if least is None else args < least:
            takes = {"loop": "limit, again and carried values", "custom": "a value for each result, and arguments"}
            self._fail(f"{op} takes {takes.get(op, f'{arity} values')}, not {args}", behind=1)
        expected = results if op in STRUCTURED else 0 if op in _SILENT else 1
        if results != expected:
            self._fail(f"results of {op}: {expected}, not {results}", behind=1)

    def _number(self, word: str) -> bool | int | float:
        if word in ("True", "False"):
            return word == "True"
        for kind in (int, float):
            try:
                return kind(word)
            except ValueError:
                continue
        self._fail(f"{word!r} is no number", behind=1)

    def _region(self) -> Region:
        match = self._need(_OPEN, "a region, {")
        pairs = [p.split() for p in match["params"].split(", ")] if match["params"] else []
        params = tuple(self._define(name, type) for name, type in pairs)
        body = self._block()
        match = self._need(_YIELD, "an instruction or a yield")
        yields = tuple(self._value(name) for name in match["values"].split(", ")) if match["values"] else ()
        if self._line() != "}":
            self._fail("expected }")
        self._at += 1
        return Region(params, body, yields)


def _capacity(text: str) -> int | str:
    return int(text) if text.isdigit() else text
