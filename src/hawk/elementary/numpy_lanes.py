"""Lanes evaluated by NumPy: the interpreter's arithmetic, and the elementary functions' own tests.

Every operation is IEEE 754 arithmetic on arrays (any shape, broadcast together) and gives the bits that
compiled lanes give. NumPy has no fused multiply-add, so it is built here from error-free transforms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, final

import numpy as np

from .lanes import Lanes, V

Table = Sequence[float] | Sequence[int]
_SPLITTER = float(2**27 + 1)  # Dekker's constant: halves a double into two of 26 bits


def _two_sum(x: Any, y: Any) -> tuple[Any, Any]:
    """x + y as a rounded sum and its exact error (Knuth)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _two_product(x: Any, y: Any) -> tuple[Any, Any]:
    """x * y as a rounded product and its exact error (Dekker), while nothing over- or underflows."""
    product = x * y
    scaled = _SPLITTER * x
    x_high = scaled - (scaled - x)
    x_low = x - x_high
    scaled = _SPLITTER * y
    y_high = scaled - (scaled - y)
    y_low = y - y_high
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, error


def _add_to_odd(x: Any, y: Any) -> Any:
    """x + y rounded to odd: an inexact sum gets an odd last bit, so that rounding it again is harmless."""
    total, error = _two_sum(x, y)
    bits = total.view(np.int64)
    away = np.where((error > 0) == (total > 0), 1, -1)
    move = (error != 0) & np.isfinite(error) & (bits & 1 == 0)
    return np.where(move, bits + away, bits).view(np.float64)


def _exact_fma(x: float, y: float, z: float) -> float:
    """x*y + z rounded once, for finite numbers that are not zero."""
    value = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        size = abs(value.numerator) / value.denominator  # Python divides integers with one rounding
    except OverflowError:
        size = float("inf")
    return -size if value < 0 else size  # an exact zero is +0, an underflow keeps its sign


def _fma64(x: Any, y: Any, z: Any) -> Any:
    """Boldo & Melquiond, "Emulation of a FMA and correctly rounded sums" (IEEE TC 57, 2008), fig. 3.

    Its proof wants that no partial result over- or underflows; other elements are done one by one.
    """
    x, y, z = (np.asarray(a, order="C") for a in np.broadcast_arrays(x, y, z))
    high, low = _two_product(x, y)
    top, top_error = _two_sum(z, low)
    total, total_error = _two_sum(high, top)
    result = total + _add_to_odd(top_error, total_error)

    product = x * y
    zero = (x == 0) | (y == 0)
    special = ~(np.isfinite(x) & np.isfinite(y) & np.isfinite(z))
    result = np.where(zero | special, product + z, result)
    result = np.where(np.isfinite(x) & np.isfinite(y) & ~np.isfinite(z), z, result)
    result = np.where((z == 0) & ~zero & ~special, product, result)

    x_size, y_size, z_size = np.abs(x), np.abs(y), np.abs(z)
    size = np.abs(product)
    calm = (x_size < 2.0**990) & (y_size < 2.0**990) & (size > 2.0**-900) & (size < 2.0**1000)
    calm &= (z_size < 2.0**1000) & (z_size > 2.0**-900)
    (odd_ones,) = np.nonzero((~calm & ~zero & ~special & (z != 0)).ravel())
    if odd_ones.size:
        flat = result.ravel()
        for i in odd_ones:
            flat[i] = _exact_fma(float(x.flat[i]), float(y.flat[i]), float(z.flat[i]))
        result = flat.reshape(result.shape)
    return result


def _fma32(x: Any, y: Any, z: Any) -> Any:
    """The product is exact in double, and a double rounded to odd has bits enough to be rounded again."""
    x, y, z = (a.astype(np.float64) for a in np.broadcast_arrays(x, y, z))
    return _add_to_odd(x * y, z).astype(np.float32)


