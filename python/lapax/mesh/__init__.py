"""Linear algebra of one matrix that is sharded over a mesh of devices."""

from __future__ import annotations

from lapax.mesh._counts import Counts, count
from lapax.mesh._factors import LU, cholesky, lu, triangular_solve
from lapax.mesh._orthogonal import QR, lstsq, qr
from lapax.mesh._products import matmul
from lapax.mesh._singular import SVD, Polar, polar, svd
from lapax.mesh._spectra import Eigh, eigh
from lapax.mesh._systems import Slogdet, det, inv, slogdet, solve

__all__ = [
    "LU",
    "QR",
    "SVD",
    "Counts",
    "Eigh",
    "Polar",
    "Slogdet",
    "cholesky",
    "count",
    "det",
    "eigh",
    "inv",
    "lstsq",
    "lu",
    "matmul",
    "polar",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "triangular_solve",
]
