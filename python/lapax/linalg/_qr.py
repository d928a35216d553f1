"""QR and RQ decompositions, products with Q, and R alone of stacked blocks.

A = Q·R, with Q unitary and R upper triangular; with pivoting A·P = Q·R. Derivatives are JAX's (see
Roberts and Roberts, "QR and LQ decomposition matrix backpropagation algorithms for square, wide,
and deep matrices", 2020), which need the leading columns of A to be independent; older versions of
JAX have those of Q with m ≥ n columns at most and raise NotImplementedError for others. `tria` has
its own, which does not need that.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

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

__all__ = ["qr", "qr_multiply", "rq", "tria"]


@operation("a")
def qr(
    a: Array,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
    *,
    positive_diagonal: bool = False,
) -> tuple[Any, ...]:
    """A = Q·R, or A·P = Q·R with pivoting, as scipy.linalg.qr.

    Args:
        a: [..., m, n]; k = min(m, n).
        overwrite_a: ignored.
        lwork: ignored.
        mode: "full" has Q [..., m, m] and R [..., m, n], "economic" [..., m, k] and [..., k, n];
            "r" leaves Q out; "raw" has LAPACK's pair of reflectors [..., m, n] and factors [..., k]
            in place of Q, without derivatives, and R [..., k, n].
        pivoting: also the columns' order p [..., n], int32: a[:, p] = Q·R with |R|'s diagonal
            falling.
        check_finite: ignored.
        positive_diagonal: R's diagonal is real and not negative, so that a decomposition of full
            rank is the only one. Not with "raw".

    Returns:
        (Q, R), (R,) or ((reflectors, factors), R), and p if pivoting.

    Raises ValueError for another mode, or `positive_diagonal` with "raw".

    The derivative is JAX's: of the first n columns of Q and of R for a full rank n; `install()`
    adds that of the other columns. Cost: 2n²·(m - n/3) for m ≥ n, and as much for Q.

    >>> abs(qr(array([[3.], [4]]))[1])  # [[5], [0]]
    """
    check_matrix("qr", a=a)
    check_choice("qr", "mode", mode, ("full", "r", "economic", "raw"))
    if mode == "raw":
        check_choice("qr", "positive_diagonal", positive_diagonal, (False,))
        return _raw(a, pivoting)
    q, r, *p = _decomposed(a, mode == "economic", pivoting)
    if positive_diagonal:
        q, r = with_positive_diagonal(q, r)
    return (r, *p) if mode == "r" else (q, r, *p)


@operation("a")
def rq(
    a: Array,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    check_finite: bool = True,
) -> Any:
    """A = R·Q, as scipy.linalg.rq: with J the reversal, (J·A)ᴴ = Q'·R', R = J·R'ᴴ·J and Q = J·Q'ᴴ.

    Args:
        a: [..., m, n]; k = min(m, n).
        overwrite_a: ignored.
        lwork: ignored.
        mode: "full" has R [..., m, n] and Q [..., n, n], "economic" [..., m, k] and [..., k, n];
            "r" is R alone.
        check_finite: ignored.

    Returns:
        (R, Q), or R. Raises ValueError for another mode.

    The derivative is that of `qr`, for m ≤ n. Cost: as `qr`.

    >>> abs(rq(array([[3., 4]]))[0])  # [[0, 5]]
    """
    check_matrix("rq", a=a)
    check_choice("rq", "mode", mode, ("full", "r", "economic"))
    q, r = _decomposed(adjoint(jnp.flip(a, -2)), mode == "economic", False)
    r, q = jnp.flip(adjoint(r), (-2, -1)), adjoint(q)
    # Without reflections Q is the identity, as SciPy has it.
    q = q if 0 in a.shape[-2:] else jnp.flip(q, -2)
    return r if mode == "r" else (r, q)


@operation("a", "c")
def qr_multiply(
    a: Array,
    c: Array,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """Q·C or C·Q for A = Q·R, as scipy.linalg.qr_multiply.

    Args:
        a: [..., m, n]; k = min(m, n), and Q is [..., m, k].
        c: [k] or [..., k, p] with mode "left"; [m] or [..., p, m] with mode "right".
        mode: "left" for Q·C, "right" for C·Q.
        pivoting: decomposes A·P.
        conjugate: takes conj(Q) for Q.
        overwrite_a: ignored.
        overwrite_c: with "left", C may have m rows, of which the first k are read.

    Returns:
        The product, of as many dimensions as C has, R [..., k, n], and p [..., n] if pivoting.

    Q is not formed where JAX has jax.scipy.linalg.qr_multiply, but for derivatives. Raises
    ValueError where sizes do not match.

    The derivative is that of `qr` and the product. Cost: that of R in `qr`, and 4·m·k for each
    vector.

    >>> abs(qr_multiply(2 * eye(2), eye(2))[0])  # [[1, 0], [0, 1]]
    """
    check_matrix("qr_multiply", a=a)
    check_choice("qr_multiply", "mode", mode, ("left", "right"))
    left, vector = mode == "left", c.ndim == 1
    if vector:
        c = c[:, None] if left else c[None, :]
    check_matrix("qr_multiply", c=c)
    if left:
        k = min(a.shape[-2:])
        if overwrite_c and c.shape[-2] == a.shape[-2]:
            c = c[..., :k, :]
        check_size("qr_multiply", "c", "rows", c.shape[-2], k)
    else:
        check_size("qr_multiply", "c", "columns", c.shape[-1], a.shape[-2])
    a, c = same_batch("qr_multiply", a=(a, 2), c=(c, 2))
    product, *rest = _multiplied(a, c, left, pivoting, conjugate)
    if vector:
        product = product[..., 0] if left else product[..., 0, :]
    return (product, *rest)


@operation("blocks")
def tria(*blocks: Array, lower: bool = False) -> Array:
    """R alone of stacked blocks: RᴴR = Σ BᵢᴴBᵢ, R's diagonal not negative.

    This is the step of square-root filters, "Tria" in Arasaratnam and Haykin, "Cubature Kalman
    filters", IEEE Trans. Autom. Control 54 (2009): from square roots of covariances that of their
    sum, without forming either.

    Args:
        blocks: [..., mᵢ, n], one below the other; with `lower` [..., n, mᵢ], side by side.
        lower: L with L·Lᴴ = Σ Bᵢ·Bᵢᴴ instead.

    Returns:
        R (or L), [..., n, n], also where there are fewer than n rows (columns).

    The derivative is that of the QR decomposition with a gauge: where column j depends on those
    before it (|rⱼⱼ| ≤ max(m, n)·ε·‖R·eⱼ‖), the j-th direction of Q is held. It is right where
    those columns stay dependent, as they do for blocks of deficient rank whose sum is not, or
    states that are known exactly; elsewhere R itself has none. Of any order. Raises ValueError
    where the blocks differ in n, or there are none.

    Cost: 2n² for each row.

    >>> tria(array([[3.]]), array([[4.]]))  # [[5]]
    """
    if not blocks:
        raise ValueError("tria: expected at least one block, got none")
    named = {f"blocks[{i}]": block for i, block in enumerate(blocks)}
    check_matrix("tria", **named)
    if lower:
        named = {name: adjoint(block) for name, block in named.items()}
    n = blocks[0].shape[-2 if lower else -1]
    for name, block in named.items():
        check_size("tria", name, "rows" if lower else "columns", block.shape[-1], n)
    stacked = same_batch("tria", **{name: (block, 2) for name, block in named.items()})
    m = sum(block.shape[-2] for block in stacked)
    if m < n:
        stacked.append(jnp.zeros((*stacked[0].shape[:-2], n - m, n), stacked[0].dtype))
    r = _triangular(jnp.concatenate(stacked, axis=-2))[1]
    return adjoint(r) if lower else r


def _decomposed(a: Array, economic: bool, pivoting: bool) -> tuple[Array, ...]:
    factors: tuple[Array, ...] = tuple(
        jax.lax.linalg.qr(a, full_matrices=not economic, pivoting=pivoting)
    )
    if pivoting and 0 in a.shape[-2:]:  # JAX leaves the order of empty columns zero.
        order = jnp.arange(a.shape[-1], dtype=jnp.int32)
        return (*factors[:2], jnp.broadcast_to(order, factors[2].shape))
    return factors


def _raw(a: Array, pivoting: bool) -> tuple[Any, ...]:
    """LAPACK's reflectors: of the columns in the order of pivoting, which are the same again."""
    order = _decomposed(a, True, True)[2:] if pivoting else ()
    for p in order:
        a = jnp.take_along_axis(a, p[..., None, :], axis=-1)
    reflectors, factors = jnp.linalg.qr(a, mode="raw")
    reflectors = jnp.swapaxes(reflectors, -1, -2)
    return ((reflectors, factors), jnp.triu(reflectors[..., : min(a.shape[-2:]), :]), *order)


