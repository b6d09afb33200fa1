"""Python's built-in functions on traced values."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, NoReturn, final

from ..ir.types import Type
from .bundles import Bundle, elementwise
from .calls import builtin, call
from .errors import KernelError
from .structure import name_of
from .tracer import Tracer
from .values import Traced, apply, cast, describe, is_scalar, operate, plain


@final
@dataclass(frozen=True, slots=True)
class TracedRange:
    """``range`` with a bound or step that the kernel computes; it can only be looped over."""

    start: Any
    stop: Any
    step: Any

    def __iter__(self) -> NoReturn:
        raise KernelError("a range whose length the kernel computes", "loop over it with for")


@builtin(range)
def _range(t: Tracer, *bounds: Any) -> TracedRange:
    for bound in bounds:
        whole = bound.type.is_int if isinstance(bound, Traced) else type(plain(bound)) is not float and is_scalar(bound)
        if not whole:
            raise KernelError(f"range takes whole numbers, not {describe(bound)}", "cast it with hm.int32(...)")
    start, stop, step = {1: (0, *bounds, 1), 2: (*bounds, 1), 3: bounds}[len(bounds)]
    return TracedRange(plain(start), plain(stop), plain(step))


@builtin(abs)
def _abs(t: Tracer, x: Any) -> Any:
    return abs(x)


def _as_python(function: Any) -> Any:
    def rule(t: Tracer, *args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return t.heap.made(result) if function is list else result

    return rule


for _function in (len, sum, zip, enumerate, reversed, list, tuple, dict, isinstance, dataclasses.replace):
    builtin(_function)(_as_python(_function))


@builtin(float)
def _float(t: Tracer, x: Any) -> Any:
    return cast(_scalar(x, "float"), Type.REAL)


@builtin(int)
def _int(t: Tracer, x: Any) -> Any:
    return cast(_scalar(x, "int"), Type.I32)


@builtin(bool)
def _bool(t: Tracer, x: Any) -> Any:
    return t.truth(x)


@builtin(round)
def _round(t: Tracer, x: Any, digits: Any = None) -> Any:
    if digits is not None:
        raise KernelError("round(x, digits) of a value that the kernel computes", "write hm.round(x * s) / s")
    x = _scalar(x, "round")
    return x if x.type.is_int else cast(apply("round", x), Type.I32)


def _scalar(x: Any, what: str) -> Any:
    if not is_scalar(x):
        raise KernelError(f"{what}() takes a number, not {name_of(x)}")
    return x


@builtin(min)
def _min(t: Tracer, *values: Any) -> Any:
    return _extreme("minimum", values)


@builtin(max)
def _max(t: Tracer, *values: Any) -> Any:
    return _extreme("maximum", values)


def _extreme(op: str, values: tuple[Any, ...]) -> Any:
    items = list(values[0]) if len(values) == 1 else list(values)
    for item in items:
        _scalar(item, op[:3])
    return functools.reduce(functools.partial(apply, op), items)


@builtin(any)
def _any(t: Tracer, values: Any) -> Any:
    return functools.reduce(functools.partial(apply, "or"), _truths(t, values, "any"), False)


@builtin(all)
def _all(t: Tracer, values: Any) -> Any:
    return functools.reduce(functools.partial(apply, "and"), _truths(t, values, "all"), True)


def _truths(t: Tracer, values: Any, what: str) -> list[Any]:
    return [t.boolean(v, what) for v in (values.items if isinstance(values, Bundle) else values)]


@builtin(pow)
def _pow(t: Tracer, x: Any, y: Any) -> Any:
    return elementwise(functools.partial(operate, "**"), x, y)


@builtin(divmod)
def _divmod(t: Tracer, x: Any, y: Any) -> Any:
    return operate("//", x, y), operate("%", x, y)


@builtin(map)
def _map(t: Tracer, function: Any, *sequences: Any) -> Any:
    return [call(t, function, list(row), {}) for row in zip(*sequences, strict=False)]


@builtin(functools.reduce)
def _reduce(t: Tracer, function: Any, sequence: Any, *initial: Any) -> Any:
    return functools.reduce(lambda a, b: call(t, function, [a, b], {}), sequence, *initial)


@builtin(print)
def _print(t: Tracer, *values: Any, **options: Any) -> NoReturn:
    raise KernelError("print of a value that the kernel computes", "write it to a Mutable plane and print that")
