"""The canonical sum, written again in NumPy."""

import numpy as np
from numpy.typing import ArrayLike

BLOCK = 256


def ordered_sum(values: np.ndarray) -> np.floating:
    """Blocks of 256, short ones padded with -0.0 and halved; then neighbouring blocks in pairs, level by level."""
    values = np.asarray(values)
    blocks = []
    for first in range(0, len(values), BLOCK):
        block = np.full(BLOCK, -0.0, values.dtype)
        part = values[first : first + BLOCK]
        block[: len(part)] = part
        while len(block) > 1:
            block = block[: len(block) // 2] + block[len(block) // 2 :]
        blocks.append(block[0])
    while len(blocks) > 1:
        pairs = [a + b for a, b in zip(blocks[0::2], blocks[1::2], strict=False)]
        blocks = pairs + blocks[2 * len(pairs) :]
    return blocks[0] if blocks else values.dtype.type(0)


def bits(result: ArrayLike) -> bytes:
    """What has to be equal when two results have the same bits: -0.0 is not 0.0."""
    array = np.asarray(result)
    return array.dtype.str.encode() + repr(array.shape).encode() + np.ascontiguousarray(array).tobytes()
