"""QR decompositions after changes of rank k, and of inserted or deleted rows and columns.

A changed A₁ = Q₁·R₁ is decomposed anew from Q·R: as accurate as an update by rotations, and as
differentiable as `qr`, but of its cost. For that, Q and R need not be from a decomposition of full
rank, and a new column may lie in the range of Q.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from lapax.linalg._arguments import (
    Array,
    adjoint,
    check_choice,
    check_matrix,
    check_size,
    operation,
    same_batch,
)

__all__ = ["qr_delete", "qr_insert", "qr_update"]


@operation("Q", "R", "u", "v")
def qr_update(
    Q: Array,
    R: Array,
    u: Array,
    v: Array,
    overwrite_qruv: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array]:
    """The decomposition of Q·R + u·vᴴ, as scipy.linalg.qr_update.

    Args:
        Q: [..., m, m], or economic [..., m, n].
        R: [..., m, n], or economic [..., n, n].
        u: [m], or [..., m, k].
        v: [n], or [..., n, k].
        overwrite_qruv: ignored.
        check_finite: ignored.

    Returns:
        Q₁ and R₁ of the shapes of Q and R; R₁'s diagonal may have any sign. Raises ValueError
        where sizes do not match.
    """
    _check_factors("qr_update", Q, R)
    if (u.ndim == 1) != (v.ndim == 1):
        raise ValueError(
            f"qr_update: v: expected as many dimensions as u, got {list(u.shape)} and "
            f"{list(v.shape)}"
        )
    u, v = (x[:, None] if x.ndim == 1 else x for x in (u, v))
    check_matrix("qr_update", u=u, v=v)
    check_size("qr_update", "u", "rows", u.shape[-2], Q.shape[-2])
    check_size("qr_update", "v", "rows", v.shape[-2], R.shape[-1])
    check_size("qr_update", "v", "columns", v.shape[-1], u.shape[-1])
    Q, R, u, v = same_batch("qr_update", Q=(Q, 2), R=(R, 2), u=(u, 2), v=(v, 2))
    return _decomposed(Q @ R + u @ adjoint(v), _is_full(Q))


@operation("Q", "R", "u")
def qr_insert(
    Q: Array,
    R: Array,
    u: Array,
    k: int,
    which: str = "row",
    rcond: float | None = None,
    overwrite_qru: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array]:
    """The decomposition of Q·R with rows or columns inserted, as scipy.linalg.qr_insert.

    Args:
        Q: [..., m, m], or economic [..., m, n].
        R: [..., m, n], or economic [..., n, n].
        u: rows [n] or [..., p, n]; columns [m] or [..., m, p].
        k: the row or column of A before which they are inserted; from the end where negative.
        which: "row" or "col".
        rcond: where columns are inserted into an economic decomposition, the least reciprocal
            condition number of Q and u's columns of norm 1 side by side: below it, NaN. Default:
            none, as any columns are decomposed.
        overwrite_qru: ignored.
        check_finite: ignored.

    Returns:
        Q₁ and R₁, economic where Q is. Raises ValueError where sizes do not match.
    """
    _check_factors("qr_insert", Q, R)
    check_choice("qr_insert", "which", which, ("row", "col"))
    rows = which == "row"
    if u.ndim == 1:
        u = u[None, :] if rows else u[:, None]
    check_matrix("qr_insert", u=u)
    if rows:
        check_size("qr_insert", "u", "columns", u.shape[-1], R.shape[-1])
    else:
        check_size("qr_insert", "u", "rows", u.shape[-2], Q.shape[-2])
    size = Q.shape[-2] if rows else R.shape[-1]
    if not -size <= k <= size:
        raise ValueError(f"qr_insert: k: expected {-size} to {size}, got {k}")
    k = k + size if k < 0 else k
    Q, R, u = same_batch("qr_insert", Q=(Q, 2), R=(R, 2), u=(u, 2))
    a, full = Q @ R, _is_full(Q)
    axis = -2 if rows else -1
    before, after = jnp.split(a, [k], axis=axis)
    q, r = _decomposed(jnp.concatenate([before, u, after], axis=axis), full)
    if full or rows or rcond is None:
        return q, r
    unit = u / jnp.linalg.norm(u, axis=-2, keepdims=True)
    s = jnp.linalg.svd(jnp.concatenate([Q, unit], axis=-1), compute_uv=False)
    lost = (s[..., -1] < rcond * s[..., 0])[..., None, None]
    return jnp.where(lost, jnp.nan, q), jnp.where(lost, jnp.nan, r)


@operation("Q", "R")
def qr_delete(
    Q: Array,
    R: Array,
    k: int,
    p: int = 1,
    which: str = "row",
    overwrite_qr: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array]:
    """The decomposition of Q·R without p rows or columns from k on, as scipy.linalg.qr_delete.

    Args:
        Q: [..., m, m], or economic [..., m, n].
        R: [..., m, n], or economic [..., n, n].
        k: the first row or column of A that is deleted; from the end where negative.
        p: how many.
        which: "row" or "col".
        overwrite_qr: ignored.
        check_finite: ignored.

    Returns:
        Q₁ and R₁, economic where Q is. Raises ValueError where there are no p from k on, or an
        economic decomposition would have fewer rows than columns.
    """
    _check_factors("qr_delete", Q, R)
    check_choice("qr_delete", "which", which, ("row", "col"))
    rows = which == "row"
    size = Q.shape[-2] if rows else R.shape[-1]
    first = k + size if k < 0 else k
    if p < 1 or not 0 <= first <= size - p:
        raise ValueError(f"qr_delete: k, p: expected p ≥ 1 of {size} from k on, got k {k}, p {p}")
    full = _is_full(Q)
    if rows and not full and size - p < R.shape[-1]:
        raise ValueError(
            f"qr_delete: p: expected at least {R.shape[-1]} rows to be left of {size}, got p {p}"
        )
    Q, R = same_batch("qr_delete", Q=(Q, 2), R=(R, 2))
    kept = jnp.concatenate([jnp.arange(first), jnp.arange(first + p, size)])
    a = Q[..., kept, :] @ R if rows else Q @ R[..., kept]
    return _decomposed(a, full)


def _check_factors(function: str, Q: Array, R: Array) -> None:
    check_matrix(function, Q=Q, R=R)
    check_size(function, "R", "rows", R.shape[-2], Q.shape[-1])
    if not _is_full(Q) and (Q.shape[-1] != R.shape[-1] or Q.shape[-2] < Q.shape[-1]):
        raise ValueError(
            f"{function}: Q, R: expected shapes [..., m, m] and [..., m, n], or [..., m, n] and "
            f"[..., n, n] with m ≥ n, got {list(Q.shape)} and {list(R.shape)}"
        )


def _is_full(Q: Array) -> bool:
    return bool(Q.shape[-2] == Q.shape[-1])


def _decomposed(a: Array, full: bool) -> tuple[Array, Array]:
    q, r = jax.lax.linalg.qr(a, full_matrices=full)
    return q, r
