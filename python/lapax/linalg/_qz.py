"""Generalised Schur forms of pairs of matrices, A = Q·S·Zᴴ and B = Q·T·Zᴴ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from lapax._call import ffi_call
from lapax.linalg._arguments import (
    Array,
    check_choice,
    check_size,
    check_square,
    complex_dtype,
    operation,
    same_batch,
)

__all__ = ["ordqz", "qz"]

_Chosen = Callable[[Array, Array], Array]


def _quotient(alpha: Array, beta: Array) -> Array:
    return alpha / jnp.where(beta == 0, 1, beta)


_SORTS: dict[str, _Chosen] = {
    "lhp": lambda alpha, beta: (beta != 0) & (_quotient(alpha, beta).real < 0),
    "rhp": lambda alpha, beta: (beta != 0) & (_quotient(alpha, beta).real > 0),
    "iuc": lambda alpha, beta: (beta != 0) & (abs(_quotient(alpha, beta)) < 1),
    "ouc": lambda alpha, beta: jnp.where(beta == 0, alpha != 0, abs(_quotient(alpha, beta)) > 1),
}


@operation("A", "B")
def qz(
    A: Array,
    B: Array,
    output: str = "real",
    lwork: int | None = None,
    sort: None = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Generalised Schur form (S, T, Q, Z) of a pair: A = Q·S·Zᴴ and B = Q·T·Zᴴ, Q and Z unitary.

    `A`, `B` [..., n, n], as are all results. T is upper triangular, its diagonal not negative. S is
    upper triangular if the pair is complex or `output` is `"complex"`, otherwise real with a block
    of two for each pair of conjugate eigenvalues, where T has a diagonal block. All are NaN where a
    matrix of the pair is not finite. `sort` is None as in SciPy; see `ordqz`.

    Raises ValueError for another `output` or `sort`, and unless both are square of one size. There
    is no derivative; `eig` has one.

    Source: Moler and Stewart, SIAM J. Numer. Anal. 10, 1973; Golub and Van Loan, Matrix
    Computations, section 7.7.

    Cost: about 66n³.

    >>> qz(diag(array([2., 3])), eye(2))[1]  # [[1, 0], [0, 1]]
    """
    del lwork, overwrite_a, overwrite_b, check_finite
    if sort is not None:
        raise ValueError(f"qz: sort: expected None (ordqz sorts), got {sort!r}")
    s, t, q, z, _, _ = _decomposed("qz", output, A, B)
    return s, t, q, z


@operation("A", "B", jit=False)
def ordqz(
    A: Array,
    B: Array,
    sort: str | _Chosen = "lhp",
    output: str = "real",
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Generalised Schur form with chosen eigenvalues first: (S, T, alpha, beta, Q, Z), see `qz`.

    The eigenvalues are alpha/beta [..., n]; beta is not negative, zero for an infinite one, and
    complex where S is. `sort` chooses `"lhp"` with Re λ < 0, `"rhp"` with Re λ > 0, `"iuc"` with
    |λ| < 1 or `"ouc"` with |λ| > 1, of which an infinite one is in the last and 0/0 in none; or
    those for which a function of the arrays alpha and beta is true, which sees numbers outside of
    jit. Of a conjugate pair in a real
    form one brings both. Eigenvalues of either kind keep their order. All results are NaN where a
    matrix of the pair is not finite, or where eigenvalues to be exchanged are too near to be told
    apart.

    Raises ValueError for another `output` or `sort`, and unless both are square of one size. There
    is no derivative.

    Source: van Dooren, SIAM J. Sci. Stat. Comput. 2, 1981; Kågström and Poromaa, Numer. Algorithms
    12, 1996.

    Cost: that of `qz`, and O(n²) for each exchange of neighbours.

    >>> ordqz(diag(array([1., -2])), eye(2))[2]  # [-2, 1]
    """
    del overwrite_a, overwrite_b, check_finite
    if not callable(sort):
        check_choice("ordqz", "sort", sort, tuple(_SORTS))
    s, t, q, z, alpha, beta = _decomposed("ordqz", output, A, B)
    as_scipy = beta.astype(s.dtype)
    chosen = (_SORTS[sort] if isinstance(sort, str) else sort)(alpha, as_scipy)
    chosen = jnp.asarray(chosen).astype(bool).astype(jnp.int32)
    s, t, q, z, alpha, beta = ffi_call("reorder_generalised_schur", s, t, q, z, chosen)
    return s, t, alpha, beta.astype(s.dtype), q, z


def _decomposed(function: str, output: str, a: Array, b: Array) -> Any:
    check_choice(function, "output", output, ("real", "r", "complex", "c"))
    a, b = pair(function, a, b, names=("A", "B"))
    if output in ("complex", "c"):
        a, b = (x.astype(complex_dtype(x.dtype)) for x in (a, b))
    return ffi_call("generalised_schur", a, b)


def pair(function: str, a: Array, b: Array, names: tuple[str, str] = ("a", "b")) -> list[Array]:
    """Both with their batch dimensions broadcast; ValueError unless both are square of one size."""
    first, second = names
    check_square(function, **{first: a, second: b})
    check_size(function, second, "rows", b.shape[-2], a.shape[-2])
    return same_batch(function, **{first: (a, 2), second: (b, 2)})
