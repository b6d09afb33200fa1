"""The machine operations that elementary functions are written in.

An elementary function is ordinary Python over a `Lanes`: `def exp(m: Lanes, x): ...`. The same text is
evaluated by NumPy (`numpy_lanes.NumpyLanes`: the interpreter and the tests) and emitted as LLVM vector IR
(`hawk.codegen`: CPU lanes and GPU threads), so all of them give the same bits. Every operation here
rounds once and as IEEE 754 says; none may be contracted or reassociated.

A lane value is of one of three kinds: a real of the working precision, an integer of the same width
(i64 beside float64, i32 beside float32; two's complement, wrapping), or a mask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

V = Any  # a lane value of the implementation
Numbers = Sequence[float] | Sequence[int]


class Lanes(ABC):
    """One precision, some number of lanes. `bits` is 64 or 32."""

    bits: int

    # constants
    @abstractmethod
    def real(self, number: float) -> V:
        """`number` (a double) rounded once to the working precision, in every lane."""

    @abstractmethod
    def int(self, number: int) -> V: ...

    # real -> real
    @abstractmethod
    def add(self, x: V, y: V) -> V: ...
    @abstractmethod
    def sub(self, x: V, y: V) -> V: ...
    @abstractmethod
    def mul(self, x: V, y: V) -> V: ...
    @abstractmethod
    def div(self, x: V, y: V) -> V: ...
    @abstractmethod
    def fma(self, x: V, y: V, z: V) -> V:
        """x*y + z, rounded once."""

    @abstractmethod
    def neg(self, x: V) -> V: ...
    @abstractmethod
    def abs(self, x: V) -> V: ...
    @abstractmethod
    def sqrt(self, x: V) -> V: ...
    @abstractmethod
    def rint(self, x: V) -> V:
        """To the nearest integer, ties to even."""

    @abstractmethod
    def floor(self, x: V) -> V: ...
    @abstractmethod
    def ceil(self, x: V) -> V: ...
    @abstractmethod
    def trunc(self, x: V) -> V: ...
    @abstractmethod
    def copysign(self, x: V, y: V) -> V: ...

    # real, real -> mask; false when either is NaN, but for ne
    @abstractmethod
    def lt(self, x: V, y: V) -> V: ...
    @abstractmethod
    def le(self, x: V, y: V) -> V: ...
    @abstractmethod
    def eq(self, x: V, y: V) -> V: ...
    @abstractmethod
    def ne(self, x: V, y: V) -> V: ...

    def gt(self, x: V, y: V) -> V:
        return self.lt(y, x)

    def ge(self, x: V, y: V) -> V:
        return self.le(y, x)

    # masks
    @abstractmethod
    def both(self, a: V, b: V) -> V: ...
    @abstractmethod
    def either(self, a: V, b: V) -> V: ...
    @abstractmethod
    def no(self, a: V) -> V: ...
    @abstractmethod
    def select(self, mask: V, chosen: V, other: V) -> V:
        """For two reals or two integers."""

    # bits and integers
    @abstractmethod
    def to_bits(self, x: V) -> V:
        """The integer with the bits of a real."""

    @abstractmethod
    def from_bits(self, i: V) -> V: ...
    @abstractmethod
    def to_int(self, x: V) -> V:
        """A real truncated to an integer; the result is unspecified when it does not fit (never a trap)."""

    @abstractmethod
    def to_real(self, i: V) -> V:
        """A signed integer rounded to the nearest real."""

    @abstractmethod
    def iadd(self, i: V, j: V) -> V: ...
    @abstractmethod
    def isub(self, i: V, j: V) -> V: ...
    @abstractmethod
    def imul(self, i: V, j: V) -> V: ...
    @abstractmethod
    def iand(self, i: V, j: V) -> V: ...
    @abstractmethod
    def ior(self, i: V, j: V) -> V: ...
    @abstractmethod
    def ixor(self, i: V, j: V) -> V: ...
    @abstractmethod
    def shl(self, i: V, j: V) -> V:
        """Shift left; 0 <= j < bits."""

    @abstractmethod
    def lshr(self, i: V, j: V) -> V:
        """Logical shift right."""

    @abstractmethod
    def ashr(self, i: V, j: V) -> V:
        """Arithmetic shift right."""

    @abstractmethod
    def ieq(self, i: V, j: V) -> V: ...
    @abstractmethod
    def ilt(self, i: V, j: V) -> V:
        """Signed i < j."""

    # memory and control
    @abstractmethod
    def lookup(self, table: Numbers, index: V) -> V:
        """Element `index` of a constant table (reals if it holds floats, integers if it holds ints).

        The index must be inside the table in every lane.
        """

    @abstractmethod
    def rare(self, mask: V, usual: V, slow: Callable[[], V]) -> V:
        """`slow()` in the lanes of `mask`, `usual` in the others; skipped when no lane needs it.

        The lanes outside `mask` must be harmless inside `slow` (no table index out of range).
        """

    # another precision
    @abstractmethod
    def wide(self) -> Lanes:
        """The float64 lanes beside float32 ones, for functions computed in double and rounded once."""

    @abstractmethod
    def widen(self, x: V) -> V:
        """A float32 lane value as a value of `wide()`; exact."""

    @abstractmethod
    def narrow(self, x: V) -> V:
        """A value of `wide()` rounded to float32."""

    # helpers for everyone
    def poly(self, x: V, coefficients: Sequence[float]) -> V:
        """Horner with fma; coefficients from the highest power down."""
        result = self.real(coefficients[0])
        for c in coefficients[1:]:
            result = self.fma(result, x, self.real(c))
        return result
