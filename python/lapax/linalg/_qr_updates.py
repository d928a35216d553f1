"""QR decompositions after changes of rank k, and of inserted or deleted rows and columns.

A₁ = Q₁·R₁ comes from A = Q·R by rotations of neighbouring rows of R and columns of Q, after Daniel,
Gragg, Kaufman and Stewart, "Reorthogonalization and stable algorithms for updating the Gram-Schmidt
QR factorization" (Math. Comp. 30, 1976), and Golub and Van Loan, "Matrix computations", 6.5. A
rotation takes a time proportional to m + n, and there are for each row, column or unit of rank as
many as R has rows or columns, or twice as many.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax import _jax_private
from lapax._settings import own_settings
from lapax.linalg._arguments import (
    Array,
    adjoint,
    check_choice,
    check_matrix,
    check_size,
    operation,
    same_batch,
)
from lapax.linalg._targets import by_target

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

    Square matrices of order up to 32 are decomposed anew; their derivative is that of `qr`, and not
    finite where R₁ is singular. Else the derivatives of all three functions are those of the
    rotations. A pair of zeros is not rotated, and has no derivative: it is taken for one that
    stays.

    Cost: O(m·n·k).

    >>> abs(qr_update(eye(1), array([[3.]]), array([2.]), array([1.]))[1])  # [[5]]
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
    (rows, n), full = R.shape[-2:], _is_full(Q)

    def by_one(x: Array, change: Any) -> Array:
        u, v = change
        if not full:
            x = _extended(x, _orthogonal(x[..., n:], u)[0])
        height = x.shape[-2]
        x = jnp.concatenate([x, x[..., n:] @ u[..., None]], -1)
        x = _rotated(x, *_upward(height, x.shape[-1] - 1))
        r = x[..., :n].at[..., 0, :].add(x[..., 0, -1:] * jnp.conj(v))
        x = jnp.concatenate([r, x[..., n:-1]], -1)
        return _rotated(x, *_downward(height, n, 1))[..., :rows, :]

    if not rows or not n:
        return Q, R
    if rows == n == Q.shape[-2] <= _ANEW:
        return _decomposed(Q @ R + u @ adjoint(v))
    return _apart(_each(by_one, _beside(Q, R), tuple(jnp.moveaxis(y, -1, 0) for y in (u, v))), n)


@operation("Q", "R", "u", jit=False)
def qr_insert(
    Q: Array,
    R: Array,
    u: Array,
    k: int | Array,
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
        k: the row or column of A before which they are inserted; from the end where negative. It
            may be traced, or an array [...], one for each matrix.
        which: "row" or "col".
        rcond: where columns are inserted into an economic decomposition, the least reciprocal
            condition number of Q and a column of norm 1 beside it: below it, NaN. Default: none, as
            any columns are decomposed.
        overwrite_qru: ignored.
        check_finite: ignored.

    Returns:
        Q₁ and R₁, economic where Q is; NaN where a k that is traced, or one of an array, is no
        place. Raises ValueError where sizes do not match.

    The derivative is that of the rotations, as of `qr_update`. Cost: O(m·n) for each row or column.

    >>> abs(qr_insert(eye(1), array([[3.]]), array([4.]), 1)[1])  # [[5], [0]]
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
    if jnp.ndim(k):
        insert = functools.partial(qr_insert, which=which, rcond=rcond)
        return _at_each(lambda k, Q, R, u: insert(Q, R, u, k), k, Q, R, u)
    size = Q.shape[-2] if rows else R.shape[-1]
    first, is_place = _place("qr_insert", k, size, size)
    if is_place is False:
        raise ValueError(f"qr_insert: k: expected {-size} to {size}, got {k}")
    Q, R, u = same_batch("qr_insert", Q=(Q, 2), R=(R, 2), u=(u, 2))
    if rows:
        return _unless_out(is_place, _with_rows(Q, R, u, first))
    return _unless_out(is_place, _with_columns(Q, R, u, first, rcond))


@operation("Q", "R", jit=False)
def qr_delete(
    Q: Array,
    R: Array,
    k: int | Array,
    p: int = 1,
    which: str = "row",
    overwrite_qr: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array]:
    """The decomposition of Q·R without p rows or columns from k on, as scipy.linalg.qr_delete.

    Args:
        Q: [..., m, m], or economic [..., m, n].
        R: [..., m, n], or economic [..., n, n].
        k: the first row or column of A that is deleted; from the end where negative. It may be
            traced, or an array [...], one for each matrix.
        p: how many.
        which: "row" or "col".
        overwrite_qr: ignored.
        check_finite: ignored.

    Returns:
        Q₁ and R₁, economic where Q is, and with a square Q₁ where fewer rows than columns are left;
        NaN where there are no p from a traced k on. Raises ValueError where there are no p from k
        on.

    The derivative is that of the rotations, as of `qr_update`. Cost: O(m·n) for each row or column.

    >>> abs(qr_delete(eye(2), diag(array([2., 3])), 1, which="col")[1])  # [[2], [0]]
    """
    _check_factors("qr_delete", Q, R)
    check_choice("qr_delete", "which", which, ("row", "col"))
    if jnp.ndim(k):
        delete = functools.partial(qr_delete, p=p, which=which)
        return _at_each(lambda k, Q, R: delete(Q, R, k), k, Q, R)
    rows = which == "row"
    size = Q.shape[-2] if rows else R.shape[-1]
    first, is_place = _place("qr_delete", k, size, size - p)
    if p < 1 or p > size or is_place is False:
        raise ValueError(f"qr_delete: k, p: expected p ≥ 1 of {size} from k on, got k {k}, p {p}")
    Q, R = same_batch("qr_delete", Q=(Q, 2), R=(R, 2))
    without = _without_rows if rows else _without_columns
    return _unless_out(is_place, without(Q, R, first, p))


_ANEW = 32
"""The order up to which a square matrix is decomposed anew: a rotation is several loops.

