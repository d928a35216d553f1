"""Arguments of JAX's functions that JAX refuses, which `lapax.linalg` answers under install().

JAX's function answers wherever it can. What it refuses is a keyword of SciPy's that it does not
have, a value of an option, or a case that is not implemented; then the function of that name in
`lapax.linalg` is called. The functions are the public ones, as attributes of their modules: one
that was imported by name before install() stays what it was. How parameters of primitives are
served is in `_rules`, and derivatives that JAX refuses in `_derivatives`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

FUNCTIONS: dict[str, tuple[str, ...]] = {
    "jax.scipy.linalg": (
        *("eigh", "eigh_tridiagonal", "inv", "lu", "polar", "qr", "schur", "solve", "sqrtm"),
    ),
    "jax.numpy.linalg": ("slogdet",),
}
"""By module those that refuse something."""

_VALUES = {"qr": "mode", "solve": "assume_a"}
"""Options some of whose values JAX refuses by ValueError."""

_ELSEWHERE = {"slogdet": "lapax.linalg._slogdet"}
"""Where those are that SciPy does not have."""

_HOW = {"turbo", "method", "eps", "max_iterations", "blocksize", "debug", "key"}
"""Options that say how JAX computes, not what."""

_RENAMED = {"eigvals": "subset_by_index"}
"""JAX's names of what SciPy calls otherwise."""


def serve() -> Iterator[Callable[[], None]]:
    """Lets the functions answer what JAX refuses; what undoes it, one by one."""
    for where, names in FUNCTIONS.items():
        module = importlib.import_module(where)
        for name in filter(functools.partial(hasattr, module), names):
            yield _replace(module, where, name)


def _replace(module: Any, where: str, name: str) -> Callable[[], None]:
    stock = getattr(module, name)
    ours = _answering(name, stock)
    # Pickled by where it is found: the private module, which `stock` names, keeps stock.
    ours.__module__ = where
    setattr(module, name, ours)

    def undo() -> None:
        if getattr(module, name) is ours:
            setattr(module, name, stock)

    return undo


def _answering(name: str, stock: Callable[..., Any]) -> Callable[..., Any]:
    known = inspect.signature(stock)

    @functools.wraps(stock)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.keys() - known.parameters.keys():
            return _instead(name, {**known.bind_partial(*args).arguments, **kwargs})
        try:
            return stock(*args, **kwargs)
        except (NotImplementedError, ValueError) as error:
            refusal = error
        given = known.bind(*args, **kwargs).arguments
        if isinstance(refusal, ValueError) and _VALUES.get(name) not in given:
            raise refusal
        try:
            return _instead(name, given)
        except ValueError as error:  # It has no answer either.
            raise error if isinstance(refusal, NotImplementedError) else refusal from None

    return call


def _instead(name: str, given: Mapping[str, Any]) -> Any:
    """The answer of lapax.linalg, without what says how JAX computes (`turbo`, `method`, …)."""
    ours = getattr(importlib.import_module(_ELSEWHERE.get(name, "lapax.linalg")), name)
    options = {_RENAMED.get(key, key): value for key, value in given.items()}
    return ours(**{key: value for key, value in options.items() if key not in _HOW})
