"""The JAX versions lapax is checked on, and the gate that `import lapax` passes through."""

from __future__ import annotations

import re

OLDEST_JAX = "0.8.0"
NEWEST_JAX = "0.12.0.1"


def require_supported_jax(found: str) -> None:
    """Raises ImportError unless OLDEST_JAX ≤ found ≤ NEWEST_JAX."""
    if not _key(OLDEST_JAX) <= _key(found) <= _key(NEWEST_JAX):
        raise ImportError(
            f"lapax supports jax {OLDEST_JAX} to {NEWEST_JAX}; found jax {found}. "
            f"Install a supported one, for example: pip install 'jax=={NEWEST_JAX}'"
        )


def _key(version: str) -> tuple[int, ...]:
    """The release number, four places: "0.12.0.1" → (0, 12, 0, 1), "0.8.1.dev3" → (0, 8, 1, 0)."""
    release = re.match(r"\d+(\.\d+)*", version)
    if release is None:
        raise ImportError(f"lapax cannot read the jax version {version!r}")
    places = [int(place) for place in release.group().split(".")]
    return tuple((places + [0] * 4)[:4])
