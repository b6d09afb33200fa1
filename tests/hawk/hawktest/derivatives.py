"""Derivatives judged by each other and by differences of the interpreter."""

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hawk.diff import Derivative, jvp, vjp
from hawk.ir.definition import Traced
from hawk.ir.interpret import Array, interpret
from hawk.ir.program import PER_SAMPLE, Argument, Program, Role
from hawk.ir.types import Type
from hawk.ir.verify import verify
from hawk.kernel import Kernel

from .compiled import assert_compiled_as_interpreted

Planes = Mapping[str, ArrayLike]


def kernel_of(program: Program) -> Kernel:
    return Kernel(program.name, Traced(program))


Execute = Callable[[Program, Planes], dict[str, Array]]  # `interpret`, or compiled code


def run(
    derivative: Derivative, planes: Planes, seeds: Planes, real: Type = Type.F64, execute: Execute = interpret
) -> dict[str, Array]:
    """What a derivative writes, by the primal's names; `seeds` are tangents or adjoints by the primal's names too.

    A seed that is not given is zero.
    """
    program = verify(derivative.program(real))
    count = next(np.shape(planes[a.name])[-1] for a in program.arguments if a.role in PER_SAMPLE and a.name in planes)
    given = {derivative.named(name): seed for name, seed in seeds.items()}
    rest = {a.name: np.zeros((*a.shape, count) if a.role in PER_SAMPLE else a.shape, a.type.dtype)
            for a in program.arguments if a.name not in given and a.name not in planes}  # fmt: skip
    written = execute(program, {**rest, **planes, **given})
    back = {derivative.named(a.name): a.name for a in derivative.primal.program(real).arguments}
    return {back[name]: plane for name, plane in written.items() if name in back}


def gradients(
    kernel: Kernel, planes: Planes, wrt: tuple[str, ...] | None = None, **seeds: ArrayLike
) -> dict[str, Array]:
    """The adjoints of the inputs, sample by sample (also of a param); every seed not given is 0."""
    return run(vjp(kernel, wrt), planes, seeds)


def outputs(program: Program) -> list[Argument]:
    written = (Role.MUTABLE, Role.SUM)
    return [a for a in program.arguments if a.role in written and a.type.is_real and a.name in program.writes()]


def _shape(a: Argument, count: int) -> tuple[int, ...]:
    return (*a.shape, count) if a.role in PER_SAMPLE else a.shape


class Laws:
    """A kernel at some planes, along one direction of its inputs and one of its outputs.

    Tables of `wrt` must be read at constant indices alone, so that all is known sample by sample; compiled code
    adds over the samples, so there must be no params in `wrt` at all where it is to `execute`.
    """

    def __init__(
        self,
        kernel: Kernel,
        planes: Planes,
        wrt: tuple[str, ...] | None = None,
        execute: Execute = interpret,
        seed: int = 11,
    ) -> None:
        self._program = kernel.program()
        self._planes = {name: np.asarray(plane) for name, plane in planes.items()}
        self._count = next(self._planes[a.name].shape[-1] for a in self._program.arguments
                           if a.role in PER_SAMPLE and a.name in self._planes)  # fmt: skip
        rng = np.random.default_rng(seed)
        self._kernel, self._wrt, self._execute = kernel, wrt, execute
        forward = jvp(kernel, wrt)
        self._direction = {a.name: rng.normal(size=_shape(a, self._count))
                           for a in self._program.arguments if a.name in forward.wrt}  # fmt: skip
        self._weights = {a.name: rng.normal(size=_shape(a, self._count)) for a in outputs(self._program)}
        self.tangents = run(forward, self._planes, self._direction, execute=execute)

    @cached_property
    def adjoints(self) -> dict[str, Array]:
        return run(vjp(self._kernel, self._wrt), self._planes, self._weights, execute=self._execute)

    @property
    def pushed(self) -> Array:
        """<u, J v>, sample by sample."""
        return self._dot(self.tangents, self._weights)

    @property
    def pulled(self) -> Array:
        """<J^T u, v>, sample by sample."""
        return self._dot(self.adjoints, self._direction)

    def _dot(self, left: Mapping[str, Array], right: Mapping[str, Array]) -> Array:
        """Over the components of every argument; what is one for all samples is the same for each."""
        total = np.zeros(self._count)
        for name in left:
            components = len(self._program.argument(name).shape)
            a, b = (x if x.ndim > components else x[..., None] for x in (left[name], right[name]))
            total = total + (a * b).reshape(-1, self._count).sum(axis=0)
        return total

    def differences(self, step: float = 1e-6) -> dict[str, Array]:
        """Of each output along the direction, central."""
        ends = []
        for sign in (1, -1):
            moved = {name: self._planes[name] + sign * step * v for name, v in self._direction.items()}
            ends.append(self._execute(self._program, self._planes | moved))
        return {name: (ends[0][name] - ends[1][name]) / (2 * step) for name in self._weights}

    def check(self, tolerance: float = 1e-12, by_differences: float = 1e-7) -> None:
        """The laws hold, relative to the largest of the numbers compared (and to 1)."""
        _close(self.pushed, self.pulled, tolerance, "<u, J v> and <J^T u, v>")
        for name, expected in self.differences().items():
            _close(self.tangents[name], expected, by_differences, f"the tangent of {name} and its differences")


def _close(got: Array, expected: Array, tolerance: float, what: str) -> None:
    scale = np.maximum(1.0, np.abs(expected))
    wrong = ~(np.abs(got - expected) <= tolerance * scale)
    assert not wrong.any(), (
        f"{what}: {got[wrong][0]!r} and {expected[wrong][0]!r} in {wrong.sum()} of {wrong.size} places"
    )


def slopes(kernel: Kernel, real: Type = Type.F64, **planes: ArrayLike) -> dict[str, Array]:
    """The derivative of a kernel's result by each real input, one sample apart from another.

    Reverse mode's; forward mode must agree, and compiled code must give the same bits.
    """
    (result,) = kernel.program().returns
    given = {name: np.asarray(plane) for name, plane in planes.items()}
    count = max(plane.shape[-1] for plane in given.values() if plane.ndim)
    reverse, forward = vjp(kernel), jvp(kernel)
    seed = {result: np.ones(count)}
    adjoints = run(reverse, given, seed, real)
    for name, adjoint in adjoints.items():
        shape = adjoint.shape[:-1]
        for k in np.ndindex(shape):
            direction = np.zeros(np.broadcast_shapes(np.shape(given[name])))
            direction[k] = 1.0
            np.testing.assert_allclose(run(forward, given, {name: direction}, real)[result], adjoint[k],
                                       rtol=64 * np.finfo(real.dtype).eps, atol=0)  # fmt: skip
    program = reverse.program(real)
    assert_compiled_as_interpreted(program, given | {reverse.named(result): seed[result]}, (1, 8))
    return adjoints
