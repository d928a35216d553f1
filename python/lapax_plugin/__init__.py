"""What JAX loads when it makes its first backend, in every process where lapax is installed.

With LAPAX=1 in the environment JAX computes on lapax, in programs that one does not edit. Without
it nothing is imported and nothing changes: this is no part of `lapax`, whose import would be both.
"""

from __future__ import annotations

import os
import warnings

VARIABLE = "LAPAX"


def initialize() -> None:
    """JAX's entry point, called once, before any backend is there."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted in ("", "0"):
        return
    if wanted != "1":
        warnings.warn(
            f"{VARIABLE}: expected 0 or 1, got {wanted!r}; JAX computes on jaxlib",
            RuntimeWarning,
            stacklevel=2,
        )
        return
    import lapax

    lapax.install()
