"""The JAX versions lapax is checked on, and the gate that `import lapax` passes through.

Of a newer JAX than these `install()` finds out what fits: see `_unknown`.
"""

from __future__ import annotations

import functools
import re
import sys

OLDEST_JAX = "0.8.0"
NEWEST_JAX = "0.12.0.1"


def require_supported_jax(found: str) -> None:
    """Raises ImportError where found < OLDEST_JAX."""
    if _key(found) < _key(OLDEST_JAX):
        raise ImportError(
            f"lapax supports jax {OLDEST_JAX} and later; found jax {found}. "
            f"Install a later one, for example: pip install 'jax=={NEWEST_JAX}'"
        )


@functools.cache
def is_checked(version: str) -> bool:
    """Whether lapax was checked on this JAX, and is used on it without further ado."""
    return _key(OLDEST_JAX) <= _key(version) <= _key(NEWEST_JAX)


def jaxlib_waits_for_its_batches(version: str) -> bool:
    """Whether stock handlers wait, on one of XLA's threads, for parts of a batch that run on them.

    Those of jaxlib 0.9.2 (SVD) and 0.10.0 (all) to 0.11.0 do: as many calls side by side as there
    are threads, of one program or of several, wait for ever. On two cores that was seen with
    0.10.2 in the gradient of a batched solve, whose systems and whose transposed ones are
    independent.
    """
    return _key("0.9.2") <= _key(version) < _key("0.11.1")


def _key(version: str) -> tuple[int, ...]:
    """The release number, four places: "0.12.0.1" → (0, 12, 0, 1), "0.8.1.dev3" → (0, 8, 1, 0).

    What is no number is newer than all.
    """
    release = re.match(r"\d+(\.\d+)*", version)
    if release is None:
        return (sys.maxsize,) * 4
    places = [int(place) for place in release.group().split(".")]
    return tuple((places + [0] * 4)[:4])
