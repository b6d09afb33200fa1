"""The tracer: executes a function's syntax tree with Python's meaning, emitting what depends on the samples.

What an expression or statement does is a function in `EXPRESSIONS` or `STATEMENTS`, keyed by the class of
its node; a construct in neither is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

from ..ir.build import Builder
from ..ir.program import Span, Value
from ..ir.types import Type
from .bundles import Bundle
from .errors import KernelError
from .frames import FLAGS, Body, Frame
from .heap import Heap
from .merge import RESULT, Side, merge
from .structure import flatten, name_of, rebuild
from .values import Index, Traced, apply, describe, plain

Thunk = Callable[[], Any]
EXPRESSIONS: dict[type[ast.AST], Callable[[Tracer, Frame, Any], Any]] = {}
STATEMENTS: dict[type[ast.AST], Callable[[Tracer, Frame, Any], None]] = {}


def expression(*nodes: type[ast.AST]) -> Callable[[Any], Any]:
    """Register what expressions of these classes mean."""

    def register(function: Any) -> Any:
        EXPRESSIONS.update(dict.fromkeys(nodes, function))
        return function

    return register


def statement(*nodes: type[ast.AST]) -> Callable[[Any], Any]:
    """Register what statements of these classes do."""

    def register(function: Any) -> Any:
        STATEMENTS.update(dict.fromkeys(nodes, function))
        return function

    return register


@final
class Tracer:
    """One trace: the builder, the lists made, the calls open."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.heap = Heap()
        self.depth = 0  # calls open
        self.loops = 0  # loops open
        self.rules: tuple[object, ...] = ()  # the functions whose own derivatives are being traced
        self._pins: set[Value] = set()

    @property
    def span(self) -> Span:
        span = self.builder.span
        assert span is not None
        return span

    @contextmanager
    def at(self, frame: Frame, node: ast.AST) -> Iterator[None]:
        """Everything emitted and refused inside carries the place of `node`."""
        outer = self.builder.span
        self.builder.span = frame.source.span(node)
        try:
            yield
        except KernelError as error:
            error.locate(self.span)
            raise
        finally:
            self.builder.span = outer

    @contextmanager
    def in_rule(self, function: object) -> Iterator[None]:
        """Inside, the derivative that `function` carries is traced."""
        outer, self.rules = self.rules, (*self.rules, function)
        try:
            yield
        finally:
            self.rules = outer

    def evaluate(self, frame: Frame, node: ast.expr) -> Any:
        with self.at(frame, node):
            rule = EXPRESSIONS.get(type(node))
            if rule is None:
                raise KernelError(*refusal(node))
            return rule(self, frame, node)

    def execute(self, frame: Frame, node: ast.stmt) -> None:
        with self.at(frame, node):
            rule = STATEMENTS.get(type(node))
            if rule is None:
                raise KernelError(*refusal(node))
            rule(self, frame, node)

    def block(self, frame: Frame, body: Body) -> None:
        """Execute statements in order; what follows a possible exit runs only on the paths still there."""
        for k, node in enumerate(body):
            rest = body[k + 1 :]
            if isinstance(node, ast.If) and rest and (_leaves(node.body) or _leaves(node.orelse)):
                self.execute(frame, _joined(node, rest))
                return
            self.execute(frame, node)
            stop = self.stop(frame)
            if stop is True:
                return
            if stop is not False and rest:
                with self.at(frame, rest[0]):
                    self.guarded(frame, stop, lambda rest=rest: self.block(frame, rest))  # type: ignore[misc]
                return

    def stop(self, frame: Frame) -> Any:
        """Whether this path has left: True, False, or a traced bool."""
        flags = [frame.variables[flag] for flag in FLAGS]
        if any(flag is True for flag in flags):
            return True
        traced = [flag for flag in flags if flag is not False]
        if not traced:
            return False
        result = traced[0]
        for flag in traced[1:]:
            result = apply("or", result, flag)
        return result

    def guarded(self, frame: Frame, stop: Traced, body: Thunk) -> Any:
        """Run `body` on the paths that have not left."""

        def live() -> Any:
            frame.enter_live()
            return body()

        return self.branch(frame, apply("not", stop), live, frame.enter_stopped, "the path goes on")

    def branch(self, frame: Frame, condition: Traced, then: Thunk, other: Thunk, what: str) -> Any:
        """Trace both sides of a condition, merge what they leave, and give their merged result."""
        before = frame.variables
        sides = (Side(f"{what} is true" if what else ""), Side(f"{what} is false"))
        for side, thunk in zip(sides, (then, other), strict=True):
            frame.variables = dict(before)
            self.heap.open()
            try:
                with self.builder.block() as side.body:
                    frame.variables[RESULT] = thunk()
            finally:
                side.changes = self.heap.close()
                side.variables, frame.variables = frame.variables, before
        frame.variables = merge(self.builder, self.heap, condition, *sides)
        return frame.variables.pop(RESULT)

    def truth(self, value: Any) -> Any:
        """What `if value` asks: a Python bool, or a traced one."""
        value = plain(value)
        if isinstance(value, Traced):
            return value if value.type is Type.BOOL else apply("ne", value, 0)
        if isinstance(value, Bundle):
            raise KernelError(
                f"{value} is neither true nor false", "compare components, or write any(v > 0) or all(v > 0)"
            )
        try:
            return bool(value)
        except KernelError:
            raise
        except Exception as error:
            raise KernelError(f"{name_of(value)} is neither true nor false: {error}") from error

    def number(self, x: Any) -> Any:
        """A number picked by the index of an unrolled loop: the kernel's own, as in a loop that is not unrolled."""
        if isinstance(x, float):
            return Traced(self.builder, self.builder.const(x, Type.REAL))
        return Index(x, self.builder) if type(x) is int else x

    def settled(self, value: Any) -> Any:
        """Inside a loop, what a choice made while tracing gives is as settled as what an `if` gives."""
        return self.pinned(value) if self.loops else value

    def pinned(self, value: Any, carried: bool = False) -> Any:
        """`value` with its reals pinned: multiply-adds are not fused across the edge of a trip or an `if`.

        What a loop carries it carries in the kernel's precision: if `carried`, Python's floats become traced.
        """
        leaves: list[Any] = []
        tree = flatten(value, leaves)
        if tree.has_list or not leaves:
            return value
        return rebuild(tree, iter([self._pin(leaf, carried) for leaf in leaves]))

    def _pin(self, x: Any, carried: bool) -> Any:
        if carried and not isinstance(x, Traced):
            x = self.number(x)
        if not isinstance(x, Traced) or not x.type.is_real or x.value in self._pins:
            return x
        pin = self.builder("pin", x.value)
        self._pins.add(pin)
        return Traced(self.builder, pin)

    def boolean(self, value: Any, where: str) -> Any:
        """A bool, Python's or traced; KernelError for anything else."""
        value = plain(value)
        if isinstance(value, bool) or (isinstance(value, Traced) and value.type is Type.BOOL):
            return value
        raise KernelError(f"{where} needs a bool, not {describe(value)}", "write a comparison, for example x != 0")


