"""Meshes of the eight CPU devices, operands on them, and how far results are from right."""

from __future__ import annotations

import os
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

FULL = os.environ.get("LAPAX_MESH") == "full"
"""Every mesh with every dtype, size and sharding; otherwise each of them once in some place."""

P = PartitionSpec
MESHES = ((1, 1), (2, 1), (1, 2), (2, 2), (4, 2), (8, 1))
DTYPES = tuple(map(np.dtype, ("float32", "float64", "complex64", "complex128")))
SPECS = (P("x", "y"), P(), P("y", "x"), P(("x", "y")), P(None, ("y", "x")), P("y"))
LIMIT = 30
"""Of each residual in multiples of size · norm · ε, as LAPACK's own tests have it."""


def mesh_of(shape, kind=AxisType.Auto):
    devices = jax.devices()[: shape[0] * shape[1]]
    return jax.make_mesh(shape, ("x", "y"), axis_types=(kind, kind), devices=devices)


class Case(NamedTuple):
    shape: tuple[int, int]
    n: int
    dtype: np.dtype
    spec: PartitionSpec
    block: int | None

    def __str__(self):
        spec = "-".join(str(entry) for entry in self.spec) or "replicated"
        return f"{self.shape[0]}x{self.shape[1]}-{self.n}-{self.dtype}-{spec}"

    def put(self, x):
        """On the mesh, divided as the case says where that divides."""
        mesh = mesh_of(self.shape)
        spec = P(*tuple(self.spec)[: x.ndim])
        sizes = [np.prod([mesh.shape[a] for a in names(entry)], dtype=int) for entry in spec]
        fits = all(size % parts == 0 for size, parts in zip(x.shape, sizes, strict=False))
        return jax.device_put(x, NamedSharding(mesh, spec if fits else P()))

    def random(self, *shape, seed=0):
        rng = np.random.default_rng([self.n, seed])
        x = rng.standard_normal(shape)
        if self.dtype.kind == "c":
            x = x + 1j * rng.standard_normal(shape)
        return x.astype(self.dtype)

    @property
    def x64(self):
        return jax.enable_x64(self.dtype in (np.float64, np.complex128))


def names(entry):
    return () if entry is None else entry if isinstance(entry, tuple) else (entry,)


def _cases():
    if FULL:
        for shape in MESHES:
            for dtype in DTYPES:
                for i, n in enumerate((1, 2, 13, 64, 101, 240, 499)):
                    spec = SPECS[(i + len(dtype.name)) % len(SPECS)]
                    yield Case(shape, n, dtype, spec, 8 if n > 100 else None)
        return
    yield Case((1, 1), 5, DTYPES[1], SPECS[1], None)
    yield Case((2, 1), 1, DTYPES[2], SPECS[1], None)
    yield Case((1, 2), 22, DTYPES[0], SPECS[4], 3)
    yield Case((2, 2), 61, DTYPES[3], SPECS[1], 7)
    yield Case((4, 2), 72, DTYPES[0], SPECS[0], 4)
    yield Case((8, 1), 40, DTYPES[2], SPECS[3], 2)


CASES = tuple(_cases())


def ratio(difference, norm, case, size=None):
    """‖difference‖ / (norm · size · ε); NaN where there is one."""
    epsilon = np.finfo(case.dtype).eps
    size = max(size or case.n, 1)
    value = np.linalg.norm(difference, 1) / (norm * size * epsilon)
    return float("inf") if np.isnan(value) else value


def norm1(x):
    return np.linalg.norm(x, 1)


def wide(x):
    """In the precision that residuals are computed in."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
