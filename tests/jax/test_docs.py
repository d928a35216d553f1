"""docs/writing-a-target.md shows the example's own lines; a doctest of xla-ffi builds its Rust."""

from __future__ import annotations

import re
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
