"""Laws of derivatives on random programs."""

import numpy as np
from hawktest.derivatives import Laws, kernel_of
from hawktest.random_programs import SMOOTH, TAME, programs, samples
from hypothesis import given, settings

from hawk.diff import jvp, vjp
from hawk.kernel import Kernel


def laws(kernel: Kernel) -> Laws:
    """By all but the table: at computed indices it is summed over the samples."""
    wrt = tuple(name for name in jvp(kernel).wrt if "tab" not in name)
    return Laws(kernel, samples(kernel.program(), special=0.0), wrt)


def check_differences(case: Laws) -> None:
    for name, expected in case.differences().items():
        np.testing.assert_allclose(case.tangents[name], expected, rtol=1e-5, atol=1e-5)


@given(programs(TAME))
@settings(max_examples=60)
def test_reverse_is_the_transpose_of_forward(program):
    case = laws(kernel_of(program))
    np.testing.assert_allclose(case.pushed, case.pulled, rtol=1e-9, atol=1e-9)


@given(programs(SMOOTH))
@settings(max_examples=60)
def test_forward_is_the_limit_of_differences_where_a_program_is_smooth(program):
    case = laws(kernel_of(program))
    np.testing.assert_allclose(case.pushed, case.pulled, rtol=1e-9, atol=1e-9)
    check_differences(case)


@given(programs(SMOOTH))
@settings(max_examples=25)
def test_second_derivatives_of_both_orders(program):
    """vjp(jvp) is the transpose of jvp(jvp), which is a limit of differences; so is jvp(vjp)."""
    kernel = kernel_of(program)
    tangents = laws(Kernel("tangents", jvp(kernel)))
    np.testing.assert_allclose(tangents.pushed, tangents.pulled, rtol=1e-8, atol=1e-8)
    check_differences(tangents)
    check_differences(laws(Kernel("adjoints", vjp(kernel, ("x", "y", "p")))))
