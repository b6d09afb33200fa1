"""Random numbers keyed by sample, seed and counters."""

import numpy as np
import pytest

from hawk import math as hm
from hawk.ir.interpret import interpret
from hawk.ir.types import Type
from hawk.language import Int32, KernelError, Param, Scalar, UInt32, Vector, trace
from hawk.language.random import philox

# The known answers of the authors' Random123 library: counter words, key words, random words.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((2**32 - 1,) * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_the_known_answers(counter, key, words):
    assert philox(counter, key) == words

    def k(
        a: UInt32, b: UInt32, c: UInt32, d: UInt32, k0: Param[UInt32], k1: Param[UInt32]
    ) -> tuple[UInt32, UInt32, UInt32, UInt32]:
        return philox((a, b, c, d), (k0, k1))

    planes = {name: np.array([word], np.uint32) for name, word in zip("abcd", counter, strict=True)}
    planes |= {"k0": np.uint32(key[0]), "k1": np.uint32(key[1])}
    out = interpret(trace(k), planes)
    assert tuple(int(out[f"out{i}"][0]) for i in range(4)) == words


def draws(function, n, real=Type.F64, **planes):
    return interpret(trace(function), {"x": np.zeros(n), **planes}, real)["out"]


@pytest.mark.parametrize("real", [Type.F64, Type.F32])
def test_the_first_moments(real):
    def k(x: Scalar) -> Vector[2]:
        return hm.vec(x + hm.random.uniform(7, 1), hm.random.normal(2**40 + 3))

    u, z = draws(k, 20000, real)
    assert u.min() >= 0
    assert u.max() < 1
    np.testing.assert_allclose([u.mean(), u.var(), z.mean(), z.var()], [0.5, 1 / 12, 0, 1], atol=0.02)
    assert abs(np.corrcoef(u, z)[0, 1]) < 0.03
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.03


def test_samples_seeds_and_counters_tell_draws_apart():
    def k(x: Scalar, seed: Param[Int32], step: Int32) -> Vector[4]:
        first = hm.random.uniform(seed, step, 0)
        return hm.vec(first, hm.random.uniform(seed, step, 1), hm.random.uniform(seed, step + 1), x)

    step = np.array([0, 0, 1, -1], np.int32)
    out = draws(k, 4, seed=np.int32(5), step=step)
    again = draws(k, 4, seed=np.int32(5), step=step)
    other = draws(k, 4, seed=np.int32(6), step=step)
    np.testing.assert_array_equal(out, again)
    assert len({*out[:3].ravel().tolist(), *other[:3].ravel().tolist()}) == 24

    def fixed(x: Scalar) -> Scalar:
        return x + hm.random.uniform(5, 0, 1)

    np.testing.assert_array_equal(draws(fixed, 2), out[1, :2])


def test_mistakes():
    with pytest.raises(KernelError, match="call it inside a kernel"):
        hm.random.uniform(1)

    def real_seed(x: Scalar) -> Scalar:
        return hm.random.uniform(x)

    def many(x: Scalar) -> Scalar:
        return hm.random.normal(1, 2, 3, 4) + x

    with pytest.raises(KernelError, match="a seed or counter is a whole number, not a real"):
        trace(real_seed)
    with pytest.raises(KernelError, match="at most two"):
        trace(many)
