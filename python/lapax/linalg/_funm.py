"""A function of a matrix that is given for numbers: general matrices, Hermitian ones, and the
trigonometric and hyperbolic functions by exponentials.

General: Parlett's recurrence on the Schur form, f_ij·(t_ii - t_jj) = t_ij·(f_ii - f_jj) + Σ …;
Hermitian: f(A) = V·f(w)·Vᴴ. Derivatives by Daleckii and Krein, V·(f[w_i, w_j] ∘ V⁻¹EV)·V⁻¹.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lapax._settings import own_settings
from lapax.linalg._arguments import adjoint, check_square, complex_dtype, operation
from lapax.linalg._expm import exponential
from lapax.linalg._products import all_or_nan, diagonal, one_norm, product
from lapax.linalg._sqrtm import real_part
from lapax.linalg._triangular import Ends, by_superdiagonals, schur

__all__ = ["coshm", "cosm", "funm", "funmh", "inverse_pth_root", "sinhm", "sinm", "tanhm", "tanm"]

Array = jax.Array
Function = Callable[[Array], Array]
"""Of arrays, element by element, by JAX operations."""


@operation("A")
def funm(A: Any, func: Function, disp: bool = True, *, real: bool = False) -> Any:
    """f(A) of A [..., n, n], for a function of JAX arrays that is analytic at the eigenvalues.

    `func` gets complex numbers. The result is complex; with `real=True` that of real A is real, and
    NaN where it is not. `disp=False` gives SciPy's estimate of the relative error, too, [...].

    Eigenvalues at a distance δ of each other cost the digits of 1/δ. An equal pair is exact in a
    Jordan block of order 2 (by the derivative of `func`) and where nothing couples it to others
    (normal matrices); in longer chains the result is NaN. `expm`, `logm`, `sqrtm`, `signm` have no
    such limit.

    Derivative: Daleckii and Krein's formula by eigenvectors, for diagonalisable A; of second order
    where JAX differentiates `jnp.linalg.eig`.

    Raises ValueError unless A is square.
    Source: Parlett, Linear Algebra Appl. 14, 1976; Golub and Van Loan, Algorithm 9.1.1.

    Cost: that of `schur` of complex A, and 6n³.

    >>> funm(diag(array([4., 9])), sqrt).real  # [[2, 0], [0, 3]]
    """
    check_square("funm", A=A)
    value = _function(func, A.astype(complex_dtype(A.dtype)))
    value = real_part(value, A) if real else value
    return value if disp else (value, _error(A))


@operation("A")
def funmh(A: Any, func: Function) -> Any:
    """f(A) = V·f(w)·Vᴴ of Hermitian A = V·w·Vᴴ [..., n, n], for a function of JAX arrays.

    `func` gets the real eigenvalues. Of A its Hermitian part counts.

    Derivative: Daleckii and Krein's formula, where eigenvalues repeat, too; of second order where
    they do not.

    Raises ValueError unless A is square.
    Source: Higham, Functions of Matrices, SIAM 2008, (2.9) and theorem 3.11.

    Cost: that of `eigh`, and 2n³.

    >>> funmh(diag(array([4., 9])), sqrt)  # [[2, 0], [0, 3]]
    """
    check_square("funmh", A=A)
    return _hermitian(func, A)


@operation("A")
def inverse_pth_root(A: Any, p: float) -> Any:
    """A^(-1/p) of Hermitian positive definite A [..., n, n]; p = 2 gives the inverse square root.

    p is static. NaN where an eigenvalue is negative, infinite or NaN where one is zero.

    Derivative: as `funmh`. Raises ValueError unless A is square and p positive.
    Source: Higham, Functions of Matrices, SIAM 2008, chapter 7.

    Cost: that of `eigh`, and 2n³.

    >>> inverse_pth_root(4 * eye(2), 2)  # [[0.5, 0], [0, 0.5]]
    """
    check_square("inverse_pth_root", A=A)
    if not p > 0:
        raise ValueError(f"inverse_pth_root: p: expected a positive number, got {p}")
    return _hermitian(_inverse_root(float(p)), A)


@operation("A")
def cosm(A: Any) -> Any:
    """cos(A) = (e^(iA) + e^(-iA))/2 of A [..., n, n], real for real A.

    Derivative: that of `expm`, of every order. Raises ValueError unless A is square.
    Source: Higham, Functions of Matrices, SIAM 2008, chapter 12.

    Cost: an exponential of complex A for real A, else two.

    >>> cosm(zeros((2, 2)))  # [[1, 0], [0, 1]]
    """
    check_square("cosm", A=A)
    return _circular(A)[0]


@operation("A")
def sinm(A: Any) -> Any:
    """sin(A) = (e^(iA) - e^(-iA))/2i of A [..., n, n]; else as `cosm`.

    >>> sinm(array([[0., 1], [0, 0]]))  # [[0, 1], [0, 0]]
    """
    check_square("sinm", A=A)
    return _circular(A)[1]


@operation("A")
def tanm(A: Any) -> Any:
    """tan(A), of cos(A)·X = sin(A), of A [..., n, n]; else as `cosm`.

    >>> tanm(array([[0., 1], [0, 0]]))  # [[0, 1], [0, 0]]
    """
    check_square("tanm", A=A)
    return jnp.linalg.solve(*_circular(A))


@operation("A")
def coshm(A: Any) -> Any:
    """cosh(A) = (e^A + e^(-A))/2 of A [..., n, n]; else as `cosm`.

    >>> coshm(zeros((2, 2)))  # [[1, 0], [0, 1]]
    """
    check_square("coshm", A=A)
    return _hyperbolic(A)[0]


@operation("A")
def sinhm(A: Any) -> Any:
    """sinh(A) = (e^A - e^(-A))/2 of A [..., n, n]; else as `cosm`.

    >>> sinhm(array([[0., 1], [0, 0]]))  # [[0, 1], [0, 0]]
    """
    check_square("sinhm", A=A)
    return _hyperbolic(A)[1]


@operation("A")
def tanhm(A: Any) -> Any:
    """tanh(A), of cosh(A)·X = sinh(A), of A [..., n, n]; else as `cosm`.

    >>> tanhm(array([[0., 1], [0, 0]]))  # [[0, 1], [0, 0]]
    """
    check_square("tanhm", A=A)
    return jnp.linalg.solve(*_hyperbolic(A))


def _circular(a: Array) -> tuple[Array, Array]:
    if jnp.iscomplexobj(a):
        cosine, sine = _hyperbolic(1j * a)
        return cosine, -1j * sine
    rotation = exponential(1j * a)
    return rotation.real, rotation.imag


def _hyperbolic(a: Array) -> tuple[Array, Array]:
    grown, shrunk = exponential(jnp.stack([a, -a]))
    return (grown + shrunk) / 2, (grown - shrunk) / 2


@functools.lru_cache(maxsize=256)
def _inverse_root(p: float) -> Function:
    """The same object for the same number, so that JAX compiles once."""
    return lambda w: w ** (-1 / p)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _function(func: Function, a: Array) -> Array:
    t, u = schur(a)
    values = func(diagonal(t)).astype(t.dtype)

    def entry(f: Ends, t: Ends, t_ij: Array, _: Array, products: Array) -> Array:
        difference = t[0] - t[1]
        same = difference == 0
        rest = jnp.where(same, 0, products / jnp.where(same, 1, difference))
        return t_ij * _divided_differences(func, t, f) + rest

    value = product(product(u, by_superdiagonals(t, values, entry)), adjoint(u))
    return all_or_nan(~_has_long_chain(t), value)


def _has_long_chain(t: Array) -> Array:
    """Whether equal eigenvalues are coupled through others: where Parlett's recurrence has 0/0."""
    n = t.shape[-1]
    couplings = jnp.abs(jnp.triu(t, 1))
    largest = jnp.max(couplings, axis=(-2, -1), keepdims=True, initial=0)
    reached = (couplings > np.finfo(t.dtype).eps * largest).astype(couplings.dtype)
    for _ in range(n.bit_length()):
        reached = jnp.minimum(reached + product(reached, reached), 1)
    w = diagonal(t)
    equal = w[..., :, None] == w[..., None, :]
    return jnp.any(equal & (product(reached, reached) > 0), axis=(-2, -1))


