"""Where a kernel's program comes from: traced source, or the derivative of another definition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, final

from .parse import parse
from .passes import prepare
from .printer import text
from .program import Program
from .types import PRECISIONS, Type


class Definition(ABC):
    """Something that has a program at each precision. Programs are made once and kept.

    `made` holds the programs that are there already. A step of runs may have an `entry_rule`: its stop rule
    alone, asked before the first step.
    """

    entry_rule: Definition | None = None

    def __init__(self, name: str, made: Mapping[Type, Program] | None = None) -> None:
        self.name = name
        self._programs = dict(made or {})

    @property
    def precisions(self) -> tuple[Type, ...]:
        """What it has, or can make, a program for."""
        return tuple(PRECISIONS.values())

    def program(self, real: Type) -> Program:
        """The frozen program at precision `real` (F64 or F32)."""
        if real not in self._programs:
            self._programs[real] = self.make(real)
        return self._programs[real]

    @abstractmethod
    def make(self, real: Type) -> Program:
        """Make the program; called once a precision."""


@final
class Traced(Definition):
    """A program traced from source, at no precision yet."""

    def __init__(self, program: Program) -> None:
        super().__init__(program.name)
        self.traced = program

    def make(self, real: Type) -> Program:
        return prepare(self.traced, real)

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_traced, (text(self.traced),)


def _read_traced(source: str) -> Traced:
    return Traced(parse(source))


@final
class Built(Definition):
    """A program that was read from a bundle, at the one precision it was built for."""

    def __init__(self, program: Program, real: Type) -> None:
        super().__init__(program.name, {real: program})
        self._real = real

    @property
    def precisions(self) -> tuple[Type, ...]:
        return (self._real,)

    def make(self, real: Type) -> Program:
        modes = {type: mode for mode, type in PRECISIONS.items()}
        raise ValueError(
            f"{self.name} is from a bundle built with mode={modes[self._real]!r}: it has no {modes[real]} program; "
            f"build another with mode={modes[real]!r}"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_built, (text(self.program(self._real)), self._real)


def _read_built(source: str, real: Type) -> Built:
    return Built(parse(source), real)
