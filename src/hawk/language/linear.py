"""Small linear algebra on vectors and matrices, unrolled while tracing."""

from __future__ import annotations

import functools
from typing import Any

from .bundles import Bundle, as_bundle, elementwise, find_span, shape_name
from .errors import KernelError
from .values import apply, as_real, operate, where

Rows = list[list[Any]]


def _vector(x: Any, what: str, length: int | None = None) -> Bundle:
    x = as_bundle(x)
    if not isinstance(x, Bundle) or len(x.shape) != 1 or length not in (None, x.shape[0]):
        shape = x.shape if isinstance(x, Bundle) else ()
        wanted = "a vector" if length is None else f"a Vector[{length}]"
        raise KernelError(f"{what} of {shape_name(shape)}", f"it takes {wanted}", find_span(x))
    return x


def _square(x: Any, what: str) -> Rows:
    x = as_bundle(x)
    if not isinstance(x, Bundle) or len(x.shape) != 2 or x.shape[0] != x.shape[1]:
        shape = x.shape if isinstance(x, Bundle) else ()
        raise KernelError(f"{what} of {shape_name(shape)}", "it takes a square matrix", find_span(x))
    return [[as_real(item) for item in row.items] for row in x]


def _matrix(rows: Rows) -> Bundle:
    return Bundle((len(rows), len(rows[0])), tuple(item for row in rows for item in row))


def cross(a: Any, b: Any) -> Bundle:
    """The cross product of two vectors of 3."""
    x, y = _vector(a, "cross", 3).items, _vector(b, "cross", 3).items
    pairs = ((1, 2), (2, 0), (0, 1))
    return Bundle((3,), tuple(_minor(x[i], x[j], y[i], y[j]) for i, j in pairs))


def _minor(a: Any, b: Any, c: Any, d: Any) -> Any:
    """a*d - b*c."""
    return operate("-", operate("*", a, d), operate("*", b, c))


def hypot(*sides: Any) -> Any:
    """sqrt of the sum of squares, scaled so that nothing over- or underflows; its derivative at 0 is 0."""
    if len(sides) < 2:
        raise KernelError(f"hypot takes two or more numbers, got {len(sides)}", "for a vector write hm.norm(v)")
    return functools.reduce(lambda x, y: elementwise(functools.partial(apply, "hypot"), x, y), sides)


def norm(v: Any) -> Any:
    """The Euclidean length of a vector, by `hypot`: no overflow inside, derivative 0 at the origin."""
    items = _vector(v, "norm").items
    return apply("abs", as_real(items[0])) if len(items) == 1 else hypot(*items)


def outer(a: Any, b: Any) -> Bundle:
    """The matrix of products a[i] * b[j]."""
    x, y = _vector(a, "outer").items, _vector(b, "outer").items
    return _matrix([[operate("*", p, q) for q in y] for p in x])


def transpose(m: Any) -> Bundle:
    """The transpose of a matrix."""
    m = as_bundle(m)
    if not isinstance(m, Bundle):
        raise KernelError("transpose of a scalar", "it takes a matrix")
    return m.T


def det(m: Any) -> Any:
    """The determinant: by cofactors up to 3 x 3, by elimination with partial pivoting above."""
    a = _square(m, "det")
    if len(a) == 1:
        return a[0][0]
    if len(a) == 2:
        return _minor(a[0][0], a[0][1], a[1][0], a[1][1])
    if len(a) == 3:
        x, y, z = a
        minors = cross(tuple(y), tuple(z)).items
        terms = [operate("*", p, q) for p, q in zip(x, minors, strict=True)]
        return functools.reduce(functools.partial(operate, "+"), terms)
    sign = _eliminate(a)
    return functools.reduce(functools.partial(operate, "*"), [a[k][k] for k in range(len(a))], sign)


def _eliminate(rows: Rows) -> Any:
    """Bring the square part of `rows` to upper triangular form in place; the sign of the row exchanges.

    Partial pivoting by selects: every exchange is a choice between values, so nothing depends on the data.
    """
    n, sign = len(rows), 1.0
    for k in range(n):
        for r in range(k + 1, n):
            larger = operate(">", apply("abs", rows[r][k]), apply("abs", rows[k][k]))
            sign = where(larger, operate("*", sign, -1.0), sign)
            for c in range(k, len(rows[k])):
                top, low = rows[k][c], rows[r][c]
                rows[k][c], rows[r][c] = where(larger, low, top), where(larger, top, low)
        for r in range(k + 1, n):
            factor = operate("/", rows[r][k], rows[k][k])
            for c in range(k + 1, len(rows[k])):
                rows[r][c] = operate("-", rows[r][c], operate("*", factor, rows[k][c]))
    return sign


def solve(m: Any, b: Any) -> Bundle:
    """The solution x of m @ x = b; `b` is a vector or a matrix of columns.

    Elimination with partial pivoting, unrolled; a singular matrix gives inf or NaN.
    """
    a, right = _square(m, "solve"), as_bundle(b)
    if not isinstance(right, Bundle) or right.shape[0] != len(a):
        shape = right.shape if isinstance(right, Bundle) else ()
        raise KernelError(f"solve of a Matrix[{len(a)}, {len(a)}] and {shape_name(shape)}", "", find_span(m, b))
    flat = len(right.shape) == 1
    columns = [[as_real(x)] for x in right.items] if flat else [[as_real(x) for x in row.items] for row in right]
    rows = [[*left, *column] for left, column in zip(a, columns, strict=True)]
    _eliminate(rows)
    n = len(rows)
    for c in range(n, len(rows[0])):
        for k in reversed(range(n)):
            rest = rows[k][c]
            for j in range(k + 1, n):
                rest = operate("-", rest, operate("*", rows[k][j], rows[j][c]))
            rows[k][c] = operate("/", rest, rows[k][k])
    solution = _matrix([row[n:] for row in rows])
    return Bundle((n,), solution.items) if flat else solution


def inv(m: Any) -> Bundle:
    """The inverse: closed form up to 2 x 2, else the solution for the columns of the identity."""
    a = _square(m, "inv")
    n = len(a)
    if n == 1:
        return _matrix([[operate("/", 1.0, a[0][0])]])
    if n == 2:
        (p, q), (r, s) = a
        d = _minor(p, q, r, s)
        minus = functools.partial(operate, "-", 0.0)
        return _matrix([[operate("/", x, d) for x in row] for row in ((s, minus(q)), (minus(r), p))])
    return solve(m, _matrix([[float(i == j) for j in range(n)] for i in range(n)]))
