"""A kernel's signature: its annotations as arguments of a program."""

from __future__ import annotations

import ast
import sys
import types
from dataclasses import dataclass, replace
from typing import Any, final

from ..ir.program import Argument, Role
from .annotations import Annotation, resolve
from .errors import KernelError
from .source import Source


@final
@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments as written, and the outputs that the return annotation adds."""

    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]


def read_signature(function: types.FunctionType, source: Source) -> Signature:
    """Resolve a kernel's annotations; KernelError with the line of what is missing or wrong."""
    node = source.node
    assert isinstance(node, ast.FunctionDef)
    _check_form(node, source)
    written = _annotations(function, source)
    names = _Names(function)
    arguments = []
    for arg in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
        try:
            if arg.arg not in written:
                raise KernelError(f"{arg.arg} has no annotation", f"write for example {arg.arg}: Scalar")
            arguments.append(resolve(names.evaluate(written[arg.arg])).argument(arg.arg))
        except KernelError as error:
            error.inside(f"argument {arg.arg}")
            error.locate(source.span(arg))
            raise
    try:
        outputs = _returns(names.evaluate(written.get("return")), {a.name for a in arguments})
    except KernelError as error:
        error.inside("the return annotation")
        error.locate(source.span(node.returns or node))
        raise
    return Signature(tuple(arguments), outputs)


def _check_form(node: ast.FunctionDef, source: Source) -> None:
    args = node.args
    for star, arg in (("*", args.vararg), ("**", args.kwarg)):
        if arg is not None:
            raise KernelError(
                f"{node.name} takes {star}{arg.arg}",
                "a kernel names every argument (a decorator below may have replaced the function)",
                source.span(arg),
            )
    default = next((d for d in [*args.defaults, *args.kw_defaults] if d is not None), None)
    if default is not None:
        raise KernelError(
            f"an argument of {node.name} has a default value",
            "leave it out and bind the value",
            source.span(default),
        )


def _annotations(function: types.FunctionType, source: Source) -> dict[str, Any]:
    try:
        return dict(function.__annotations__)
    except Exception as error:
        raise KernelError(f"the annotations cannot be read: {error}", "", source.span(source.node)) from error


@final
class _Names:
    """Evaluates annotations that are strings, with the names the function sees."""

    def __init__(self, function: types.FunctionType) -> None:
        self._globals = function.__globals__
        self._names: dict[str, Any] = dict(_enclosing(function.__code__))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                self._names[name] = cell.cell_contents
            except ValueError:  # not bound yet
                continue

    def evaluate(self, annotation: Any) -> Any:
        if not isinstance(annotation, str):
            return annotation
        try:
            return eval(annotation, self._globals, self._names)
        except KernelError:
            raise
        except Exception as error:
            raise KernelError(
                f"{annotation!r} cannot be evaluated: {error}",
                "the names in an annotation must be known where the kernel is defined",
            ) from None


def _enclosing(code: types.CodeType) -> dict[str, Any]:
    """The locals of the function that is defining this one now, if it is running."""
    frame = sys._getframe()
    while frame is not None:
        if code in frame.f_code.co_consts:
            return dict(frame.f_locals)
        frame = frame.f_back  # type: ignore[assignment]
    return {}


def _returns(annotation: Any, taken: set[str]) -> tuple[Argument, ...]:
    if annotation is None or annotation is type(None):
        return ()
    parts = getattr(annotation, "__args__", annotation)
    single = not isinstance(parts, tuple)
    outputs = []
    for k, part in enumerate((annotation,) if single else parts):
        found: Annotation = resolve(part)
        if found.role is not Role.SAMPLE:
            raise KernelError(f"{found} cannot be returned", "return Scalar, Vector[n], Matrix[r, c], Int32 or Bool")
        name = "out" if single else f"out{k}"
        while name in taken:
            name += "_"
        outputs.append(replace(found, role=Role.MUTABLE).argument(name))
    return tuple(outputs)
