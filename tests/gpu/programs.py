"""What the GPU scripts run: JAX's functions, how operands are made, and what a right answer is.

A residual is relative to n·ε·‖A‖; below LIMIT the answer is right, as in lapax's other tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax.experimental import sparse
from jax.experimental.compute_on import compute_on
from jax.experimental.sparse.linalg import spsolve

import lapax
from lapax import _row_major

LIMIT = 30.0
REAL, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
DTYPES = REAL + COMPLEX

Arrays = Sequence[np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Program:
    """A function of JAX's with the targets that serve it."""

    name: str
    function: Callable[..., Any]
    operands: Callable[[np.random.Generator, np.dtype[Any], int, int], list[Any]]
    """(random numbers, dtype, n, batch) → operands"""
    residual: Callable[[Arrays, Arrays], float]
    targets: tuple[str, ...]
    dtypes: tuple[str, ...] = DTYPES
    fixed: bool = True
    """Whether it adds in a fixed order, so that the same call has the same bits."""
    small: tuple[str, ...] = ()
    """The targets for matrices that a block of every GPU holds, where they have others."""

    def called(self, operands: Arrays) -> tuple[str, ...]:
        """The targets that the program calls for these operands."""
        ops = [name.removeprefix("lapax_") for name in self.small]
        held = self.small and all(_row_major.held(op, operands) for op in ops)
        return self.small if held else self.targets


def random(rng: np.random.Generator, dtype: np.dtype[Any], *shape: int) -> Any:
    """Normal numbers, with as large an imaginary part where there is one."""
    x = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def adjoint(a: Any) -> Any:
    """Aᴴ of a batch."""
    return np.conj(np.swapaxes(a, -1, -2))


def distance(x: Any, y: Any, scale: Any = None) -> float:
    """‖X − Y‖ / (n ε ‖scale‖), the largest of a batch; NaN is no small number."""
    wide = np.complex128 if np.iscomplexobj(x) or np.iscomplexobj(y) else np.float64
    size = np.abs(np.asarray(y if scale is None else scale, wide)).max(initial=1e-300)
    eps = np.finfo(np.asarray(x).dtype).eps
    largest = np.abs(np.asarray(x, wide) - np.asarray(y, wide)).max(initial=0.0)
    return float(largest / (size * eps * max(np.asarray(x).shape[-1], 1)))


