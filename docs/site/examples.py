"""An example for every op of `lapax.ffi`; the build runs each and shows what it prints.

`a`, `s`, `b` and what else is named in SETUP are there; each ends in what is printed.
"""

from __future__ import annotations

SETUP = {
    "a": "a = jnp.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [4.0, 1.0, 5.0]])",
    "s": "s = jnp.array([[4.0, 2.0, 0.0], [2.0, 5.0, 1.0], [0.0, 1.0, 3.0]])",
    "z": "z = jnp.array([[1.0, 1.0j], [2.0, 3.0]], jnp.complex64)",
    "tall": "tall = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])",
    "b": "b = jnp.array([[1.0], [2.0], [3.0]])",
    "tri": (
        "dl = jnp.array([0.0, 1.0, 1.0])  # below the diagonal; the first is not read\n"
        "d = jnp.array([4.0, 4.0, 4.0])\n"
        "du = jnp.array([1.0, 1.0, 0.0])  # above it; the last is not read"
    ),
    "blocks": (
        "diagonal = jnp.stack([4 * jnp.eye(2)] * 3)\n"
        "off_diagonal = jnp.stack([jnp.eye(2)] * 2)  # A[i + 1, i]"
    ),
}
"""What an example may use, by the name that asks for it."""

EXAMPLES: dict[str, tuple[str, str]] = {
    "getrf": ("a", "lu, ipiv, info = lapax.ffi.getrf(a)\nprint(lu, ipiv, info)"),
    "lu": (
        "a",
        "lu, pivots, permutation = lapax.ffi.lu(a)\n"
        "l, u = jnp.tril(lu, -1) + jnp.eye(3), jnp.triu(lu)\n"
        "print(permutation, jnp.abs(a[permutation] - l @ u).max())",
    ),
    "slogdet": ("a", "sign, logabs = lapax.ffi.slogdet(a)\nprint(sign * jnp.exp(logabs))"),
    "solve": ("a b", "x = lapax.ffi.solve(a, b)\nprint(x, jnp.abs(a @ x - b).max())"),
    "inv": ("a", "print(lapax.ffi.inv(a) @ a)"),
    "lu_solve": (
        "a b",
        "lu, _, permutation = lapax.ffi.lu(a)\n"
        'x = lapax.ffi.lu_solve(lu, permutation, b, trans_x="T")\n'
        "print(jnp.abs(a.T @ x - b).max())",
    ),
    "lu_pivots_to_permutation": (
        "",
        "pivots = jnp.array([2, 2, 2], jnp.int32)  # row i is swapped with row pivots[i]\n"
        "print(lapax.ffi.lu_pivots_to_permutation(pivots, p=4))",
    ),
    "potrf": (
        "s",
        'factor, info = lapax.ffi.potrf(s, uplo="L")\nprint(jnp.tril(factor), info)',
    ),
    "cholesky": (
        "s",
        "l = lapax.ffi.cholesky(s, symmetrize=False)\nprint(l, jnp.abs(l @ l.T - s).max())",
    ),
    "posv": (
        "s b",
        'x = lapax.ffi.posv(s, b, symmetrize=False, uplo="L")\nprint(x, jnp.abs(s @ x - b).max())',
    ),
    "posv_factor": (
        "s b",
        'x, factor, logdet = lapax.ffi.posv_factor(s, b, symmetrize=False, uplo="L")\n'
        "print(x, logdet, jnp.linalg.slogdet(s)[1])",
    ),
    "cho_solve": (
        "s b",
        "l = lapax.ffi.cholesky(s, symmetrize=False)\n"
        'x = lapax.ffi.cho_solve(l, b, uplo="L")\n'
        "print(jnp.abs(s @ x - b).max())",
    ),
    "cholesky_update": (
        "s",
        "r = jnp.linalg.cholesky(s).T\nw = jnp.array([1.0, 0.0, 2.0])\n"
        "updated, _ = lapax.ffi.cholesky_update(r, w)\n"
        "print(updated, jnp.abs(updated.T @ updated - (s + jnp.outer(w, w))).max())",
    ),
    "ldl": (
        "",
        "a = jnp.array([[0.0, 1.0], [1.0, 0.0]])  # symmetric, indefinite\n"
        'factors, e, permutation = lapax.ffi.ldl(a, hermitian=True, uplo="L")\n'
        "print(factors, e, permutation)",
    ),
    "ldl_solve": (
        "",
        "a = jnp.array([[0.0, 1.0], [1.0, 0.0]])\nb = jnp.array([[1.0], [2.0]])\n"
        'factors, e, permutation = lapax.ffi.ldl(a, hermitian=True, uplo="L")\n'
        "print(lapax.ffi.ldl_solve(factors, e, permutation, b, hermitian=True))",
    ),
    "trsm": (
        "a b",
        "x = lapax.ffi.trsm(\n"
        '    a, b, side="Left", uplo="L", trans_x="N", diag="NonUnit"\n'
        ")\nprint(x, jnp.abs(jnp.tril(a) @ x - b).max())",
    ),
    "triangular_solve": (
        "a b",
        "x = lapax.ffi.triangular_solve(\n"
        '    a, b, side="Left", uplo="U", trans_x="N", diag="NonUnit"\n'
        ")\nprint(x, jnp.abs(jnp.triu(a) @ x - b).max())",
    ),
    "gtsv": ("tri b", "*_, x, info = lapax.ffi.gtsv(dl, d, du, b)\nprint(x, info)"),
    "tridiagonal_solve": ("tri b", "print(lapax.ffi.tridiagonal_solve(dl, d, du, b))"),
    "tridiagonal_solve_perturbed": (
        "b",
        "zero = jnp.zeros(3)  # singular, and yet the answer is finite\n"
        "x = lapax.ffi.tridiagonal_solve_perturbed(zero, zero, zero, b)\n"
        "print(jnp.isfinite(x).all())",
    ),
    "solve_banded": (
        "b",
        "ab = jnp.array([[0.0, 1.0, 1.0], [4.0, 4.0, 4.0], [1.0, 1.0, 0.0]])  # diagonals\n"
        "print(lapax.ffi.solve_banded(ab, b, l=1))",
    ),
    "solveh_banded": (
        "b",
        "ab = jnp.array([[4.0, 4.0, 4.0], [1.0, 1.0, 0.0]])  # the diagonal, and what is below\n"
        'print(lapax.ffi.solveh_banded(ab, b, uplo="L"))',
    ),
    "cholesky_banded": (
        "",
        "ab = jnp.array([[4.0, 4.0, 4.0], [1.0, 1.0, 0.0]])\n"
        'print(lapax.ffi.cholesky_banded(ab, uplo="L"))',
    ),
    "cho_solve_banded": (
        "b",
        "ab = jnp.array([[4.0, 4.0, 4.0], [1.0, 1.0, 0.0]])\n"
        'factor = lapax.ffi.cholesky_banded(ab, uplo="L")\n'
        'print(lapax.ffi.cho_solve_banded(factor, b, uplo="L"))',
    ),
    "block_tridiagonal_cholesky": (
        "blocks",
        "l, below = lapax.ffi.block_tridiagonal_cholesky(diagonal, off_diagonal)\nprint(l, below)",
    ),
    "block_tridiagonal_cho_solve": (
        "blocks",
        "l, below = lapax.ffi.block_tridiagonal_cholesky(diagonal, off_diagonal)\n"
        "b = jnp.ones((3, 2, 1))\n"
        'print(lapax.ffi.block_tridiagonal_cho_solve(l, below, b, sweeps="Both"))',
    ),
    "block_tridiagonal_solve": (
        "blocks",
        "b = jnp.ones((3, 2, 1))\n"
        "x, *_, logdet = lapax.ffi.block_tridiagonal_solve(diagonal, off_diagonal, b)\n"
        "print(x, logdet)",
    ),
    "block_tridiagonal_inverse": (
        "blocks",
        "l, below = lapax.ffi.block_tridiagonal_cholesky(diagonal, off_diagonal)\n"
        "print(lapax.ffi.block_tridiagonal_inverse(l, below))",
    ),
    "geev": (
        "a",
        'wr, wi, vl, vr, info = lapax.ffi.geev(a, compute_left="N", compute_right="V")\n'
        "print(wr, wi, info)",
    ),
    "geev_complex": (
        "z",
        'w, vl, vr, info = lapax.ffi.geev_complex(z, compute_left="N", compute_right="V")\n'
        "print(w, jnp.abs(z @ vr - vr * w).max())",
    ),
    "eig": ("a", "w, v = lapax.ffi.eig(a)\nprint(w, jnp.abs(a @ v - v * w).max())"),
    "eigvals": ("a", "print(lapax.ffi.eigvals(a))"),
    "gees": (
        "a",
        't, z, wr, wi, sdim, info = lapax.ffi.gees(a, mode="V", sort="N")\n'
        "print(t, jnp.abs(z @ t @ z.T - a).max())",
    ),
    "gees_complex": (
        "z",
        't, q, w, sdim, info = lapax.ffi.gees_complex(z, mode="V", sort="N")\n'
        "print(w, jnp.abs(q @ t @ q.conj().T - z).max())",
    ),
    "schur": ("a", "t, z = lapax.ffi.schur(a)\nprint(t, jnp.abs(z @ t @ z.T - a).max())"),
    "gehrd": ("a", "h, tau, info = lapax.ffi.gehrd(a, low=1, high=3)\nprint(jnp.triu(h, -1), tau)"),
    "hess": ("a", "h, q = lapax.ffi.hess(a)\nprint(h, jnp.abs(q @ h @ q.T - a).max())"),
    "geqrf": ("tall", "qr, tau = lapax.ffi.geqrf(tall)\nprint(jnp.triu(qr)[:2], tau)"),
    "qr": ("tall", "q, r = lapax.ffi.qr(tall, c=2)\nprint(r, jnp.abs(q @ r - tall).max())"),
    "qr_r": ("tall", "print(lapax.ffi.qr_r(tall, c=2))"),
    "geqp3": (
        "tall",
        "free = jnp.zeros(2, jnp.int32)  # any column may come first\n"
        "qr, order, tau = lapax.ffi.geqp3(tall, free)\nprint(order, jnp.triu(qr)[:2])",
    ),
    "orgqr": (
        "tall",
        "qr, tau = lapax.ffi.geqrf(tall)\nq = lapax.ffi.orgqr(qr, tau)\nprint(q.T @ q)",
    ),
    "ormqr": (
        "tall b",
        "qr, tau = lapax.ffi.geqrf(tall)\n"
        "print(lapax.ffi.ormqr(qr, tau, b, left=True, transpose=True))  # Qᵀ·b",
    ),
    "syevd": ("s", 'v, w, info = lapax.ffi.syevd(s, mode="V", uplo="L")\nprint(w, info)'),
    "symmetrize": ("a", "print(lapax.ffi.symmetrize(a))"),
    "eigh": (
        "s",
        'v, w = lapax.ffi.eigh(s, uplo="L")\nprint(w, jnp.abs(s @ v - v * w).max())',
    ),
    "eigh_subset": (
        "s",
        'v, w = lapax.ffi.eigh_subset(s, k=1, start=2, uplo="L")  # the largest\nprint(w, v)',
    ),
    "eigvalsh": ("s", 'print(lapax.ffi.eigvalsh(s, uplo="L"))'),
    "sytrd": (
        "s",
        'reflectors, d, e, tau, info = lapax.ffi.sytrd(s, uplo="L")\nprint(d, e)',
    ),
    "gesdd": (
        "tall",
        'scratch, s, u, vt, info = lapax.ffi.gesdd(tall, u_cols=2, vt_rows=2, mode="S")\n'
        "print(s, jnp.abs(u * s @ vt - tall).max())",
    ),
    "gesvd": (
        "tall",
        'scratch, s, u, vt, info = lapax.ffi.gesvd(tall, u_cols=2, vt_rows=2, mode="S")\n'
        "print(s, jnp.abs(u * s @ vt - tall).max())",
    ),
    "svd": (
        "tall",
        "s, u, vt = lapax.ffi.svd(tall, full_matrices=False)\n"
        "print(s, jnp.abs(u * s @ vt - tall).max())",
    ),
    "svd_subset": (
        "tall",
        "s, u, vt = lapax.ffi.svd_subset(tall, k=1, start=0)  # the largest\nprint(s, u, vt)",
    ),
    "svdvals": ("tall", "print(lapax.ffi.svdvals(tall))"),
    "csr_sparse_dense": (
        "",
        "data = jnp.array([1.0, 2.0, 3.0])  # [[1, 0, 2], [0, 3, 0]]\n"
        "indptr, indices = jnp.array([0, 2, 3], jnp.int32), jnp.array([0, 2, 1], jnp.int32)\n"
        "print(lapax.ffi.csr_sparse_dense(data, indptr, indices, jnp.array([1.0, 1.0, 1.0])))",
    ),
    "tridiagonal_eigh": (
        "",
        "d, e = jnp.array([2.0, 2.0, 2.0]), jnp.array([-1.0, -1.0])\n"
        "v, w = lapax.ffi.tridiagonal_eigh(d, e, k=2, start=0)  # the two smallest\n"
        "print(w, v)",
    ),
    "tridiagonal_eigvalsh": (
        "",
        "d, e = jnp.array([2.0, 2.0, 2.0]), jnp.array([-1.0, -1.0])\n"
        "print(lapax.ffi.tridiagonal_eigvalsh(d, e))",
    ),
    "block_tridiagonal_lu": (
        "blocks",
        "upper = 2 * off_diagonal\n"
        "lu, pivots, _ = lapax.ffi.block_tridiagonal_lu(off_diagonal, diagonal, upper)\n"
        "print(lu, pivots)",
    ),
    "block_tridiagonal_lu_solve": (
        "blocks",
        "factors = lapax.ffi.block_tridiagonal_lu(off_diagonal, diagonal, 2 * off_diagonal)\n"
        "b = jnp.ones((3, 2, 1))\n"
        'print(lapax.ffi.block_tridiagonal_lu_solve(off_diagonal, *factors, b, trans="N"))',
    ),
    "generalised_schur": (
        "a s",
        "form = lapax.ffi.generalised_schur(a, s)\n"
        "print(form.alpha / form.beta, jnp.abs(form.q @ form.s @ form.z.T - a).max())",
    ),
    "reorder_generalised_schur": (
        "a s",
        "form = lapax.ffi.generalised_schur(a, s)\n"
        "last = jnp.array([0, 0, 1], jnp.int32)  # is to come first\n"
        "moved = lapax.ffi.reorder_generalised_schur(*form[:4], last)\n"
        "print(form.alpha / form.beta, moved.alpha / moved.beta)",
    ),
    "generalised_eigenvectors": (
        "a s",
        "form = lapax.ffi.generalised_schur(a, s)\n"
        "x = lapax.ffi.generalised_eigenvectors(form.s, form.t, left=False)\n"
        "v, w = form.z @ x, form.alpha / form.beta\n"
        "print(w, jnp.abs(a @ v - s @ v * w).max())",
    ),
    "expm": (
        "",
        "a = jnp.array([[0.0, 1.0], [-1.0, 0.0]])\nprint(lapax.ffi.expm(a))  # cos 1 and sin 1",
    ),
    "triangular_sylvester": (
        "a s b",
        "r, t = jnp.triu(a), jnp.triu(s)\nf = b @ b.T\n"
        "y = lapax.ffi.triangular_sylvester(r, t, f, minus=False)\n"
        "print(y, jnp.abs(r @ y + y @ t - f).max())",
    ),
    "triangular_sqrtm": (
        "a",
        "r = jnp.triu(a)\nx = lapax.ffi.triangular_sqrtm(r)\nprint(x, jnp.abs(x @ x - r).max())",
    ),
    "triangular_parlett": (
        "z",
        "# exp, whose divided differences are g\n"
        "t, w = jnp.triu(z), jnp.diag(z)\n"
        "g = jnp.diag(jnp.exp(w)).at[0, 1].set((jnp.exp(w[0]) - jnp.exp(w[1])) / (w[0] - w[1]))\n"
        "x = lapax.ffi.triangular_parlett(t, g)\n"
        "print(x, jnp.abs(x @ t - t @ x).max())",
    ),
}


def code(op: str) -> str:
    """The whole program."""
    names, text = EXAMPLES[op]
    setup = [SETUP[name] for name in names.split()]
    return "\n".join(["import jax.numpy as jnp", "import lapax", "", *setup, text])
