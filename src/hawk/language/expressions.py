"""What the expressions of a kernel mean."""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from ..ir.program import Instr, walk
from .assignment import LARGEST, as_vector, assign, iterate
from .bundles import Bundle, as_bundle
from .calls import TracedFunction, call, native
from .errors import KernelError
from .frames import Frame
from .structure import holds, name_of
from .tables import TableValue
from .tracer import Tracer, expression
from .values import Index, Traced, apply, describe, is_scalar, operate, plain

_BINARY: dict[type[ast.operator], tuple[str, Any]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
    ast.MatMult: ("@", operator.matmul),
    ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
}
_UNARY: dict[type[ast.unaryop], Any] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_CONVERSIONS: dict[str, Any] = {"r": repr, "s": str, "a": ascii}
_COMPARE: dict[type[ast.cmpop], tuple[str, Any]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
}


@expression(ast.Constant)
def constant(t: Tracer, frame: Frame, node: ast.Constant) -> Any:
    return node.value


@expression(ast.Name)
def name(t: Tracer, frame: Frame, node: ast.Name) -> Any:
    return frame.read(node.id, t.span)


@expression(ast.NamedExpr)
def named(t: Tracer, frame: Frame, node: ast.NamedExpr) -> Any:
    frame.bind(node.target.id, t.evaluate(frame, node.value))
    return frame.read(node.target.id, t.span)


@expression(ast.BinOp)
def binary(t: Tracer, frame: Frame, node: ast.BinOp) -> Any:
    return operate_on(t, node.op, t.evaluate(frame, node.left), t.evaluate(frame, node.right))


def operate_on(t: Tracer, op: ast.operator, a: Any, b: Any) -> Any:
    """A binary operator on any two values."""
    symbol, function = _BINARY[type(op)]
    a, b = _as_operands(a, b)
    if symbol != "@" and is_scalar(a) and is_scalar(b) and isinstance(plain(a), Index) | isinstance(plain(b), Index):
        return operate(symbol, a, b)
    return t.heap.made(native(f"{name_of(a)} {symbol} {name_of(b)}", function, a, b))


def _as_operands(a: Any, b: Any) -> tuple[Any, Any]:
    """An array beside a value of the kernel is a vector or matrix of constants."""
    if isinstance(a, np.ndarray) and isinstance(b, (Traced, Index, Bundle)):
        return as_bundle(a), b
    if isinstance(b, np.ndarray) and isinstance(a, (Traced, Index, Bundle)):
        return a, as_bundle(b)
    return a, b


@expression(ast.UnaryOp)
def unary(t: Tracer, frame: Frame, node: ast.UnaryOp) -> Any:
    value = t.evaluate(frame, node.operand)
    if isinstance(node.op, ast.Not):
        truth = t.truth(value)
        return apply("not", truth) if isinstance(truth, Traced) else not truth
    function = _UNARY[type(node.op)]
    if isinstance(value, Index):
        return Index(function(int(value)), value.builder)
    return native(f"{type(node.op).__name__} of {name_of(value)}", function, value)


@expression(ast.Compare)
def compare(t: Tracer, frame: Frame, node: ast.Compare) -> Any:
    """A chain of comparisons; each operand is evaluated once, and only if those before hold."""
    left = t.evaluate(frame, node.left)
    return _chain(t, frame, left, list(zip(node.ops, node.comparators, strict=True)))


def _chain(t: Tracer, frame: Frame, left: Any, links: list[tuple[ast.cmpop, ast.expr]]) -> Any:
    (op, node), *rest = links
    right = t.evaluate(frame, node)
    holds = _compared(t, op, left, right)
    if not rest:
        return holds
    return lazy(t, frame, True, t.truth(holds), [node for _, node in rest], lambda: _chain(t, frame, right, rest))


