"""The checks of every op, by family: one file each, with the name of the family."""

from __future__ import annotations

from lapax._checks import (
    banded,
    block_tridiagonal,
    cholesky,
    eig,
    eigh,
    functions,
    generalised_schur,
    hessenberg,
    ldl,
    lu,
    qr,
    schur,
    sparse,
    svd,
    triangular,
    tridiagonal,
)
from lapax._checks.equations import Check

CHECKS: dict[str, Check] = (
    lu.CHECKS
    | cholesky.CHECKS
    | ldl.CHECKS
    | triangular.CHECKS
    | tridiagonal.CHECKS
    | banded.CHECKS
    | block_tridiagonal.CHECKS
    | qr.CHECKS
    | eig.CHECKS
    | schur.CHECKS
    | generalised_schur.CHECKS
    | hessenberg.CHECKS
    | eigh.CHECKS
    | svd.CHECKS
    | functions.CHECKS
    | sparse.CHECKS
)
"""The check of each op, keyed by the op's name in the table of targets."""
