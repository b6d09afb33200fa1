"""Kernels: a per-sample step by name, from source or as the derivative of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final, overload

from .ir.definition import Definition, Traced
from .ir.printer import text
from .ir.program import Program
from .ir.types import precision
from .ir.verify import verify
from .language import trace
from .stages import show


@final
class Kernel:
    """A numerical step for one sample, to be built for a precision and run over batches.

    Made by ``@hawk.kernel`` from a function, or as ``Kernel(name, vjp(other))`` from a derivative.

    Attributes: ``name``; ``definition``, where its program comes from; ``__wrapped__``, the Python function
    (None for a derivative, and for a kernel that was pickled).

    A kernel pickles as its IR, so it needs none of its Python function where it is unpickled.
    """

    def __init__(self, name: str, definition: Definition, function: Callable[..., Any] | None = None) -> None:
        if not isinstance(definition, Definition):
            raise TypeError(
                f"Kernel({name!r}, ...): expected a derivative such as hawk.diff.vjp(kernel), found "
                f"{type(definition).__name__}; to make a kernel of a function, decorate it with @hawk.kernel"
            )
        if not name.isidentifier():
            raise ValueError(f"Kernel({name!r}, ...): a kernel's name is a Python identifier")
        self.name = name
        self.definition = definition
        self.__wrapped__ = function
        self.__doc__ = function.__doc__ if function is not None else None

    def program(self, mode: str = "float64") -> Program:
        """The kernel's IR for ``mode`` ("float64" or "float32")."""
        return self.definition.program(precision(mode)).with_(name=self.name)

    def __repr__(self) -> str:
        arguments = ", ".join(a.name for a in self._first_program().arguments)
        return f"<hawk kernel {self.name}({arguments})>"

    def __str__(self) -> str:
        return text(self._first_program())

    def __reduce__(self) -> tuple[Any, ...]:
        return Kernel, (self.name, self.definition), {"__doc__": self.__doc__}

    def _first_program(self) -> Program:
        return self.definition.program(self.definition.precisions[0]).with_(name=self.name)


@overload
def kernel(function: Callable[..., Any]) -> Kernel: ...
@overload
def kernel(*, name: str | None = None, source: str | None = None) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(
    function: Callable[..., Any] | None = None, *, name: str | None = None, source: str | None = None
) -> Any:
    """Make a kernel of a function of one sample.

    The function is read (not run) when it is decorated; every argument is annotated: ``Scalar``,
    ``Vector[n]``, ``Param``, ``Mutable[...]`` and so on. Globals and closure variables are taken as
    constants, as they are at that moment.

    `name` is the kernel's, the function's own by default. `source` is the function's text where Python keeps
    none (code run by ``exec``, or typed at a prompt).

    Raises KernelError, with file, line and what to write instead, for what the language cannot say.
    """
    if function is None:
        return lambda f: _traced(f, name, source)
    return _traced(function, name, source)


def _traced(function: Callable[..., Any], name: str | None, source: str | None) -> Kernel:
    program = verify(trace(function, name, source))
    show("traced", program.name, lambda: text(program))
    return Kernel(program.name, Traced(program), function)
