"""From a function to its syntax tree: finding its source text and making sure it is the right one."""

from __future__ import annotations
import __future__

import ast
import linecache
import textwrap
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import final

from ..ir.program import Span
from .errors import KernelError

FunctionNode = ast.FunctionDef | ast.Lambda
_FUTURE = reduce(int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))


@final
@dataclass(frozen=True, slots=True)
class Source:
    """A function's syntax tree, with the file and the lines it came from."""

    file: str
    lines: tuple[str, ...]
    node: FunctionNode

    def span(self, node: ast.AST) -> Span:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return Span(self.file, line, column, text.strip())


def source_of(function: types.FunctionType, text: str | None = None) -> Source:
    """The source of a plain function, from its file or from `text`; KernelError saying why there is none."""
    code = function.__code__
    try:
        return _given(code, textwrap.dedent(text)) if text is not None else _found(code, function.__globals__)
    except _Unavailable as reason:
        raise KernelError(f"the source of {function.__name__} is needed, but {reason}", reason.way_out) from None


class _Unavailable(Exception):
    def __init__(self, reason: str, way_out: str = "") -> None:
        super().__init__(reason)
        self.way_out = way_out or "put the function in a file, or pass its text: hawk.kernel(source=...)"


def _found(code: types.CodeType, names: dict[str, object]) -> Source:
    found = _matching(code, names)
    if found is None:
        linecache.checkcache(code.co_filename)  # the lines kept may be older than the code
        found = _matching(code, names)
    if found is None:
        raise _Unavailable(
            f"{code.co_filename} was changed after it was imported: line {code.co_firstlineno} is another function now",
            "import the module again (restart, or importlib.reload)",
        )
    return found


def _matching(code: types.CodeType, names: dict[str, object]) -> Source | None:
    """The source whose code is `code`, among the functions that start in its line."""
    lines = linecache.getlines(code.co_filename, names)
    if not lines:
        where = code.co_filename
        if where.startswith("<"):
            raise _Unavailable(f"Python keeps none for code defined in {where}")
        raise _Unavailable(f"the file {where} cannot be read")
    tree, module = _parsed("".join(lines), code)
    for node, compiled in _functions(tree, module):
        same_place = (compiled.co_name, compiled.co_firstlineno) == (code.co_name, code.co_firstlineno)
        if same_place and _same(compiled) == _same(code):
            return Source(code.co_filename, tuple(lines), node)
    return None


def _given(code: types.CodeType, text: str) -> Source:
    tree, module = _parsed(text, code)
    named = [(node, c) for node, c in _functions(tree, module) if c.co_name == code.co_name]
    for node, compiled in named:
        if _alike(compiled) == _alike(code):
            return Source(f"<source of {code.co_name}>", tuple(text.splitlines(keepends=True)), node)
    raise _Unavailable(
        f"the text given as source= {'holds another' if named else 'does not define'} {code.co_name}",
        "pass the text of that very function",
    )


def _parsed(text: str, code: types.CodeType) -> tuple[ast.Module, types.CodeType]:
    try:
        return _compiled(text, code.co_filename, code.co_flags & _FUTURE)
    except (SyntaxError, ValueError) as error:
        raise _Unavailable(f"{code.co_filename} no longer parses ({error})", "correct it and import it again") from None


@lru_cache(maxsize=64)
def _compiled(text: str, file: str, flags: int) -> tuple[ast.Module, types.CodeType]:
    tree = compile(text, file, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    return tree, compile(text, file, "exec", flags, dont_inherit=True)


def _functions(tree: ast.Module, module: types.CodeType) -> list[tuple[FunctionNode, types.CodeType]]:
    """The functions of a module, each tree with the code compiled from it."""
    codes: dict[tuple[str, int], list[types.CodeType]] = {}
    stack = [module]
    while stack:
        code = stack.pop()
        inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
        stack += inner
        for c in inner:
            codes.setdefault((c.co_name, c.co_firstlineno), []).append(c)
    pairs = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
            pairs += [(node, c) for c in codes.get((name, _first_line(node)), []) if _starts(node, c)]
    return pairs


def _first_line(node: FunctionNode) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(d.lineno for d in decorators)])


def _starts(node: FunctionNode, code: types.CodeType) -> bool:
    """Whether `code` can be the code of `node`: several lambdas of a line differ in where their body stands."""
    if isinstance(node, ast.FunctionDef):
        return True
    body = node.body
    places = [p for p in code.co_positions() if p[0] is not None and p[2] is not None]
    return not places or any((p[0], p[2]) == (body.lineno, body.col_offset) for p in places)


def _same(code: types.CodeType) -> object:
    """What two code objects share that do the same with the same names, wherever they stand."""
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, _constants(code, _same)


def _alike(code: types.CodeType) -> object:
    """What stays the same when a function's text is compiled on its own, away from its closure."""
    names = frozenset((*code.co_names, *code.co_freevars, *code.co_cellvars))
    return code.co_name, code.co_varnames[: code.co_argcount], names, _constants(code, _alike)


def _constants(code: types.CodeType, key: Callable[[types.CodeType], object]) -> tuple[object, ...]:
    return tuple(key(c) if isinstance(c, types.CodeType) else (type(c), repr(c)) for c in code.co_consts)
