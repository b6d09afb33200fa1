"""What the statements of a kernel do."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from .assignment import assign, iterate, set_item
from .calls import TracedFunction
from .errors import KernelError
from .expressions import condition_text, item, operate_on
from .frames import BROKEN, CONTINUED, RETURNED, VALUE, Body, Frame, Live, Missing, changed_names
from .tracer import Tracer, statement
from .values import Traced


@statement(ast.Pass)
def pass_(t: Tracer, frame: Frame, node: ast.Pass) -> None:
    pass


@statement(ast.Expr)
def expression_(t: Tracer, frame: Frame, node: ast.Expr) -> None:
    t.evaluate(frame, node.value)


@statement(ast.Assign)
def assign_(t: Tracer, frame: Frame, node: ast.Assign) -> None:
    value = t.evaluate(frame, node.value)
    for target in node.targets:
        assign(t, frame, target, value)


@statement(ast.AnnAssign)
def annotated(t: Tracer, frame: Frame, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign(t, frame, node.target, t.evaluate(frame, node.value))


@statement(ast.AugAssign)
def augmented(t: Tracer, frame: Frame, node: ast.AugAssign) -> None:
    target = node.target
    if isinstance(target, ast.Subscript):
        container, index = t.evaluate(frame, target.value), t.evaluate(frame, target.slice)
        old = item(t, container, index)
        set_item(t, frame, target, container, index, _updated(t, node, old, t.evaluate(frame, node.value)))
        return
    if isinstance(target, ast.Attribute):
        raise KernelError(f"a kernel changes no objects: .{target.attr} = ...", "keep the value in a local name")
    old = frame.read(target.id, t.span)
    assign(t, frame, target, _updated(t, node, old, t.evaluate(frame, node.value)))


def _updated(t: Tracer, node: ast.AugAssign, old: Any, value: Any) -> Any:
    if isinstance(old, list) and isinstance(node.op, ast.Add):
        t.heap.change(old)
        old.extend(iterate(t, value))
        return old
    return operate_on(t, node.op, old, value)


@statement(ast.Return)
def return_(t: Tracer, frame: Frame, node: ast.Return) -> None:
    frame.variables[VALUE] = None if node.value is None else t.evaluate(frame, node.value)
    frame.variables[RETURNED] = True


@statement(ast.Break)
def break_(t: Tracer, frame: Frame, node: ast.Break) -> None:
    frame.variables[BROKEN] = True


@statement(ast.Continue)
def continue_(t: Tracer, frame: Frame, node: ast.Continue) -> None:
    frame.variables[CONTINUED] = True


@statement(ast.FunctionDef)
def define(t: Tracer, frame: Frame, node: ast.FunctionDef) -> None:
    frame.bind(node.name, TracedFunction.define(t, frame, node))


@statement(ast.If)
def if_(t: Tracer, frame: Frame, node: ast.If) -> None:
    test = t.truth(t.evaluate(frame, node.test))
    if isinstance(test, Traced):
        then, other = (partial(t.block, frame, side) for side in (node.body, node.orelse))
        t.branch(frame, test, then, other, condition_text(node.test))
        return
    body = node.body if test else node.orelse
    t.block(frame, body)
    settle(t, frame, body)


def settle(t: Tracer, frame: Frame, body: Body) -> None:
    """After an `if` decided while tracing: what it assigned is as settled as after one the kernel decides."""
    if t.loops:
        for name in changed_names(body):
            if name in frame.variables and not isinstance(frame.variables[name], (Missing, Live)):
                frame.variables[name] = t.settled(frame.variables[name])


@statement(ast.Assert)
def assert_(t: Tracer, frame: Frame, node: ast.Assert) -> None:
    test = t.truth(t.evaluate(frame, node.test))
    if isinstance(test, Traced):
        raise KernelError(
            "assert of a value that the kernel computes", "write a flag to a Mutable plane and check that"
        )
    if not test:
        message = "" if node.msg is None else f": {t.evaluate(frame, node.msg)}"
        raise KernelError(f"the assertion `{ast.unparse(node.test)}` fails{message}")


@statement(ast.Raise)
def raise_(t: Tracer, frame: Frame, node: ast.Raise) -> None:
    what = "" if node.exc is None else f" {ast.unparse(node.exc)}"
    raise KernelError(f"a kernel raises nothing: raise{what}", "guard it with a condition known while tracing")
