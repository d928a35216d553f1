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


def reciprocal(x: Array, largest: Array, rule: Degenerate, zero: Array) -> Array:
    """1/x of each element of matrices [..., m, n] of differences, zero where `zero` says.

    With η = width·largest, `"mask"` makes it zero where |x| ≤ η, and `"broaden"` is x/(x² + η²),
    of complex differences conj(x)/(|x|² + η²). The default width of `"mask"` is 16·n·ε: values of
    one cluster come out apart by up to the error of a decomposition, a small multiple of ε·‖A‖.
    That of `"broaden"` is √ε: errors of ε in P are then multiplied by at most 1/(2·√ε), and the
    reciprocal of a gap x is off by (η/x)² of itself.
    """
    if rule.how is None:
        return jnp.where(zero, 0, 1 / jnp.where(zero, 1, x))
    eps = float(np.finfo(x.dtype).eps)
    default = 16 * x.shape[-1] * eps if rule.how == "mask" else eps**0.5
    eta = (default if rule.width is None else rule.width) * largest[..., None, None]
    zero |= (abs(x) <= eta) if rule.how == "mask" else (x == 0)
    safe = jnp.where(zero, 1, x)
    if rule.how == "mask":
        return jnp.where(zero, 0, 1 / safe)
    length = jnp.hypot(abs(safe), eta)
    return jnp.where(zero, 0, safe.conj() / length / length)


def differences(w: Array, rule: Degenerate) -> Array:
    """F of F∘P: Fᵢⱼ for 1/(λⱼ − λᵢ), zero on the diagonal."""
    n = w.shape[-1]
    largest = jnp.max(abs(w), -1, initial=0)
    x = w[..., None, :] - w[..., :, None]
    return reciprocal(x, largest, rule, jnp.eye(n, dtype=bool))
