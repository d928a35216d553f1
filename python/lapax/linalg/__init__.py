"""scipy.linalg for JAX: batched, compiled, differentiable, in f32, f64, c64 and c128.

Names, arguments and results are SciPy's; leading dimensions are batches. Arguments that mean
nothing here (`overwrite_*`, `check_finite`, `lapack_driver`, `lwork`) are taken and ignored. Shapes
of results depend on shapes alone: where SciPy's depend on values, the size is an argument, and
without it the function works outside of jit. What cannot be computed is NaN in that matrix alone.

Functions that are compositions of JAX's run on lapax under `lapax.install()`, and on what JAX has
without; those with targets of their own always run on lapax. What jax.scipy.linalg has with all of
SciPy's arguments is JAX's own function.
"""

from jax.scipy.linalg import (
    cho_factor,
    cho_solve,
    cholesky,
    det,
    expm,
    lu_factor,
    lu_solve,
    solve_triangular,
    svd,
)

from lapax.linalg._balance import matrix_balance
from lapax.linalg._forms import block_diag, cdf2rdf, diagsvd, khatri_rao, rsf2csf
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
from lapax.linalg._structure import bandwidth, ishermitian, issymmetric, norm
from lapax.linalg._toeplitz import (
    circulant,
    matmul_toeplitz,
    solve_circulant,
    solve_toeplitz,
    toeplitz,
)

__all__ = [
    "bandwidth",
    "block_diag",
    "cdf2rdf",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "clarkson_woodruff_transform",
    "companion",
    "convolution_matrix",
    "det",
    "dft",
    "diagsvd",
    "expm",
    "fiedler",
    "fiedler_companion",
    "hadamard",
    "hankel",
    "helmert",
    "hilbert",
    "invhilbert",
    "invpascal",
    "ishermitian",
    "issymmetric",
    "khatri_rao",
    "leslie",
    "lu_factor",
    "lu_solve",
    "matmul_toeplitz",
    "matrix_balance",
    "norm",
    "pascal",
    "rsf2csf",
    "solve_circulant",
    "solve_toeplitz",
    "solve_triangular",
    "svd",
    "toeplitz",
]
