"""SciPy as a side of the `linalg` rows: its function, called once for a batch of NumPy's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from lapax._bench.linalg import FUNCTIONS
from lapax._bench.measure import Other, Program, wrong
from lapax._bench.plan import Prepared
from lapax._bench.rows import Row, UnavailableError


def load() -> Other:
    """Makes programs of SciPy's functions, which are there wherever JAX is."""
    return program


def program(row: Row, prepared: Prepared) -> Program | None:
    """SciPy's side of a row. Raises UnavailableError where its answer is wrong."""
    known = {function.name: function.scipy for function in FUNCTIONS}
    call = known.get(row.name) if row.kind == "linalg" else None
    if call is None:
        return None

    def run() -> Any:
        return call(*prepared.args)

    found = run()
    results = found if isinstance(found, (tuple, list)) else (found,)
    residual = prepared.check([np.asarray(result) for result in results])
    if wrong([residual]):
        raise UnavailableError(f"SciPy's answer has residual {residual:.3g}")
    return run
