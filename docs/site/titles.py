"""Titles of pages that are named after modules."""

from __future__ import annotations

SPELT = {
    "cholesky": "Cholesky",
    "cossin": "CS decomposition",
    "funm": "Functions of matrices",
    "ldl": "LDLᵀ",
    "lqr": "LQR",
    "lu": "LU",
    "qr": "QR",
    "qz": "QZ",
    "schur": "Schur",
    "svd": "SVD",
}
"""What is not written as the module is."""


def title(module: str) -> str:
    """That of a module's page: `block_lu` is `Block LU`."""
    first, *others = module.strip("_").split("_")
    return " ".join([SPELT.get(first, first.capitalize()), *(SPELT.get(it, it) for it in others)])
