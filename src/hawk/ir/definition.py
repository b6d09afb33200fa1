"""Where a kernel's program comes from: traced source, or the derivative of another definition."""

from __future__ import annotations

from abc import ABC, abstractmethod

from .passes import prepare
from .program import Program
from .types import Type


class Definition(ABC):
    """Something that has a program at each precision. Programs are made once and kept."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._programs: dict[Type, Program] = {}

    def program(self, real: Type) -> Program:
        """The frozen program at precision `real` (F64 or F32)."""
        if real not in self._programs:
            self._programs[real] = self.make(real)
        return self._programs[real]

    @abstractmethod
    def make(self, real: Type) -> Program:
        """Make the program; called once a precision."""


class Traced(Definition):
    """A program traced from source, at no precision yet."""

    def __init__(self, program: Program) -> None:
        super().__init__(program.name)
        self.traced = program

    def make(self, real: Type) -> Program:
        return prepare(self.traced, real)