def _compared(t: Tracer, op: ast.cmpop, a: Any, b: Any) -> Any:
    if isinstance(op, (ast.Is, ast.IsNot)):
        if (holds(a, Traced) or holds(b, Traced)) and a is not None and b is not None:
            raise KernelError("`is` asks which object a value is, and a kernel's values are no objects", "write ==")
        return (a is b) is isinstance(op, ast.Is)
    if isinstance(op, (ast.In, ast.NotIn)):
        if holds(a, Traced) or holds(b, Traced):
            raise KernelError("`in` with a value that the kernel computes", "write x == a or x == b")
        return native("in", operator.contains, b, a) is isinstance(op, ast.In)
    symbol, function = _COMPARE[type(op)]
    a, b = _as_operands(a, b)
    if is_scalar(a) and is_scalar(b) and isinstance(plain(a), Index) | isinstance(plain(b), Index):
        return operate(symbol, a, b)
    return native(f"{name_of(a)} {symbol} {name_of(b)}", function, a, b)


@expression(ast.BoolOp)
def logic(t: Tracer, frame: Frame, node: ast.BoolOp) -> Any:
    return _logic(t, frame, isinstance(node.op, ast.And), node.values)


def _logic(t: Tracer, frame: Frame, both: bool, nodes: list[ast.expr]) -> Any:
    left = t.evaluate(frame, nodes[0])
    if len(nodes) == 1:
        return left
    return lazy(t, frame, both, left, nodes[1:], lambda: _logic(t, frame, both, nodes[1:]))


def lazy(t: Tracer, frame: Frame, both: bool, left: Any, nodes: Iterable[ast.AST], right: Any) -> Any:
    """``left and right()`` (or ``or``): the right side counts only where the left does not decide."""
    word = "and" if both else "or"
    if not isinstance(left, Traced):
        decided = not t.truth(left) if both else t.truth(left)
        return left if decided else right()
    t.boolean(left, word)
    if not any(isinstance(n, ast.NamedExpr) for node in nodes for n in ast.walk(node)):
        with t.builder.block() as body:
            value = t.boolean(right(), word)
        if not any(i.op == "loop" for i in walk(tuple(body))):
            return _eager(t, "and" if both else "or", left, body, value)

    def decide() -> Any:
        return t.boolean(right(), word)

    if both:
        return t.branch(frame, left, decide, lambda: False, word)
    return t.branch(frame, left, lambda: True, decide, word)


def _eager(t: Tracer, op: str, left: Traced, body: list[Instr], value: Any) -> Any:
    """The right side computes nothing that could hang or fail: both sides are computed."""
    t.builder.body.extend(body)
    return apply(op, left, value)


@expression(ast.IfExp)
def ternary(t: Tracer, frame: Frame, node: ast.IfExp) -> Any:
    test = t.truth(t.evaluate(frame, node.test))
    if not isinstance(test, Traced):
        return t.settled(t.evaluate(frame, node.body if test else node.orelse))
    then, other = (partial(t.evaluate, frame, side) for side in (node.body, node.orelse))
    return t.branch(frame, test, then, other, condition_text(node.test))


def condition_text(node: ast.expr) -> str:
    return f"`{ast.unparse(node)}` (line {node.lineno})"


@expression(ast.Tuple)
def tuple_(t: Tracer, frame: Frame, node: ast.Tuple) -> Any:
    return tuple(items(t, frame, node.elts))


@expression(ast.List)
def list_(t: Tracer, frame: Frame, node: ast.List) -> Any:
    return t.heap.made(items(t, frame, node.elts))


@expression(ast.Dict)
def dict_(t: Tracer, frame: Frame, node: ast.Dict) -> Any:
    result: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            result |= native("**", dict, t.evaluate(frame, value))
            continue
        found = t.evaluate(frame, key)
        if holds(found, Traced):
            raise KernelError("a key of a dict is known while tracing, this one is not", "use a Vector or a Table")
        result[found] = t.evaluate(frame, value)
    return result


def items(t: Tracer, frame: Frame, nodes: list[ast.expr]) -> list[Any]:
    """The values of a display or of a call's arguments, with * unpacked."""
    result: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            result += iterate(t, t.evaluate(frame, node.value))
        else:
            result.append(t.evaluate(frame, node))
    return result


@expression(ast.Attribute)
def attribute(t: Tracer, frame: Frame, node: ast.Attribute) -> Any:
    value = t.evaluate(frame, node.value)
    if isinstance(value, Traced):
        raise KernelError(f"{describe(value)} has no attribute {node.attr}", f"hm.{node.attr}(x), if it is a function")
    if isinstance(value, (Bundle, TableValue)):
        if node.attr not in {"T", "shape", "at"}:
            raise KernelError(
                f"{value!r} has no attribute {node.attr}", "use indices, .T, or the functions of hawk.math"
            )
        return getattr(value, node.attr)
    member = inspect.getattr_static(type(value), node.attr, None)
    if isinstance(member, property) and holds(value, Traced):
        return call(t, member.fget, [value], {})
    return native(f"{name_of(value)}.{node.attr}", getattr, value, node.attr)


