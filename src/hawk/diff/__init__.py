"""Derivatives of kernels, as kernels."""

from .derive import ADJOINT_PREFIX, TANGENT_PREFIX, Derivative, Jvp, Vjp, jvp, param_planes, vjp
from .errors import DerivativeError

__all__ = [
    "ADJOINT_PREFIX", "TANGENT_PREFIX", "Derivative", "DerivativeError", "Jvp", "Vjp", "jvp", "param_planes", "vjp",
]  # fmt: skip
