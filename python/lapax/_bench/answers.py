"""Residual ratios of the answers of the `jax` rows, as `lapax.check` has those of targets.

Each takes the operands and the results of a function and gives one ratio per matrix.
"""

from __future__ import annotations

import numpy as np

from lapax._checks import CHECKS
from lapax._checks.equations import Array, adjoint, norm, roundoff, scaled, wide

Arrays = tuple[Array, ...]


def unitary(q: Array, like: Array) -> Array:
    """‖QᴴQ − I‖."""
    k = q.shape[-1]
    return scaled(adjoint(q) @ q - np.eye(k), np.ones(q.shape[:-2]), max(q.shape[-2:]), like)


def recomposed(a: Array, product: Array) -> Array:
    """‖product − A‖ / ‖A‖."""
    return scaled(product - wide(a), norm(wide(a)), max(a.shape[-2:]), a)


def lu_factor(args: Arrays, rets: list[Array]) -> Array:
    """P·A = L·U."""
    lu, pivots = rets
    info = np.zeros(lu.shape[:-2], np.int32)
    return CHECKS["getrf"].ratios(args, {}, [lu, pivots + 1, info])


def cholesky(args: Arrays, rets: list[Array]) -> Array:
    """A = L·Lᴴ, zero above the diagonal."""
    factor = wide(rets[0])
    upper = np.abs(np.triu(factor, 1)).max((-2, -1), initial=0.0)
    return np.where(upper == 0, recomposed(args[0], factor @ adjoint(factor)), np.inf)


def solution(a: Array, x: Array, b: Array, like: Array) -> Array:
    """A·X = B."""
    error = wide(a) @ wide(x) - wide(b)
    return scaled(error, norm(wide(a)) * norm(wide(x)), a.shape[-1], like)


def inverse(args: Arrays, rets: list[Array]) -> Array:
    """A·X = I."""
    (a,) = args
    return solution(a, rets[0], np.broadcast_to(np.eye(a.shape[-1]), a.shape), a)


def relative(a: Array, error: Array) -> Array:
    """A relative error over n·κ₁(A)·u."""
    condition = norm(wide(a)) * norm(np.linalg.inv(wide(a)))
    return np.asarray(np.abs(error) / (a.shape[-1] * condition * roundoff(a)))


def determinant(args: Arrays, rets: list[Array]) -> Array:
    """det overflows single precision where slogdet does not: equal infinities are no error."""
    sign, logarithm = np.linalg.slogdet(wide(args[0]))
    with np.errstate(over="ignore"):
        found, expected = rets[0], (sign * np.exp(logarithm)).astype(rets[0].dtype)
    beyond = ~np.isfinite(expected) & ~np.isfinite(found)
    tiny = np.finfo(found.dtype).tiny
    beyond |= (np.abs(expected) < tiny) & (np.abs(found) < tiny)
    error = wide(found) * sign.conj() * np.exp(-logarithm) - 1
    return np.where(beyond, 0, relative(args[0], error))


def slogdet(args: Arrays, rets: list[Array]) -> Array:
    """The sign, and the logarithm relative to the larger one of it and 1."""
    sign, logarithm = np.linalg.slogdet(wide(args[0]))
    error = np.maximum(np.abs(rets[0] - sign), np.abs(rets[1] - logarithm))
    return relative(args[0], error / np.maximum(1, np.abs(logarithm)))


def qr(args: Arrays, rets: list[Array]) -> Array:
    """A = Q·R."""
    q, r = map(wide, rets)
    return np.maximum(recomposed(args[0], q @ np.triu(r)), unitary(q, args[0]))


def eigh(args: Arrays, rets: list[Array]) -> Array:
    """A = V·W·Vᴴ."""
    w, v = map(wide, rets)
    product = (v * w[..., None, :]) @ adjoint(v)
    return np.maximum(recomposed(args[0], product), unitary(v, args[0]))


def svd(args: Arrays, rets: list[Array]) -> Array:
    """A = U·S·Vᴴ."""
    u, s, vh = map(wide, rets)
    product = recomposed(args[0], (u * s[..., None, :]) @ vh)
    return np.maximum(product, np.maximum(unitary(u, args[0]), unitary(adjoint(vh), args[0])))


def values(a: Array, found: Array, expected: Array) -> Array:
    """The largest distance of sorted values over ‖A‖."""
    error = np.abs(np.sort(found, -1) - np.sort(expected, -1)).max(-1)
    return np.asarray(error / (max(a.shape[-2:]) * norm(wide(a)) * roundoff(a)))


def eigvalsh(args: Arrays, rets: list[Array]) -> Array:
    """Beside NumPy's, in double precision."""
    return values(args[0], wide(rets[0]), np.linalg.eigvalsh(wide(args[0])))


def svdvals(args: Arrays, rets: list[Array]) -> Array:
    """Beside NumPy's, in double precision."""
    return values(args[0], wide(rets[0]), np.linalg.svd(wide(args[0]), compute_uv=False))


def traces(a: Array, w: Array) -> Array:
    """tr A and tr A² are the sums of the eigenvalues and of their squares."""
    matrix, ratio = wide(a), np.zeros(a.shape[:-2])
    for power, product in ((1, matrix), (2, matrix @ matrix)):
        error = np.abs(np.trace(product, axis1=-2, axis2=-1) - (w**power).sum(-1))
        scale = a.shape[-1] * norm(matrix) ** power * roundoff(a)
        ratio = np.maximum(ratio, error / scale)
    return ratio


def eig(args: Arrays, rets: list[Array]) -> Array:
    """A·V = V·W, columns of norm one."""
    (a,), (w, v) = args, [x.astype(np.complex128) for x in rets]
    unit = np.abs(np.linalg.norm(v, axis=-2) - 1).max(-1) <= 16 * a.shape[-1] * roundoff(a)
    error = scaled(wide(a) @ v - v * w[..., None, :], norm(wide(a)), a.shape[-1], a)
    return np.where(unit, np.maximum(error, traces(a, w)), np.inf)


def similar(args: Arrays, middle: Array, q: Array) -> Array:
    """A = Q·middle·Qᴴ."""
    product = wide(q) @ wide(middle) @ adjoint(wide(q))
    return np.maximum(recomposed(args[0], product), unitary(wide(q), args[0]))


def tridiagonal_solution(args: Arrays, rets: list[Array]) -> Array:
    """Row by row: lower·x₋ + middle·x + upper·x₊ = b."""
    lower, middle, upper, b = map(wide, args)
    x = wide(rets[0])
    product = middle[..., None] * x
    product[..., 1:, :] += lower[..., 1:, None] * x[..., :-1, :]
    product[..., :-1, :] += upper[..., :-1, None] * x[..., 1:, :]
    size = (np.abs(lower) + np.abs(middle) + np.abs(upper)).max(-1)
    return scaled(product - b, size * norm(x), 1, args[0])


def gradient(args: Arrays, rets: list[Array]) -> Array:
    """d(sum x): b̄ = A⁻ᵀ·1 and Ā = −b̄·xᵀ."""
    (a, b), (a_bar, b_bar) = args, rets
    x = np.linalg.solve(wide(a), wide(b))
    back = solution(a.swapaxes(-1, -2), b_bar, np.ones_like(b), a)
    outer = -wide(b_bar) @ x.swapaxes(-1, -2)
    error = norm(wide(a_bar) - outer) / norm(outer)
    return np.maximum(back, relative(a, error))
