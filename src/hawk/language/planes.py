"""What may be assigned to the arguments that a kernel writes."""

from __future__ import annotations

from typing import Any

from ..ir.program import Argument
from ..ir.types import Type
from .bundles import Bundle, as_bundle, elementwise, shape_name
from .errors import KernelError
from .values import Traced, cast, common_type, describe, is_scalar

_KINDS = {Type.REAL: "a real", Type.I32: "an int32", Type.U32: "a uint32", Type.BOOL: "a bool"}
_BOOL_FIX = "write a comparison, for example x != 0"


def coerce(value: Any, argument: Argument) -> Any:
    """`value` with the shape and type of the argument's plane; KernelError naming both if it does not fit."""
    if not is_scalar(value) and not isinstance(value, Bundle):
        try:
            value = as_bundle(value)
        except KernelError:
            raise KernelError(
                f"{argument.name} is {_plane(argument)}, and is assigned {describe(value)}", "assign numbers"
            ) from None
    shape = value.shape if isinstance(value, Bundle) else ()
    if shape != argument.shape:
        raise KernelError(
            f"{argument.name} is {shape_name(argument.shape)}, and is assigned {shape_name(shape)}",
            f"assign {shape_name(argument.shape)}, or change the annotation of {argument.name}",
        )
    return elementwise(lambda x: _component(x, argument), value)


def _plane(argument: Argument) -> str:
    return shape_name(argument.shape) if argument.shape else _KINDS[argument.type]


def _component(x: Any, argument: Argument) -> Any:
    kind = common_type(x)
    wanted = argument.type
    if kind is wanted or (wanted is Type.REAL and kind.is_int):
        return cast(x, wanted)
    if wanted is Type.U32 and not isinstance(x, Traced) and kind.is_int and 0 <= x < 2**32:
        return x
    if wanted is Type.REAL:
        fix = "write hm.where(c, 1.0, 0.0) for a number, or annotate it Mutable[Bool]"
    elif wanted is Type.BOOL:
        fix = _BOOL_FIX
    else:
        fix = f"cast it with hm.{'int32' if wanted is Type.I32 else 'uint32'}(...)"
    raise KernelError(f"{argument.name} holds {_KINDS[wanted]}, and is assigned {describe(x)}", fix)
