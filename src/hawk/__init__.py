"""hawk: numerical steps written once in Python, for one sample, compiled and differentiated."""

from . import diff, math
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
    samples_first,
    samples_last,
)

__all__ = [
    "Bool", "Int32", "Kernel", "KernelError", "Matrix", "Mutable", "Param", "Scalar", "Table", "Terminated", "UInt32",
    "Vector", "bounded", "diff", "kernel", "math", "samples_first", "samples_last",
]  # fmt: skip
