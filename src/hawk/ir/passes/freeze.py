"""Settle the rounding of every op."""

from __future__ import annotations

from dataclasses import replace

from ..program import Instr, Program, Region


def freeze(program: Program) -> Program:
    """The same values and instructions, each marked frozen: no later pass may change how it rounds."""
    return program.with_(body=_frozen(program.body))


def _frozen(body: tuple[Instr, ...]) -> tuple[Instr, ...]:
    return tuple(
        replace(i, frozen=True, regions=tuple(Region(r.params, _frozen(r.body), r.yields) for r in i.regions))
        for i in body
    )