@expression(ast.Subscript)
def subscript(t: Tracer, frame: Frame, node: ast.Subscript) -> Any:
    return item(t, t.evaluate(frame, node.value), t.evaluate(frame, node.slice))


def item(t: Tracer, value: Any, index: Any) -> Any:
    """``value[index]``."""
    if isinstance(value, np.ndarray) and holds(index, Traced):
        if value.size > LARGEST:
            raise KernelError(
                f"an array of {value.size} indexed by the kernel", "pass it as a Table and read it with .at"
            )
        result = native("[]", lambda: as_vector(value)[index])
    elif isinstance(value, (list, tuple)) and isinstance(index, Traced):
        result = native("[]", lambda: as_vector(value)[index])
    else:
        result = native(f"{name_of(value)}[{name_of(index)}]", operator.getitem, value, index)
        if isinstance(index, slice):
            t.heap.made(result)
    numbers = index if isinstance(index, tuple) else (index,)
    if any(isinstance(i, Index) for i in numbers) and is_scalar(result):
        return t.number(plain(result))
    return result


@expression(ast.Slice)
def slice_(t: Tracer, frame: Frame, node: ast.Slice) -> Any:
    parts = [None if p is None else t.evaluate(frame, p) for p in (node.lower, node.upper, node.step)]
    if any(isinstance(p, Traced) for p in parts):
        raise KernelError("a slice needs bounds known while tracing", "index single components instead")
    return slice(*parts)


@expression(ast.Starred)
def starred(t: Tracer, frame: Frame, node: ast.Starred) -> Any:
    raise KernelError("* stands where nothing can be unpacked")


@expression(ast.Lambda)
def lambda_(t: Tracer, frame: Frame, node: ast.Lambda) -> Any:
    return TracedFunction.define(t, frame, node)


@expression(ast.ListComp, ast.GeneratorExp)
def comprehension(t: Tracer, frame: Frame, node: ast.ListComp | ast.GeneratorExp) -> Any:
    """A list; a generator expression too, at once."""
    inner = frame.inside({n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)})
    result: list[Any] = []
    _generate(t, frame, inner, node.generators, lambda: result.append(t.evaluate(inner, node.elt)))
    return t.heap.made(result)


def _generate(t: Tracer, source: Frame, inner: Frame, generators: list[ast.comprehension], emit: Any) -> None:
    if not generators:
        emit()
        return
    first, *rest = generators
    for value in iterate(t, t.evaluate(source, first.iter)):
        assign(t, inner, first.target, value)
        tests = [t.truth(t.evaluate(inner, test)) for test in first.ifs]
        if any(isinstance(test, Traced) for test in tests):
            raise KernelError("how many items a list has must be known while tracing", "write a for loop with an if")
        if all(tests):
            _generate(t, inner, inner, rest, emit)


@expression(ast.JoinedStr)
def joined(t: Tracer, frame: Frame, node: ast.JoinedStr) -> Any:
    return "".join(str(t.evaluate(frame, part)) for part in node.values)


@expression(ast.FormattedValue)
def formatted(t: Tracer, frame: Frame, node: ast.FormattedValue) -> Any:
    value = t.evaluate(frame, node.value)
    if holds(value, Traced):
        raise KernelError("a value that the kernel computes has no text while it is traced", "leave it out")
    if node.conversion > 0:
        value = _CONVERSIONS[chr(node.conversion)](value)
    return format(value, t.evaluate(frame, node.format_spec) if node.format_spec else "")


@expression(ast.Call)
def call_(t: Tracer, frame: Frame, node: ast.Call) -> Any:
    function = t.evaluate(frame, node.func)
    args = items(t, frame, node.args)
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        value = t.evaluate(frame, keyword.value)
        kwargs.update({keyword.arg: value} if keyword.arg is not None else native("**", dict, value))
    return call(t, function, args, kwargs)