@final
class NumpyLanes(Lanes):
    """Lanes of NumPy arrays: float64 with int64 (`bits` 64), or float32 with int32 (`bits` 32)."""

    def __init__(self, bits: int) -> None:
        if bits not in (64, 32):
            raise ValueError(f"bits={bits!r}: lanes are 64 or 32 bits wide")
        self.bits = bits
        self._real: type[np.floating[Any]] = np.float64 if bits == 64 else np.float32
        self._int: type[np.signedinteger[Any]] = np.int64 if bits == 64 else np.int32

    def real(self, number: float) -> V:
        with np.errstate(all="ignore"):
            return self._real(number)

    def int(self, number: int) -> V:
        half = 1 << (self.bits - 1)
        return self._int((number + half) % (2 * half) - half)

    def add(self, x: V, y: V) -> V:
        with np.errstate(all="ignore"):
            return x + y

    def sub(self, x: V, y: V) -> V:
        with np.errstate(all="ignore"):
            return x - y

    def mul(self, x: V, y: V) -> V:
        with np.errstate(all="ignore"):
            return x * y

    def div(self, x: V, y: V) -> V:
        with np.errstate(all="ignore"):
            return x / y

    def fma(self, x: V, y: V, z: V) -> V:
        with np.errstate(all="ignore"):
            return _fma64(x, y, z) if self.bits == 64 else _fma32(x, y, z)

    def neg(self, x: V) -> V:
        return -x

    def abs(self, x: V) -> V:
        return np.abs(x)

    def sqrt(self, x: V) -> V:
        with np.errstate(all="ignore"):
            return np.sqrt(x)

    def rint(self, x: V) -> V:
        with np.errstate(all="ignore"):
            return np.rint(x)

    def floor(self, x: V) -> V:
        with np.errstate(all="ignore"):
            return np.floor(x)

    def ceil(self, x: V) -> V:
        with np.errstate(all="ignore"):
            return np.ceil(x)

    def trunc(self, x: V) -> V:
        with np.errstate(all="ignore"):
            return np.trunc(x)

    def copysign(self, x: V, y: V) -> V:
        return np.copysign(x, y)

    def lt(self, x: V, y: V) -> V:
        with np.errstate(all="ignore"):
            return x < y

    def le(self, x: V, y: V) -> V:
        with np.errstate(all="ignore"):
            return x <= y

    def eq(self, x: V, y: V) -> V:
        with np.errstate(all="ignore"):
            return x == y

    def ne(self, x: V, y: V) -> V:
        with np.errstate(all="ignore"):
            return x != y

    def both(self, a: V, b: V) -> V:
        return a & b

    def either(self, a: V, b: V) -> V:
        return a | b

    def no(self, a: V) -> V:
        return ~a

    def select(self, mask: V, chosen: V, other: V) -> V:
        return np.where(mask, chosen, other)

    def to_bits(self, x: V) -> V:
        return np.asarray(x, order="C").view(self._int)

    def from_bits(self, i: V) -> V:
        return np.asarray(i, order="C").view(self._real)

    def to_int(self, x: V) -> V:
        with np.errstate(all="ignore"):
            return x.astype(self._int)

    def to_real(self, i: V) -> V:
        return i.astype(self._real)

    def iadd(self, i: V, j: V) -> V:
        with np.errstate(all="ignore"):
            return i + j

    def isub(self, i: V, j: V) -> V:
        with np.errstate(all="ignore"):
            return i - j

    def imul(self, i: V, j: V) -> V:
        with np.errstate(all="ignore"):
            return i * j

    def iand(self, i: V, j: V) -> V:
        return i & j

    def ior(self, i: V, j: V) -> V:
        return i | j

    def ixor(self, i: V, j: V) -> V:
        return i ^ j

    def shl(self, i: V, j: V) -> V:
        return i << j

    def lshr(self, i: V, j: V) -> V:
        unsigned: Any = np.uint64 if self.bits == 64 else np.uint32
        return (np.asarray(i).astype(unsigned) >> np.asarray(j).astype(unsigned)).astype(self._int)

    def ashr(self, i: V, j: V) -> V:
        return i >> j

    def ieq(self, i: V, j: V) -> V:
        return i == j

    def ilt(self, i: V, j: V) -> V:
        return i < j

    def lookup(self, table: Table, index: V) -> V:
        kind: Any = self._real if isinstance(table[0], float) else self._int
        return np.asarray(table, dtype=kind)[index]

    def rare(self, mask: V, usual: V, slow: Callable[[], V]) -> V:
        return np.where(mask, slow(), usual) if np.any(mask) else usual

    def wide(self) -> NumpyLanes:
        return NumpyLanes(64)

    def widen(self, x: V) -> V:
        with np.errstate(all="ignore"):
            return x.astype(np.float64)

    def narrow(self, x: V) -> V:
        with np.errstate(all="ignore"):
            return x.astype(np.float32)
