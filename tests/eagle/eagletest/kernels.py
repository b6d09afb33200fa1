"""The kernels of eagle's tests. Few, and each plan is made once: compiling takes most of the tests' time."""

# ruff: noqa: F841, F821 - kernels assign to their outputs, and a table's axes are names

from functools import cache

import eagle
import hawk
from eagle.plan import Plan
from hawk import Bool, Int32, Matrix, Mutable, Param, Scalar, Table, Terminated, Vector
from hawk import math as hm


@cache
def plan(kernel: hawk.Kernel, mode: str = "float64") -> Plan:
    """The plan of a kernel, made once."""
    (made,) = eagle.deploy([kernel], mode=mode)
    return made


@hawk.kernel
def square(x: Scalar, a: Param, y: Mutable[Scalar]):
    y = a * x * x


@hawk.kernel
def wave(x: Scalar, y: Mutable[Scalar]):
    y = hm.sin(x)


@hawk.kernel
def product(a: Scalar, b: Scalar, y: Mutable[Scalar]):
    y = a * b


@hawk.kernel
def squared(s: Mutable[Scalar]):
    s = s * s


@hawk.kernel
def raised(s: Mutable[Scalar]):
    s = s + 1.0


@hawk.kernel
def logistic(x: Mutable[Scalar], r: Param):
    x = r * x * (1.0 - x)


@hawk.kernel
def spend(x: Scalar, b: Mutable[Scalar], loss: Mutable[Scalar]):
    loss = x * b
    b = b + 100.0


@hawk.kernel
def gather(a: Scalar, s: Mutable[Scalar], out: Mutable[Scalar]):
    s = s + a
    out = a * s


def vec_times(k, v):
    return hm.vec(k[0] * v[0], k[1] * v[1])


@hawk.kernel
def turn(m: Matrix[2, 3], v: Vector[3], k: Param[Vector[2]], w: Mutable[Vector[2]]):
    w = vec_times(k, m @ v)


@hawk.kernel
def shear(m: Mutable[Matrix[2, 2]], k: Param[Matrix[2, 2]]):
    m = k @ m


@hawk.kernel
def climb(x: Scalar, gain: Param, start: Param[Int32], up: Bool, trips: Int32, y: Mutable[Scalar],
          count: Mutable[Int32], high: Mutable[Bool], done: Terminated):  # fmt: skip
    """A loop that ends by its data, under an `if`: planes and params of every type."""
    s = 0.0
    k = start
    for _ in range(trips):
        s += gain * x
        k += 1
        if s > 3.0:
            break
    if up:
        y = s * x
        count = k
    else:
        y = -x
        count = -k
    high = s > 3.0
    done = not up


@hawk.kernel
def keep_larger(x: Scalar, best: Mutable[Scalar]):
    """Assigned on one path only: the other keeps the value in the plane."""
    if x > best:
        best = x * x


@hawk.kernel
def look_up(i: Int32, x: Scalar, values: Table["i":4], y: Mutable[Scalar]):
    y = x * values.at(i=i)


@hawk.kernel
def drift(trips: Param[Int32], x: Scalar, y: Mutable[Scalar]):
    """As long as one likes."""
    s = x
    for _ in range(trips):
        s = hm.sin(s) + x
    y = s


@hawk.kernel
def constant_only(k: Param, y: Mutable[Scalar]):
    y = k
