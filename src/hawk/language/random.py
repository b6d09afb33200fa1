"""Random numbers in a kernel, from a counter: the same whatever ran before, on any machine and thread.

Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a keyed
mixing of 128 bits, here of the sample's place in the batch and up to two counters that the kernel gives.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..ir.types import Type
from .calls import builtin
from .errors import KernelError
from .structure import name_of
from .tracer import Tracer
from .values import Traced, apply, cast, operate, plain, where

_WORD = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


def uniform(seed: Any, *counters: Any) -> NoReturn:
    """A number uniform in [0, 1), its own for each sample, seed and counters.

    `seed` is a whole number (up to 64 bits) or an int that the kernel computes; up to two counters (a step, the
    number of the draw) tell the draws of one sample apart. Its derivative is zero.
    """
    _outside("uniform")


def normal(seed: Any, *counters: Any) -> NoReturn:
    """A standard normal number (Box and Muller, 1958) of the same kind as `uniform`."""
    _outside("normal")


def _outside(name: str) -> NoReturn:
    raise KernelError(f"hm.random.{name} depends on the sample", "call it inside a kernel")


@builtin(uniform)
def _uniform(t: Tracer, seed: Any, *counters: Any) -> Any:
    words = _words(t, seed, counters)
    return _fraction(words[0], words[1])


@builtin(normal)
def _normal(t: Tracer, seed: Any, *counters: Any) -> Any:
    words = _words(t, seed, counters)
    radius = apply("sqrt", operate("*", -2.0, apply("log1p", apply("neg", _fraction(words[0], words[1])))))
    angle = operate("*", 6.283185307179586, _fraction(words[2], words[3]))
    return operate("*", radius, apply("cos", angle))


def _words(t: Tracer, seed: Any, counters: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(counters) > 2:
        raise KernelError(f"{len(counters)} counters", "at most two tell the draws of a sample apart")
    place = Traced(t.builder, t.builder.emit("sample", (), (Type.I64,))[0])
    first, second = [*map(_whole, counters), 0, 0][:2]
    seed = _whole(seed)
    key = (_low(seed), _high(seed))
    return philox((_low(place), _high(place), _low(first), _low(second)), key)


def _whole(x: Any) -> Any:
    x = plain(x)
    if isinstance(x, Traced):
        if x.type.is_int:
            return x
    elif isinstance(x, int) and not isinstance(x, bool):
        return int(x)
    raise KernelError(f"a seed or counter is a whole number, not {name_of(x)}", "cast it with hm.int32(...)")


def philox(counter: tuple[Any, ...], key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Four random words of four counter words and two key words; words are uint32 or Python ints."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        left, right = _product(_MULTIPLIERS[0], a), _product(_MULTIPLIERS[1], c)
        a, b, c, d = (
            operate("^", operate("^", _high(right), b), k0),
            _low(right),
            operate("^", operate("^", _high(left), d), k1),
            _low(left),
        )
        k0, k1 = _low(operate("+", k0, _WEYL[0])), _low(operate("+", k1, _WEYL[1]))
    return a, b, c, d


def _product(factor: int, word: Any) -> Any:
    """The 64-bit product; traced, its bits stand in an int64."""
    return operate("*", cast(word, Type.I64) if isinstance(word, Traced) else word, factor)


def _low(x: Any) -> Any:
    return cast(x, Type.U32) if isinstance(x, Traced) else x & _WORD


def _high(x: Any) -> Any:
    if not isinstance(x, Traced):
        return x >> 32 & _WORD
    return cast(operate(">>", x, 32), Type.U32) if x.type is Type.I64 else 0


def _fraction(a: Any, b: Any) -> Any:
    """53 random bits as a number in [0, 1); where the kernel's precision would round it to 1, its first 24."""
    low_bits = operate("|", operate("<<", operate("&", a, 0xFF), 21), operate(">>", b, 11))
    high = operate("*", cast(operate(">>", a, 8), Type.REAL), 2.0**-24)
    whole = operate("+", high, operate("*", cast(low_bits, Type.REAL), 2.0**-53))
    return where(operate("<", whole, 1.0), whole, high)
