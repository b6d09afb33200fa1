"""Kernels: a per-sample step by name, from source or as the derivative of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, final, overload

from .ir.definition import Definition, Traced
from .ir.printer import text
from .ir.program import Program, Role
from .ir.types import precision
from .ir.verify import verify
from .language import trace
from .stages import show


@dataclass(frozen=True, slots=True)
class Stepping:
    """What a run knows of a step: how many steps a launch takes, its time plane and its time step."""

    steps: int | str = 1
    time: str | None = None
    time_step: str | None = None


@final
class Kernel:
    """A numerical step for one sample, to be built for a precision and run over batches.

    Made by ``@hawk.kernel`` from a function, or as ``Kernel(name, vjp(other))`` from a derivative;
    ``Kernel(name, other)`` is another kernel under a new name.

    Attributes: ``name``; ``definition``, where its program comes from; ``__wrapped__``, the Python function
    (None for a derivative, and for a kernel that was pickled).

    A kernel pickles as its IR, so it needs none of its Python function where it is unpickled.
    """

    def __init__(
        self,
        name: str,
        definition: Definition | Kernel,
        function: Callable[..., Any] | None = None,
        stepping: Stepping = Stepping(),
    ) -> None:
        if isinstance(definition, Kernel):
            function, stepping, definition = definition.__wrapped__, definition.stepping, definition.definition
        if not isinstance(definition, Definition):
            raise TypeError(
                f"Kernel({name!r}, ...): expected a derivative such as hawk.diff.vjp(kernel), found "
                f"{type(definition).__name__}; to make a kernel of a function, decorate it with @hawk.kernel"
            )
        if not name.isidentifier():
            raise ValueError(f"Kernel({name!r}, ...): a kernel's name is a Python identifier")
        self.name = name
        self.definition: Definition = definition
        self.stepping: Stepping = stepping
        self.plans: dict[str, Any] = {}  # what a runtime compiled of it, by mode
        self._call: Callable[[tuple[object, ...], Mapping[str, object]], Any] | None = None
        self.__wrapped__: Callable[..., Any] | None = function
        self.__doc__ = function.__doc__ if function is not None else None

    def __call__(self, *values: object, **named: object) -> Any:
        """Run the kernel on arrays like a function: ``y = scale(x, 2.0, 1.0)``.

        Values come in the order of the arguments, or by name. Inputs may be anything that NumPy makes an array of
        numbers from. One of an argument's own shape (a number for a Scalar, three for a Vector[3]) is the same for
        all samples; if no input has a sample axis, no result has one. An output is allocated, or written in place
        if an array is given for it; one that the kernel reads first has to be given.

        Returns what the kernel returns, or else the outputs that were not given: one array, a tuple of several in
        argument order, or None. Sums over the samples (of a derivative) have no sample axis.

        The arrays of reals say the precision, float64 or float32; without any it is float64. Each is compiled at
        its first call. Raises the errors of eagle's ``Plan.bind``, ArgumentError for what is no number, PlaneError
        for values that do not fit and for arrays of both precisions.
        """
        if self._call is None:
            if not _RUNTIMES:
                import_module("eagle")
            self._call = _RUNTIMES[-1](self)
        return self._call(values, named)

    def program(self, mode: str = "float64") -> Program:
        """The kernel's IR for ``mode`` ("float64" or "float32")."""
        return self.definition.program(precision(mode)).with_(name=self.name)

    def __repr__(self) -> str:
        arguments = ", ".join(a.name for a in self._first_program().arguments)
        return f"<hawk kernel {self.name}({arguments})>"

    def __str__(self) -> str:
        return text(self._first_program())

    def __reduce__(self) -> tuple[Any, ...]:
        return Kernel, (self.name, self.definition, None, self.stepping), {"__doc__": self.__doc__}

    def _first_program(self) -> Program:
        return self.definition.program(self.definition.precisions[0]).with_(name=self.name)


Runtime = Callable[[Kernel], Callable[[tuple[object, ...], Mapping[str, object]], Any]]
_RUNTIMES: list[Runtime] = []  # a runtime registers itself when it is imported


def runs_calls(runtime: Runtime) -> Runtime:
    """Register what runs ``kernel(...)``: of a kernel it makes a function of the values in order and those by name."""
    _RUNTIMES.append(runtime)
    return runtime


@overload
def kernel(function: Callable[..., Any]) -> Kernel: ...
@overload
def kernel(
    *,
    name: str | None = None,
    source: str | None = None,
    steps: int | str = 1,
    time: str | None = None,
    time_step: str | None = None,
) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    source: str | None = None,
    steps: int | str = 1,
    time: str | None = None,
    time_step: str | None = None,
) -> Any:
    """Make a kernel of a function of one sample.

    The function is read (not run) when it is decorated; every argument is annotated: ``Scalar``,
    ``Vector[n]``, ``Param``, ``Mutable[...]`` and so on. Globals and closure variables are taken as
    constants, as they are at that moment.

    `name` is the kernel's, the function's own by default. `source` is the function's text where Python keeps
    none (code run by ``exec``, or typed at a prompt).

    `steps`, `time` and `time_step` are for runs: how many steps a run may take at a time (a number or
    ``"auto"``; the results are those of 1), the Mutable that holds the time, and the Param that is its step,
    which a run needs to stop between two steps.

    Raises KernelError, with file, line and what to write instead, for what the language cannot say, and
    ValueError for a `time` or `time_step` that is no such argument.
    """
    stepping = Stepping(steps, time, time_step)
    if function is None:
        return lambda f: _traced(f, name, source, stepping)
    return _traced(function, name, source, stepping)


def _traced(function: Callable[..., Any], name: str | None, source: str | None, stepping: Stepping) -> Kernel:
    program = verify(trace(function, name, source))
    _check_stepping(program, stepping)
    show("traced", program.name, lambda: text(program))
    return Kernel(program.name, Traced(program), function, stepping)


def _check_stepping(program: Program, stepping: Stepping) -> None:
    steps = stepping.steps
    if steps != "auto" and (not isinstance(steps, int) or isinstance(steps, bool) or steps < 1):
        raise ValueError(f"{program.name}: steps={steps!r}; give a number of steps >= 1, or 'auto'")
    for option, wanted, what in (("time", Role.MUTABLE, "Mutable[Scalar]"), ("time_step", Role.PARAM, "Param")):
        name = stepping.time if option == "time" else stepping.time_step
        if name is None:
            continue
        found = [a for a in program.arguments if a.name == name and a.role is wanted and not a.shape and a.type.is_real]
        if not found:
            choices = ", ".join(a.name for a in program.arguments if a.role is wanted) or "none"
            raise ValueError(f"{program.name}: {option}={name!r} is no {what} of the kernel; it has {choices}")
    if (stepping.time is None) != (stepping.time_step is None):
        raise ValueError(f"{program.name}: time= and time_step= go together; name both or neither")
