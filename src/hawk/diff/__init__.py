"""Derivatives of kernels, as kernels."""

from .derive import ADJOINT_PREFIX, TANGENT_PREFIX, Derivative, Jvp, Vjp, adjoint_name, jvp, tangent_name, vjp
from .errors import DerivativeError

__all__ = [
    "ADJOINT_PREFIX", "TANGENT_PREFIX", "Derivative", "DerivativeError", "Jvp", "Vjp", "adjoint_name", "jvp",
    "tangent_name", "vjp",
]  # fmt: skip
