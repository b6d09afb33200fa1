"""Passes over programs. Each states what it promises; `prepare` and `finish` are the two pipelines."""

from __future__ import annotations

from ..program import Program
from ..types import Type
from .dce import drop_dead
from .freeze import freeze
from .fuse import fuse
from .places import constant_places
from .simplify import simplify
from .specialise import specialise

__all__ = ["constant_places", "drop_dead", "finish", "freeze", "fuse", "prepare", "simplify", "specialise"]


def prepare(program: Program, real: Type) -> Program:
    """A traced program at one precision: simplified, multiply-adds fused once, then frozen.

    From here on its rounding is settled: the kernel, its derivatives and every replay compute these ops.
    """
    return freeze(_settle(specialise(program, real)))


def finish(derivative: Program) -> Program:
    """A derivative: its frozen primal ops untouched, its own simplified and fused, then all frozen."""
    return freeze(_settle(derivative))


def _settle(program: Program) -> Program:
    fused = fuse(constant_places(simplify(program)))
    return drop_dead(simplify(fused, pins=False))
