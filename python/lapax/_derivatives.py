"""Derivatives that JAX's rules refuse, under install(): of a part of a spectrum, and of all of Q, U
and V where a matrix is not square.

JAX's rule serves what it has. Derivatives of eigenvectors of nonsymmetric matrices stay as they
are: JAX asks there for a consent (`enable_eigvec_derivs`), and lapax.linalg.eig has them.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive

from lapax import _jax_private as private
from lapax._settings import own_settings

Rule = Callable[..., Any]


def serve(left: Any) -> Iterator[Callable[[], None]]:
    """Replaces the rules, but for primitives in `left`; what undoes it, one by one."""
    for name, primitive in private.linalg_primitives().items():
        stock = private.derivative(primitive)
        if name in _RULES and name not in left and stock is not None:
            rule = functools.partial(_RULES[name], primitive, stock)
            yield private.replace_derivative(primitive, rule)


def _eigh(
    primitive: Primitive,
    stock: Rule,
    primals: Any,
    tangents: Any,
    *,
    subset_by_index: tuple[int, int] | None,
    **params: Any,
) -> Any:
    """Some eigenvalues and vectors change as they do among all."""
    if _is_all(subset_by_index, primals[0].shape[-1:]):
        whole = {**params, "subset_by_index": subset_by_index}
        return stock(primals, tangents, **whole)

    def some(a: jax.Array) -> list[jax.Array]:
        v, w = primitive.bind(a, subset_by_index=None, **params)
        return [_part(v, subset_by_index, -1), _part(w, subset_by_index, -1)]

    return jax.jvp(some, primals, tangents)


def _svd(
    primitive: Primitive,
    stock: Rule,
    primals: Any,
    tangents: Any,
    *,
    subset_by_index: tuple[int, int] | None,
    full_matrices: bool,
    compute_uv: bool,
    **params: Any,
) -> Any:
    """As above; the vectors beyond the first min(m, n) stay orthogonal to them."""
    m, n = primals[0].shape[-2:]
    given = {"compute_uv": compute_uv, "full_matrices": full_matrices and m != n, **params}
    whole = _is_all(subset_by_index, (m, n))
    if not compute_uv or (whole and not given["full_matrices"]):
        return stock(primals, tangents, subset_by_index=subset_by_index, **given)
    if whole:
        return jax.jvp(_all_vectors, primals, tangents)

    def some(a: jax.Array) -> list[jax.Array]:
        results = primitive.bind(a, subset_by_index=None, **given)
        axes = (-1, -1, -2)
        return [_part(x, subset_by_index, axis) for x, axis in zip(results, axes, strict=True)]

    return jax.jvp(some, primals, tangents)


def _all_vectors(a: jax.Array) -> list[jax.Array]:
    from lapax import linalg  # It imports all of lapax.

    u, s, vh = linalg.svd(a)
    return [s, u, vh]


def _qr(
    primitive: Primitive,
    stock: Rule,
    primals: Any,
    tangents: Any,
    *,
    pivoting: bool,
    full_matrices: bool,
    **params: Any,
) -> Any:
    """Of a wide matrix, and of all of Q, which JAX 0.8 refuses; and with pivoting.

    There JAX refuses batches, and of a wide matrix takes the columns in their first order (0.12).
    A wide one is that of its first columns, and QᴴX of the others.
    """
    if not pivoting:
        with contextlib.suppress(NotImplementedError):
            return stock(primals, tangents, pivoting=False, full_matrices=full_matrices, **params)
    bind = functools.partial(primitive.bind, **params)

    def factors(x: jax.Array) -> list[jax.Array]:
        order: list[jax.Array] = []
        if pivoting:
            constant = jax.lax.stop_gradient(x)
            order = bind(constant, pivoting=True, full_matrices=False)[2:]
            x = jnp.take_along_axis(x, order[0][..., None, :], -1)
        m, n = x.shape[-2:]
        k = min(m, n)
        q, r = bind(x[..., :k], pivoting=False, full_matrices=False)
        r = jnp.concatenate([r, adjoint(q) @ x[..., k:]], -1)
        if full_matrices and m > n:
            rows = [(0, 0)] * (x.ndim - 2) + [(0, m - n), (0, 0)]
            constant = jax.lax.stop_gradient(x)
            others = bind(constant, pivoting=False, full_matrices=True)[0][..., n:]
            q, r = jnp.concatenate([q, _complement(q, others)], -1), jnp.pad(r, rows)
        return [q, r, *order]

    return jax.jvp(factors, primals, tangents)


@jax.custom_jvp
def _complement(_: jax.Array, others: jax.Array) -> jax.Array:
    """Columns that are orthogonal to those of Q₁, and stay so: dQ₂ = −Q₁·dQ₁ᴴ·Q₂."""
    return others


@_complement.defjvp
@own_settings()
def _(primals: Any, tangents: Any) -> Any:
    q, dq, others = primals[0], tangents[0], _complement(*primals)
    return others, -q @ (adjoint(dq) @ others)


def adjoint(a: jax.Array) -> jax.Array:
    """The conjugate transpose."""
    return jnp.conj(jnp.swapaxes(a, -1, -2))


def _is_all(subset: tuple[int, int] | None, sizes: tuple[int, ...]) -> bool:
    return subset is None or tuple(subset) == (0, min(sizes))


def _part(x: jax.Array, subset: Any, axis: int) -> jax.Array:
    start, stop = subset
    return jax.lax.slice_in_dim(x, start, stop, axis=x.ndim + axis)


_RULES: dict[str, Callable[..., Any]] = {"eigh": _eigh, "qr": _qr, "svd": _svd}
