"""Random programs of ifs, loops and exits mean what they mean in Python."""

import sys
from pathlib import Path

import numpy as np
import pytest

from hawk import math as hm
from hawk.language import Int32, Scalar

sys.path.insert(0, str(Path(__file__).parent))
from programs import Programs


@pytest.mark.parametrize("seed", range(60))
def test_a_random_program_gives_what_python_gives(agree, seed):
    text = Programs(seed).text()
    names = {"Scalar": Scalar, "Int32": Int32, "hm": hm}
    exec(text, names)
    x = np.array([-1.5, 0.0, 0.4, 2.0, 3.0])
    n = np.array([0, 1, 2, 5, 7], np.int32)
    with np.errstate(all="ignore"):
        agree(names["program"], text, x=x, n=n)
