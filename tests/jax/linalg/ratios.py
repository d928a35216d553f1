"""LAPACK's residual ratios: ‖error‖₁ / (n·scale·ε), which a stable method keeps below 30."""

from __future__ import annotations

import numpy as np

LIMIT = 30


def adjoint(a):
    return np.asarray(a).conj().swapaxes(-1, -2)


def norm(a):
    """The one-norm of each matrix."""
    return np.abs(np.asarray(a)).sum(-2).max(-1)


def ratio(error, scale, dtype):
    """The largest of the batch; NaN where there is one."""
    n = max(error.shape[-2:])
    return np.max(norm(error) / (n * scale * np.finfo(dtype).eps))


def orthogonality(q, dtype):
    """That of QᴴQ − I."""
    return ratio(adjoint(q) @ np.asarray(q) - np.eye(q.shape[-1]), 1, dtype)
