"""1/(λⱼ − λᵢ) in derivatives of eigenvectors, where eigenvalues may repeat.

With A = V·Λ·Vᴴ and P = Vᴴ·dA·V, dV = V·(F∘P) with Fᵢⱼ = 1/(λⱼ − λᵢ). Where λᵢ = λⱼ the vectors have
no derivative; their span has. A function that does not change when the vectors of one cluster are
rotated among themselves gets from the pair ij and the pair ji contributions that cancel, whatever
the finite Fᵢⱼ = −Fⱼᵢ is (Kasim & Vinko 2020, arXiv:2011.04366). Its gradient is right with Fᵢⱼ = 0
inside of clusters, where 1/(λⱼ − λᵢ) is infinite, or rounding errors divided by each other.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from lapax.linalg._arguments import Array, check_choice


class Degenerate(NamedTuple):
    """What stands for the reciprocal of a small difference."""

    how: str | None
    """None for the reciprocal itself, `"mask"` or `"broaden"`."""
    width: float | None
    """What is small, as a part of the largest value; None for the default."""


def degenerate_rule(function: str, how: str | None, width: float | None) -> Degenerate:
    """Raises ValueError for an unknown rule or a width that is not positive."""
    check_choice(function, "degenerate", how, (None, "mask", "broaden"))
    if width is not None and not width > 0:
        raise ValueError(f"{function}: width: expected a positive number, got {width!r}")
    return Degenerate(how, width)


def reciprocal(difference: Array, largest: Array, rule: Degenerate) -> Array:
    """1/x of each element of real matrices of differences, zero on the diagonal.

    With η = width·largest, `"mask"` makes it zero where |x| ≤ η, and `"broaden"` is x/(x² + η²).
    The default width of `"mask"` is 16·n·ε: values of one cluster come out apart by up to the error
    of a decomposition, a small multiple of ε·‖A‖. That of `"broaden"` is √ε: errors of ε in P are
    then multiplied by at most 1/(2·√ε), and a gap x is off by the relative √ε-th part of largest/x,
    squared.
    """
    n, eps = difference.shape[-1], np.finfo(difference.dtype).eps
    zero = jnp.eye(n, dtype=bool)
    if rule.how is None:
        return jnp.where(zero, 0, 1 / jnp.where(zero, 1, difference))
    default = 16 * n * eps if rule.how == "mask" else np.sqrt(eps)
    eta = (default if rule.width is None else rule.width) * largest[..., None, None]
    zero |= (abs(difference) <= eta) if rule.how == "mask" else (difference == 0)
    safe = jnp.where(zero, 1, difference)
    inverse = 1 / safe if rule.how == "mask" else safe / (safe**2 + eta**2)
    return jnp.where(zero, 0, inverse)
