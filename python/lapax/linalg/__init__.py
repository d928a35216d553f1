"""scipy.linalg for JAX: batched, compiled, differentiable, in f32, f64, c64 and c128.

Names, arguments and results are SciPy's; leading dimensions are batches. Arguments that mean
nothing here (`overwrite_*`, `check_finite`, `lapack_driver`, `lwork`) are taken and ignored. Shapes
of results depend on shapes alone: where SciPy's depend on values, the size is an argument, and
without it the function works outside of jit. What cannot be computed is NaN in that matrix alone.

Functions that are compositions of JAX's run on lapax under `lapax.install()`, and on what JAX has
without; those with targets of their own always run on lapax.
"""

from lapax.linalg._equations import (
    solve_continuous_lyapunov,
    solve_discrete_lyapunov,
    solve_lyapunov,
    solve_sylvester,
)
from lapax.linalg._expm import expm, expm_cond, expm_frechet
from lapax.linalg._expm_multiply import expm_multiply
from lapax.linalg._funm import (
    coshm,
    cosm,
    funm,
    funmh,
    inverse_pth_root,
    sinhm,
    sinm,
    tanhm,
    tanm,
)
from lapax.linalg._logm import fractional_matrix_power, logm
from lapax.linalg._lqr import finite_horizon_lqr
from lapax.linalg._riccati import solve_continuous_are, solve_discrete_are
from lapax.linalg._sqrtm import signm, sqrtm

__all__ = [
    "coshm",
    "cosm",
    "expm",
    "expm_cond",
    "expm_frechet",
    "expm_multiply",
    "finite_horizon_lqr",
    "fractional_matrix_power",
    "funm",
    "funmh",
    "inverse_pth_root",
    "logm",
    "signm",
    "sinhm",
    "sinm",
    "solve_continuous_are",
    "solve_continuous_lyapunov",
    "solve_discrete_are",
    "solve_discrete_lyapunov",
    "solve_lyapunov",
    "solve_sylvester",
    "sqrtm",
    "tanhm",
    "tanm",
]
