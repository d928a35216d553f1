"""Some of the eigenvalues, chosen by index or by value, and their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from lapax.linalg._arguments import Array


class Subset(NamedTuple):
    """All eigenvalues, those of an interval of indices, or those of an interval (low, high]."""

    by_index: tuple[int, int] | None = None
    by_value: tuple[float, float] | None = None
    size: int | None = None
    """How many of `by_value` there is room for."""

    @classmethod
    def of(
        cls,
        function: str,
        n: int,
        by_index: Sequence[int] | None,
        by_value: Sequence[float] | None,
        size: int | None,
    ) -> Subset:
        """Raises ValueError for both intervals, or for one that is reversed or out of range."""
        if by_index is not None and by_value is not None:
            raise ValueError(f"{function}: expected subset_by_index or subset_by_value, got both")
        if size is not None and by_value is None:
            raise ValueError(f"{function}: size: expected with subset_by_value, got {size}")
        if by_index is not None:
            first, last = map(int, by_index)
            if not 0 <= first <= last < n:
                raise ValueError(
                    f"{function}: subset_by_index: expected 0 <= first <= last < {n}, "
                    f"got {first} and {last}"
                )
            return cls(by_index=(first, last))
        if by_value is None:
            return cls()
        low, high = map(float, by_value)
        if not low < high:
            raise ValueError(
                f"{function}: subset_by_value: expected low < high, got {low} and {high}"
            )
        return cls(by_value=(low, high), size=size)

    def with_size_of(self, function: str, w: Array, argument: str = "subset_by_value") -> Subset:
        """Room for those among these eigenvalues. Raises ValueError where matrices differ."""
        counts = np.unique(np.asarray(self._inside(w).sum(-1)))
        if counts.size > 1:
            raise ValueError(
                f"{function}: {argument}: expected equally many in each matrix, "
                f"got from {counts.min()} to {counts.max()}: pass size"
            )
        return self._replace(size=int(counts[0]) if counts.size else 0)

    def take(self, w: Array, v: Array | None = None) -> Any:
        """Of w [..., n] and v [..., m, n] those chosen, and with `size` how many these are."""
        if self.by_index is not None:
            kept = slice(self.by_index[0], self.by_index[1] + 1)
            w, v = w[..., kept], None if v is None else v[..., kept]
        if self.by_value is None or self.size is None:
            return w if v is None else (w, v)
        inside = self._inside(w)
        first = jnp.sum(w <= self.by_value[0], -1, keepdims=True)
        index = first + jnp.arange(self.size)
        count = inside.sum(-1, dtype=jnp.int32)
        there = jnp.arange(self.size) < count[..., None]
        index = jnp.where(there, index, 0)
        # NaN lies in no interval, but what could not be computed is to stay NaN.
        failed = jnp.isnan(w).any(-1)[..., None]
        chosen = jnp.where(there, jnp.take_along_axis(w, index, -1), jnp.nan)
        if v is None:
            return chosen, count
        vectors = jnp.take_along_axis(v, index[..., None, :], -1)
        vectors = jnp.where(there[..., None, :], vectors, 0)
        return chosen, jnp.where(failed[..., None], jnp.nan, vectors), count

    def _inside(self, w: Array) -> Array:
        assert self.by_value is not None
        low, high = self.by_value
        return (w > low) & (w <= high)