f64, us by rotations and anew, two cores of Zen 5: 1000 of order 3 101 and 63, 1000 of 8 711 and
260, 300 of 16 472 and 281, 100 of 24 557 and 242, of 32 1189 and 387, 50 of 48 707 and 755; one of
32 40 and 37."""


@jax.custom_jvp
def _decomposed(a: Array) -> tuple[Array, Array]:
    q, r = _qr(a)
    return q, r


@_decomposed.defjvp
@own_settings()
def _(primals: tuple[Array], tangents: tuple[Array]) -> Any:
    """dQ = Q·Ω and dR = (M − Ω)·R with M = Qᴴ·dA·R⁻¹ and the skew Ω that has M's lower triangle.

    Source: Walter, Lehmann and Lamour, arXiv:1009.6112.
    """
    (a,), (da,) = primals, tangents
    q, r = _decomposed(a)
    m = adjoint(q) @ jax.lax.linalg.triangular_solve(r, da)
    below = jnp.tril(m, -1)
    turn = below - adjoint(below) + jnp.eye(a.shape[-1], dtype=m.dtype) * (m - m.real)
    return (q, r), (q @ turn, jnp.triu(m - turn) @ r)


def _written_out(a: Array) -> tuple[Array, Array]:
    q, r = jnp.linalg.qr(a)
    return q, r


_qr = by_target("qr", _written_out, like=None)


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


def _at_each(function: Callable[..., Any], k: Any, *matrices: Array) -> tuple[Array, Array]:
    """Results of (k, *matrices) for each of an array of places."""
    k = jnp.asarray(k)
    batch = np.broadcast_shapes(k.shape, *(x.shape[:-2] for x in matrices))
    same = [jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in matrices]
    flat = [x.reshape(-1, *x.shape[-2:]) for x in same]
    q, r = jax.vmap(function)(jnp.broadcast_to(k, batch).ravel(), *flat)
    return q.reshape(*batch, *q.shape[1:]), r.reshape(*batch, *r.shape[1:])


def _place(function: str, k: Any, size: int, last: int) -> tuple[Any, Any]:
    """k counted from the front, and whether it is from 0 to `last`: a bool unless k is traced."""
    if not isinstance(k, jax.core.Tracer):
        k = operator.index(k)
        first = k + size if k < 0 else k
        return first, 0 <= first <= last
    if k.ndim or not jnp.issubdtype(k.dtype, jnp.integer):
        raise ValueError(f"{function}: k: expected an integer, got {k.dtype} {list(k.shape)}")
    first = jnp.where(k < 0, k + size, k)
    return first, (first >= 0) & (first <= last)


def _unless_out(is_place: Any, factors: tuple[Array, Array]) -> tuple[Array, Array]:
    """NaN where k is no place."""
    if is_place is True:
        return factors
    q, r = (jnp.where(is_place, x, jnp.nan) for x in factors)
    return q, r


@jax.jit
def _with_rows(Q: Array, R: Array, u: Array, first: Any) -> tuple[Array, Array]:
    (m, height), n, p, full = Q.shape[-2:], R.shape[-1], u.shape[-2], _is_full(Q)
    # The new rows are the first of R, and the last of Q until the end.
    batch = Q.shape[:-2]
    zeros = jnp.zeros((*batch, p, m), Q.dtype)
    ones = jnp.broadcast_to(jnp.eye(p, dtype=Q.dtype), (*batch, p, p))
    above = jnp.concatenate([u, zeros, ones], -1)
    below = jnp.concatenate([R, adjoint(Q), jnp.zeros((*batch, height, p), Q.dtype)], -1)
    x = _rotated(jnp.concatenate([above, below], -2), *_downward(height + p, n, p))
    q, r = _apart(x if full else x[..., :n, :], n)
    return jnp.take(q, _inserted(m, p, first), -2), r


@functools.partial(jax.jit, static_argnums=4)
def _with_columns(
    Q: Array, R: Array, u: Array, first: Any, rcond: float | None
) -> tuple[Array, Array]:
    (m, _), n, p = Q.shape[-2:], R.shape[-1], u.shape[-1]
    x = _beside(Q, R)
    lost: Any = False
    for j in range(0 if _is_full(Q) else min(p, m - n)):
        direction, condition = _orthogonal(x[..., n:], u[..., j])
        x = _extended(x, direction)
        if rcond is not None:
            lost |= condition < rcond
    r, qh = x[..., :n], x[..., n:]
    r = jnp.take(jnp.concatenate([r, qh @ u], -1), _inserted(n, p, first), -1)
    x = jnp.concatenate([r, qh], -1)
    for j in range(p):
        rows, columns = _upward(x.shape[-2], first + j)
        x = _rotated(x, rows, columns, rows >= first + j)
    q, r = _apart(x, n + p)
    if lost is False:
        return q, r
    lost = lost[..., None, None]
    return jnp.where(lost, jnp.nan, q), jnp.where(lost, jnp.nan, r)


@functools.partial(jax.jit, static_argnums=3)
def _without_rows(Q: Array, R: Array, first: Any, p: int) -> tuple[Array, Array]:
    (m, height), n = Q.shape[-2:], R.shape[-1]
    # Q has as many columns until it is square.
    kept = min(p, m - height)
    row = jnp.arange(m)

    def by_one(x: Array, deleted: Array) -> Array:
        """Q gets the deleted row's unit vector as its first column, which goes."""
        return _rotated(x, *_upward(x.shape[-2], n + deleted))[..., 1:, :]

    def extended(x: Array, deleted: Array) -> Array:
        unit = jnp.broadcast_to((row == deleted).astype(x.dtype), (*x.shape[:-2], m))
        left = (row < first) | (row > deleted)
        return by_one(_extended(x, _orthogonal(x[..., n:], unit, left)[0]), deleted)

    def padded(x: Array, deleted: Array) -> Array:
        """As tall as before, for the next row: zeros stay zeros."""
        return jnp.concatenate([by_one(x, deleted), jnp.zeros_like(x[..., :1, :])], -2)

    rows = first + jnp.arange(p)
    x = _each(padded, _each(extended, _beside(Q, R), rows[:kept]), rows[kept:])
    q, r = _apart(x[..., : height - (p - kept), :], n)
    return jnp.take(q, _left(m, p, first), -2), r


