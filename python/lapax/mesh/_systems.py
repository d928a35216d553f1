"""Linear systems with one sharded matrix, its inverse and its determinant, with derivatives."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from lapax._settings import own_settings
from lapax.mesh import _cholesky, _lu, _triangular
from lapax.mesh._factors import outer, triangular_solve
from lapax.mesh._layout import Array, Tile
from lapax.mesh._placing import System, as_columns, check_choice, inexact, run, system
from lapax.mesh._products import product

ASSUMED = ("gen", "pos", "lower triangular", "upper triangular")


@own_settings()
def solve(
    a: Any,
    b: Any,
    *,
    assume_a: str = "gen",
    pivoting: str = "partial",
    sharding: Any = None,
    block: int | None = None,
) -> Array:
    """X of A X = B: by LU with row pivoting, or as `assume_a` says.

    `assume_a` is "gen", "pos" (Hermitian positive definite, of which the lower triangle is read, by
    Cholesky; NaN if it is not), "lower triangular" or "upper triangular". `a` is [n, n] and `b`
    [n, k] or [n], in f32, f64, c64 or c128; X is divided as B is. `pivoting` is `lu`'s, "partial"
    or "tournament". `sharding` is A's, where it is not known, `block` the largest block. Raises
    ValueError for other shapes, dtypes and choices, and where no mesh is known. Derivative:
    B̄ = A⁻ᵀ X̄ and Ā = -B̄ Xᵀ, for "pos" its Hermitian part, with the factors of the first solve.
    """
    check_choice("solve", "assume_a", assume_a, ASSUMED)
    check_choice("solve", "pivoting", pivoting, _lu.PIVOTING)
    if assume_a.endswith("triangular"):
        lower = assume_a == "lower triangular"
        return triangular_solve(a, b, lower=lower, sharding=sharding, block=block)
    a, b = inexact("solve", a=a, b=b)
    return _solve((assume_a, pivoting, sharding, block), a, b)


class _Factors(NamedTuple):
    """A's factors in tiles, and by LU the pivots."""

    tiles: Array
    pivots: Array


def _factored(it: System, a: Array, assume_a: str, pivoting: str) -> _Factors:
    place = it.place_a
    function, options = _cholesky_and_pivots, {}
    if assume_a != "pos":
        function, options = _lu.lu, {"pivoting": pivoting}
    return _Factors(*run(function, it.grid.mesh, (place,), (place.tiles(), None), a, **options))


def _cholesky_and_pivots(a: Tile) -> tuple[Tile, Array]:
    return _cholesky.cholesky(a)[0], jnp.zeros((0,), jnp.int32)


def _by_factors(it: System, factors: _Factors, b: Array, assume_a: str, trans: str = "N") -> Array:
    ins = (it.place_a.tiles(), None, it.place_b)
    function = _by_cholesky if assume_a == "pos" else _lu.solve
    (x,) = run(function, it.grid.mesh, ins, (it.place_b,), *factors, as_columns(b), trans=trans)
    return x.reshape(b.shape)


def _by_cholesky(factor: Tile, _: Array, b: Tile, *, trans: str) -> tuple[Tile]:
    """For "T" conj(A) X = B, so that L is conjugated."""
    if trans == "T":
        factor = factor._replace(x=jnp.conj(factor.x))
    (y,) = _triangular.solve_triangular(factor, b, lower=True)
    return _triangular.solve_triangular(factor, y, lower=True, trans="C")


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _solve(options: tuple[Any, ...], a: Array, b: Array) -> Array:
    return _solve_forward(options, a, b)[0]


@own_settings()
def _solve_forward(options: tuple[Any, ...], a: Array, b: Array) -> tuple[Array, Any]:
    assume_a, pivoting, sharding, block = options
    it = system("solve", (sharding, block), a, b)
    factors = _factored(it, a, assume_a, pivoting)
    x = _by_factors(it, factors, b, assume_a)
    return x, (factors, x, it)


@own_settings()
def _solve_backward(options: tuple[Any, ...], residual: Any, ct: Array) -> tuple[Array, Array]:
    (assume_a, *_), (factors, x, it) = options, residual
    y = _by_factors(it, factors, ct, assume_a, trans="T")
    gradient = outer(it, y, x)
    if assume_a == "pos":
        # The Hermitian part of -conj(y) xᴴ, conjugated: the other half is -conj(x) yᴴ, conjugated.
        gradient = (gradient + outer(it, jnp.conj(x), jnp.conj(y))) / 2
    return gradient, y


_solve.defvjp(_solve_forward, _solve_backward)