def square(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """One general matrix."""
    return [random(rng, dtype, batch, n, n)]


def tall(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """One matrix with more rows than columns."""
    return [random(rng, dtype, batch, n + n // 2 + 1, n)]


def tall_and_columns(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """The same, and columns that its Q multiplies."""
    return [*tall(rng, dtype, n, batch), random(rng, dtype, batch, n, 3)]


def hermitian(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """One Hermitian matrix."""
    a = random(rng, dtype, batch, n, n)
    return [(a + adjoint(a)) / 2]


def positive(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """One positive definite matrix."""
    a = random(rng, dtype, batch, n, n)
    return [(a @ adjoint(a) / n + np.eye(n)).astype(dtype)]


def system(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """A system and right-hand sides."""
    a = random(rng, dtype, batch, n, n) + 2 * np.sqrt(n) * np.eye(n)
    return [a.astype(dtype), random(rng, dtype, batch, n, 3)]


def tridiagonal(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """Three diagonals, dominant in the middle, and right-hand sides."""
    n = max(n, 3)
    dl, d, du = (random(rng, dtype, batch, n) for _ in range(3))
    dl[:, 0], du[:, -1] = 0, 0
    return [dl, (d + 4).astype(dtype), du, random(rng, dtype, batch, n, 2)]


def long_tridiagonal(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """A few systems so long that cuSPARSE solves them."""
    return tridiagonal(rng, dtype, max(n, 600), min(batch, 2))


def factor_and_vector(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """An upper triangular factor and a vector."""
    r = np.triu(random(rng, dtype, batch, n, n)) + 3 * np.eye(n)
    return [r.astype(dtype), random(rng, dtype, batch, n)]


def in_rows(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """A square matrix in compressed rows, some of them empty, and a vector; no batch."""
    counts = rng.integers(0, 9, n)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    indices = rng.integers(0, n, indptr[-1]).astype(np.int32)
    return [random(rng, dtype, indptr[-1]), indices, indptr, random(rng, dtype, n)]


def sparse_system(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """The same, sorted and with a dominant diagonal, so that it is a system."""
    a = random(rng, dtype, n, n) * (rng.random((n, n)) < min(1.0, 4 / n)) + 10 * np.eye(n)
    rows, columns = np.nonzero(a)
    indptr = np.searchsorted(rows, np.arange(n + 1)).astype(np.int32)
    data = a[rows, columns].astype(dtype)
    return [data, columns.astype(np.int32), indptr, random(rng, dtype, n)]


def in_rows_and_matrix(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """The same with a matrix."""
    return [*in_rows(rng, dtype, n, batch)[:3], random(rng, dtype, n, 5)]


def entries(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """The same matrix as a list of entries, sorted by rows, and a vector."""
    data, indices, indptr, x = in_rows(rng, dtype, n, batch)
    return [data, _rows(indptr), indices, x]


def entries_and_matrix(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """The same with a matrix."""
    return [*entries(rng, dtype, n, batch)[:3], random(rng, dtype, n, 5)]


def mostly_zero(rng: Any, dtype: Any, n: int, batch: int) -> list[Any]:
    """A dense matrix of which one element in eight is not zero; no batch."""
    return [random(rng, dtype, n, n) * (rng.random((n, n)) < 1 / 8)]


def _rows(indptr: Any) -> Any:
    return np.repeat(np.arange(indptr.size - 1, dtype=np.int32), np.diff(indptr))


def _csr(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
    return sparse.CSR((data, indices, indptr), shape=(indptr.size - 1, x.shape[0]))


def _coo(data: Any, row: Any, col: Any, x: Any) -> Any:
    return sparse.COO((data, row, col), shape=(x.shape[0], x.shape[0]), rows_sorted=True)


def _there_and_back(form: Any) -> Callable[..., Any]:
    """The sparse matrix of a dense one, and its dense one; with more places than elements."""
    # A call for no element at all is none.
    return lambda a: form.fromdense(a, nse=1 + a.size // 2).todense()


def _sparse_solution(args: Arrays, rets: Arrays) -> float:
    data, columns, indptr, b = args
    (x,) = rets
    ax = np.zeros_like(b)
    np.add.at(ax, _rows(indptr), data * x[columns])
    return distance(ax, b, np.abs(data).max() * np.abs(x).max())


def _product(transpose: bool, listed: bool) -> Callable[[Arrays, Arrays], float]:
    def residual(args: Arrays, rets: Arrays) -> float:
        data, first, second, x = args
        rows, columns = (first, second) if listed else (_rows(second), first)
        a = np.zeros((x.shape[0], x.shape[0]), data.dtype)
        np.add.at(a, (columns, rows) if transpose else (rows, columns), data)
        return distance(rets[0], a @ x)

    return residual


def _eigh(args: Arrays, rets: Arrays) -> float:
    (a,), (w, v) = args, rets
    return max(
        distance(a @ v, v * w[..., None, :], a), distance(adjoint(v) @ v, np.eye(w.shape[-1]))
    )


def _some_of_eigh(a: Any) -> Any:
    v, w = jax.lax.linalg.eigh(a, subset_by_index=(a.shape[-1] // 3, a.shape[-1]))
    return w, v


def _some_of_eigh_residual(args: Arrays, rets: Arrays) -> float:
    (a,), (w, v) = args, rets
    values = distance(w, np.linalg.eigvalsh(a)[..., a.shape[-1] // 3 :], a)
    return max(values, distance(a @ v, v * w[..., None, :], a))


def _svd(args: Arrays, rets: Arrays) -> float:
    (a,), (u, s, vt) = args, rets
    return distance((u * s[..., None, :]) @ vt, a)


def _similar_by_vectors(args: Arrays, rets: Arrays) -> float:
    (a,), (t, z) = args, rets
    return max(distance(a @ z, z @ t, a), distance(adjoint(z) @ z, np.eye(z.shape[-1])))


def _trace(args: Arrays, rets: Arrays) -> float:
    """The eigenvalues add up to A's trace."""
    (a,), (w,) = args, rets
    sums = np.broadcast_to(w.sum(-1)[..., None], w.shape)
    return distance(sums, np.trace(a, axis1=-2, axis2=-1)[..., None], a)


def _as_large(args: Arrays, rets: Arrays) -> float:
    """A Hessenberg form has A's Frobenius norm; below it are its reflectors."""
    a, h = (np.linalg.norm(x, axis=(-2, -1)) for x in (args[0], np.triu(rets[0], -1)))
    return distance(np.broadcast_to(h[..., None], args[0].shape[:-1]), a[..., None])


def _eig(args: Arrays, rets: Arrays) -> float:
    (a,), (w, v) = args, rets
    return distance(a @ v, v * w[..., None, :], a)


def _eig_by_host(a: Any) -> Any:
    how = jax.lax.linalg.EigImplementation.LAPACK
    return jax.lax.linalg.eig(a, implementation=how)


def _left(args: Arrays, rets: Arrays) -> float:
    (a,), (w, left, right) = args, rets
    return max(
        distance(adjoint(a) @ left, left * np.conj(w)[..., None, :], a), _eig(args, (w, right))
    )


def _multiplied(args: Arrays, rets: Arrays) -> float:
    """AᴴQ·C is RᴴC."""
    (a, c), (product, r) = args, rets
    return distance(adjoint(a) @ product, adjoint(r) @ c)


def _similar(args: Arrays, rets: Arrays) -> float:
    """A and its tridiagonal form have the same eigenvalues."""
    (a,), (d, e) = args, rets
    t = d[..., None] * np.eye(d.shape[-1])
    t[..., 1:, :-1] += e[..., None] * np.eye(e.shape[-1])
    return distance(np.linalg.eigvalsh(t.astype(d.dtype)), np.linalg.eigvalsh(a))


def _diagonals(args: Arrays, rets: Arrays) -> float:
    dl, d, du, b = args
    (x,) = rets
    ax = d[..., None] * x
    ax[..., 1:, :] += dl[..., 1:, None] * x[..., :-1, :]
    ax[..., :-1, :] += du[..., :-1, None] * x[..., 1:, :]
    return distance(ax, b, np.abs(d).max() * np.abs(x).max())


def _update(args: Arrays, rets: Arrays) -> float:
    (r, w), (new,) = args, rets
    expected = adjoint(r) @ r + w[..., :, None] * np.conj(w[..., None, :])
    return distance(adjoint(new) @ new, expected)


def _lower(args: Arrays, rets: Arrays) -> float:
    (a,), (c,) = args, rets
    return distance(np.tril(c), np.tril(a @ np.swapaxes(a, -1, -2)))


def _svd_by(name: str) -> Callable[..., Any]:
    algorithm = getattr(jax.lax.linalg.SvdAlgorithm, name)

    def svd(a: Any) -> Any:
        return jax.lax.linalg.svd(a, full_matrices=False, algorithm=algorithm)

    return svd


def captured(p: jax.Array) -> Any:
    """Calls that XLA may record, between kernels of its own: one CUDA graph."""
    q = jax.lax.linalg.lu_pivots_to_permutation(2 * p + 1, 8)
    q = jax.lax.linalg.lu_pivots_to_permutation(q[..., :4] - 1, 8)
    return jnp.cumsum(q, -1), jnp.sort(q, -1)


def two_streams(*matrices: jax.Array) -> Any:
    """The same decomposition of several matrices, each on a stream of its own."""
    return [_on_stream(1 + at, _eigh_alone)(a) for at, a in enumerate(matrices)]


def sorted_by_host(x: jax.Array) -> Any:
    """A call of NumPy; an error where the first element is negative."""

    def host(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if x[0] < 0:
            raise ValueError("a negative number")
        return np.sort(x)

    return lapax.host_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def _eigh_alone(a: jax.Array) -> Any:
    return jax.lax.linalg.eigh(a, symmetrize_input=False)


def _on_stream(stream: int, function: Callable[..., Any]) -> Callable[..., Any]:
    where, memory = f"gpu_stream:{stream}", jax.memory.Space.Device
    return compute_on(function, compute_type=where, out_memory_spaces=memory)


PROGRAMS = (
    Program(
        "cholesky", jnp.linalg.cholesky, positive,
        lambda args, rets: distance(rets[0] @ adjoint(rets[0]), args[0]), ("cusolver_potrf_ffi",),
        small=("lapax_cholesky",),
    ),
    Program(
        "solve", jnp.linalg.solve, system,
        lambda args, rets: distance(
            args[0] @ rets[0], args[1], np.abs(args[0]).max() * np.abs(rets[0]).max()
        ),
        ("cusolver_getrf_ffi", "cu_lu_pivots_to_permutation"), small=("lapax_solve",),
    ),
    Program(
        "inv", jnp.linalg.inv, square,
        lambda args, rets: distance(
            args[0] @ rets[0], np.eye(args[0].shape[-1], dtype=args[0].dtype),
            np.abs(args[0]).max() * np.abs(rets[0]).max(),
        ),
        ("cusolver_getrf_ffi", "cu_lu_pivots_to_permutation"), small=("lapax_inv",),
    ),
    Program(
        "qr", jnp.linalg.qr, tall, lambda args, rets: distance(rets[0] @ rets[1], args[0]),
        ("cusolver_geqrf_ffi", "cusolver_orgqr_ffi"), small=("lapax_qr",),
    ),
    Program(
        "eigh", jnp.linalg.eigh, hermitian, _eigh, ("cusolver_syevd_ffi",), small=("lapax_eigh",),
    ),
    Program(
        "eigvalsh", jnp.linalg.eigvalsh, hermitian,
        lambda args, rets: distance(rets[0], np.linalg.eigvalsh(args[0])), ("cusolver_syevd_ffi",),
        small=("lapax_eigvalsh",),
    ),
    Program(
        "eigh_subset", _some_of_eigh, hermitian, _some_of_eigh_residual, ("cusolver_syevd_ffi",),
        small=("lapax_eigh_subset",),
    ),
    Program(
        "symmetrize", lambda a: lapax.ffi.symmetrize(a), square,
        lambda args, rets: distance(rets[0], (args[0] + adjoint(args[0])) / 2),
        ("lapax_symmetrize",),
    ),
    Program(
        "svd", _svd_by("DEFAULT"), tall, _svd, ("cusolver_gesvdj_ffi",), small=("lapax_svd",)
    ),
    Program(
        "svdvals", jnp.linalg.svdvals, tall,
        lambda args, rets: distance(rets[0], np.linalg.svd(args[0], compute_uv=False)),
        ("cusolver_gesvdj_ffi",), small=("lapax_svdvals",),
    ),
    Program("schur", jsl.schur, square, _similar_by_vectors, ("lapax_schur",)),
    Program(
        "hessenberg", lambda a: jsl.hessenberg(a, calc_q=True), square, _similar_by_vectors,
        ("lapax_hess",),
    ),
    Program(
        "hessenberg_alone", lambda a: jax.lax.linalg.hessenberg(a)[0], square,
        _as_large, ("lapax_gehrd",),
    ),
    Program("svd_qr", _svd_by("QR"), tall, _svd, ("cusolver_gesvd_ffi",)),
    Program("svd_polar", _svd_by("POLAR"), tall, _svd, ("cusolver_gesvdp_ffi",)),
    Program(
        "eig", jnp.linalg.eig, square, _eig, ("cusolver_geev_ffi",), small=("lapax_eig",)
    ),
    Program(
        "eigvals", jnp.linalg.eigvals, square,
        _trace,
        ("cusolver_geev_ffi",), small=("lapax_eigvals",),
    ),
    Program(
        "eig_by_host", _eig_by_host, square, _left, ("cuhybrid_eig_real",), dtypes=REAL,
    ),
    Program(
        "eig_by_host_complex", _eig_by_host, square, _left, ("cuhybrid_eig_comp",),
        dtypes=COMPLEX,
    ),
    Program(
        "qr_pivoting", lambda a: jsl.qr(a, mode="economic", pivoting=True), tall,
        lambda args, rets: distance(
            rets[0] @ rets[1], np.take_along_axis(args[0], rets[2][..., None, :], -1)
        ),
        ("cuhybrid_geqp3", "cusolver_orgqr_ffi"),
    ),
    Program(
        "qr_multiply", lambda a, c: jsl.qr_multiply(a, c, mode="left"), tall_and_columns,
        _multiplied, ("cusolver_geqrf_ffi", "cusolver_ormqr_ffi"),
    ),
    Program(
        "tridiagonal", lambda a: jax.lax.linalg.tridiagonal(a, lower=True)[1:3], hermitian,
        _similar, ("cusolver_sytrd_ffi",),
    ),
    Program(
        "tridiagonal_solve", jax.lax.linalg.tridiagonal_solve, tridiagonal, _diagonals,
        ("lapax_tridiagonal_solve",),
    ),
    Program(
        "long_tridiagonal_solve", jax.lax.linalg.tridiagonal_solve, long_tridiagonal, _diagonals,
        ("cusparse_gtsv2_ffi",),
    ),
    Program(
        "tridiagonal_solve_perturbed",
        lambda *a: jax.lax.linalg.tridiagonal_solve(*a, perturb_singular=True), tridiagonal,
        _diagonals, ("cu_tridiagonal_solve_perturbed",),
    ),
    Program(
        "cholesky_update", jax.vmap(jax.lax.linalg.cholesky_update), factor_and_vector, _update,
        ("cu_cholesky_update_ffi",), dtypes=REAL,
    ),
    Program(
        "symmetric_product",
        jax.vmap(lambda a: jax.lax.linalg.symmetric_product(a, jnp.zeros_like(a))), square, _lower,
        ("cusolver_syrk_ffi",), dtypes=REAL,
    ),
    Program(
        "sparse_solve", spsolve, sparse_system, _sparse_solution, ("cusolver_csrlsvqr_ffi",),
    ),
    Program(
        "csr_matvec", lambda *a: _csr(*a) @ a[3], in_rows, _product(False, False),
        ("cusparse_csr_matvec_ffi",),
    ),
    Program(
        "csr_matmat", lambda *a: _csr(*a).T @ a[3], in_rows_and_matrix, _product(True, False),
        ("cusparse_csr_matmat_ffi",), fixed=False,
    ),
    Program(
        "coo_matvec", lambda *a: _coo(*a) @ a[3], entries, _product(False, True),
        ("cusparse_coo_matvec_ffi",), fixed=False,
    ),
    Program(
        "coo_matmat", lambda *a: _coo(*a).T @ a[3], entries_and_matrix, _product(True, True),
        ("cusparse_coo_matmat_ffi",), fixed=False,
    ),
    Program(
        "csr_dense", _there_and_back(sparse.CSR), mostly_zero,
        lambda args, rets: distance(rets[0], args[0]),
        ("cusparse_csr_fromdense_ffi", "cusparse_csr_todense_ffi"),
    ),
    Program(
        "coo_dense", _there_and_back(sparse.COO), mostly_zero,
        lambda args, rets: distance(rets[0], args[0]),
        ("cusparse_coo_fromdense_ffi", "cusparse_coo_todense_ffi"),
    ),
)  # fmt: skip
