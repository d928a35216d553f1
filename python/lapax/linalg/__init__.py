"""scipy.linalg for JAX: batched, compiled, differentiable, in f32, f64, c64 and c128.

Names, arguments and results are SciPy's; leading dimensions are batches. Arguments that mean
nothing here (`overwrite_*`, `check_finite`, `lapack_driver`, `lwork`) are taken and ignored. Shapes
of results depend on shapes alone: where SciPy's depend on values, the size is an argument, and
without it the function works outside of jit. What cannot be computed is NaN in that matrix alone.

Functions that are compositions of JAX's run on lapax under `lapax.install()`, and on what JAX has
without; those with targets of their own always run on lapax.

Cost is in operations with real numbers, of which a complex one takes four; where none is said it is
that of the entries. Errors, where nothing else is said, are those of backward stable methods: the
result is exact for operands changed by a small multiple of n·ε of their norms. Names in examples
are those of this module and of `jax.numpy`; `key` is `jax.random.key`.
"""

from __future__ import annotations

from jax.scipy.linalg import cholesky, det, solve_triangular

from lapax.linalg import interpolative as interpolative
from lapax.linalg._balance import matrix_balance
from lapax.linalg._band_spectra import (
    eig_banded,
    eigh_tridiagonal,
    eigvals_banded,
    eigvalsh_tridiagonal,
)
from lapax.linalg._banded import cho_solve_banded, cholesky_banded, solve_banded, solveh_banded
from lapax.linalg._block_lu import (
    BlockTridiagonalLU,
    block_tridiagonal_lu,
    block_tridiagonal_lu_solve,
)
from lapax.linalg._block_tridiagonal import (
    block_tridiagonal_cho_solve,
    block_tridiagonal_cholesky,
    block_tridiagonal_inverse,
    block_tridiagonal_logdet,
    block_tridiagonal_matmul,
    block_tridiagonal_sample,
    block_tridiagonal_solve,
)
from lapax.linalg._cholesky_update import cholesky_downdate, cholesky_update
from lapax.linalg._cossin import cossin
from lapax.linalg._definite import (
    SolveLogdet,
    cho_factor,
    cho_solve,
    cholesky_of_inverse,
    solve_logdet,
    tri_inverse,
)
from lapax.linalg._equations import (
    solve_continuous_lyapunov,
    solve_discrete_lyapunov,
    solve_lyapunov,
    solve_sylvester,
)
from lapax.linalg._expm import expm, expm_cond, expm_frechet
from lapax.linalg._expm_multiply import expm_multiply
from lapax.linalg._factors import lu, lu_factor, lu_solve, polar, svdvals
from lapax.linalg._forms import block_diag, cdf2rdf, diagsvd, khatri_rao, rsf2csf
from lapax.linalg._funm import coshm, cosm, funm, funmh, inverse_pth_root, sinhm, sinm, tanhm, tanm
from lapax.linalg._generalised import eigh, eigvalsh
from lapax.linalg._indefinite import inv, ldl, solve
from lapax.linalg._least_squares import lstsq, matrix_rank, pinv, pinvh
from lapax.linalg._logm import fractional_matrix_power, logm
from lapax.linalg._lqr import finite_horizon_lqr
from lapax.linalg._norm_estimates import cho_rcond, lu_rcond, onenormest, triangular_rcond
from lapax.linalg._pivoted_cholesky import PivotedCholesky, pivoted_cholesky
from lapax.linalg._qr import qr, qr_multiply, rq, tria
from lapax.linalg._qr_updates import qr_delete, qr_insert, qr_update
from lapax.linalg._qz import ordqz, qz
from lapax.linalg._refinement import RefinedSolution, solve_refined
from lapax.linalg._riccati import solve_continuous_are, solve_discrete_are
from lapax.linalg._schur import hessenberg, schur
from lapax.linalg._semidefinite import psd_inverse, psd_inverse_sqrt, psd_sqrt
from lapax.linalg._sketch import clarkson_woodruff_transform
from lapax.linalg._special import (
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
)
from lapax.linalg._spectra import eig, eigvals, svd
from lapax.linalg._sqrtm import signm, sqrtm
from lapax.linalg._structure import bandwidth, ishermitian, issymmetric, norm
from lapax.linalg._subspaces import null_space, orth, orthogonal_procrustes, subspace_angles
from lapax.linalg._toeplitz import (
    circulant,
    matmul_toeplitz,
    solve_circulant,
    solve_toeplitz,
    toeplitz,
)
from lapax.linalg._truncated import truncated_eigh, truncated_svd

__all__ = [
    "BlockTridiagonalLU",
    "PivotedCholesky",
    "RefinedSolution",
    "SolveLogdet",
    "bandwidth",
    "block_diag",
    "block_tridiagonal_cho_solve",
    "block_tridiagonal_cholesky",
    "block_tridiagonal_inverse",
    "block_tridiagonal_logdet",
    "block_tridiagonal_lu",
    "block_tridiagonal_lu_solve",
    "block_tridiagonal_matmul",
    "block_tridiagonal_sample",
    "block_tridiagonal_solve",
    "cdf2rdf",
    "cho_factor",
    "cho_rcond",
    "cho_solve",
    "cho_solve_banded",
    "cholesky",
    "cholesky_banded",
    "cholesky_downdate",
    "cholesky_of_inverse",
    "cholesky_update",
    "circulant",
    "clarkson_woodruff_transform",
    "companion",
    "convolution_matrix",
    "coshm",
    "cosm",
    "cossin",
    "det",
    "dft",
    "diagsvd",
    "eig",
    "eig_banded",
    "eigh",
    "eigh_tridiagonal",
    "eigvals",
    "eigvals_banded",
    "eigvalsh",
    "eigvalsh_tridiagonal",
    "expm",
    "expm_cond",
    "expm_frechet",
    "expm_multiply",
    "fiedler",
    "fiedler_companion",
    "finite_horizon_lqr",
    "fractional_matrix_power",
    "funm",
    "funmh",
    "hadamard",
    "hankel",
    "helmert",
    "hessenberg",
    "hilbert",
    "inv",
    "inverse_pth_root",
    "invhilbert",
    "invpascal",
    "ishermitian",
    "issymmetric",
    "khatri_rao",
    "ldl",
    "leslie",
    "logm",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_rcond",
    "lu_solve",
    "matmul_toeplitz",
    "matrix_balance",
    "matrix_rank",
    "norm",
    "null_space",
    "onenormest",
    "ordqz",
    "orth",
    "orthogonal_procrustes",
    "pascal",
    "pinv",
    "pinvh",
    "pivoted_cholesky",
    "polar",
    "psd_inverse",
    "psd_inverse_sqrt",
    "psd_sqrt",
    "qr",
    "qr_delete",
    "qr_insert",
    "qr_multiply",
    "qr_update",
    "qz",
    "rq",
    "rsf2csf",
    "schur",
    "signm",
    "sinhm",
    "sinm",
    "solve",
    "solve_banded",
    "solve_circulant",
    "solve_continuous_are",
    "solve_continuous_lyapunov",
    "solve_discrete_are",
    "solve_discrete_lyapunov",
    "solve_logdet",
    "solve_lyapunov",
    "solve_refined",
    "solve_sylvester",
    "solve_toeplitz",
    "solve_triangular",
    "solveh_banded",
    "sqrtm",
    "subspace_angles",
    "svd",
    "svdvals",
    "tanhm",
    "tanm",
    "toeplitz",
    "tri_inverse",
    "tria",
    "triangular_rcond",
    "truncated_eigh",
    "truncated_svd",
]
