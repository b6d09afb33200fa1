"""A kernel must give what Python gives: the same function, run by Python on numbers, is the oracle."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hawk.ir.interpret import interpret
from hawk.ir.program import PER_SAMPLE, Program, Role
from hawk.language import trace


def _python(program: Program, function: Callable[..., Any], planes: dict[str, Any], k: int) -> Any:
    """The function called with sample `k`."""
    args = []
    for name in inspect.signature(function).parameters:
        argument, plane = program.argument(name), np.asarray(planes[name])
        value = plane[..., k] if argument.role in PER_SAMPLE else plane
        args.append(value if argument.shape else value.item())
    return function(*args)


def check(function: Callable[..., Any], source: str | None = None, **planes: Any) -> list[np.ndarray]:
    """Trace a function that returns its results; interpreted and run by Python they are the same numbers."""
    program = trace(function, source=source)
    written = interpret(program, {k: np.asarray(v) for k, v in planes.items()})
    results = [written[name] for name in program.returns]
    sampled = next(a.name for a in program.arguments if a.role is Role.SAMPLE)
    for k in range(np.asarray(planes[sampled]).shape[-1]):
        wanted = _python(program, function, planes, k)
        wanted = wanted if len(results) > 1 else (wanted,)
        for got, value in zip(results, wanted, strict=True):
            exact = np.asarray(getattr(value, "items", value), got.dtype).reshape(got.shape[:-1])
            np.testing.assert_array_equal(got[..., k], exact)
    return results


@pytest.fixture
def agree() -> Callable[..., list[np.ndarray]]:
    return check
