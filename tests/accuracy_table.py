"""Merges the ratios that the accuracy tests wrote into one table: `make accuracy`.

Usage: accuracy_table.py FOLDER, whose folders hold the reports of a run with the LAPACK that they
are named after. The table goes to standard output.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SCALARS = ("f32", "f64", "c64", "c128")
COLUMNS = {"lapax": "lapax", "reference": "reference", "openblas": "OpenBLAS"}

HEAD = """\
<!-- make accuracy SWEEP={sweep} -->

# Residual ratios

Each number pair is the median and the largest ratio over the cases of a sweep: kinds of matrices
(random, graded, nearly singular, Wilkinson's, Kahan's, Grcar's, repeated eigenvalues, bidiagonal
with zeros and elements of all sizes, denormal, near overflow and underflow, rank-deficient, and
with prescribed singular values or eigenvalues of condition 1 to 0.1/ε), times orders and shapes,
times batches. A ratio is the 1-norm of what the formula names over (size · ‖A‖₁ · ε), ε the unit
roundoff. LAPACK's own tests accept what is below 30.

The tests fail where a ratio of lapax is not below 30, or where a median is above 3 times that of
reference LAPACK and not below 0.1, a tenth of one rounding error per row. A reference's median of 0
is not compared with: there it has the bits of the check's own arithmetic, which is no wider.

- lapax: its own kernels, the default backend;
- reference: Debian's reference LAPACK on the reference BLAS;
- OpenBLAS: Debian's.

Rows of "forward errors" are of what residuals do not show, digits of values, factors and solutions:
the largest error of any number, as the same matrix has it in double precision, over ε times the
largest number of the result. The matrices are random, or definite of condition about 5, from order
2 to 400, one by one and in batches. The limits of the tests do not grow with the order.

Where a column is empty, LAPACK has no such routine, or the library was not there. Cases that failed
have a residual that is not a number, and no part in the pair beside them.
"""


def reports(folder: Path) -> dict[tuple[str, str, str], dict[str, dict[str, Any]]]:
    """For each family, formula and scalar: the summary of each backend."""
    rows: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
    for file in sorted(folder.glob("*/*.json")):
        report = json.loads(file.read_text())
        for check in report["checks"]:
            row = rows.setdefault((report["family"], check["formula"], report["scalar"]), {})
            # lapax's own ratios are the same in every run.
            row.setdefault(check["backend"], check)
    return rows


def cell(check: dict[str, Any] | None) -> str:
    if check is None:
        return ""
    failed = f", {check['failed']} failed" if check["failed"] else ""
    return f"{check['median']:.2g} · {check['max']:.2g}{failed}"


def main(folder: Path) -> None:
    rows = reports(folder)
    if not rows:
        sys.exit(f"no reports under {folder}: run the accuracy tests first")
    print(HEAD.format(sweep=folder.name))
    print("| family | ratio of | scalar | cases |", " | ".join(COLUMNS.values()), "|")
    print("|---|---|---|--:|" + "--:|" * len(COLUMNS))
    order = {scalar: i for i, scalar in enumerate(SCALARS)}
    for key, row in sorted(rows.items(), key=lambda item: (*item[0][:2], order[item[0][2]])):
        family, formula, scalar = key
        cells = " | ".join(cell(row.get(backend)) for backend in COLUMNS)
        print(f"| {family} | {formula} | {scalar} | {row['lapax']['cases']} | {cells} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
