"""Calls inside a kernel: helpers are traced in place, what needs no traced value is simply called."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Hashable
from typing import Any, final

from ..ir.ops import OPS
from .errors import KernelError
from .frames import RETURNED, VALUE, Frame, Scope, body_of
from .source import FunctionNode, Source, source_of
from .structure import holds, is_named, name_of
from .tables import TableValue
from .tracer import Tracer
from .values import Index, Traced, is_scalar, plain

DEEPEST = 64  # calls open at once
BUILTINS: dict[Any, Callable[..., Any]] = {}
CALLED: dict[type, Callable[[Tracer, Any, list[Any], dict[str, Any]], Any]] = {}
_CHANGING = frozenset(
    {"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "setdefault", "popitem"}
    | {"add", "discard"}
)
_FOREIGN = frozenset({"numpy", "scipy", "math", "cmath", "torch", "jax", "cupy", "random"})
_OTHER_NAMES = {  # what other libraries call the functions of hawk.math
    "fabs": "abs", "absolute": "abs", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "power": "pow", "rint": "round",
    "fmin": "minimum", "fmax": "maximum", "array": "vec", "asarray": "vec", "stack": "vec", "concatenate": "vec",
}  # fmt: skip
_NOT_OPS = frozenset(
    {"vec", "dot", "cross", "norm", "outer", "matmul", "transpose", "det", "inv", "solve", "where", "clip"}
    | {"isnan", "isfinite", "isinf", "sigmoid", "softplus"}
)


def builtin(*functions: Any) -> Callable[[Any], Any]:
    """Register what a function of Python does when a traced value is among its arguments."""

    def register(rule: Any) -> Any:
        BUILTINS.update(dict.fromkeys(functions, rule))
        return rule

    return register


def calls(kind: type) -> Callable[[Any], Any]:
    """Register what a call of an object of this class does when a traced value is among its arguments."""

    def register(rule: Any) -> Any:
        CALLED[kind] = rule
        return rule

    return register


@final
@dataclasses.dataclass(frozen=True, eq=False)
class TracedFunction:
    """A function defined inside traced code: it sees the names of its frame as they are when it is called."""

    tracer: Tracer
    frame: Frame
    node: FunctionNode
    name: str
    signature: inspect.Signature

    @classmethod
    def define(cls, t: Tracer, frame: Frame, node: FunctionNode) -> TracedFunction:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            raise KernelError("a decorator inside a kernel", "call the wrapping function where it is needed")
        name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
        return cls(t, frame, node, name, _signature(t, frame, node.args))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        source = dataclasses.replace(self.frame.source, node=self.node)
        bound = bind(self.name, self.signature, list(args), kwargs)
        return inline(self.tracer, Frame(source, self.name, self.frame.scope, self.frame, bound))


def _signature(t: Tracer, frame: Frame, args: ast.arguments) -> inspect.Signature:
    kinds = inspect.Parameter
    plain_args = [
        *((a, kinds.POSITIONAL_ONLY) for a in args.posonlyargs),
        *((a, kinds.POSITIONAL_OR_KEYWORD) for a in args.args),
    ]
    empty = [inspect.Parameter.empty] * (len(plain_args) - len(args.defaults))
    defaults = [*empty, *(t.evaluate(frame, d) for d in args.defaults)]
    parameters = [kinds(a.arg, kind, default=d) for (a, kind), d in zip(plain_args, defaults, strict=True)]
    if args.vararg:
        parameters.append(kinds(args.vararg.arg, kinds.VAR_POSITIONAL))
    for a, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        value = kinds.empty if default is None else t.evaluate(frame, default)
        parameters.append(kinds(a.arg, kinds.KEYWORD_ONLY, default=value))
    if args.kwarg:
        parameters.append(kinds(args.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(parameters)


def bind(name: str, signature: inspect.Signature, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise KernelError(f"{name}() {error}", f"it is {name}{signature}") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def native(what: str, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Python's own `function`; what it raises becomes a KernelError."""
    try:
        return function(*args, **kwargs)
    except KernelError:
        raise
    except Exception as error:
        raise KernelError(f"{what}: {type(error).__name__}: {error}") from error


def inline(t: Tracer, frame: Frame) -> Any:
    """Trace the body of a called function; its value."""
    if t.depth >= DEEPEST:
        raise KernelError(f"{frame.name} calls itself without end", "recursion must end on values known while tracing")
    call = t.span
    t.depth += 1
    try:
        t.block(frame, body_of(frame.source.node))
        return _value(frame)
    except KernelError as error:
        error.locate(frame.source.span(frame.source.node))
        error.callers.append(call)
        raise
    finally:
        t.depth -= 1


