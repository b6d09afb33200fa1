"""From a Python function to a program."""

from __future__ import annotations

import ast
import types
from typing import Any

from ..ir.passes import drop_dead
from ..ir.program import Argument, Place, Program, Role, Value
from ..ir.verify import verify
from . import builtin_calls, custom_calls, expressions, loops, statements  # noqa: F401 - they fill the tracer's tables
from .bundles import Bundle
from .calls import inline
from .errors import KernelError
from .frames import Frame, Scope
from .planes import coerce
from .signature import Signature, read_signature
from .source import source_of
from .structure import name_of
from .tables import TableValue
from .tracer import Tracer
from .values import Traced, lift

_FIX = "decorate one function, written with def, once"
_WRITTEN = frozenset({Role.MUTABLE, Role.TERMINATED})


def trace(function: Any, name: str | None = None, source: str | None = None) -> Program:
    """The program of a kernel function, from its source.

    `name` is the kernel's, the function's own by default. `source` is the function's text where Python keeps
    none (a REPL, exec). Raises KernelError, with the user's line, for what the language cannot say.
    """
    try:
        return _Kernel(function, name, source).program()
    except KernelError as error:
        for call in error.callers:
            error.add_note(f"called from {call}: {call.text}")
        error.__traceback__ = None  # where the tracer stood says nothing about the kernel
        raise


def _plain(function: Any) -> types.FunctionType:
    if not isinstance(function, types.FunctionType):
        raise KernelError(f"a kernel is made from a plain function, not from {_what(function)}", _FIX)
    if function.__name__ == "<lambda>":
        raise KernelError("a kernel is made from a function, not from a lambda", _FIX)
    return function


def _what(function: Any) -> str:
    if isinstance(function, type):
        return f"the class {function.__name__}"
    return f"{type(function).__name__} {getattr(function, '__name__', '')}".strip()


class _Kernel:
    def __init__(self, function: Any, name: str | None, source: str | None) -> None:
        self._function = _plain(function)
        self._name = name or self._function.__name__
        self._source = source_of(self._function, source)
        self._t = Tracer()
        self._inputs: list[tuple[Place, Value]] = []

    def program(self) -> Program:
        signature = read_signature(self._function, self._source)
        self._t.builder.span = self._source.span(self._source.node)
        bound = {a.name: self._argument(a) for a in signature.arguments}
        frame = Frame(self._source, self._name, Scope.of(self._function), None, bound)
        frame.planes = {a.name: a for a in signature.arguments if a.role in _WRITTEN}
        try:
            result = inline(self._t, frame)
            outputs = self._outputs(frame, signature, result)
        except KernelError as error:
            error.callers = error.callers[:-1]  # the last call is the kernel itself
            raise
        return verify(
            drop_dead(
                Program(
                    name=self._name,
                    arguments=(*signature.arguments, *signature.returns),
                    inputs=tuple(self._inputs),
                    body=tuple(self._t.builder.body),
                    outputs=tuple(outputs),
                    returns=tuple(a.name for a in signature.returns),
                )
            )
        )

    def _argument(self, argument: Argument) -> Any:
        """What the argument's name is bound to at the start."""
        if argument.role is Role.TABLE:
            return TableValue(argument, self._t.builder)
        values = [Value(argument.type) for _ in range(argument.size)]
        self._inputs += [(Place(argument.name, k), value) for k, value in enumerate(values)]
        traced = tuple(Traced(self._t.builder, value) for value in values)
        return Bundle(argument.shape, traced) if argument.shape else traced[0]

    def _outputs(self, frame: Frame, signature: Signature, result: Any) -> list[tuple[Place, Value]]:
        missing = [name for name in frame.planes if name not in frame.written]
        if missing:
            raise KernelError(
                f"{self._name} never assigns to {', '.join(missing)}",
                f"write {missing[0]} = ..., or annotate it without Mutable",
                self._t.span,
            )
        outputs = []
        for argument in frame.planes.values():
            outputs += self._places(argument, frame.read(argument.name, self._t.span))
        for argument, value in zip(signature.returns, self._returned(signature, result), strict=True):
            outputs += self._places(argument, coerce(value, argument))
        if not outputs:
            raise KernelError(
                "the kernel writes nothing: none of its arguments is Mutable, and it returns nothing",
                "annotate what it writes, for example x: Mutable[Scalar], or return a value and annotate it: -> Scalar",
            )
        return outputs

    def _places(self, argument: Argument, value: Any) -> list[tuple[Place, Value]]:
        items = value.items if isinstance(value, Bundle) else (value,)
        return [(Place(argument.name, k), lift(self._t.builder, x, argument.type)) for k, x in enumerate(items)]

    def _returned(self, signature: Signature, result: Any) -> tuple[Any, ...]:
        count = len(signature.returns)
        if count == 0 and result is not None:
            raise KernelError(f"{self._name} returns {name_of(result)}", "annotate it: -> Scalar", self._t.span)
        node = self._source.node
        assert isinstance(node, ast.FunctionDef)
        several = count > 1 or (count == 1 and signature.returns[0].name.startswith("out0"))
        values = (result,) if count == 1 and not several else result
        if count and (not isinstance(values, tuple) or len(values) != count):
            raise KernelError(
                f"{self._name} is annotated to return {count} value{'s' * (count > 1)}, and returns {name_of(result)}",
                "return what the annotation says",
                self._t.span,
            )
        return values if count else ()
