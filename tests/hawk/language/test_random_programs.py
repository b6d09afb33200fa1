"""Random programs of ifs, loops, exits and shared lists mean what they mean in Python."""

import sys
from pathlib import Path

import numpy as np
import pytest

from hawk import math as hm
from hawk.ir.interpret import interpret
from hawk.ir.passes import prepare
from hawk.ir.types import Type
from hawk.language import Int32, Scalar, trace

sys.path.insert(0, str(Path(__file__).parent))
from programs import Programs

X = np.array([-1.5, 0.0, 0.4, 2.0, 3.0])
SEEDS = [  # of programs that the language does not refuse for changing a list that may be another
    3002, 3003, 3005, 3006, 3007, 3008, 3009, 3010, 3011, 3012, 3014, 3015, 3016, 3018, 3019, 3020,
    3021, 3022, 3023, 3025, 3026, 3027, 3028, 3030, 3031, 3032, 3033, 3034, 3035, 3036, 3037, 3038,
    3039, 3040, 3041, 3043, 3044, 3045, 3046, 3047, 3048, 3049, 3050, 3051, 3052, 3053, 3054, 3055,
    3056, 3057, 3059,
]  # fmt: skip
N = np.array([0, 1, 2, 5, 7], np.int32)


def defined(text):
    names = {"Scalar": Scalar, "Int32": Int32, "hm": hm}
    exec(text, names)
    return names["program"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_gives_what_python_gives(agree, seed):
    text = Programs(seed).text()
    with np.errstate(all="ignore"):
        agree(defined(text), text, x=X, n=N)


@pytest.mark.parametrize("real", [Type.F64, Type.F32])
@pytest.mark.parametrize("seed", [4010, 4014, 4024, 4035, 4039, 4060])
def test_a_random_program_has_the_same_bits_unrolled_and_looped(seed, real):
    text = Programs(seed).text().replace("n: Int32", "n: Int32, m: Int32").replace("0.25", "0.3")
    planes = {"x": X, "n": N, "m": np.full(5, 3, np.int32)}
    assert "range(3)" in text
    unrolled, looped = (
        interpret(prepare(trace(defined(t), source=t), real), planes, real)["out"]
        for t in (text, text.replace("range(3)", "range(m)"))
    )
    np.testing.assert_array_equal(unrolled, looped)
