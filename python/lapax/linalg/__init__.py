"""scipy.linalg for JAX: batched, compiled, differentiable, in f32, f64, c64 and c128.

Names, arguments and results are SciPy's; leading dimensions are batches. Arguments that mean
nothing here (`overwrite_*`, `check_finite`, `lapack_driver`, `lwork`) are taken and ignored. Shapes
of results depend on shapes alone: where SciPy's depend on values, the size is an argument, and
without it the function works outside of jit. What cannot be computed is NaN in that matrix alone.

Functions that are compositions of JAX's run on lapax under `lapax.install()`, and on what JAX has
without; those with targets of their own always run on lapax.
"""

from __future__ import annotations

from lapax.linalg._band_spectra import (
    eig_banded,
    eigh_tridiagonal,
    eigvals_banded,
    eigvalsh_tridiagonal,
)
from lapax.linalg._banded import cho_solve_banded, cholesky_banded, solve_banded, solveh_banded

__all__ = [
    "cho_solve_banded",
    "cholesky_banded",
    "eig_banded",
    "eigh_tridiagonal",
    "eigvals_banded",
    "eigvalsh_tridiagonal",
    "solve_banded",
    "solveh_banded",
]