@functools.partial(jax.jit, static_argnums=3)
def _without_columns(Q: Array, R: Array, first: Any, p: int) -> tuple[Array, Array]:
    n, height, full = R.shape[-1] - p, R.shape[-2], _is_full(Q)
    x = _beside(Q, jnp.take(R, _left(n + p, p, first), -1))
    rows, columns = _downward(height, n, p)
    x = _rotated(x, rows, columns, columns >= first)
    return _apart(x if full else x[..., :n, :], n)


def _inserted(size: int, p: int, first: Any) -> Array:
    """Where what is in each place was, when p more come from behind to `first`."""
    place = jnp.arange(size + p)
    return jnp.where(place < first, place, jnp.where(place < first + p, size - first, -p) + place)


def _left(size: int, p: int, first: Any) -> Array:
    """The places that are left without p of them."""
    place = jnp.arange(size - p)
    return jnp.where(place < first, place, place + p)


def _beside(Q: Array, R: Array) -> Array:
    """R and Qᴴ, whose rows are rotated together."""
    return jnp.concatenate([R, adjoint(Q)], -1)


def _apart(x: Array, n: int) -> tuple[Array, Array]:
    """Q and R of R and Qᴴ side by side."""
    return adjoint(x[..., n:]), x[..., :n]


def _extended(x: Array, direction: Array) -> Array:
    """One more column of Q, and a row of zeros of R."""
    row = jnp.conj(direction)[..., None, :]
    zeros = jnp.zeros((*row.shape[:-1], x.shape[-1] - row.shape[-1]), x.dtype)
    return jnp.concatenate([x, jnp.concatenate([zeros, row], -1)], -2)


