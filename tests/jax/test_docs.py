"""The guides to targets show the example's own lines, and name each place where one stands."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

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
