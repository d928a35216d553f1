"""The functions of the `linalg` rows: lapax.linalg beside the JAX code that people write today.

Where JAX has the function the other side is JAX's own, and where it has not the shortest program
that does the same: a dense solution for a banded one, `lax.scan` over blocks. `--with scipy` adds
SciPy's, called once for the batch. The bounds on answers are those of the other rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import scipy.linalg

from lapax import linalg
from lapax._bench import answers
from lapax._bench.answers import Arrays
from lapax._bench.functions import Function, Inputs
from lapax._checks.equations import Array, Size, adjoint, definite, norm, normal, scaled, wide

SMALL = ((3, 1000), (8, 1000), (16, 300), (32, 100))
"""n and batch: SciPy takes 10 us and more for each of a batch."""
SINGLE = ((64, 1), (256, 1), (1024, 1))
DENSE = (*SMALL, *SINGLE)
CUBIC = (*SMALL, (64, 1), (256, 1))
"""Where a function takes a hundred products, such as a logarithm."""
STRUCTURED = (*SMALL, (1000, 1), (100_000, 1), (1_000_000, 1))
"""Unknowns; today's dense code ends at DENSE_MOST of them."""
DENSE_MOST = 1000
BLOCK = 4
"""The order of the blocks of a block-tridiagonal system, that of a state of a Kalman filter."""

Call = Callable[..., Any]


