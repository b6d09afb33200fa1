"""Kernels that several benchmarks use: two small ones, and one that only computes."""

from hawk import Mutable, Param, Scalar, kernel
from hawk import math as hm


@kernel
def square(x: Scalar, a: Param, y: Mutable[Scalar]):
    y = a * x * x


@kernel
def wave(x: Scalar, y: Mutable[Scalar]):
    y = hm.sin(x)


@kernel
def logistic(x: Scalar, y: Mutable[Scalar]):
    for _ in range(100):
        x = 3.99 * x * (1 - x)
    y = x
