"""LAPAX=1 and `python -m lapax run`: unedited programs compute on lapax, and others as ever."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lapax_plugin
from lapax import _run
from lapax.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import os, sys
os.environ["JAX_ENABLE_X64"] = "1"  # JAX reads it when it is imported.
import jax, jax.numpy as jnp
x = jnp.linalg.inv(2 * jnp.eye(3))
print(x.dtype, float(x[1, 1]), "lapax.lapax_inv" in jax.jit(jnp.linalg.inv).lower(x).as_text())
print(__name__, sys.argv[1:], "lapax" in sys.modules)
"""


@pytest.fixture
def site(tmp_path):
    """A folder that says to JAX what the wheel says, with the packages under test first."""
    told = tmp_path / "site" / "lapax_told-0.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: lapax-told\nVersion: 0\n")
    text = (ROOT / "pyproject.toml").read_text()
    name, value = re.search(r'\[project.entry-points.jax_plugins\]\n(\w+) = "(\w+)"', text).groups()
    assert value == lapax_plugin.__name__
    (told / "entry_points.txt").write_text(f"[jax_plugins]\n{name} = {value}\n")
    path = [told.parent, Path(lapax_plugin.__file__).parents[1]]
    return {"PYTHONPATH": os.pathsep.join(map(str, path))}


def run(*words, site, status=0, **environment):
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("LAPAX")}
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        env=inherited | site | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == status, done.stderr
    return done


def test_nothing_changes_without_it(site):
    for environment in ({}, {"LAPAX": "0"}, {"LAPAX": ""}):
        done = run("-c", PROGRAM, "a", site=site, **environment)
        assert done.stdout.splitlines() == ["float64 0.5 False", "__main__ ['a'] False"]
        assert not done.stderr


def test_what_jax_loads_imports_nothing(site):
    code = """
import __future__, os, sys, warnings
before = set(sys.modules)
import lapax_plugin
lapax_plugin.initialize()
print(set(sys.modules) - before)
"""
    assert run("-c", code, site=site).stdout == "{'lapax_plugin'}\n"


def test_with_it(site):
    done = run("-c", PROGRAM, site=site, LAPAX="1")
    assert done.stdout.splitlines() == ["float64 0.5 True", "__main__ [] True"]
    assert not done.stderr
    done = run("-c", PROGRAM, site=site, LAPAX="1", LAPAX_LEAVE="lu")
    assert done.stdout.splitlines() == ["float64 0.5 False", "__main__ [] True"]


def test_wrong_values(site):
    done = run("-W", "always", "-c", PROGRAM, site=site, LAPAX="yes")
    assert done.stdout.splitlines() == ["float64 0.5 False", "__main__ [] False"]
    assert (
        "RuntimeWarning: LAPAX: expected 0 or 1, got 'yes'; JAX computes on jaxlib" in done.stderr
    )
    done = run("-c", PROGRAM, site=site, LAPAX="1", LAPAX_LEAVE="nobody")
    assert done.stdout.splitlines() == ["float64 0.5 False", "__main__ [] True"]
    assert "LAPAX_LEAVE: nothing is named 'nobody'" in done.stderr


def test_run_a_script(site, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        PROGRAM + "print(sys.path[0] == os.path.dirname(__file__), sys.flags.optimize)\n"
        "raise SystemExit(7)\n"
    )
    words = ["-O", "-m", "lapax", "run"]
    done = run(*words, script, "a", "--leave", "b", site=site, status=7)
    assert done.stdout.splitlines() == [
        "float64 0.5 True",
        "__main__ ['a', '--leave', 'b'] True",
        "True 1",
    ]
    done = run(*words, "--leave", "inv,lu", script, site=site, status=7)
    assert done.stdout.splitlines()[0] == "float64 0.5 False"


def test_run_a_module(site, tmp_path):
    (tmp_path / "site" / "amodule.py").write_text(PROGRAM)
    done = run("-m", "lapax", "run", "-m", "amodule", "--stock", site=site)
    assert done.stdout.splitlines() == ["float64 0.5 True", "__main__ ['--stock'] True"]


def test_run_says_what_is_wrong(monkeypatch, capsys):
    monkeypatch.setattr(_run.metadata, "entry_points", lambda group: [])
    assert main(["run", "script.py"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("lapax run: JAX would not find lapax: this one is not installed as a")
    point = _run.metadata.EntryPoint("lapax", lapax_plugin.__name__, "jax_plugins")
    monkeypatch.setattr(_run.metadata, "entry_points", lambda group: [point])
    assert main(["run", "--leave", "nobody", "script.py"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("lapax run: install: leave: nothing is named 'nobody'; ")
    with pytest.raises(SystemExit, match="2"):
        main(["run"])
    assert "program" in capsys.readouterr().err
