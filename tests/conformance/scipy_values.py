"""Tests of SciPy that ask for its own rounding errors: how far both answers are from the truth.

A value is a reason for a failure only where SciPy's is not nearer to the truth, which is computed
here in rational numbers or by 50 digits, apart from both.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy.linalg

from lapax import linalg


class Errors(NamedTuple):
    """Largest errors of lapax.linalg's answer and of SciPy's."""

    of: str
    ours: float
    scipys: float

    @property
    def explain(self) -> bool:
        """Whether a test that wants SciPy's answer may fail for them."""
        return self.ours <= self.scipys


def lu_factors() -> Errors:
    """LU of TestLUFactor.test_hrectangular, in the pivots' order that both choose."""
    a = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 12, 12]])
    (ours, order), (scipys, pivots) = linalg.lu_factor(a), scipy.linalg.lu_factor(a)
    assert list(order) == list(pivots)
    exact = a.astype(object) * Fraction(1)
    for k, pivot in enumerate(pivots):
        exact[[k, pivot]] = exact[[pivot, k]]
        exact[k + 1 :, k] /= exact[k, k]
        exact[k + 1 :, k + 1 :] -= np.outer(exact[k + 1 :, k], exact[k, k + 1 :])

    def error(factors: np.ndarray) -> float:
        rational = np.array([Fraction(x) for x in factors.ravel().tolist()])
        return float(abs(rational - exact.ravel()).max())

    return Errors("factors", error(np.asarray(ours)), error(scipys))


EVIDENCE: dict[tuple[str, str], Callable[[], Errors]] = {
    ("test_decomp_lu", "TestLUFactor.test_hrectangular"): lu_factors,
}
"""By file and test."""
