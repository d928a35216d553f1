"""scipy.linalg for JAX: batched, compiled, differentiable, in f32, f64, c64 and c128.

Names, arguments and results are SciPy's; leading dimensions are batches. Arguments that mean
nothing here (`overwrite_*`, `check_finite`, `lapack_driver`, `lwork`) are taken and ignored. Shapes
of results depend on shapes alone: where SciPy's depend on values, the size is an argument, and
without it the function works outside of jit. What cannot be computed is NaN in that matrix alone.

Functions that are compositions of JAX's run on lapax under `lapax.install()`, and on what JAX has
without; those with targets of their own always run on lapax.
"""

from lapax.linalg._cossin import cossin
from lapax.linalg._factors import lu, lu_factor, lu_solve, polar, svd, svdvals
from lapax.linalg._least_squares import lstsq, matrix_rank, pinv, pinvh
from lapax.linalg._qr import qr, qr_multiply, rq, tria
from lapax.linalg._qr_updates import qr_delete, qr_insert, qr_update
from lapax.linalg._subspaces import null_space, orth, orthogonal_procrustes, subspace_angles
from lapax.linalg._truncated import truncated_eigh, truncated_svd

__all__ = [
    "cossin",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matrix_rank",
    "null_space",
    "orth",
    "orthogonal_procrustes",
    "pinv",
    "pinvh",
    "polar",
    "qr",
    "qr_delete",
    "qr_insert",
    "qr_multiply",
    "qr_update",
    "rq",
    "subspace_angles",
    "svd",
    "svdvals",
    "tria",
    "truncated_eigh",
    "truncated_svd",
]