def with_positive_diagonal(q: Array, r: Array) -> tuple[Array, Array]:
    """Q·D and Dᴴ·R with D = diag(rᵢᵢ/|rᵢᵢ|), which is constant: R's diagonal is real already."""
    phases = jax.lax.stop_gradient(jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1)))
    phases = jnp.where(phases == 0, 1, phases)
    k = phases.shape[-1]
    r = jnp.concatenate([jnp.conj(phases)[..., None] * r[..., :k, :], r[..., k:, :]], axis=-2)
    return jnp.concatenate([q[..., :k] * phases[..., None, :], q[..., k:]], axis=-1), r


@partial(jax.custom_jvp, nondiff_argnums=(2, 3, 4))
def _multiplied(a: Array, c: Array, left: bool, pivoting: bool, conjugate: bool) -> Any:
    if not hasattr(jax.scipy.linalg, "qr_multiply"):
        return _multiplied_by_q(a, c, left, pivoting, conjugate)
    mode = "left" if left else "right"
    return jax.scipy.linalg.qr_multiply(a, c, mode, pivoting=pivoting, conjugate=conjugate)


@_multiplied.defjvp
@own_settings()
def _multiplied_jvp(
    left: bool, pivoting: bool, conjugate: bool, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> Any:
    return jax.jvp(
        lambda a, c: _multiplied_by_q(a, c, left, pivoting, conjugate), primals, tangents
    )


def _multiplied_by_q(a: Array, c: Array, left: bool, pivoting: bool, conjugate: bool) -> Any:
    q, *rest = _decomposed(a, True, pivoting)
    q = jnp.conj(q) if conjugate else q
    return (q @ c if left else c @ q, *rest)


@jax.custom_jvp
def _triangular(a: Array) -> tuple[Array, Array]:
    """Q and R of at least as many rows as columns, with R's diagonal not negative."""
    return with_positive_diagonal(*_decomposed(a, True, False))


@_triangular.defjvp
@own_settings()
def _triangular_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    """dR = Qᴴ·dA − Ω·R and dQ = Q·Ω + (1 − Q·Qᴴ)·dA·R⁻¹, where Ω is skew and makes dR triangular.

    Ω's lower part is that of Qᴴ·dA·R⁻¹. In a column that depends on those before it, what is
    divided by the diagonal element is zero if it stays so: R⁻¹ is taken to give zero there.
    """
    (a,), (da,) = primals, tangents
    q, r = _triangular(a)
    diagonal = jnp.abs(jnp.diagonal(r, axis1=-2, axis2=-1))
    rounding = max(a.shape[-2:]) * np.finfo(a.dtype).eps * jnp.linalg.norm(r, axis=-2)
    independent = (diagonal > rounding)[..., None, :]
    eye = jnp.eye(r.shape[-1], dtype=r.dtype)
    divisor = jnp.where(independent, r, eye)

    def over_r(x: Array) -> Array:
        x = jnp.where(independent, x, 0)
        return jax.lax.linalg.triangular_solve(divisor, x, left_side=False)

    qda = adjoint(q) @ da
    turn = over_r(qda)
    omega = jnp.tril(turn, -1)
    omega = omega - adjoint(omega)
    if jnp.iscomplexobj(a):
        omega = omega + 1j * jnp.imag(turn) * eye
    return (q, r), (q @ omega + over_r(da - q @ qda), jnp.triu(qda - omega @ r))
