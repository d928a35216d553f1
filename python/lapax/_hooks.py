"""A hook: one thing inside JAX that JAX does not promise to keep, and whether it is what it was.

Nothing is looked up before it is needed, so that importing lapax never fails for a missing one.
Which hooks there are is in `_jax_private`.
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any


class Part(enum.Enum):
    """What is lapax's, and goes to JAX without a hook; the value says it to users."""

    RULES = "all of jax.numpy.linalg, jax.scipy.linalg and jax.lax.linalg"
    EIGH_SVD = "eigh and svd"  # And all results that nobody reads.
    FUSED = "several operations as one call"
    CALLS = "solve, inv, lu_solve, slogdet, hessenberg, expm, sqrtm and solve_sylvester as one call"
    LU_SOLVE = "solve, inv and lu_solve as one call"
    SOME = "one result of slogdet, hessenberg or derivatives of expm as one call"
    EXPM = "jax.scipy.linalg.expm as one call"
    SOLVER = "solve inside custom_linear_solve as one call"
    SLOGDET = "slogdet as one call"
    SPARSE = "jax.experimental.sparse"
    CUDA = "CUDA"
    SCIPY = "programs that do without SciPy: it is imported"
    BY_NAME = (
        "calls of jaxlib's LAPACK by name: it is made ready, which imports SciPy, by install()"
    )
    TAKEOVER = "install(takeover=True): jaxlib's names stay jaxlib's"
    NAMES = 'targets by bare names: they have the prefix "lapax."'
    VMAP = "vmap of lapax.ffi, lapax.ffi_call and host_callback, and of what JAX cannot vmap"
    MESH = "lapax.ffi of explicitly sharded operands"
    VARYING = "lapax.ffi in shard_map of operands that vary over different axes"
    NAN = "jax_debug_nans of lapax.ffi and host_callback outside of jit"
    DERIVATIVE = "the text that lapax.ffi has no derivative, and derivatives that JAX refuses"
    PLUGIN = "`python -m lapax export` for a PJRT plugin"


class Unfit(Exception):
    """Why something is not what lapax needs."""


Fits = Callable[[Any], None]
"""Raises where the thing does not fit."""


class Hook:
    """An attribute of a module, by the first of its names that is there."""

    def __init__(self, module: str, names: str, serves: Part | tuple[Part, ...], *fits: Fits):
        """`names` are alternatives, "new|old"; each may be dotted, and empty is the module."""
        self.module, self.names, self.fits = module, names, fits
        self.serves = serves if isinstance(serves, tuple) else (serves,)

    @property
    def name(self) -> str:
        """As messages have it."""
        return ".".join(part for part in (self.module, self.names.split("|")[0]) if part)

    @functools.cached_property
    def _place(self) -> tuple[Any, str]:
        module = importlib.import_module(self.module)
        if not self.names:
            return sys.modules, self.module
        for names in self.names.split("|"):
            *path, last = names.split(".")
            try:
                owner = functools.reduce(getattr, path, module)
                getattr(owner, last)
            except AttributeError:
                continue
            return owner, last
        raise AttributeError(self.name)

    def get(self) -> Any:
        """What is there now."""
        owner, name = self._place
        return owner[name] if owner is sys.modules else getattr(owner, name)

    def set(self, value: Any) -> None:
        """Puts something else there."""
        owner, name = self._place
        setattr(owner, name, value)

    @functools.cached_property
    def problem(self) -> str | None:
        """What is wrong with it, None where it fits; found out once."""
        try:
            value = self.get()
        except (ImportError, AttributeError):
            return f"{self.name} is missing"
        try:
            for fits in self.fits:
                fits(value)
        except Unfit as why:
            return f"{self.name} {why}"
        except Exception as error:  # Whatever a probe meets in something unknown.
            return f"{self.name} is another one ({type(error).__name__}: {error})"
        return None


def takes(*args: str, **kwargs: Any) -> Fits:
    """It can be called with so many arguments and these keywords, as far as it says."""

    def fits(value: Any) -> None:
        if not callable(value):
            raise Unfit("cannot be called")
        try:
            signature = inspect.signature(value)
        except (TypeError, ValueError):
            return
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise Unfit(f"takes {signature}: {error}") from None

    return fits


def begins(*names: str) -> Fits:
    """Its first parameters have these names: the order is what matters."""

    def fits(value: Any) -> None:
        if not callable(value):
            raise Unfit("cannot be called")
        found = tuple(inspect.signature(value).parameters)
        if found[: len(names)] != names:
            raise Unfit(f"takes ({', '.join(found)}), not ({', '.join(names)}, …)")

    return fits


def is_a(kind: type) -> Fits:
    """It is an instance of this type, or a type below it."""

    def fits(value: Any) -> None:
        if not isinstance(value, kind) and not (
            isinstance(value, type) and issubclass(value, kind)
        ):
            raise Unfit(f"is no {kind.__name__}")

    return fits


def has(*names: str) -> Fits:
    """It has these attributes, or says that its instances have."""

    def fits(value: Any) -> None:
        known = {*dir(value), *getattr(value, "__annotations__", ())}
        missing = [name for name in names if name not in known]
        if missing:
            raise Unfit(f"has no {', '.join(missing)}")

    return fits
