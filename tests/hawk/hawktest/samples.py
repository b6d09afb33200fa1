"""Numbers that show what ordinary ones hide."""

import numpy as np

from hawk.ir.interpret import Array
from hawk.ir.types import Type


def special_reals(real: Type) -> Array:
    """Zeros, infinities, NaN, subnormals, the ends of the range, halfway cases, both signs."""
    info = np.finfo(real.dtype)
    least, tiny, most, eps = (float(v) for v in (info.smallest_subnormal, info.tiny, info.max, info.eps))
    halves = [0.5, 0.5 - eps / 4, 1.5, 2.5, 1 / eps + 0.5, 0.5 / eps + 0.5, 0.5 / eps + 1]
    values = [0.0, 1.0, 1 + eps, 1 - eps / 2, 3.0, 0.1, least, tiny, tiny - least, most, most / 2, eps, *halves]
    values += [2.0**31, 2.0**31 - 1, 2.0**32, 2.0**63, 2.0**53, 700.0, 20.0, 1.5707963267948966, np.inf, np.nan]
    with np.errstate(over="ignore"):
        return np.array([s * v for v in values for s in (1.0, -1.0)]).astype(real.dtype)


def special_integers(type: Type) -> Array:
    """The ends of the range, small numbers of both signs, the widths of shifts, bit patterns."""
    info = np.iinfo(type.dtype)
    low, high = int(info.min), int(info.max)
    values = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 100, high, high - 1, high // 2, low, low + 1, 0x5555AAAA]
    values += [-1, -2, -3, -7, -32, -100, 2**24 + 1, 2**53 + 1, -(2**31)]
    return np.array(sorted({v for v in values if low <= v <= high}), type.dtype)


def special_values(type: Type) -> Array:
    if type is Type.BOOL:
        return np.array([False, True])
    return special_reals(type) if type.is_real else special_integers(type)


def mixed(type: Type, count: int, rng: np.random.Generator) -> Array:
    """`count` samples: half of them special, the others random of every size."""
    special = rng.choice(special_values(type), count)
    if type is Type.BOOL:
        return special
    if type.is_real:
        info = np.finfo(type.dtype)
        size = rng.uniform(0.7 * info.minexp, 0.7 * info.maxexp, count) * rng.choice([0.02, 1.0], count)
        random = (np.exp2(size) * rng.choice([-1.0, 1.0], count)).astype(type.dtype)
    else:
        info = np.iinfo(type.dtype)
        random = rng.integers(info.min, info.max, count, type.dtype, endpoint=True)
        random = random >> rng.integers(0, info.bits, count).astype(type.dtype)
    return np.where(rng.random(count) < 0.5, special, random)
