"""What differentiation refuses."""

from __future__ import annotations

from ..ir.program import Instr, Span


class DerivativeError(TypeError):
    """A kernel cannot be differentiated: names the op, the argument and the user's line."""

    def __init__(self, message: str, span: Span | None) -> None:
        where = f"\n  {span}\n    {span.text}" if span is not None else ""
        super().__init__(message + where)
        self.span = span


def no_rule(instr: Instr, kernel: str) -> DerivativeError:
    return DerivativeError(
        f"{kernel}: the op {instr.op!r} has no derivative rule, and its result depends on an argument that is "
        "differentiated by. Leave that argument out of wrt=, or write the step with other functions.",
        instr.span,
    )
