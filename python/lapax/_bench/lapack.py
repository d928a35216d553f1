"""lapax on its other backend, the LAPACK library that it was built with, as a side of a row."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from lapax import _backend
from lapax._bench.measure import Other, Program, wrong
from lapax._bench.plan import Prepared
from lapax._bench.rows import Row, UnavailableError

NAME = "lapack"


def load() -> Other:
    """Makes programs of that backend. Raises UnavailableError where liblapax has none."""
    if NAME not in [backend.name for backend in _backend.backends()]:
        raise UnavailableError("liblapax was built without a LAPACK: README, LAPACK backend")
    return program


def program(row: Row, prepared: Prepared) -> Program:
    """lapax's side of the row there. Raises UnavailableError where its answer is wrong."""
    ours = prepared.ours

    def run() -> Any:
        before = _backend.backend()
        _backend.set_backend(NAME)
        try:
            # The backend is that of the call's end, too.
            return jax.block_until_ready(ours())
        finally:
            _backend.set_backend(before)

    residual = prepared.check([*map(np.asarray, jax.tree.leaves(run()))])
    if wrong([residual]):
        raise UnavailableError(f"the backend's answer has residual {residual:.3g}")
    return run
