"""Calling a program's compiled launch entry on arrays, as `interpret` runs it."""

import ctypes
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from hawk.codegen.compile import Entry, host_compiler
from hawk.codegen.frame import BLOCK, slots, tape_bytes
from hawk.ir.interpret import Array, interpret
from hawk.ir.program import PER_SAMPLE, Argument, Program, Role

WIDTHS = (1, 2, 4, 8, 16, 32)
GUARD = 3  # samples beyond the range, which an entry must leave alone


class _Address(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("stride", ctypes.c_int64)]


def launch(
    program: Program, planes: Mapping[str, ArrayLike], width: int, first: int = 0, entry: Entry | None = None
) -> dict[str, Array]:
    """What the launch entry writes, `width` lanes at a time; SUM outputs are those of one block.

    Planes have the shapes `interpret` takes. Every written plane gets room for a few more samples, which must
    come back untouched.
    """
    arrays = {a.name: np.asarray(planes[a.name]).astype(a.type.dtype) for a in program.arguments if a.name in planes}
    count = next((arrays[a.name].shape[-1] for a in program.arguments if a.role in PER_SAMPLE and a.name in arrays), 1)
    used, written = [], {}
    for slot in slots(program):
        a = slot.argument
        if slot.writes:
            plane = written[a.name] = _target(a, count)
        else:
            plane = np.ascontiguousarray(arrays[a.name]).reshape(a.size, -1)
        used.append(plane)
    sizes = {t.capacity: int(arrays[t.capacity]) for t in program.tapes if isinstance(t.capacity, str)}
    scratch = np.full(tape_bytes(program, width, sizes) + GUARD, 0x5A, np.uint8)
    if program.tapes:
        used.append(scratch)
    addresses = (_Address * len(used))(*(_Address(plane.ctypes.data, plane.strides[0]) for plane in used))
    entry = entry or host_compiler().launch_entry(program, width=width)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(entry.address)
    call(ctypes.addressof(addresses), count, first)
    assert (scratch[-GUARD:] == 0x5A).all(), "written beyond the tapes"
    return {name: _checked(program.argument(name), plane, count) for name, plane in written.items()}


def _target(a: Argument, count: int) -> Array:
    """Where an entry writes: sums of tables start at zero, everything else at something to be overwritten."""
    if a.role is Role.TABLE_SUM:
        return np.zeros((a.size, 1), a.type.dtype)
    return np.full((a.size, 1 if a.role is Role.SUM else count + GUARD), _other(a), a.type.dtype)


def _other(a: Argument) -> int:
    return 1 if a.type.dtype == np.bool_ else 77


def _checked(a: Argument, plane: Array, count: int) -> Array:
    if a.role in (Role.SUM, Role.TABLE_SUM):
        return plane.reshape(a.shape)
    assert (plane[:, count:] == _other(a)).all(), f"{a.name}: written beyond the range"
    return plane[:, :count].reshape(*a.shape, count)


def block_sum(values: Array) -> Array:
    """The canonical sum of at most a block of values, over the last axis."""
    padded = np.full((*values.shape[:-1], BLOCK), -0.0, values.dtype)
    padded[..., : values.shape[-1]] = values
    while padded.shape[-1] > 1:
        half = padded.shape[-1] // 2
        with np.errstate(all="ignore"):
            padded = padded[..., :half] + padded[..., half:]
    return padded[..., 0]


def differences(got: Array, expected: Array) -> Array:
    """Where two arrays of one dtype differ in their bits; any NaN is as good as another."""
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if got.dtype.kind != "f":
        return got != expected
    whole = np.dtype(f"i{got.dtype.itemsize}")
    same = np.ascontiguousarray(got).view(whole) == np.ascontiguousarray(expected).view(whole)
    return ~(same | (np.isnan(got) & np.isnan(expected)))


def assert_same_bits(got: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    assert got.keys() == expected.keys()
    for name, array in got.items():
        wrong = np.argwhere(np.atleast_1d(differences(array, expected[name])))
        assert not wrong.size, (
            f"{name} differs in {len(wrong)} of {array.size} places, first at {wrong[0]}: "
            f"{np.atleast_1d(array)[tuple(wrong[0])]!r} instead of {np.atleast_1d(expected[name])[tuple(wrong[0])]!r}"
        )


def assert_compiled_as_interpreted(program: Program, planes: Mapping[str, ArrayLike], widths: tuple[int, ...]) -> None:
    """Compiled code gives the interpreter's bits at every width.

    Of several scatters the interpreter does one after the other for all samples, compiled code group by group:
    sums of tables are compared within rounding.
    """
    expected = interpret(program, planes)
    tables = {a.name: expected.pop(a.name) for a in program.arguments if a.role is Role.TABLE_SUM}
    for a in program.arguments:
        if a.role is Role.SUM:
            expected[a.name] = block_sum(expected[a.name])
    for width in widths:
        got = launch(program, planes, width)
        for name, sums in tables.items():
            eps = np.finfo(sums.dtype).eps
            np.testing.assert_allclose(got.pop(name), sums, rtol=64 * eps, atol=64 * eps)
        assert_same_bits(got, expected)
