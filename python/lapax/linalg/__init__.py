"""scipy.linalg for JAX: batched, compiled, differentiable, in f32, f64, c64 and c128.

Names, arguments and results are SciPy's; leading dimensions are batches. Arguments that mean
nothing here (`overwrite_*`, `check_finite`, `lapack_driver`, `lwork`) are taken and ignored. Shapes
of results depend on shapes alone: where SciPy's depend on values, the size is an argument, and
without it the function works outside of jit. What cannot be computed is NaN in that matrix alone.

Functions that are compositions of JAX's run on lapax under `lapax.install()`, and on what JAX has
without; those with targets of their own always run on lapax.
"""

from __future__ import annotations

from lapax.linalg._cholesky_update import cholesky_downdate, cholesky_update
from lapax.linalg._definite import (
    SolveLogdet,
    cho_factor,
    cho_solve,
    cholesky_of_inverse,
    solve_logdet,
    tri_inverse,
)
from lapax.linalg._generalised import eigh, eigvalsh
from lapax.linalg._pivoted_cholesky import PivotedCholesky, pivoted_cholesky
from lapax.linalg._schur import hessenberg, schur
from lapax.linalg._semidefinite import psd_inverse, psd_inverse_sqrt, psd_sqrt
from lapax.linalg._spectra import eig, eigvals, svd

__all__ = [
    "PivotedCholesky",
    "SolveLogdet",
    "cho_factor",
    "cho_solve",
    "cholesky_downdate",
    "cholesky_of_inverse",
    "cholesky_update",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "hessenberg",
    "pivoted_cholesky",
    "psd_inverse",
    "psd_inverse_sqrt",
    "psd_sqrt",
    "schur",
    "solve_logdet",
    "svd",
    "tri_inverse",
]
