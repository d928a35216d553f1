"""The papers' matrices for functions of a matrix, and the functions' values in 200 digits."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np

N = 5


def entries(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def exact(a: np.ndarray, f: Callable) -> np.ndarray:
    """f(A) by eigenvectors in 200 digits, of A with its eigenvalues moved apart by 1e-60."""
    with mpmath.workdps(200):
        moved = mpmath.matrix(a.tolist()) + mpmath.mpf(10) ** -60 * mpmath.matrix(
            entries(9, *a.shape).tolist()
        )
        w, v = mpmath.eig(moved)
        value = v * mpmath.diag([f(x) for x in w]) * mpmath.inverse(v)
        return np.array(value.tolist()).astype(complex)


def matrices() -> dict[str, np.ndarray]:
    """None has an eigenvalue on the negative real axis, where 60 digits choose a side."""
    a = entries(0, N, N)
    spread = np.triu(np.full((N, N), 3e4), 1) + np.diag([0.32346, 0.30089, 0.3221, 0.30744, 0.31])
    grades = 10.0 ** np.arange(N)
    return {
        "positive definite": a @ a.T,
        "complex": a + 1j * entries(1, N, N),
        "of Al-Mohy and Higham, experiment 1": spread,
        "defective": np.eye(N) / 2 + np.eye(N, k=1),
        "defective, of large norm": np.eye(N) / 2 + np.eye(N, k=1) * 1e3,
        "nearly singular": np.diag([1, 1e-12, 1e-80, 3, 5]) + np.triu(np.abs(a), 1),
        "graded": grades[:, None] * (np.eye(N) + a / 9) / grades,
        "beside the branch cut": np.diag([-1 + 1e-9j, -1 - 1e-9j, -2 + 1e-9j, 1, 2])
        + np.eye(N, k=1),
        "triangular": np.triu(np.abs(a) + 0.1),
    }


def check_accuracy(computed: np.ndarray, theirs: Callable, of_number: Callable) -> None:
    """No farther from the truth than SciPy: 3 times in the median, 30 times anywhere."""
    ratios = []
    for (kind, a), x in zip(matrices().items(), computed, strict=True):
        truth = exact(a, of_number)
        errors = [np.linalg.norm(y - truth) / np.linalg.norm(truth) for y in (x, theirs(a))]
        ratios.append(errors[0] / max(errors[1], 1e-16))
        assert errors[0] < max(30 * errors[1], 1e-13), f"{kind}: {errors[0]:.1e} {errors[1]:.1e}"
    assert np.median(ratios) < 3
