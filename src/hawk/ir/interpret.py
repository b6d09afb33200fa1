"""The interpreter: what a program means, by NumPy. Every back end is tested against it, bit for bit.

It runs all samples at once: both regions of an `if` and every trip of a `loop` are computed for all, and
the samples concerned take the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..elementary.numpy_lanes import NumpyLanes
from ..elementary.real_ops import REAL_OPS
from .ops import COMPARISONS
from .program import PER_SAMPLE, Argument, Instr, Program, Role, Value
from .types import Type

Array = NDArray[Any]


def interpret(program: Program, planes: Mapping[str, ArrayLike], real: Type = Type.F64) -> dict[str, Array]:
    """Run `program` over a batch and return what it writes.

    `planes` maps argument names to arrays: shape (*shape, n) per sample, `shape` for a param or a table.
    `real` is the precision of a program not yet specialised. SUM outputs come back per sample (*shape, n):
    the canonical tree that adds them belongs to the launch.
    """
    return _Interpreter(program, planes, real).run()


def _int_floordiv(x: Array, y: Array) -> Array:
    zero = y == 0
    low = (y == -1) & np.array(np.issubdtype(y.dtype, np.signedinteger))
    safe = np.where(zero | low, y.dtype.type(1), y)
    return np.where(zero, y.dtype.type(0), np.where(low, np.negative(x), x // safe))


def _int_mod(x: Array, y: Array) -> Array:
    zero = y == 0
    low = (y == -1) & np.array(np.issubdtype(y.dtype, np.signedinteger))
    safe = np.where(zero | low, y.dtype.type(1), y)
    return np.where(zero, x, np.where(low, y.dtype.type(0), x % safe))


def _shift(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda x, y: function(x, y & y.dtype.type(x.dtype.itemsize * 8 - 1))


# What an op on integers and bools means.
INTEGERS: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "pin": lambda x: x,
    "detach": lambda x: x,
    "abs": np.abs,
    "floordiv": _int_floordiv,
    "mod": _int_mod,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shl": _shift(np.left_shift),
    "shr": _shift(np.right_shift),
    "select": lambda c, x, y: np.asarray(np.where(c, x, y)),
}


def cast(x: Array, target: np.dtype[Any]) -> Array:
    """The op `cast`: real to integer truncates and saturates, NaN is 0; to bool tests != 0."""
    if target == np.bool_:
        return x != 0
    if np.issubdtype(x.dtype, np.floating) and np.issubdtype(target, np.integer):
        info = np.iinfo(target)
        whole = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
        high, low = whole >= float(info.max) + (1.0 if info.max < 2**53 else 0.0), whole <= float(info.min)
        inside = np.where(high | low, 0.0, whole).astype(target)
        return np.where(high, target.type(info.max), np.where(low, target.type(info.min), inside))
    return x.astype(target)


class _Interpreter:
    def __init__(self, program: Program, planes: Mapping[str, ArrayLike], real: Type) -> None:
        self._program = program
        self._real = real
        self._planes = {a.name: np.asarray(planes[a.name]) for a in program.arguments if a.name in planes}
        self._n = self._samples()
        self._env: dict[Value, Array] = {}
        self._mask = np.ones(self._n, bool)
        sizes = {t.capacity: int(self._planes[t.capacity]) for t in program.tapes if isinstance(t.capacity, str)}
        self._tapes = {t.name: np.zeros((t.rows(sizes), self._n), self._dtype(t.type)) for t in program.tapes}
        self._sums = {a.name: np.zeros(a.shape, self._dtype(a.type)) for a in program.arguments
                      if a.role is Role.TABLE_SUM}  # fmt: skip

    def _samples(self) -> int:
        for a in self._program.arguments:
            if a.role in PER_SAMPLE and a.name in self._planes:
                return int(self._planes[a.name].shape[-1])
        return 1

    def _dtype(self, type: Type) -> np.dtype[Any]:
        return (self._real if type is Type.REAL else type).dtype

    def run(self) -> dict[str, Array]:
        for place, value in self._program.inputs:
            argument = self._program.argument(place.argument)
            self._env[value] = self._read(argument, place.component)
        with np.errstate(all="ignore"):
            self._block(self._program.body)
        out: dict[str, Array] = dict(self._sums)
        for place, value in self._program.outputs:
            argument = self._program.argument(place.argument)
            if argument.name not in out:
                out[argument.name] = np.zeros((argument.size, self._n), self._dtype(argument.type))
            out[argument.name][place.component] = self._env[value]
        shapes = {a.name: a.shape for a in self._program.arguments if a.role is not Role.TABLE_SUM}
        return {name: a.reshape(*shapes[name], self._n) if name in shapes else a for name, a in out.items()}

    def _read(self, argument: Argument, component: int) -> Array:
        array = self._planes[argument.name].astype(self._dtype(argument.type), copy=False)
        if argument.role in PER_SAMPLE:
            return array.reshape(argument.size, self._n)[component]
        return np.full(self._n, array.reshape(argument.size)[component])

    def _block(self, body: Sequence[Instr]) -> None:
        for instr in body:
            if instr.op == "if":
                self._if(instr)
            elif instr.op == "loop":
                self._loop(instr)
            elif instr.op == "custom":
                self._env.update(zip(instr.results, [self._env[a] for a in instr.args], strict=False))
            elif instr.op == "scatter":
                index, value = (self._env[a] for a in instr.args)
                target = self._sums[str(instr.attr)].reshape(-1)
                np.add.at(target, self._clamp(index, target.size)[self._mask], value[self._mask])
            elif instr.op == "store":
                index, value = (self._env[a] for a in instr.args)
                tape, columns = self._tapes[str(instr.attr)], np.flatnonzero(self._mask)
                tape[self._clamp(index, len(tape))[columns], columns] = value[columns]
            else:
                self._env[instr.result] = self._scalar(instr, [self._env[a] for a in instr.args])

    def _clamp(self, index: Array, size: int) -> Array:
        return np.clip(index, 0, size - 1)

    def _scalar(self, instr: Instr, args: list[Array]) -> Array:
        dtype = self._dtype(instr.result.type)
        if instr.op == "const":
            return np.full(self._n, instr.attr).astype(dtype)
        if instr.op == "cast":
            return cast(args[0], dtype)
        if instr.op == "sample":
            return np.arange(self._n, dtype=np.int64)
        if instr.op == "load":
            tape = self._tapes[str(instr.attr)]
            return tape[self._clamp(args[0], len(tape)), np.arange(self._n)]
        if instr.op == "most":
            return np.full(self._n, args[0][self._mask].max(initial=0), dtype)
        if instr.op == "table":
            flat = self._planes[str(instr.attr)].astype(dtype, copy=False).reshape(-1)
            return flat[self._clamp(args[0], flat.size)]
        subject = args[1] if instr.op == "select" else args[0]
        if np.issubdtype(subject.dtype, np.floating):
            return REAL_OPS[instr.op](NumpyLanes(subject.dtype.itemsize * 8), *args)
        result = INTEGERS[instr.op](*args)
        return result if instr.op in COMPARISONS else result.astype(dtype, copy=False)

    def _if(self, instr: Instr) -> None:
        condition, outer = self._env[instr.args[0]], self._mask
        for region, mask in zip(instr.regions, (outer & condition, outer & ~condition), strict=True):
            self._mask = mask
            self._block(region.body)
        self._mask = outer
        then, other = instr.regions
        for result, a, b in zip(instr.results, then.yields, other.yields, strict=True):
            self._env[result] = np.where(condition, self._env[a], self._env[b])

    def _loop(self, instr: Instr) -> None:
        limit, again, *carried = (self._env[a] for a in instr.args)
        (region,) = instr.regions
        outer, trips, trip = self._mask, np.zeros(self._n, np.int32), 0
        while True:
            self._mask = outer & again & (trip < limit)
            if not self._mask.any():
                break
            self._env.update(zip(region.params, [np.full(self._n, trip, np.int32), *carried], strict=True))
            self._block(region.body)
            active = self._mask
            more, *following = (self._env[y] for y in region.yields)
            again = np.where(active, more, again)
            carried = [np.where(active, new, old) for new, old in zip(following, carried, strict=True)]
            trips = np.where(active, np.int32(trip + 1), trips)
            trip += 1
        self._mask = outer
        self._env.update(zip(instr.results, [trips, *carried], strict=True))
