"""pytest plugin: SciPy's own tests of scipy.linalg, answered by another module (`-p scipy_plugin`).

SCIPY_ANSWERS names the modules that answer, the first that has a function: lapax.linalg, under
`lapax.install()`, by default; `jax.scipy.linalg,jax.numpy.linalg` for stock JAX. Public functions
of scipy.linalg are replaced before the test files import them; one that no module has raises
NotImplementedError. Arrays go in as JAX arrays, in the four scalars alone (integers and long
doubles as f64, halves as f32), and come back as NumPy's. Functions of JAX cannot raise on values:
a result that is not finite, of arguments that are, is SciPy's LinAlgError, and of arguments that
are not, its ValueError where it checks them. Exceptions are compared by type, not by their text.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from scipy._lib._array_api import xp_capabilities_table
from scipy.linalg import _decomp_update

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp  # noqa: E402  In double precision from its first array on.

NAMES = os.environ.get("SCIPY_ANSWERS", "lapax.linalg").split(",")
ANSWERING = [importlib.import_module(name) for name in NAMES]
if NAMES == ["lapax.linalg"]:
    importlib.import_module("lapax").install()

IDLE = {
    *("overwrite_a", "overwrite_b", "overwrite_ab", "overwrite_c", "overwrite_a_band"),
    *("overwrite_qr", "overwrite_qru", "overwrite_qruv"),
    *("check_finite", "lapack_driver", "lwork", "workers"),
}
"""Arguments that say how SciPy computes, dropped where a function does not take them."""
KEPT = {
    *("LinAlgError", "LinAlgWarning", "test"),
    *("get_blas_funcs", "get_lapack_funcs", "find_best_blas_type"),
}
WITH_INTEGERS = {
    *("bandwidth", "issymmetric", "ishermitian", "block_diag", "khatri_rao", "diagsvd"),
    *("toeplitz", "circulant", "hankel", "convolution_matrix", "leslie", "fiedler"),
    *("qr_insert", "qr_delete"),
}
"""Functions whose results SciPy keeps integer, whose checks of integers are exact, or of places."""
NEVER_RAISING = {"cho_solve", "cho_solve_banded", "lstsq", "sqrtm"}
"""Functions that SciPy has return what is not finite."""
OF_PAIRS = {"eig", "eigvals"}
"""Functions that SciPy has return eigenvalues of two matrices that are infinite, or NaN for 0/0."""
CHECKING = {"matrix_balance"}
"""Functions that SciPy has refuse what is not finite, whatever they are told."""
NARROW = {"e": np.float32, "g": np.float64, "G": np.complex128}
PROGRAMS_KEPT_FOR = 400
"""Tests; 1,500 of them compile so many programs that a process has no more pieces of memory to map,
65,530 by Linux's default, and the compiler dies."""
_ended = itertools.count(1)


def pytest_runtest_teardown() -> None:
    """Drops what was compiled, now and then."""
    if next(_ended) % PROGRAMS_KEPT_FOR == 0:
        jax.clear_caches()


class NoArrayError(TypeError, ValueError):
    """JAX has no such arrays; SciPy refuses them by one exception or the other."""


def into_jax(name: str, value: Any) -> Any:
    """An argument as the function of that name takes it."""
    if name == "clarkson_woodruff_transform" and scipy.sparse.issparse(value):
        value = value.toarray()
    if isinstance(value, list) and name == "cossin" and len(value) == 4:
        value = tuple(value)  # Of blocks, which only tuples hold in JAX.
    if isinstance(value, list) and value and not callable(value[0]):
        value = np.asarray(value)
    if hasattr(value, "__array_interface__") or hasattr(value, "__array__"):
        value = value if isinstance(value, (np.generic, jax.Array)) else np.asarray(value)
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "biu":
            if value.ndim == 0:
                return value.item()
            dtype = value.dtype if name in WITH_INTEGERS else np.float64
            return jnp.asarray(value.astype(np.dtype(dtype).newbyteorder("=")))
        if value.dtype.kind not in "fc":
            raise NoArrayError(f"array of {value.dtype}")
        native = value.dtype.newbyteorder("=")
        return jnp.asarray(np.array(value, NARROW.get(value.dtype.char, native)))
    if isinstance(value, np.ufunc):
        return getattr(jnp, value.__name__)
    if isinstance(value, tuple):
        return tuple(into_jax(name, one) for one in value)
    return value