@_function.defjvp
@own_settings()
def _function_jvp(func: Function, primals: Any, tangents: Any) -> tuple[Array, Array]:
    (a,), (e,) = primals, tangents
    w, v = jnp.linalg.eig(a)
    inner = jnp.linalg.solve(v, product(e, v))
    changed = product(v, _all_differences(func, w) * inner)
    return _function(func, a), adjoint(jnp.linalg.solve(adjoint(v), adjoint(changed)))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _hermitian(func: Function, a: Array) -> Array:
    w, v = jnp.linalg.eigh(a)
    return product(v * func(w)[..., None, :], adjoint(v))


@_hermitian.defjvp
@own_settings()
def _hermitian_jvp(func: Function, primals: Any, tangents: Any) -> tuple[Array, Array]:
    (a,), (e,) = primals, tangents
    w, v = jnp.linalg.eigh(a)
    inner = product(product(adjoint(v), (e + adjoint(e)) / 2), v)
    change = product(product(v, _all_differences(func, w) * inner), adjoint(v))
    return product(v * func(w)[..., None, :], adjoint(v)), change


def _all_differences(func: Function, w: Array) -> Array:
    """f[w_i, w_j] of all pairs: [..., n] to [..., n, n]."""
    n, f = w.shape[-1], func(w)
    pairs = [(jnp.repeat(x[..., None], n, -1), jnp.repeat(x[..., None, :], n, -2)) for x in (w, f)]
    return _divided_differences(func, pairs[0], pairs[1])


_CLOSE = 0.02
"""|x - y|/(|x| + |y|) below which four nodes integrate f' to 1e-15 for roots, powers, logarithms
and exponentials of the order of 1; the difference of values loses two digits there."""


def _divided_differences(func: Function, x: Ends, f: Ends) -> Array:
    """(f(x) - f(y))/(x - y); where they are close, the integral of f' between them."""
    difference = x[0] - x[1]
    close = jnp.abs(difference) <= _CLOSE * (jnp.abs(x[0]) + jnp.abs(x[1]))
    nodes, weights = (x.tolist() for x in np.polynomial.legendre.leggauss(4))
    between = [x[1] + (node + 1) / 2 * difference for node in nodes]
    integral = sum(
        weight / 2 * jax.jvp(func, (point,), (jnp.ones_like(point),))[1]
        for point, weight in zip(between, weights, strict=True)
    )
    quotient = (f[0] - f[1]) / jnp.where(close, 1, difference)
    return jnp.where(close, integral, quotient).astype(difference.dtype)


def _error(a: Array) -> Array:
    """ε·‖strict triangle of T‖/(smallest distance of eigenvalues), between ε and 1."""
    t, _ = schur(a)
    eps = np.finfo(t.dtype).eps
    w = diagonal(t)
    distances = jnp.abs(w[..., :, None] - w[..., None, :])
    distances = jnp.where(jnp.eye(w.shape[-1], dtype=bool), jnp.inf, distances)
    smallest = jnp.min(distances, axis=(-2, -1), initial=jnp.inf)
    loss = one_norm(jnp.triu(t, 1)) / jnp.where(smallest == 0, eps, smallest)
    return jnp.clip(eps * loss, eps, 1)
