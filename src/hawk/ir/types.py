"""The scalar types of the IR. Vectors and matrices exist only on the Python side of tracing."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np


class Type(Enum):
    """A scalar type. ``REAL`` is the kernel's precision before it is chosen (see ``specialise``)."""

    REAL = "real"
    F64 = "f64"
    F32 = "f32"
    I64 = "i64"
    I32 = "i32"
    U32 = "u32"
    BOOL = "bool"

    __hash__ = object.__hash__  # members are single: Enum's own hash, in Python, is looked up all the time

    def __repr__(self) -> str:
        return self.value

    def __str__(self) -> str:
        return self.value

    @property
    def is_real(self) -> bool:
        return self in _REALS

    @property
    def is_int(self) -> bool:
        return self in _INTS

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of a plane of this type; ``REAL`` has none yet."""
        return _DTYPES[self.value]


_REALS = frozenset({Type.REAL, Type.F64, Type.F32})
_INTS = frozenset({Type.I64, Type.I32, Type.U32})
_DTYPES: dict[str, np.dtype[Any]] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "i64": np.dtype(np.int64),
    "i32": np.dtype(np.int32),
    "u32": np.dtype(np.uint32),
    "bool": np.dtype(np.bool_),
}

# What a kernel is built for: the value of every ``mode=``.
PRECISIONS = {"float64": Type.F64, "float32": Type.F32}


def precision(mode: str) -> Type:
    """The real type of a ``mode`` ("float64" or "float32"); ValueError for any other."""
    try:
        return PRECISIONS[mode]
    except (KeyError, TypeError):
        raise ValueError(f"mode={mode!r}: a kernel is built for {' or '.join(map(repr, PRECISIONS))}") from None
