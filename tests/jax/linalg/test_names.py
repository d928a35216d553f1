"""lapax.linalg has scipy.linalg's names, and its functions SciPy's arguments and a text."""

from __future__ import annotations

import inspect
import pathlib

import pytest
import scipy.linalg
from scipys import as_followed

import lapax.linalg
from lapax import _render

FORTRAN = {"find_best_blas_type", "get_blas_funcs", "get_lapack_funcs"}
"""They return handles of compiled functions."""
EXCEPTIONS = {"LinAlgError", "LinAlgWarning"}
"""Nothing is raised where a value is wrong: what cannot be computed is NaN."""

NAMES = sorted(
    name
    for name in scipy.linalg.__all__
    if name in lapax.linalg.__all__ and inspect.isfunction(getattr(scipy.linalg, name))
)


def test_every_name_is_there():
    names = {
        name for name in scipy.linalg.__all__ if not inspect.ismodule(getattr(scipy.linalg, name))
    }
    assert names - FORTRAN - EXCEPTIONS - set(lapax.linalg.__all__) == set()
    assert all(hasattr(lapax.linalg, name) for name in lapax.linalg.__all__)


@as_followed
@pytest.mark.parametrize("name", NAMES)
def test_every_argument_is_taken(name):
    theirs = inspect.signature(getattr(scipy.linalg, name)).parameters
    ours = inspect.signature(getattr(lapax.linalg, name)).parameters
    by_place = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    wanted = [key for key, parameter in theirs.items() if parameter.kind not in by_place]
    if any(parameter.kind in by_place for parameter in ours.values()):
        return
    assert [key for key in wanted if key not in ours] == []


@pytest.mark.parametrize("name", lapax.linalg.__all__)
def test_every_function_says_what_it_does(name):
    text = inspect.getdoc(getattr(lapax.linalg, name))
    assert text is not None
    assert len(text) > 15


def test_the_manual_is_current():
    page = pathlib.Path(__file__).parents[3] / "docs" / "linalg.md"
    assert page.read_text(encoding="utf-8") == _render.linalg(), "python -m lapax linalg"
