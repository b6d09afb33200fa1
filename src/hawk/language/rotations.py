"""Quaternions (w, x, y, z) as vectors of 4."""

from __future__ import annotations

from typing import Any

from .bundles import Bundle, as_bundle, dot, find_span, shape_name, vec
from .errors import KernelError
from .linear import cross


def _parts(q: Any, what: str) -> tuple[Any, Any]:
    """The scalar part and the vector part."""
    q = as_bundle(q)
    if not isinstance(q, Bundle) or q.shape != (4,):
        shape = q.shape if isinstance(q, Bundle) else ()
        raise KernelError(f"{what} of {shape_name(shape)}", "a quaternion is a Vector[4]: w, x, y, z", find_span(q))
    return q[0], q[1:]


def qmul(p: Any, q: Any) -> Bundle:
    """The Hamilton product: the rotation `q`, then the rotation `p`."""
    a, u = _parts(p, "qmul")
    b, v = _parts(q, "qmul")
    return vec(a * b - dot(u, v), a * v + b * u + cross(u, v))


def qconj(q: Any) -> Bundle:
    """The conjugate: the inverse rotation of a unit quaternion."""
    w, u = _parts(q, "qconj")
    return vec(w, -u)


def qrotate(q: Any, v: Any) -> Bundle:
    """`v`, a vector of 3, rotated by the unit quaternion `q`: v + 2w (u x v) + 2 u x (u x v)."""
    w, u = _parts(q, "qrotate")
    t = 2.0 * cross(u, v)
    return as_bundle(v) + w * t + cross(u, t)
