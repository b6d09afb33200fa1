"""The names of a function while it is traced: what each is bound to, and on which paths."""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

from ..ir.program import Argument, Span
from .errors import KernelError
from .planes import coerce
from .source import Source

# Hidden variables: whether the function has returned and what, and whether the innermost loop was left or
# its trip cut short. They merge and are carried like any other. No identifier can collide with them.
RETURNED, VALUE, BROKEN, CONTINUED = "return", "return value", "break", "continue"
FLAGS = (RETURNED, BROKEN, CONTINUED)


@final
@dataclass(frozen=True, slots=True)
class Missing:
    """What a name holds where some path does not bind it: reading it is an error."""

    reason: str


@final
@dataclass(frozen=True, slots=True)
class Live:
    """A value bound on every path but those that have left by one of `flags`."""

    value: Any
    flags: frozenset[str]
    reason: str


@final
@dataclass(slots=True)
class Scope:
    """Where the free names of a Python function are found: its closure, its globals, the builtins."""

    cells: Mapping[str, types.CellType]
    globals: Mapping[str, Any]

    @classmethod
    def of(cls, function: types.FunctionType) -> Scope:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        return cls(cells, function.__globals__)

    def find(self, name: str) -> Any:
        """The object `name` stands for; LookupError if there is none."""
        if name in self.cells:
            try:
                return self.cells[name].cell_contents
            except ValueError:
                raise LookupError(f"{name} is not bound yet in the enclosing function") from None
        if name in self.globals:
            return self.globals[name]
        try:
            return getattr(builtins, name)
        except AttributeError:
            raise LookupError(f"the name {name} is not defined") from None


@final
class Frame:
    """One call of a function being traced."""

    def __init__(self, source: Source, name: str, scope: Scope, parent: Frame | None, bound: dict[str, Any]) -> None:
        self.source = source
        self.name = name
        self.scope = scope
        self.parent = parent  # the enclosing function's frame, where this one was defined inside traced code
        self.locals = frozenset(bound) | assigned_names(body_of(source.node))
        self.variables: dict[str, Any] = dict.fromkeys(FLAGS, False) | bound
        self.planes: dict[str, Argument] = {}  # of the kernel's own frame: the arguments it writes
        self.written: set[str] = set()

    def inside(self, names: set[str]) -> Frame:
        """The frame of a comprehension: names of its own over this one's."""
        inner = Frame(self.source, self.name, self.scope, self, {})
        inner.locals = frozenset(names)
        return inner

    def bind(self, name: str, value: Any) -> None:
        """Assign to a local name; to an argument that is written, a value of its plane's shape and type."""
        if name not in self.locals:
            raise KernelError(
                f"{name} is not a local name: a kernel changes nothing outside",
                f"copy it first: {name}_ = ...",
            )
        if name in self.planes:
            value = coerce(value, self.planes[name])
            self.written.add(name)
        self.variables[name] = value

    def read(self, name: str, span: Span) -> Any:
        frame: Frame | None = self
        while frame is not None:
            if name in frame.locals:
                return _bound(name, frame, span)
            frame = frame.parent
        try:
            return self.scope.find(name)
        except LookupError as error:
            raise KernelError(
                str(error.args[0]), "define it before the kernel, or pass it as an argument", span
            ) from None

    def enter_live(self) -> None:
        """Go on along the paths that have not left: every flag is False, every name as bound as it looks."""
        for name, value in self.variables.items():
            if isinstance(value, Live):
                self.variables[name] = value.value
        self.variables.update(dict.fromkeys(FLAGS, False))

    def enter_stopped(self) -> None:
        """Go on along the paths that have left; the flag is True where only one can be."""
        possible = [flag for flag in FLAGS if self.variables[flag] is not False]
        if len(possible) == 1:
            self.variables[possible[0]] = True

    def reset(self, flag: str) -> None:
        """The paths that left by `flag` join the others again: what they did not bind is now missing."""
        self.variables[flag] = False
        for name, value in self.variables.items():
            if isinstance(value, Live) and flag in value.flags:
                self.variables[name] = Missing(value.reason)


def _bound(name: str, frame: Frame, span: Span) -> Any:
    value = frame.variables.get(name)
    if name not in frame.variables:
        raise KernelError(f"{name} is read before anything is assigned to it", "assign it first", span)
    if isinstance(value, (Missing, Live)):
        raise KernelError(f"{name} is not bound on every path: {value.reason}", "bind it on every path first", span)
    return value


# which names a piece of source assigns

Body = list[ast.stmt]
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def body_of(node: ast.FunctionDef | ast.Lambda) -> Body:
    """The statements of a function; a lambda's is the return of its expression."""
    if isinstance(node, ast.FunctionDef):
        return node.body
    return [ast.copy_location(ast.Return(node.body), node.body)]


def own_nodes(nodes: list[ast.stmt] | list[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of statements, without what belongs to the functions and comprehensions defined in them."""
    stack: list[ast.AST] = list(reversed(nodes))
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, _SCOPES + _COMPREHENSIONS):
            continue
        stack.extend(reversed(list(ast.iter_child_nodes(node))))


def assigned_names(body: Body) -> frozenset[str]:
    """The names that statements bind: by assignment, as a loop's target, by def."""
    names = set()
    for node in own_nodes(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
    return frozenset(names)


def changed_names(body: Body) -> list[str]:
    """The names whose values statements change, in order: those bound, and those whose components are set.

    The hidden flags that return and break set are among them.
    """
    names: dict[str, None] = {}
    for node in own_nodes(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        elif isinstance(node, ast.FunctionDef):
            names[node.name] = None
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            names.update(_root(node))
        elif isinstance(node, ast.Return):
            names.update({RETURNED: None, VALUE: None})
        elif isinstance(node, ast.Break) and node not in _inner_breaks(body):
            names[BROKEN] = None
    return list(names)


def _inner_breaks(body: Body) -> list[ast.AST]:
    """The breaks of the loops inside `body`."""
    loops = [n for n in own_nodes(body) if isinstance(n, (ast.For, ast.While))]
    return [n for loop in loops for n in own_nodes(loop.body) if isinstance(n, ast.Break)]


def _root(node: ast.Subscript) -> dict[str, None]:
    target: ast.expr = node
    while isinstance(target, ast.Subscript):
        target = target.value
    return {target.id: None} if isinstance(target, ast.Name) else {}