def _orthogonal(qh: Array, u: Array, among: Any = True) -> tuple[Array, Array]:
    """A unit vector orthogonal to the columns of Q, with which these span u; Q has fewer than rows.

    Where they span it already, any: that of a unit vector `among` those for which most is left.
    Also the reciprocal condition number of Q and u of norm 1 side by side.
    """

    def rest(x: Array) -> tuple[Array, Array, Array]:
        """What is left of x without its part in the range, once, of length 1, and twice."""
        part = qh @ x[..., None]
        once = x - (adjoint(qh) @ part)[..., 0]
        twice = once - (adjoint(qh) @ (qh @ once[..., None]))[..., 0]
        return part[..., 0], once, twice

    part, once, twice = rest(_of_length_one(u))
    # Nothing but rounding is left where less is the second time: "twice is enough".
    spanned = 2 * _length(twice) <= _length(once)
    taken = jnp.where(among, jnp.sum(abs(qh) ** 2, -2), jnp.inf)
    unit = jnp.argmin(taken, -1)[..., None] == jnp.arange(qh.shape[-1])
    other = rest(unit.astype(qh.dtype))[2]
    condition = _length(twice) / (1 + _length(part))
    return _of_length_one(jnp.where(spanned[..., None], other, twice)), condition


def _length(x: Array) -> Array:
    """The norm; its derivative at zero is zero."""
    square = jnp.sum(x.real**2 + x.imag**2, -1)
    zero = square == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, square)))


def _of_length_one(x: Array) -> Array:
    """Zero stays."""
    size = jax.lax.stop_gradient(jnp.max(abs(x), -1, keepdims=True))
    x = x / jnp.where(size == 0, 1, size)
    length = _length(x)[..., None]
    return x / jnp.where(length == 0, 1, length)


def _upward(height: int, column: Any) -> tuple[np.ndarray, Any]:
    """Rotations that clear a column from its last element to its second one: rows, columns."""
    rows = np.arange(height - 1)[::-1]
    return rows, column + 0 * rows


def _downward(height: int, n: int, below: int) -> tuple[np.ndarray, np.ndarray]:
    """Rotations that clear so many diagonals below the main one of n columns, from the first on."""
    order = [(i, j) for j in range(n) for i in range(j + below - 1, j - 1, -1) if i + 1 < height]
    rows, columns = np.array(order, int).reshape(-1, 2).T
    return rows, columns


def _rotated(x: Array, rows: np.ndarray, columns: Any, wanted: Any = True) -> Array:
    """x with rows i and i + 1 rotated so that of a column only the one above is left.

    [f̄ ḡ; −g f]/h with h = √(|f|² + |g|²) makes h and 0 of f and g. `wanted` leaves some rows alone.
    """
    place = jnp.arange(x.shape[-1])

    def rotate(x: Array, at: Any) -> Array:
        i, column, wanted = at
        pair = jax.lax.dynamic_slice_in_dim(x, i, 2, -2)
        elements = jax.lax.dynamic_index_in_dim(pair, column, -1, keepdims=False)
        size = jax.lax.stop_gradient(jnp.max(abs(elements), -1))[..., None]
        some = (size != 0) & wanted
        f, g = jnp.split(jnp.where(some, elements / jnp.where(some, size, 1), 1), 2, -1)
        h = jnp.sqrt(f.real**2 + f.imag**2 + g.real**2 + g.imag**2)
        f, g = f / h, g / h
        upper, lower = pair[..., 0, :], pair[..., 1, :]
        above = jnp.where(place == column, h * size, jnp.conj(f) * upper + jnp.conj(g) * lower)
        below = jnp.where(place == column, 0, f * lower - g * upper)
        turned = jnp.where(some[..., None], jnp.stack([above, below], -2), pair)
        return jax.lax.dynamic_update_slice_in_dim(x, turned, i, -2)

    wanted = jnp.broadcast_to(wanted, rows.shape)
    return _each(rotate, x, (jnp.asarray(rows), jnp.asarray(columns), wanted))


def _each(step: Callable[[Array, Any], Array], x: Array, changes: Any) -> Array:
    """x after one step after the other."""
    if not len(jax.tree.leaves(changes)[0]):
        return x
    x, *leaves = _jax_private.vary_alike(x, *jax.tree.leaves(changes))
    changes = jax.tree.unflatten(jax.tree.structure(changes), leaves)
    return jax.lax.scan(lambda x, change: (step(x, change), None), x, changes)[0]
