"""scipy.linalg for JAX: batched, compiled, differentiable, in f32, f64, c64 and c128.

Names, arguments and results are SciPy's; leading dimensions are batches. Arguments that mean
nothing here (`overwrite_*`, `check_finite`, `lapack_driver`, `lwork`) are taken and ignored. Shapes
of results depend on shapes alone: where SciPy's depend on values, the size is an argument, and
without it the function works outside of jit. What cannot be computed is NaN in that matrix alone.

Functions that are compositions of JAX's run on lapax under `lapax.install()`, and on what JAX has
without; those with targets of their own always run on lapax.
"""

from lapax.linalg._block_tridiagonal import (
    block_tridiagonal_cho_solve,
    block_tridiagonal_cholesky,
    block_tridiagonal_inverse,
    block_tridiagonal_logdet,
    block_tridiagonal_matmul,
    block_tridiagonal_sample,
    block_tridiagonal_solve,
)

__all__ = [
    "block_tridiagonal_cho_solve",
    "block_tridiagonal_cholesky",
    "block_tridiagonal_inverse",
    "block_tridiagonal_logdet",
    "block_tridiagonal_matmul",
    "block_tridiagonal_sample",
    "block_tridiagonal_solve",
]