def _dense(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
    """Of norm about 2, so that exponentials and roots of them are of the size of one."""
    return ((normal(rng, dtype, (*size.batch, size.n, size.n)) / np.sqrt(size.n)).astype(dtype),)


def _definite(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
    return (definite(rng, dtype, size).astype(dtype),)


def _symmetric(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
    (a,) = _dense(rng, dtype, size)
    return ((a + adjoint(a)).astype(dtype),)


def _vector(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
    return (normal(rng, dtype, (*size.batch, size.n, 1)),)


def _pair(first: Inputs, second: Inputs) -> Inputs:
    return lambda rng, dtype, size: (*first(rng, dtype, size), *second(rng, dtype, size))


def _band(rows: int, middle: int) -> Inputs:
    """Diagonally dominant bands in SciPy's storage, and a right-hand side."""

    def band(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
        ab = normal(rng, dtype, (*size.batch, rows, size.n))
        ab[..., middle, :] = np.abs(ab[..., middle, :]) + 3 * rows
        return ab, normal(rng, dtype, (*size.batch, size.n, 1))

    return band


def _blocks(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
    """Diagonal and lower blocks of a definite matrix of n unknowns, and a right-hand side."""
    count = max(size.n // BLOCK, 1)
    diagonal = definite(rng, dtype, Size(BLOCK, BLOCK, (*size.batch, count))) + 8 * np.eye(BLOCK)
    lower = normal(rng, dtype, (*size.batch, count - 1, BLOCK, BLOCK))
    right = normal(rng, dtype, (*size.batch, count, BLOCK))
    return diagonal.astype(dtype), lower, right


def _tridiagonal(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
    return normal(rng, dtype, (*size.batch, size.n)), normal(rng, dtype, (*size.batch, size.n - 1))


def _toeplitz(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
    column = normal(rng, dtype, (*size.batch, size.n))
    column[..., 0] += 4 * np.sqrt(size.n)
    return column, normal(rng, dtype, (*size.batch, size.n, 1))


def _riccati(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
    """A, B of as many inputs as states, Q and R."""
    a, b = (_dense(rng, dtype, size)[0] for _ in range(2))
    return a, b, *_definite(rng, dtype, size), *_definite(rng, dtype, size)


def _factored(rng: np.random.Generator, dtype: np.dtype[Any], size: Size) -> Arrays:
    """Q, R and two columns."""
    q, r = np.linalg.qr(normal(rng, dtype, (*size.batch, size.n, size.n)))
    u, v = (normal(rng, dtype, (*size.batch, size.n, 1)) for _ in range(2))
    return q.astype(dtype), r.astype(dtype), u, v


# Today's code.


def _dense_of_band(ab: jax.Array, below: int) -> jax.Array:
    """A[i, j] = ab[i − j + above, j]."""
    above, n = ab.shape[-2] - 1 - below, ab.shape[-1]
    return sum(
        (_on_diagonal(ab[..., above + k, :], k, n) for k in range(-above, below + 1)),
        start=jnp.zeros((*ab.shape[:-2], n, n), ab.dtype),
    )


def _on_diagonal(row: jax.Array, k: int, n: int) -> jax.Array:
    i = jnp.arange(n)
    return jnp.where(i[:, None] - i == k, row[..., None, :], 0)


def _banded_today(ab: jax.Array, b: jax.Array) -> jax.Array:
    x: jax.Array = jnp.linalg.solve(_dense_of_band(ab, 1), b)
    return x


def _definite_banded_today(ab: jax.Array, b: jax.Array) -> jax.Array:
    lower = _dense_of_band(ab, ab.shape[-2] - 1)
    a = lower + jnp.tril(lower, -1).mT.conj()
    x: jax.Array = jsl.cho_solve(jsl.cho_factor(a, lower=True), b)
    return x


def _blocks_today(diagonal: jax.Array, lower: jax.Array, b: jax.Array) -> jax.Array:
    """One block a step, forwards and backwards."""

    def one(diagonal: jax.Array, lower: jax.Array, b: jax.Array) -> jax.Array:
        padded = jnp.concatenate([jnp.zeros_like(diagonal[:1]), lower])

        def down(before: Any, here: Any) -> Any:
            factor, y = before
            d, below, right = here
            w = jsl.solve_triangular(factor, below.conj().T, lower=True).conj().T
            factor = jnp.linalg.cholesky(d - w @ w.conj().T)
            y = jsl.solve_triangular(factor, right - w @ y, lower=True)
            return (factor, y), (factor, w, y)

        start = (jnp.eye(BLOCK, dtype=b.dtype), jnp.zeros_like(b[0]))
        _, (factors, w, y) = jax.lax.scan(down, start, (diagonal, padded, b))
        after = jnp.concatenate([w[1:], jnp.zeros_like(w[:1])])

        def up(x: Any, here: Any) -> Any:
            factor, w, y = here
            x = jsl.solve_triangular(factor.conj().T, y - w.conj().T @ x)
            return x, x

        x: jax.Array = jax.lax.scan(up, jnp.zeros_like(b[0]), (factors, after, y), reverse=True)[1]
        return x

    for _ in range(diagonal.ndim - 3):
        one = jax.vmap(one)
    return one(diagonal, lower, b)


def _generalised_today(a: jax.Array, b: jax.Array) -> Any:
    """To an ordinary problem by Cholesky."""
    factor = jnp.linalg.cholesky(b)
    half = jsl.solve_triangular(factor, a, lower=True)
    w, v = jnp.linalg.eigh(jsl.solve_triangular(factor, half.mT.conj(), lower=True))
    return w, jsl.solve_triangular(factor.mT.conj(), v)


def _dense_tridiagonal(d: jax.Array, e: jax.Array) -> jax.Array:
    n = d.shape[-1]
    eye = jnp.eye(n, dtype=d.dtype)
    beside = jnp.pad(e, [(0, 0)] * (e.ndim - 1) + [(0, 1)])[..., None] * jnp.eye(
        n, k=1, dtype=d.dtype
    )
    return d[..., None] * eye + beside + beside.mT


def _toeplitz_today(c: jax.Array, b: jax.Array) -> jax.Array:
    i = jnp.arange(c.shape[-1])
    x: jax.Array = jnp.linalg.solve(jnp.take(c, jnp.abs(i[:, None] - i), axis=-1), b)
    return x


def _solve_logdet_today(a: jax.Array, b: jax.Array) -> Any:
    factor, lower = jsl.cho_factor(a, lower=True)
    logdet = 2 * jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
    return jsl.cho_solve((factor, lower), b), logdet


def _rq_today(a: jax.Array) -> Any:
    q, r = jnp.linalg.qr(a[..., ::-1, :].mT.conj())
    return r.mT.conj()[..., ::-1, ::-1], q.mT.conj()[..., ::-1, :]


def _qr_update_today(q: jax.Array, r: jax.Array, u: jax.Array, v: jax.Array) -> Any:
    q, r = jnp.linalg.qr(q @ r + u @ v.mT.conj())
    return q, r


def _eig_today(a: jax.Array, b: jax.Array) -> Any:
    w, v = jnp.linalg.eig(jnp.linalg.solve(b, a))
    return w, v


def _eig_banded_today(ab: jax.Array) -> Any:
    lower = _dense_of_band(ab, ab.shape[-2] - 1)
    w, v = jnp.linalg.eigh(lower, symmetrize_input=False)
    return w, v


def _over_batch(call: Call) -> Call:
    """A function of single matrices for a batch of them."""

    def many(*args: jax.Array) -> Any:
        mapped = call
        for _ in range(args[0].ndim - 2):
            mapped = jax.vmap(mapped)
        return mapped(*args)

    return many


# Ratios.


def _solves(a: Call) -> Callable[[Arrays, list[Array]], Array]:
    """A·x = b of a dense A from all operands but the last."""

    def ratio(args: Arrays, rets: list[Array]) -> Array:
        return answers.solution(a(*args[:-1]), rets[0], args[-1], args[-1])

    return ratio


def _band_ratio(below: int, both: bool) -> Callable[[Arrays, list[Array]], Array]:
    """A·x = b diagonal by diagonal; `both`: the upper ones are the lower ones' conjugates."""

    def ratio(args: Arrays, rets: list[Array]) -> Array:
        ab, b, x = (wide(y) for y in (*args, rets[0]))
        above, n = ab.shape[-2] - 1 - below, ab.shape[-1]
        product = np.zeros_like(b * x)
        for k in range(-above, below + 1):
            diagonal = ab[..., above + k, max(0, -k) : n - max(0, k), None]
            column, row = slice(max(0, -k), n - max(0, k)), slice(max(0, k), n - max(0, -k))
            product[..., row, :] += diagonal * x[..., column, :]
            if both and k:
                product[..., column, :] += diagonal.conj() * x[..., row, :]
        size = np.abs(ab).sum(-2).max(-1)
        return scaled(product - b, size * norm(x), 1, args[0])

    return ratio


def _blocks_ratio(args: Arrays, rets: list[Array]) -> Array:
    diagonal, lower, b, x = (wide(y) for y in (*args, rets[0]))
    product = np.einsum("...ij,...j->...i", diagonal, x)
    product[..., 1:, :] += np.einsum("...ij,...j->...i", lower, x[..., :-1, :])
    product[..., :-1, :] += np.einsum("...ji,...j->...i", lower.conj(), x[..., 1:, :])
    size = np.abs(diagonal).sum((-2, -1)).max(-1)
    error = (product - b).reshape(*b.shape[:-2], -1, 1)
    return scaled(error, size * norm(x.reshape(error.shape)), 1, args[0])


def _generalised(args: Arrays, rets: list[Array]) -> Array:
    """A·V = B·V·W."""
    (a, b), (w, v) = map(wide, args), map(wide, rets)
    size = (norm(a) + norm(b) * np.abs(w).max(-1)) * norm(v)
    return scaled(a @ v - b @ v * w[..., None, :], size, a.shape[-1], args[0])


def _tridiagonal_pairs(args: Arrays, rets: list[Array]) -> Array:
    d, e = map(wide, args)
    return answers.eigh((np.asarray(_dense_tridiagonal(jnp.asarray(d), jnp.asarray(e))),), rets)


def _exponential(args: Arrays, rets: list[Array]) -> Array:
    """Beside SciPy's in double precision, over n·‖e^A‖·(1 + ‖A‖), which the condition may be."""
    a = wide(args[0])
    expected = scipy.linalg.expm(a)
    return scaled(wide(rets[0]) - expected, norm(expected) * (1 + norm(a)), a.shape[-1], args[0])


def _logarithm(args: Arrays, rets: list[Array]) -> Array:
    """e^X = A."""
    a, x = wide(args[0]), wide(rets[0])
    return scaled(scipy.linalg.expm(x) - a, norm(a) * (1 + norm(x)), a.shape[-1], args[0])


def _root(args: Arrays, rets: list[Array]) -> Array:
    """X² = A."""
    x = rets[0].astype(np.complex128)
    return scaled(x @ x - wide(args[0]), norm(x) ** 2, x.shape[-1], args[0])


def _sylvester(args: Arrays, rets: list[Array]) -> Array:
    """A·X + X·B = Q."""
    (a, b, q), x = map(wide, args), wide(rets[0])
    return scaled(a @ x + x @ b - q, (norm(a) + norm(b)) * norm(x), a.shape[-1], args[0])


def _lyapunov(args: Arrays, rets: list[Array]) -> Array:
    """A·X + X·Aᴴ = Q."""
    a, q = args
    return _sylvester((a, adjoint(a), q), rets)


def _are(args: Arrays, rets: list[Array]) -> Array:
    """Aᴴ·X + X·A - X·B·R⁻¹·Bᴴ·X + Q = 0."""
    (a, b, q, r), x = map(wide, args), wide(rets[0])
    quadratic = x @ b @ np.linalg.solve(r, adjoint(b) @ x)
    error = adjoint(a) @ x + x @ a - quadratic + q
    size = 2 * norm(a) * norm(x) + norm(quadratic) + norm(q)
    return scaled(error, size * np.linalg.cond(r, 1), a.shape[-1], args[0])


def _product(args: Arrays, rets: list[Array]) -> Array:
    """A = X·Y."""
    return answers.recomposed(args[0], wide(rets[0]) @ wide(rets[1]))


def _polar(args: Arrays, rets: list[Array]) -> Array:
    """A = U·P, U unitary."""
    return np.maximum(_product(args, rets), answers.unitary(wide(rets[0]), args[0]))


def _rq(args: Arrays, rets: list[Array]) -> Array:
    """A = R·Q, Q unitary."""
    return np.maximum(_product(args, rets), answers.unitary(wide(rets[1]), args[0]))


def _qr_updated(args: Arrays, rets: list[Array]) -> Array:
    """Q₁·R₁ = Q·R + u·vᴴ, Q₁ unitary."""
    q, r, u, v = map(wide, args)
    a = q @ r + u @ adjoint(v)
    product = scaled(wide(rets[0]) @ wide(rets[1]) - a, norm(a), a.shape[-1], args[0])
    return np.maximum(product, answers.unitary(wide(rets[0]), args[0]))


def _banded_pairs(args: Arrays, rets: list[Array]) -> Array:
    ab = jnp.asarray(args[0])
    lower = np.asarray(_dense_of_band(ab, ab.shape[-2] - 1))
    return answers.eigh((lower + adjoint(np.tril(lower, -1)),), rets)


def _indefinite(lower: Array, d: Array, order: Array) -> Array:
    del order
    return wide(lower) @ wide(d) @ adjoint(wide(lower))


def _ldl(args: Arrays, rets: list[Array]) -> Array:
    return answers.recomposed(args[0], _indefinite(*rets))


def _pseudo(args: Arrays, rets: list[Array]) -> Array:
    """A·X·A = A."""
    a, x = wide(args[0]), wide(rets[0])
    return scaled(a @ x @ a - a, norm(a) ** 2 * norm(x), a.shape[-1], args[0])


def _identity(a: Any) -> Any:
    return a


def _cube(factor: float) -> Callable[[Size], float]:
    return lambda size: factor * size.n**3


def _linear(factor: float) -> Callable[[Size], float]:
    return lambda size: factor * size.n


def _function(
    name: str, ours: Call, today: Call | None, of_scipy: Call | None, inputs: Inputs, ratios: Any,
    flops: Callable[[Size], float], points: tuple[tuple[int, int], ...], **options: Any,
) -> Function:  # fmt: skip
    return Function(
        name, "lapax.linalg", ours, inputs, ratios, flops, dtypes=("f64",), points=points,
        today=today, scipy=of_scipy, kind="linalg", **options,
    )  # fmt: skip


FUNCTIONS: tuple[Function, ...] = (
    _function(
        "solve_sym",
        lambda a, b: linalg.solve(a, b, assume_a="sym"),
        jnp.linalg.solve,
        lambda a, b: scipy.linalg.solve(a, b, assume_a="sym"),
        _pair(_symmetric, _vector),
        _solves(_identity),
        _cube(1 / 3),
        DENSE,
    ),
    _function(
        "solve_pos",
        lambda a, b: linalg.solve(a, b, assume_a="pos"),
        lambda a, b: jsl.cho_solve(jsl.cho_factor(a), b),
        lambda a, b: scipy.linalg.solve(a, b, assume_a="pos"),
        _pair(_definite, _vector),
        _solves(_identity),
        _cube(1 / 3),
        DENSE,
    ),
    _function(
        "ldl",
        linalg.ldl,
        None,
        scipy.linalg.ldl,
        _symmetric,
        _ldl,
        _cube(1 / 3),
        DENSE,
    ),
    _function(
        "solve_banded",
        lambda ab, b: linalg.solve_banded((1, 2), ab, b),
        _banded_today,
        lambda ab, b: scipy.linalg.solve_banded((1, 2), ab, b),
        _band(4, 2),
        _band_ratio(1, both=False),
        _linear(16),
        STRUCTURED,
        rows=4,
        today_most=DENSE_MOST,
    ),
    _function(
        "solveh_banded",
        lambda ab, b: linalg.solveh_banded(ab, b, lower=True),
        _definite_banded_today,
        lambda ab, b: scipy.linalg.solveh_banded(ab, b, lower=True),
        _band(3, 0),
        _band_ratio(2, both=True),
        _linear(16),
        STRUCTURED,
        rows=3,
        today_most=DENSE_MOST,
    ),
    _function(
        "block_tridiagonal_solve",
        linalg.block_tridiagonal_solve,
        _blocks_today,
        None,
        _blocks,
        _blocks_ratio,
        _linear(7 / 3 * BLOCK**2),
        STRUCTURED,
        rows=2 * BLOCK,
    ),
    _function(
        "solve_toeplitz",
        linalg.solve_toeplitz,
        _toeplitz_today,
        scipy.linalg.solve_toeplitz,
        _toeplitz,
        _solves(
            lambda c: np.asarray(c)[..., np.abs(np.subtract.outer(*[np.arange(c.shape[-1])] * 2))]
        ),
        lambda size: 4 * size.n**2,
        (*SMALL, (64, 1), (256, 1), (1000, 1)),
    ),
    _function(
        "eigh_generalised",
        linalg.eigh,
        _generalised_today,
        scipy.linalg.eigh,
        _pair(_symmetric, _definite),
        _generalised,
        _cube(12),
        DENSE,
    ),
    _function(
        "eigh_tridiagonal",
        linalg.eigh_tridiagonal,
        lambda d, e: jnp.linalg.eigh(_dense_tridiagonal(d, e)),
        scipy.linalg.eigh_tridiagonal,
        _tridiagonal,
        _tridiagonal_pairs,
        _cube(4),
        DENSE,
    ),
    _function(
        "expm",
        linalg.expm,
        jsl.expm,
        scipy.linalg.expm,
        _dense,
        _exponential,
        _cube(20),
        DENSE,
    ),
    _function(
        "sqrtm",
        linalg.sqrtm,
        _over_batch(jsl.sqrtm),
        scipy.linalg.sqrtm,
        _definite,
        _root,
        _cube(30),
        CUBIC,
    ),
    _function(
        "funm",
        lambda a: linalg.funm(a, jnp.sqrt),
        _over_batch(lambda a: jsl.funm(a, jnp.sqrt, disp=False)[0]),
        lambda a: scipy.linalg.funm(a, np.sqrt),
        _definite,
        _root,
        _cube(60),
        CUBIC,
    ),
    _function(
        "logm",
        linalg.logm,
        None,
        scipy.linalg.logm,
        _definite,
        _logarithm,
        _cube(60),
        CUBIC,
    ),
    _function(
        "solve_sylvester",
        linalg.solve_sylvester,
        _over_batch(jsl.solve_sylvester),
        scipy.linalg.solve_sylvester,
        _pair(_definite, _pair(_definite, _dense)),
        _sylvester,
        _cube(60),
        CUBIC,
    ),
    _function(
        "pinv", linalg.pinv, jnp.linalg.pinv, scipy.linalg.pinv, _dense, _pseudo, _cube(24), CUBIC
    ),
    _function(
        "solve_logdet",
        lambda a, b: linalg.solve_logdet(a, b),
        _solve_logdet_today,
        None,
        _pair(_definite, _vector),
        _solves(_identity),
        _cube(1 / 3),
        DENSE,
    ),
    _function(
        "lstsq",
        lambda a, b: linalg.lstsq(a, b)[0],
        _over_batch(lambda a, b: jnp.linalg.lstsq(a, b)[0]),
        lambda a, b: scipy.linalg.lstsq(a, b)[0],
        _pair(_dense, _vector),
        _solves(_identity),
        _cube(12),
        CUBIC,
    ),
    _function(
        "polar",
        linalg.polar,
        _over_batch(jsl.polar),
        scipy.linalg.polar,
        _dense,
        _polar,
        _cube(24),
        CUBIC,
    ),
    _function("rq", linalg.rq, _rq_today, scipy.linalg.rq, _dense, _rq, _cube(8 / 3), DENSE),
    _function(
        "qr_update",
        linalg.qr_update,
        _qr_update_today,
        scipy.linalg.qr_update,
        _factored,
        _qr_updated,
        lambda size: 26 * size.n**2,
        DENSE,
    ),
    _function(
        "eig_generalised",
        linalg.eig,
        _eig_today,
        scipy.linalg.eig,
        _pair(_dense, _definite),
        _generalised,
        _cube(66),
        CUBIC,
    ),
    _function(
        "eig_banded",
        lambda ab: linalg.eig_banded(ab, lower=True),
        _eig_banded_today,
        lambda ab: scipy.linalg.eig_banded(ab, lower=True),
        lambda rng, dtype, size: _band(3, 0)(rng, dtype, size)[:1],
        _banded_pairs,
        _cube(4),
        CUBIC,
    ),
    _function(
        "solve_continuous_lyapunov",
        linalg.solve_continuous_lyapunov,
        None,
        scipy.linalg.solve_continuous_lyapunov,
        _pair(_definite, _symmetric),
        _lyapunov,
        _cube(32),
        CUBIC,
    ),
    _function(
        "solve_continuous_are",
        linalg.solve_continuous_are,
        None,
        scipy.linalg.solve_continuous_are,
        _riccati,
        _are,
        _cube(300),
        CUBIC,
    ),
)