def into_numpy(value: Any) -> Any:
    """A result as SciPy gives it."""
    if isinstance(value, jax.Array):
        return np.array(value)[()] if value.ndim == 0 else np.array(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(into_numpy, value))
    return type(value)(map(into_numpy, value)) if isinstance(value, (tuple, list)) else value


def is_finite(values: Iterable[Any]) -> bool:
    """Whether all numbers in them are."""
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(values)]
    return all(np.isfinite(a).all() for a in arrays if a.dtype.kind in "fc")


def is_lost(values: Iterable[Any]) -> bool:
    """Whether all numbers in one of them are NaN."""
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(values)]
    return any(a.size and np.isnan(a).all() for a in arrays)


def passed_on(
    name: str,
    signature: inspect.Signature | None,
    ours: Callable[..., Any],
    args: Any,
    kwargs: Mapping[str, Any],
) -> tuple[list[Any], dict[str, Any]]:
    """SciPy's required arguments by place, and by name its options that were given."""
    into = functools.partial(into_jax, name)
    if signature is None:
        return list(map(into, args)), {
            key: into(value) for key, value in kwargs.items() if key not in IDLE
        }
    takes = parameters_of(ours)
    first: list[Any] = []
    named = {}
    for key, value in signature.bind(*args, **kwargs).arguments.items():
        parameter = signature.parameters[key]
        if parameter.kind is parameter.VAR_POSITIONAL:
            first += map(into, value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            named |= {of: into(one) for of, one in value.items()}
        elif parameter.default is parameter.empty:
            first.append(into(value))
        elif key not in IDLE or key in takes:
            named[key] = into(value)
    return first, named


def computed(ours: Callable[..., Any], first: Any, named: Mapping[str, Any]) -> Any:
    """The result, and as SciPy has it real where it can be: lapax is asked for that by `real`."""
    arrays = [leaf for leaf in jax.tree.leaves((first, named)) if isinstance(leaf, jax.Array)]
    if "real" in parameters_of(ours) and not any(map(jnp.iscomplexobj, arrays)):
        result = ours(*first, **named, real=True)
        if is_finite(result):
            return result
    return ours(*first, **named)


def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """None of a compiled one."""
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return {}


def answer(name: str, stock: Callable[..., Any]) -> Callable[..., Any]:
    """What is called in the place of one of SciPy's functions."""
    ours = next((getattr(module, name) for module in ANSWERING if hasattr(module, name)), None)
    # What is compiled has none.
    signature = inspect.signature(stock) if parameters_of(stock) else None
    checks = name in CHECKING or "check_finite" in parameters_of(stock)

    @functools.wraps(stock)
    def call(*args: Any, **kwargs: Any) -> Any:
        if ours is None:
            raise NotImplementedError(f"{name} is missing")
        first, named = passed_on(name, signature, ours, args, kwargs)
        with np.errstate(all="ignore"):
            result = into_numpy(computed(ours, first, named))
        numbers = result if name not in OF_PAIRS or is_lost(result) else ()
        if name not in NEVER_RAISING and not is_finite(numbers):
            if is_finite((first, named)):
                raise scipy.linalg.LinAlgError(f"{name}: the result is not finite")
            if checks and kwargs.get("check_finite", True):
                raise ValueError(f"{name}: arguments and result are not finite")
        return result

    return call


def raises(
    expected: Any, *args: Any, match: Any = None, raises: Any = pytest.raises, **kwargs: Any
) -> Any:
    """pytest.raises, whatever the text."""
    del match
    return raises(expected, *args, **kwargs)


pytest.raises = raises
for _name in scipy.linalg.__all__:
    _stock = getattr(scipy.linalg, _name)
    if _name in KEPT or not callable(_stock) or inspect.isclass(_stock):
        continue
    _call = answer(_name, _stock)
    if _stock in xp_capabilities_table:  # The tests look functions up there.
        xp_capabilities_table[_call] = xp_capabilities_table[_stock]
    for _module in (scipy.linalg, _decomp_update):  # A test file imports from the second.
        if hasattr(_module, _name):
            setattr(_module, _name, _call)
