"""The two small kernels of several benchmarks."""

from hawk import Mutable, Param, Scalar, kernel
from hawk import math as hm


@kernel
def square(x: Scalar, a: Param, y: Mutable[Scalar]):
    y = a * x * x


@kernel
def wave(x: Scalar, y: Mutable[Scalar]):
    y = hm.sin(x)
