"""The one error of the kernel language."""

from __future__ import annotations

from typing import final

from ..ir.program import Span


@final
class KernelError(SyntaxError):
    """What the kernel language cannot say.

    `problem` is what was written and found, `fix` what to write instead, `span` the place in the user's
    source, and `callers` the calls that led there, innermost first. ``str`` gives all of it.
    """

    def __init__(self, problem: str, fix: str = "", span: Span | None = None) -> None:
        super().__init__(f"{problem}; {fix}" if fix else problem)
        self.problem = problem
        self.fix = fix
        self.callers: list[Span] = []
        self.span: Span | None = None
        if span is not None:
            self.locate(span)

    def inside(self, what: str) -> None:
        """Say what the problem is a part of."""
        self.problem, self.msg = f"{what}: {self.problem}", f"{what}: {self.msg}"

    def locate(self, span: Span) -> None:
        """Say where it happened, if that is not known yet."""
        if self.span is None:
            self.span = span
            self.filename, self.lineno, self.text = span.file, span.line, span.text
            self.offset = None  # the text is stripped: a caret would stand at the wrong place

    def __str__(self) -> str:
        lines = [self.problem]
        if self.span is not None:
            lines += [f"  {self.span}", f"    {self.span.text}"]
        if self.fix:
            lines.append(f"  {self.fix}")
        for call in self.callers:
            lines.append(f"  called from {call}: {call.text}")
        return "\n".join(lines)
