"""hawk: numerical steps written once in Python, for one sample, compiled and differentiated."""

from . import artifact, diff, math
from .artifact import build, load
from .kernel import Kernel, kernel
from .language import (
    Bool,
    Int32,
    KernelError,
    Matrix,
    Mutable,
    Param,
    Scalar,
    Table,
    Terminated,
    UInt32,
    Vector,
    bounded,
    custom_derivative,
    samples_first,
    samples_last,
)

__all__ = [
    "Bool", "Int32", "Kernel", "KernelError", "Matrix", "Mutable", "Param", "Scalar", "Table", "Terminated", "UInt32",
    "Vector", "artifact", "bounded", "build", "custom_derivative", "diff", "kernel", "load", "math", "samples_first",
    "samples_last",
]  # fmt: skip