@own_settings()
def inv(
    a: Any, *, pivoting: str = "partial", sharding: Any = None, block: int | None = None
) -> Array:
    """A⁻¹, by LU with row pivoting.

    `a` is [n, n] in f32, f64, c64 or c128; the inverse is divided as A is. Not finite where A is
    singular. `pivoting` is `lu`'s, "partial" or "tournament". `sharding` is A's, where it is not
    known, `block` the largest block. Raises ValueError for other shapes, dtypes and `pivoting` and
    where no mesh is known. Derivative: Ā = -X^T X̄ X^T.
    """
    check_choice("inv", "pivoting", pivoting, _lu.PIVOTING)
    (a,) = inexact("inv", a=a)
    return _inv((pivoting, sharding, block), a)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _inv(options: tuple[Any, ...], a: Array) -> Array:
    return _inv_forward(options, a)[0]


@own_settings()
def _inv_forward(options: tuple[Any, ...], a: Array) -> tuple[Array, Any]:
    pivoting, sharding, block = options
    it = system("inv", (sharding, block), a, a)
    (x,) = run(_inverse, it.grid.mesh, (it.place_a,), (it.place_a,), a, pivoting=pivoting)
    return x, (x, it)


def _inverse(a: Tile, *, pivoting: str) -> tuple[Tile]:
    return _lu.inverse(*_lu.lu(a, pivoting=pivoting))


@own_settings()
def _inv_backward(options: tuple[Any, ...], residual: Any, ct: Array) -> tuple[Array]:
    x, it = residual
    left = product(it.grid, (x, it.a), (ct, it.a), it.a, trans_x="T")
    return (product(it.grid, (left, it.a), (x, it.a), it.a, trans_y="T", scale=-1.0),)


_inv.defvjp(_inv_forward, _inv_backward)


class Slogdet(NamedTuple):
    """det A = sign · exp(logabsdet)."""

    sign: Array
    logabsdet: Array


@own_settings()
def slogdet(
    a: Any, *, pivoting: str = "partial", sharding: Any = None, block: int | None = None
) -> Slogdet:
    """The sign of det A and the logarithm of its absolute value, from LU.

    `a` is [n, n] in f32, f64, c64 or c128; both are on each device. 0 and -inf for a singular A.
    `pivoting` is `lu`'s, "partial" or "tournament". `sharding` is A's, where it is not known,
    `block` the largest block. Raises ValueError for other shapes, dtypes and `pivoting` and where
    no mesh is known. Derivative of log |det A|: A⁻ᵀ; of a complex sign, i · sign · Im tr(A⁻¹ dA).
    """
    check_choice("slogdet", "pivoting", pivoting, _lu.PIVOTING)
    (a,) = inexact("slogdet", a=a)
    return Slogdet(*_slogdet((pivoting, sharding, block), a))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _slogdet(options: tuple[Any, ...], a: Array) -> tuple[Array, Array]:
    return _slogdet_forward(options, a)[0]


@own_settings()
def _slogdet_forward(options: tuple[Any, ...], a: Array) -> tuple[tuple[Array, Array], Any]:
    pivoting, sharding, block = options
    it = system("slogdet", (sharding, block), a, a)
    factors = _factored(it, a, "gen", pivoting)
    place = it.place_a.tiles()
    ins = (place, None)
    sign, logarithm = run(_lu.log_determinant, it.grid.mesh, ins, (None, None), *factors)
    return (sign, logarithm), (factors, sign, it)


@own_settings()
def _slogdet_backward(options: tuple[Any, ...], residual: Any, cts: Any) -> tuple[Array]:
    """d log|det| = Re tr(A⁻¹ dA) and d sign = i sign Im tr(A⁻¹ dA), as A⁻ᵀ times one number."""
    factors, sign, it = residual
    of_sign, of_logarithm = cts
    scale = of_logarithm.astype(sign.dtype)
    if jnp.iscomplexobj(sign):
        # The cotangent of Im z is t: that of z is -i t.
        scale = scale - 1j * (1j * sign * of_sign).real
    (inverse,) = run(
        _lu.inverse, it.grid.mesh, (it.place_a.tiles(), None), (it.transposed_a("T"),), *factors
    )
    return (inverse * scale,)


_slogdet.defvjp(_slogdet_forward, _slogdet_backward)


@own_settings()
def det(
    a: Any, *, pivoting: str = "partial", sharding: Any = None, block: int | None = None
) -> Array:
    """det A; see `slogdet`, which does not overflow."""
    sign, logarithm = slogdet(a, pivoting=pivoting, sharding=sharding, block=block)
    return sign * jnp.exp(logarithm).astype(sign.dtype)
