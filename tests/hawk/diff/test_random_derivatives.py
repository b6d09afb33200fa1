"""Laws of derivatives on random programs."""

import numpy as np
from hawktest.derivatives import Laws, kernel_of
from hawktest.random_programs import SMOOTH, TAME, programs, samples
from hypothesis import given, settings

from hawk.diff import vjp
from hawk.ir.program import Program


def laws(program: Program) -> Laws:
    """By all but the table: at computed indices it is summed over the samples."""
    kernel = kernel_of(program)
    wrt = tuple(name for name in vjp(kernel).wrt if name != "tab")
    return Laws(kernel, samples(kernel.program(), special=0.0), wrt)


@given(programs(TAME))
@settings(max_examples=60)
def test_reverse_is_the_transpose_of_forward(program):
    case = laws(program)
    np.testing.assert_allclose(case.pushed, case.pulled, rtol=1e-9, atol=1e-9)


@given(programs(SMOOTH))
@settings(max_examples=60)
def test_forward_is_the_limit_of_differences_where_a_program_is_smooth(program):
    case = laws(program)
    np.testing.assert_allclose(case.pushed, case.pulled, rtol=1e-9, atol=1e-9)
    for name, expected in case.differences().items():
        np.testing.assert_allclose(case.tangents[name], expected, rtol=1e-5, atol=1e-5)
