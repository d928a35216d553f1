"""The package around the calls: import, versions, library, table, command line, generated files."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import jax
import pytest

import lapax
from lapax import _doctor, _library, _render, _supported, check
from lapax.__main__ import main
from lapax._lowering import numpy_dtype
from lapax._table import ops
from programs import run_python

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "python" / "lapax"
PAGE = ROOT / "docs" / "targets.md"


def test_import_makes_no_backend():
    code = """
import sys, jax, lapax
from lapax.__main__ import main
from lapax._lowering import numpy_dtype
from lapax._table import ops
main(["targets"])
from jax._src import xla_bridge
print("backends:", sorted(xla_bridge._backends))
"""
    lines = run_python(code).splitlines()
    assert lines[-1] == "backends: []"
    assert any(line.startswith("lapack_dgetrf_ffi") for line in lines)


@pytest.mark.parametrize(
    ("version", "checked"),
    [
        *((it, True) for it in ("0.8.0", "0.8.3", "0.9.0", "0.10.2", "0.12.0", "0.12.0.1")),
        *((it, False) for it in ("0.12.0.2", "0.12.1", "0.13.0.dev1", "1.0", "head")),
    ],
)
def test_newer_versions_are_imported(version, checked):
    _supported.require_supported_jax(version)
    assert _supported.is_checked(version) == checked


@pytest.mark.parametrize("version", ["0.4.38", "0.7.2"])
def test_older_versions_are_refused(version):
    with pytest.raises(ImportError, match=f"supports jax 0.8.0 and later; found jax {version}. "):
        _supported.require_supported_jax(version)
    assert not _supported.is_checked(version)


def test_versions_whose_stock_handlers_wait_for_their_batches():
    waits = _supported.jaxlib_waits_for_its_batches
    assert [waits(version) for version in ("0.9.1", "0.9.2", "0.10.2", "0.11.0")] == [
        False, True, True, True,
    ]  # fmt: skip
    assert not any(map(waits, ("0.8.0", "0.11.1", "0.12.0.1")))


def test_the_gate_is_passed_on_import():
    code = """
import jax
jax.__version__ = "0.7.2"
try:
    import lapax
except ImportError as error:
    print(error)