def _value(frame: Frame) -> Any:
    value = frame.variables.get(VALUE)
    if frame.variables[RETURNED] is not True and value is not None:
        raise KernelError(f"{frame.name} returns a value on some paths and nothing on others", "end it with a return")
    return value


def call(t: Tracer, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """``function(*args, **kwargs)``."""
    if isinstance(function, functools.partial):
        return call(t, function.func, [*function.args, *args], {**function.keywords, **kwargs})
    if not callable(function):
        raise KernelError(f"{name_of(function)} is called, and is no function")
    if type(function).__module__ == "hawk.kernel":
        raise KernelError(
            f"{_name(function)} is a kernel: a kernel is launched, not called by another",
            "call a plain function",
        )
    values = [*args, *kwargs.values()]
    what = f"{_name(function)}(...)"
    rule = BUILTINS.get(function) if isinstance(function, Hashable) else None
    if rule is not None and _is_ours(function):
        return native(what, rule, t, *args, **kwargs)
    if isinstance(function, TracedFunction) or _is_ours(function):
        return native(what, function, *args, **kwargs)
    traced = any(holds(v, Traced, TracedFunction, TableValue) for v in values)
    if rule is not None and traced:
        return native(what, rule, t, *args, **kwargs)
    if traced and type(function) in CALLED:
        return CALLED[type(function)](t, function, args, kwargs)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, (list, dict, set)) and function.__name__ in _CHANGING:
        return _change(t, owner, function, args, kwargs)
    if not traced and not holds(owner, Traced):
        result = native(what, function, *args, **kwargs)
        result = t.heap.made(result) if function in (list, sorted) else result
        indexed = is_scalar(result) and any(holds(v, Index) for v in values)
        return t.number(plain(result)) if indexed else result
    return _traced(t, function, args, kwargs)


def _is_ours(function: Any) -> bool:
    module = getattr(function, "__module__", None) or ""
    return module in ("hawk.math", "_operator") or module.startswith("hawk.language.")


def _name(function: Any) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


def _change(t: Tracer, owner: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if not isinstance(owner, list):
        raise KernelError(f"a kernel changes no {type(owner).__name__}: .{function.__name__}", "use a list or a tuple")
    t.heap.change(owner)
    return native(f"{function.__name__}(...)", function, *args, **kwargs)


def _traced(t: Tracer, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A call with traced values among its arguments."""
    if isinstance(function, types.MethodType):
        if is_named(type(function.__self__)) and function.__name__ in ("_replace", "_asdict"):
            return native(f"{function.__name__}(...)", function, *args, **kwargs)
        return call(t, function.__func__, [function.__self__, *args], kwargs)
    if isinstance(function, functools._lru_cache_wrapper):
        return call(t, function.__wrapped__, args, kwargs)
    if isinstance(function, types.FunctionType) and not _is_foreign(function):
        return inline(t, python_frame(function, args, kwargs))
    if isinstance(function, type) and (is_named(function) or dataclasses.is_dataclass(function)):
        return native(f"{function.__name__}(...)", function, *args, **kwargs)
    if isinstance(function, types.BuiltinMethodType) and isinstance(function.__self__, (tuple, list, dict)):
        return native(f"{function.__name__}(...)", function, *args, **kwargs)
    method = inspect.getattr_static(type(function), "__call__", None)
    if isinstance(method, types.FunctionType) and not _is_foreign(function):
        return call(t, method, [function, *args], kwargs)
    raise KernelError(*_unknown(function, [*args, *kwargs.values()]))


def python_frame(function: types.FunctionType, args: list[Any], kwargs: dict[str, Any]) -> Frame:
    """The frame of a call of a plain Python function."""
    source: Source = source_of(function)
    signature = inspect.signature(function, follow_wrapped=False)
    bound = bind(function.__name__, signature, args, kwargs)
    return Frame(source, function.__name__, Scope.of(function), None, bound)


def _is_foreign(function: Any) -> bool:
    return (getattr(function, "__module__", None) or "").partition(".")[0] in _FOREIGN


def _unknown(function: Any, values: list[Any]) -> tuple[str, str]:
    name = _name(function)
    ours = _OTHER_NAMES.get(name, name)
    module = getattr(function, "__module__", None) or type(function).__module__
    where = f"{module}.{name}" if module not in (None, "builtins") else name
    given = next((name_of(v) for v in values if holds(v, Traced)), "a value")
    known = ours in OPS or ours in _NOT_OPS
    fix = f"write hm.{ours}(...), with `from hawk import math as hm`" if known else "write it as a Python function"
    return f"{where} cannot take {given} that the kernel computes", fix
