"""Pages agree with what they are made from: an example's lines, tables behind charts and numbers.

A doctest of xla-ffi builds the Rust of docs/writing-a-target.md.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lapax._table import ops

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "writing-a-target.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "custom-target" / "src" / "lib.rs"
BLOCKS = re.findall(r"```rust\n(.*?)```", GUIDE, re.DOTALL)


def test_the_guide_has_blocks() -> None:
    assert len(BLOCKS) == GUIDE.count("```rust") >= 2


@pytest.mark.parametrize("block", BLOCKS)
def test_rust_is_of_the_example(block: str) -> None:
    """Every line of the block is the example's, in its order."""
    lines = iter(EXAMPLE.read_text(encoding="utf-8").splitlines())
    for line in block.splitlines():
        assert line in lines, f"not in the example, or not in this order: {line}"


def test_every_place_of_the_example_is_named() -> None:
    """docs/adding-a-target.md names all that a target touches, by its example."""
    guide = (ROOT / "docs" / "adding-a-target.md").read_text(encoding="utf-8")
    listed = subprocess.run(
        ["git", "grep", "-l", "cholesky_update", "--", "*.rs", "*.cu", "*.py"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("no git repository to search")
    # The tests of functions, and the functions: a target needs none.
    others = ("tests/jax/", "python/lapax/linalg/")
    places = {it for it in listed.stdout.split() if not it.startswith(others)}
    named = set(re.findall(r"`([\w/-]+\.(?:rs|cu|py))`", guide))
    assert places - named == set()
    assert {it for it in named if not (ROOT / it).is_file()} == set()


def _of_the_site(name: str) -> Any:
    """A module of docs/site, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "site" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


figures, examples, links, built = map(_of_the_site, ("figures", "examples", "links", "built"))

REDRAW = "run `python docs/site/figures.py`"


@pytest.mark.parametrize("name", figures.DATA)
def test_a_chart_is_of_its_table(name: str) -> None:
    assert re.search(r"\d", figures.description(name))
    assert figures.described(name) == figures.description(name), REDRAW


def test_the_readme_has_the_numbers_of_the_pages() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.count("| **") == 6
    assert readme == figures.with_numbers(readme), REDRAW


def test_every_chart_is_shown() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"\(images/(\w+)\.svg\)", page))
    assert shown == set(figures.DATA) == set(figures.DRAW)
    assert shown == {path.stem for path in (ROOT / figures.IMAGES).glob("*.svg")}


def test_every_variable_is_a_setting() -> None:
    """All of lapax's environment variables that any file reads stand in docs/settings.md."""
    kinds = ["*.rs", "*.py", "*.c", "Makefile", ".ci/*"]
    listed = subprocess.run(
        ["git", "ls-files", *kinds], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("no git repository to list the files of")
    files = [ROOT / name for name in listed.stdout.splitlines()]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    variables = set(re.findall(r"\bLAPAX_[A-Z_]+[A-Z]\b", text)) - {"LAPAX_H"}
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert len(variables) > 10
    assert variables == set(re.findall(r"\bLAPAX_[A-Z_]+[A-Z]\b", page))


def test_every_op_has_an_example_that_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(ops()) <= set(examples.EXAMPLES)
    for op in ops():
        exec(compile(examples.code(op), op, "exec"), {})
        printed = capsys.readouterr().out
        assert printed.strip(), op
        assert "nan" not in printed, op


def test_links_are_those_of_the_site() -> None:
    text = (
        "[docs/a.md](a.md#x) [`b`](../b.rs) `[c](d.md)` [e](#e) [f](https://f.test)\n"
        "```text\n[g](a.md)\n```\n[h](linalg.md#qr) ![i](images/i.svg)"
    )
    pages = {"docs/a.md": "a.md", "docs/images/i.svg": "images/i.svg"}
    got = links.relinked(
        text, "docs/p.md", "t/p.md", pages, "https://r.test", lambda it: ("linalg/q.md", f"#l.{it}")
    )
    assert got == (
        "[a](../a.md#x) [`b`](https://r.test/blob/main/b.rs) `[c](d.md)` [e](#e) [f](https://f.test)\n"
        "```text\n[g](a.md)\n```\n[h](../linalg/q.md#l.qr) ![i](../images/i.svg)"
    )


def test_faults_of_a_site_are_found(tmp_path: Path) -> None:
    good = '<p id="a"><a href="#a">a</a><a href="https://x.test">x</a><img src="p.png"></p>'
    (tmp_path / "p.png").write_bytes(b"")
    (tmp_path / "good.html").write_text(good)
    assert list(built.faults(tmp_path)) == []
    (tmp_path / "bad.html").write_text(
        '<a href="none.html"></a><a href="good.html#b"></a><script src="https://x.test/y.js"></script>'
        "<p>/home/somebody/lapax</p>"
    )
    faults = [fault.partition(": ")[2] for fault in built.faults(tmp_path)]
    assert faults == [
        "is got from elsewhere: https://x.test/y.js",
        "leads nowhere: none.html",
        "names no place: good.html#b",
        "names a place of one machine: /home/somebody",
    ]