"""
    assert run_python(code).startswith("lapax supports jax 0.8.0 and later; found jax 0.7.2.")


def test_pyproject_asks_for_the_supported_versions():
    text = (ROOT / "pyproject.toml").read_text()
    assert f'"jax>={_supported.OLDEST_JAX}", ' in text


def test_extras_bring_jax_for_gpus():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    theirs = metadata.metadata("jax").get_all("Provides-Extra")
    for extra in ("cuda12", "cuda13"):
        assert extras["optional-dependencies"][extra] == [f"jax[{extra}]"]
        assert extra in theirs


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "LAPAX_LIBRARY names {file}, which is not a file"),
        (b"not a library", "{file} cannot be loaded: "),
    ],
)
def test_a_missing_or_corrupt_library(tmp_path, content, message):
    file = tmp_path / "liblapax.so"
    if content is not None:
        file.write_bytes(content)
    code = "import importlib\ntry:\n import lapax\nexcept ImportError as error: print(error)"
    assert run_python(code, LAPAX_LIBRARY=str(file)).startswith(message.format(file=file))


def test_another_library_is_named(monkeypatch):
    import _ctypes

    monkeypatch.setenv("LAPAX_LIBRARY", _ctypes.__file__)
    with pytest.raises(lapax.LibraryError) as raised:
        _library.loaded.__wrapped__()
    assert str(raised.value).startswith(f"{_ctypes.__file__} is not liblapax: ")


def test_targets_by_platform():
    everything = lapax.targets()
    assert lapax.targets("CPU") == lapax.targets("cpu")
    assert set(lapax.targets("cpu")) | set(lapax.targets("cuda")) == set(everything)
    assert len({(t.name, t.platform) for t in everything}) == len(everything)
    with pytest.raises(ValueError, match=r'^platform: expected "cpu" or "cuda", got .tpu.$'):
        lapax.targets("tpu")


def test_targets_are_immutable_and_complete():
    for target in lapax.targets():
        with pytest.raises(dataclasses.FrozenInstanceError):
            target.name = "other"
        signature = target.signature
        assert target.doc == signature.doc
        assert target.doc.strip()
        dtypes = dict.fromkeys(variant.dtype for variant in signature.variants)
        assert target.dtypes == tuple(dtypes)
        assert signature.layout in ("row", "column")
        names = {dim.name for dim in signature.dims}
        for variant in signature.variants:
            for operand in (*variant.args, *variant.rets):
                assert set(operand.dims) <= names
            for ret in variant.rets:
                if ret.alias is not None:
                    argument = variant.args[ret.alias]
                    assert (argument.dims, argument.dtype) == (ret.dims, ret.dtype)


def test_every_target_is_checked_and_tested():
    """An op without a check would be neither self-tested, nor benchmarked, nor called here."""
    assert set(ops()) <= set(check.CHECKS)


def test_the_checks_can_fail():
    for op, (target, *_) in ops().items():
        case = check.case(
            op,
            numpy_dtype(target.dtypes[0]),
            4,
            m=6 if check.CHECKS[op].rectangular else None,
            batch=(2,),
            attrs=check.modes(target.signature)[0],
        )
        results = lapax.ffi_call(op, *case.args, **case.attrs, **case.dims)
        rets = [x + 1 for x in jax.tree.leaves(results)]
        assert not case.ratio(rets) < check.LIMIT, op


def test_private_names_of_jax_are_in_one_file():
    """As texts, too: hooks say where a thing is in one."""
    private = re.compile(r"jax\._src|jaxlib\.\w|\bmlir\._|\bbatching\._|\bad\._|\bcore\._|\bffi\._")
    users = {
        file.name
        for file in SOURCE.rglob("*.py")
        if any(private.search(line.partition("#")[0]) for line in _code(file, texts=True))
    }
    assert users == {"_jax_private.py"}


def _code(file, *, texts=False):
    """Lines outside docstrings, and outside texts unless those are wanted."""
    code = re.sub(r'"""(?s:.*?)"""', "", file.read_text())
    return (code if texts else re.sub(r'f?"[^"\n]*"', "", code)).splitlines()


def test_target_names_are_only_in_the_library():
    names = {target.name for target in lapax.targets()}
    for file in SOURCE.rglob("*.py"):
        code = "\n".join(_code(file))
        assert not [name for name in names if name in code], file.name


def test_stubs_are_current(capsys, monkeypatch, tmp_path):
    assert (SOURCE / "ffi.pyi").read_text() == _render.stub(), "run `python -m lapax stubs`"
    stub = tmp_path / "ffi.pyi"
    monkeypatch.setattr(_render, "STUB", stub)
    assert main(["stubs", "--check"]) == 1
    assert "ffi.pyi is missing; run `python -m lapax stubs`" in capsys.readouterr().err
    assert main(["stubs"]) == 0
    assert main(["stubs", "--check"]) == 0
    stub.write_text("other")
    assert main(["stubs", "--check"]) == 1
    assert "is not what the table says" in capsys.readouterr().err


def test_stub_has_what_the_module_has():
    text = _render.stub()
    for name in lapax.ffi.__all__:
        assert re.search(rf"^(def|class) {name}\b", text, re.M), name
    assert text.startswith("# Generated by `python -m lapax stubs`")


def test_page_of_targets_is_current():
    page = PAGE.read_text(encoding="utf-8")
    command = re.search("<!-- (python .*) > docs/targets.md -->", page)
    assert command is not None
    assert page == _render.markdown(lapax.targets()), f"run `{command[1]}`"


def test_command_line(capsys):
    assert main(["targets", "--platform", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(lapax.targets("cpu"))
    assert main(["targets", "--markdown"]) == 0
    table = capsys.readouterr().out
    assert all(f"`{target.name}`" in table for target in lapax.targets())
    for wrong in (["targets", "--platform", "tpu"], ["nothing"], []):
        with pytest.raises(SystemExit) as raised:
            main(wrong)
        assert raised.value.code == 2


def test_a_route_on_the_command_line(capsys):
    assert main(["route", "eigh", "f32", "40", "--batch", "1"]) == 0
    said, what = capsys.readouterr().out.splitlines()
    assert said == "eigh, f32, n = 40, batch 1: Divided"
    assert what.endswith(".")
    assert main(["route", "solve", "f64", "3"]) == 0
    assert capsys.readouterr().out.startswith("solve, f64, n = 3, nrhs = 1, batch 1: Unblocked")
    assert main(["route", "magic", "f64", "3"]) == 2
    assert "no routine magic; there are" in capsys.readouterr().err
    assert main(["route", "eigh", "f64", "3", "4"]) == 2
    assert capsys.readouterr().err == "eigh: expected sizes n, got 2 of them\n"


def test_doctor_passes_and_can_fail(capsys, monkeypatch):
    assert main(["doctor"]) == 0
    report = capsys.readouterr().out
    assert "all self-tests passed" in report
    assert jax.__version__ in report
    for target in lapax.targets("cpu"):
        rows = [line for line in report.splitlines() if line.startswith(f"{target.name} ")]
        assert len(rows) == len(target.dtypes)
    monkeypatch.setattr(check, "LIMIT", 0.1)
    assert main(["doctor"]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_doctor_reports_in_json(capsys, monkeypatch):
    few = lapax.targets("cpu")[:2]
    monkeypatch.setattr(_doctor, "targets", lambda _: few)
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert dict(report["facts"])["jax"] == jax.__version__
    assert len(report["tests"]) == sum(len(target.dtypes) for target in few)
    assert all(test["residual"] < report["limit"] for test in report["tests"])
    assert report["passed"]
    # As of the middle one of three sizes: `max` would return 0.5.
    monkeypatch.setattr(_doctor, "_residuals", lambda *_: [0.5, float("nan"), 0.25])
    assert main(["doctor", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert not report["passed"]
    assert {test["error"] for test in report["tests"]} == {"its residual is NaN"}


def test_doctor_has_one_line_for_no_gpu(monkeypatch):
    missing = {"name": "cuSOLVER", "error": "cuSOLVER was not found: …"}
    driver = {"error": "no driver"}
    found = {"kernels": 8, "driver": driver, "libraries": [missing]}
    monkeypatch.setattr(_library, "cuda", lambda: found)
    monkeypatch.setattr(_library, "cuda_unfit", lambda: None)
    assert list(_doctor._cuda(False)) == [
        ("cuda", "8 modules of kernels, CPU only here: no driver")
    ]
    assert dict(_doctor._cuda(True))["cuSOLVER"] == missing["error"]
    found["driver"] = {"version": "13.0"}
    assert dict(_doctor._cuda(False))["cuSOLVER"] == missing["error"]


def test_the_module_says_its_version(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--version"])
    assert capsys.readouterr().out == f"lapax {_library.version()}\n"


def test_the_module_runs():
    done = subprocess.run(
        [sys.executable, "-m", "lapax", "targets"], capture_output=True, text=True, check=True
    )
    assert "lapack_spotrf_ffi" in done.stdout


@pytest.mark.parametrize("platforms", ["cuda", "tpu", "nothing"])
def test_doctor_answers_without_a_cpu_device(platforms):
    code = """
import sys
from lapax.__main__ import main
print("exit", main(["doctor"]))
"""
    lines = run_python(code, JAX_PLATFORMS=platforms).splitlines()
    report = dict(line.split(":", 1) for line in lines if ":" in line)
    assert f"no CPU device (JAX_PLATFORMS is {platforms!r}): " in report["devices"]
    assert report["in force"].strip().startswith("faer")
    assert lines[-2:] == ["no self-test can run without a CPU device", "exit 1"]
