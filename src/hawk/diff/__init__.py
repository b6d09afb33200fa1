"""Derivatives of kernels, as kernels."""

from .derive import ADJOINT_PREFIX, TANGENT_PREFIX, Derivative, Jvp, Vjp, jvp, vjp
from .errors import DerivativeError

__all__ = [
    "ADJOINT_PREFIX", "TANGENT_PREFIX", "Derivative", "DerivativeError", "Jvp", "Vjp", "jvp", "vjp",
]  # fmt: skip
