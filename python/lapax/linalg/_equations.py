"""Linear matrix equations: Sylvester's and Lyapunov's, by Schur forms.

With A = U·R·Uᴴ and B = V·S·Vᴴ, A·X + X·B = Q is R·Y + Y·S = UᴴQV, Y = UᴴXV, whose columns follow
one after the other (Bartels and Stewart, Comm. ACM 15, 1972). The forms of a real equation are
real, with blocks of order two. The derivative is that of a linear system: the equation again, with
another right-hand side, or its transpose.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from lapax.linalg._arguments import (
    adjoint,
    check_choice,
    check_matrix,
    check_size,
    check_square,
    operation,
    same_batch,
)
from lapax.linalg._products import diagonal, product
from lapax.linalg._targets import by_target
from lapax.linalg._triangular import schur

__all__ = [
    "solve_continuous_lyapunov",
    "solve_discrete_lyapunov",
    "solve_lyapunov",
    "solve_sylvester",
]

Array = jax.Array
Form = tuple[Array, Array]
"""T and U of U·T·Uᴴ, T upper triangular, or real with blocks of order two."""

_DIRECT_BELOW = 10
"""The order from which SciPy chooses the bilinear method."""


@operation("a", "b", "q")
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """X of A·X + X·B = Q, of A [..., m, m], B [..., n, n], Q [..., m, n].

    Infinite or NaN where an eigenvalue of A is the negative of one of B exactly.

    Derivative: A·dX + dX·B = dQ - dA·X - X·dB, of every order.

    Raises ValueError where the shapes do not fit.
    Source: Bartels and Stewart, Comm. ACM 15, 1972.

    Cost: that of `schur` of A and of B, and 5·m·n·(m + n). The error of X is ε·(‖A‖ + ‖B‖)/sep(A,
    -B).

    >>> solve_sylvester(eye(2), eye(2), 2 * ones((2, 2)))  # [[1, 1], [1, 1]]
    """
    check_square("solve_sylvester", a=a, b=b)
    check_matrix("solve_sylvester", q=q)
    check_size("solve_sylvester", "q", "rows", q.shape[-2], a.shape[-1])
    check_size("solve_sylvester", "q", "columns", q.shape[-1], b.shape[-1])
    a, b, q = same_batch("solve_sylvester", a=(a, 2), b=(b, 2), q=(q, 2))
    return sylvester(a, b, q)


@operation("a", "q")
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """X of A·X + X·Aᴴ = Q, of A and Q [..., n, n].

    Infinite or NaN where two eigenvalues of A have λ + conj(μ) = 0 exactly.

    Derivative: as `solve_sylvester`. Raises ValueError where the shapes do not fit.
    Source: Bartels and Stewart, Comm. ACM 15, 1972.

    Cost: that of `schur`, and 10n³.

    >>> solve_continuous_lyapunov(eye(2), 2 * ones((2, 2)))  # [[1, 1], [1, 1]]
    """
    return lyapunov(*_same_order("solve_continuous_lyapunov", a, q))


solve_lyapunov = solve_continuous_lyapunov


@operation("a", "q")
def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Any:
    """X of A·X·Aᴴ - X + Q = 0, of A and Q [..., n, n].

    "direct" solves the system of n² unknowns; "bilinear" the continuous equation that
    (A - I)(A + I)⁻¹ gives, unfit for eigenvalues near -1; None takes the first for n < 10.

    Derivative: of the systems solved, of every order.

    Raises ValueError where the shapes do not fit.
    Source: Popov, 1964, in Gajic and Qureshi, Lyapunov Matrix Equation, 1995 (bilinear).

    Cost: 2n⁶/3 directly, else that of `solve_continuous_lyapunov` and of three systems.

    >>> solve_discrete_lyapunov(eye(2) / 2, 3 * eye(2))  # [[4, 0], [0, 4]]
    """
    name = "solve_discrete_lyapunov"
    check_choice(name, "method", method and method.lower(), (None, "direct", "bilinear"))
    a, q = _same_order(name, a, q)
    if method is None:
        method = "direct" if a.shape[-1] < _DIRECT_BELOW else "bilinear"
    return _discrete_direct(a, q) if method.lower() == "direct" else discrete_lyapunov(a, q)


def _same_order(function: str, a: Array, q: Array) -> list[Array]:
    check_square(function, a=a, q=q)
    check_size(function, "q", "rows", q.shape[-1], a.shape[-1])
    return same_batch(function, a=(a, 2), q=(q, 2))


def sylvester(a: Array, b: Array, q: Array, forms: tuple[Form, Form] | None = None) -> Array:
    """X of A·X + X·B = Q of one batch, linear in Q; the Schur forms of A and B may be given."""
    if forms is None:
        forms = form(jax.lax.stop_gradient(a)), form(jax.lax.stop_gradient(b))
    left, right = forms

    def apply(x: Array) -> Array:
        return product(a, x) + product(x, b)

    def solve(_: Any, q: Array) -> Array:
        return by_forms(left, right, q)

    def solve_transposed(_: Any, c: Array) -> Array:
        # Aᵀ·Y + Y·Bᵀ = C is B·Yᵀ + Yᵀ·A = Cᵀ.
        return jnp.swapaxes(by_forms(right, left, jnp.swapaxes(c, -1, -2)), -1, -2)

    x: Array = jax.lax.custom_linear_solve(apply, q, solve, solve_transposed)
    return x


def lyapunov(a: Array, q: Array) -> Array:
    """X of A·X + X·Aᴴ = Q of one batch, linear in Q."""
    t, u = form(jax.lax.stop_gradient(a))
    # With both orders reversed, Tᴴ is upper triangular again: the Schur form of Aᴴ.
    reversed_form = adjoint(t)[..., ::-1, ::-1], u[..., ::-1]
    return sylvester(a, adjoint(a), q, ((t, u), reversed_form))


def discrete_lyapunov(a: Array, q: Array) -> Array:
    """X of A·X·Aᴴ - X + Q = 0 of one batch, by the bilinear transformation; linear in Q.

    B = (A + I)⁻¹(A - I) and C = 2(A + I)⁻¹·Q·(A + I)⁻ᴴ give B·X + X·Bᴴ + C = 0.
    """
    one = jnp.eye(a.shape[-1], dtype=a.dtype)
    half = jnp.linalg.solve(a + one, q)
    c = 2 * adjoint(jnp.linalg.solve(a + one, adjoint(half)))
    return lyapunov(jnp.linalg.solve(a + one, a - one), -c)


def _discrete_direct(a: Array, q: Array) -> Array:
    """(I - A ⊗ conj(A))·x = q, of Q and X by rows."""
    n, batch = a.shape[-1], a.shape[:-2]
    matrix = jnp.einsum("...ik,...jl->...ijkl", a, jnp.conj(a)).reshape(*batch, n * n, n * n)
    right = q.reshape(*batch, n * n, 1)
    x: Array = jnp.linalg.solve(jnp.eye(n * n, dtype=a.dtype) - matrix, right)
    return x.reshape(q.shape)


def form(a: Array) -> Form:
    """The Schur form of A, real for real A."""
    if a.shape[-1] == 0:
        return a, a
    if jnp.iscomplexobj(a):
        return schur(a)
    t, u = jax.lax.linalg.schur(a)
    return jnp.triu(t, -1), u


def eigenvalues(t: Array) -> Array:
    """Those of T, whose blocks of order two are of the form [[x, y], [z, x]], y·z < 0."""
    values = diagonal(t)
    if jnp.iscomplexobj(t):
        return values
    beside = -jnp.diagonal(t, 1, -2, -1) * jnp.diagonal(t, -1, -2, -1)
    imaginary = jnp.sqrt(jnp.maximum(beside, 0))
    first = [(0, 0)] * (t.ndim - 2)
    signed = jnp.pad(imaginary, [*first, (0, 1)]) - jnp.pad(imaginary, [*first, (1, 0)])
    return jax.lax.complex(values, signed)


def by_forms(left: Form, right: Form, q: Array) -> Array:
    """X of U·R·Uᴴ·X + X·V·S·Vᴴ = Q."""
    (r, u), (s, v) = left, right
    y = triangular_sylvester(r, s, product(product(adjoint(u), q), v))
    return product(product(u, y), adjoint(v))


def _by_columns(r: Array, s: Array, f: Array) -> Array:
    """Y of R·Y + Y·S = F, upper triangular R and S: (R + s_jj·I)·y_j = f_j - Σ y_k·s_kj, k < j.

    Not for blocks of order two: Schur forms are the CPU's, where the target has them.
    """
    if f.shape[-2] == 0 or f.shape[-1] == 0:
        return f
    one, shifts = jnp.eye(r.shape[-1], dtype=r.dtype), diagonal(s)

    def column(j: Array, y: Array) -> Array:
        # Columns of Y from j on are zero yet.
        known = product(y, jax.lax.dynamic_index_in_dim(s, j, -1))
        right = jax.lax.dynamic_index_in_dim(f, j, -1) - known
        shift = jax.lax.dynamic_index_in_dim(shifts, j, -1)[..., None]
        found = jax.lax.linalg.triangular_solve(r + shift * one, right, left_side=True)
        updated: Array = jax.lax.dynamic_update_index_in_dim(y, found, j, -1)
        return updated

    y: Array = jax.lax.fori_loop(0, s.shape[-1], column, jnp.zeros_like(f))
    return y


triangular_sylvester = by_target("triangular_sylvester", _by_columns, like=2, minus=False)
"""Y of R·Y + Y·S = F, upper triangular R and S."""
