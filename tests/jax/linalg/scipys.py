"""The release of SciPy whose arguments and results lapax.linalg has."""

from __future__ import annotations

import pytest
import scipy

FOLLOWED = (1, 18)
FOUND = tuple(map(int, scipy.__version__.split(".")[:2]))

as_followed = pytest.mark.skipif(
    FOUND < FOLLOWED,
    reason=f"SciPy {scipy.__version__} has other arguments and results than 1.18 has",
)
"""For tests that compare with it what releases of SciPy do not have in common."""
