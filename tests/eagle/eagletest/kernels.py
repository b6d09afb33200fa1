"""The kernels of eagle's tests. Few, and each plan is made once: compiling takes most of the tests' time."""

# mypy: ignore-errors
# What annotates a kernel's arguments is no type.

from functools import cache

import eagle
import hawk
from eagle.plan import Plan
from hawk import Bool, Int32, Matrix, Mutable, Param, Scalar, Table, Terminated, Vector, samples_first
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
def add_components(v: Vector[2], y: Mutable[Scalar]):
    y = v[0] + v[1]


@hawk.kernel
def endless(x: Scalar, y: Mutable[Scalar]):
    """A loop without a stated cap has no derivative."""
    s = x
    while s < 10.0:
        s = s * 2.0
    y = s


@hawk.kernel
def cubic(x: Scalar, a: Param, y: Mutable[Scalar]):
    y = a * x * x * x


@hawk.kernel
def by_rows(v: samples_first(Vector[3]), w: Mutable[samples_first(Vector[3])]):
    w = hm.sin(v) * v[0]


@hawk.kernel
def count_on(n: Int32, m: Mutable[Int32], y: Mutable[Scalar]):
    m = n + 1
    y = 1.0


@hawk.kernel
def judge(x: Scalar, m: Mutable[Bool]):
    m = x > 0.0


def new_kernel(factor):
    """A kernel that nobody has compiled or differentiated."""

    @hawk.kernel
    def fresh(x: Scalar, a: Param, y: Mutable[Scalar]):
        y = a * hm.sin(x) + factor * hm.tanh(x)

    return fresh
