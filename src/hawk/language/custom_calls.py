"""Calls of functions with their own derivative: the value as traced, its partials beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.program import Region, Value
from ..ir.types import Type
from .bundles import Bundle, as_bundle, elementwise, shape_name
from .calls import TracedFunction, bind, call, calls
from .custom import CustomDerivative
from .errors import KernelError
from .structure import holds, name_of
from .tables import TableValue
from .tracer import Tracer
from .values import Traced, apply, common_type, is_scalar, lift

_FIX = "return one real, or a vector or matrix of reals"


@calls(CustomDerivative)
def custom(t: Tracer, function: CustomDerivative, args: list[Any], kwargs: dict[str, Any]) -> Any:
    name = function.__name__
    if function.rule is None:
        raise KernelError(f"{name} has no derivative yet", f"define it before the kernel, with @{name}.partials")
    if function in t.rules:
        raise KernelError(f"the rule of {name} calls {name}", "use its result, the last argument of the rule")
    given = bind(name, function.signature, args, kwargs)
    for key, value in given.items():
        if not _is_number(value) and holds(value, Traced, TracedFunction, TableValue):
            raise KernelError(
                f"{name}: {key} is {name_of(value)}",
                "a function with its own derivative computes from numbers, vectors and matrices, given one by one",
            )
    apart = [elementwise(_detached, v) if _is_number(v) else v for v in given.values()]
    return _attached(t, function, given, _result(name, call(t, function.function, apart, {})))


def _is_number(value: Any) -> bool:
    return is_scalar(value) or isinstance(value, Bundle)


def _detached(x: Any) -> Any:
    return apply("detach", x) if isinstance(x, Traced) and x.type.is_real else x


def _result(name: str, result: Any) -> Any:
    if not _is_number(result):
        raise KernelError(f"{name} returns {name_of(result)}, and has a derivative of its own", _FIX)
    for x in _items(result):
        if isinstance(x, Traced) and not x.type.is_real:
            raise KernelError(f"{name} returns {name_of(x)}, which does not vary smoothly", _FIX)
    return result


def _items(value: Any) -> tuple[Any, ...]:
    return value.items if isinstance(value, Bundle) else (value,)


def _shape(value: Any) -> tuple[int, ...]:
    return value.shape if isinstance(value, Bundle) else ()


def _like(value: Any, items: list[Any]) -> Any:
    return Bundle(value.shape, tuple(items)) if isinstance(value, Bundle) else items[0]


def _attached(t: Tracer, function: CustomDerivative, given: dict[str, Any], result: Any) -> Any:
    """The result, with the partials that the rule gives for it."""
    b, params = t.builder, list[Value]()

    def fresh(x: Any) -> Any:
        if not isinstance(x, Traced):
            return x
        params.append(Value(x.type))
        return Traced(b, params[-1])

    values = [lift(b, x, Type.REAL) for x in _items(result)]
    numbers = {key: value for key, value in given.items() if _is_number(value)}
    inside = given | {key: elementwise(fresh, value) for key, value in numbers.items()}
    outcome = elementwise(fresh, _like(result, [Traced(b, v) for v in values]))
    with b.block() as body, t.in_rule(function):
        partials = _partials(function, given, outcome, call(t, function.rule, [*inside.values(), outcome], {}))
        rows = [
            partials[key][k * len(_items(value)) + i] if partials[key] else 0.0
            for k in range(len(values))
            for key, value in numbers.items()
            for i, x in enumerate(_items(value))
            if isinstance(x, Traced) and x.type.is_real
        ]
        yields = tuple(lift(b, x, Type.REAL) for x in rows)
    arguments = [
        (x if partials[key] else _detached(x)).value
        for key, value in numbers.items()
        for x in _items(value)
        if isinstance(x, Traced)
    ]
    region = Region(tuple(params), tuple(body), yields)
    results = b.emit("custom", [*values, *arguments], [v.type for v in values], regions=(region,))
    return _like(result, [Traced(b, r) for r in results])


def _partials(function: CustomDerivative, given: dict[str, Any], result: Any, found: Any) -> dict[str, tuple[Any, ...]]:
    """The scalars of the partial by each argument, row by row; none where it is taken as a constant."""
    name = function.__name__
    several = isinstance(found, (tuple, list)) and (len(given) > 1 or len(found) == 1)
    found = found if several else (found,)
    if len(found) != len(given):
        raise KernelError(
            f"{name}({', '.join(given)}): its rule returns {len(found)} partial{'s' * (len(found) > 1)}",
            f"return {len(given)}, one by each argument in order: None by one that is taken as a constant",
        )
    return {key: _partial(name, key, given[key], result, p) for key, p in zip(given, found, strict=True)}


def _partial(name: str, key: str, argument: Any, result: Any, partial: Any) -> tuple[Any, ...]:
    if partial is None or not holds(argument, Traced):
        return ()
    if any(isinstance(x, Traced) and not x.type.is_real for x in _items(argument)):
        raise KernelError(
            f"{name}: {key} is {name_of(argument)}, which does not vary smoothly, and the rule gives a partial by it",
            f"give None for it, or call {name} with hm.real({key})",
        )
    shape = (*_shape(result), *_shape(argument))
    if len(shape) > 2:
        raise KernelError(
            f"{name}: the partial of {name_of(result)} by {key}, {name_of(argument)}, has {len(shape)} axes",
            "a partial is a scalar, a vector or a matrix: pass and return smaller pieces",
        )
    if isinstance(partial, (tuple, list, np.ndarray)):
        partial = as_bundle(partial)
    if not _is_number(partial) or _shape(partial) != shape:
        raise KernelError(
            f"{name}: its rule gives {name_of(partial)} as the partial by {key}",
            f"{name} returns {name_of(result)} and {key} is {name_of(argument)}, so it must be {shape_name(shape)}",
        )
    if any(common_type(x) is Type.BOOL for x in _items(partial)):
        raise KernelError(f"{name}: its rule gives {name_of(partial)} as the partial by {key}", "a partial is a real")
    return _items(partial)
