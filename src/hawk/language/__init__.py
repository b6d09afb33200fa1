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
from .custom import CustomDerivative, custom_derivative
from .errors import KernelError
from .trace import trace

__all__ = [
    "Bool",
    "CustomDerivative",
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
    "custom_derivative",
    "samples_first",
    "samples_last",
    "trace",
]