def _leaves(body: Body) -> bool:
    """Whether statements always end by leaving (return, break, continue)."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return _leaves(last.body) and _leaves(last.orelse)
    return isinstance(last, (ast.Return, ast.Break, ast.Continue, ast.Raise))


def _joined(node: ast.If, rest: Body) -> ast.If:
    """``if c: ...; return`` and what follows, as one ``if`` with the rest on the paths that stay."""
    body = node.body if _leaves(node.body) else node.body + rest
    orelse = node.orelse if _leaves(node.orelse) else node.orelse + rest
    return ast.copy_location(ast.If(node.test, body, orelse), node)


_REFUSALS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Try: ("a kernel has no exceptions: try", "test the values with if"),
    ast.With: ("a kernel has no contexts: with", "use with around the code that launches the kernel"),
    ast.Yield: ("a kernel yields nothing: yield", "return values, or write Mutable arguments"),
    ast.YieldFrom: ("a kernel yields nothing: yield from", "return values, or write Mutable arguments"),
    ast.Await: ("a kernel does not wait: await", "await outside the kernel"),
    ast.Global: (
        "a kernel changes no globals: global",
        "globals are constants of a kernel: read them, return values",
    ),
    ast.Nonlocal: ("a kernel changes no outer names: nonlocal", "return the value instead"),
    ast.Import: ("import inside a kernel", "import at the top of the module"),
    ast.ImportFrom: ("import inside a kernel", "import at the top of the module"),
    ast.Delete: ("a kernel deletes nothing: del", "leave it out"),
    ast.ClassDef: ("a class inside a kernel", "define it outside"),
    ast.AsyncFunctionDef: ("a kernel does not wait: async def", "write def"),
    ast.AsyncFor: ("a kernel does not wait: async for", "write for"),
    ast.AsyncWith: ("a kernel does not wait: async with", "leave it out"),
    ast.Match: ("match inside a kernel", "write if and elif"),
    ast.SetComp: ("a set inside a kernel", "use a tuple"),
    ast.Set: ("a set inside a kernel", "use a tuple"),
    ast.DictComp: ("a dict comprehension inside a kernel", "build the dict outside, or write a tuple"),
}


def refusal(node: ast.AST) -> tuple[str, str]:
    """What is said about a construct the language does not have: the problem, and what to do instead."""
    for kind, words in _REFUSALS.items():
        if isinstance(node, kind):
            return words
    return f"{type(node).__name__} is not part of the kernel language", "write it with simpler statements"
