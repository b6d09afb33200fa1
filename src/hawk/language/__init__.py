"""The kernel language: annotations, and tracing a Python function into a program."""

from .annotations import (
    Bool,
    Int32,
    Matrix,
    Mutable,
    Param,
    Scalar,
    Table,
    Terminated,
    UInt32,
    Vector,
    samples_first,
    samples_last,
)
from .carry import bounded
from .errors import KernelError
from .trace import trace

__all__ = [
    "Bool",
    "Int32",
    "KernelError",
    "Matrix",
    "Mutable",
    "Param",
    "Scalar",
    "Table",
    "Terminated",
    "UInt32",
    "Vector",
    "bounded",
    "samples_first",
    "samples_last",
    "trace",
]
