"""Functions of a kernel that carry their own derivative."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar, final

_Rule = TypeVar("_Rule", bound=Callable[..., Any])
_STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@final
class CustomDerivative:
    """What `custom_derivative` makes of a function. Called outside kernels, it is that function."""

    __name__: str

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function
        self.signature = inspect.signature(function)
        self.rule: types.FunctionType | None = None
        update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def partials(self, rule: _Rule) -> _Rule:
        """Register the derivative, as a decorator; see `custom_derivative`.

        Raises TypeError if `rule` is no plain function or takes other arguments than it must, and if there is a
        rule already.
        """
        name = self.__name__
        if not isinstance(rule, types.FunctionType):
            raise TypeError(f"@{name}.partials decorates a plain function, not {_what(rule)}")
        if self.rule is not None:
            raise TypeError(f"{name} has a rule already, {self.rule.__name__}: a function has one derivative")
        if rule.__name__ == name:
            raise TypeError(f"the rule of {name} is named {name} too, and would take its place; give it another name")
        takes, needs = len(inspect.signature(rule).parameters), len(self.signature.parameters) + 1
        if takes != needs or any(p.kind in _STARRED for p in inspect.signature(rule).parameters.values()):
            raise TypeError(
                f"{rule.__name__} takes {takes} arguments; the rule of {name} takes {needs}: "
                f"{', '.join(self.signature.parameters)}, and the result"
            )
        self.rule = rule
        return rule

    def __repr__(self) -> str:
        return f"<{self.__name__}, a function with its own derivative>"


def custom_derivative(function: Callable[..., Any]) -> CustomDerivative:
    """Let a function that kernels call carry its own derivative, for example that of an implicit function.

    ::

        @hawk.custom_derivative
        def kepler(mean, e):  # the eccentric anomaly E, with E - e sin E = mean
            E = mean
            for _ in range(20):
                E = E - (E - e * hm.sin(E) - mean) / (1 - e * hm.cos(E))
            return E

        @kepler.partials
        def kepler_partials(mean, e, E):
            slope = 1 / (1 - e * hm.cos(E))
            return slope, hm.sin(E) * slope

    The function takes numbers, vectors and matrices and returns one real, vector or matrix. The rule takes the
    arguments and the result, and returns the partial derivative of the result by each argument, in their order
    (with one argument, its partial): a real where both are, else the shape of the result followed by that of
    the argument, for example ``Matrix[3, 2]`` for a ``Vector[3]`` of a ``Vector[2]``. ``None`` stands for an
    argument taken as a constant; what is no real takes no other.

    Forward mode multiplies by the partials, reverse mode by their transpose; higher derivatives are those of
    the rule, which may use the result but not call the function. An infinite partial times a variation of
    exactly 0 is 0. The function's own operations are not differentiated: it may loop without a cap. Its value
    has the same bits in the kernel and in all derivatives; multiply-adds are not fused across its edge.
    `eagle.testing.check_grads` compares the rule with differences of the function.

    Raises TypeError for what is no plain function, and for one that takes ``*args`` or ``**kwargs``. Calls
    that do not fit the rule raise KernelError when the kernel is traced.
    """
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"custom_derivative decorates a plain function, not {_what(function)}")
    starred = [p.name for p in inspect.signature(function).parameters.values() if p.kind in _STARRED]
    if starred:
        raise TypeError(f"{function.__name__} takes *{starred[0]}: name its arguments, each has a partial of its own")
    return CustomDerivative(function)


def _what(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"an object of type {type(value).__name__}"
