"""Every Python example of the README and of the pages in docs runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = "writing-a-target"
"""Its example calls a library that test_custom_target builds, and calls there."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = [
    pytest.param(code, id=f"{page.stem}-{index}")
    for page in PAGES
    if page.stem != BUILT
    for index, code in enumerate(
        re.findall(
            r"^```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        )
    )
]


def test_there_are_examples() -> None:
    pages = [str(example.id).partition("-")[0] for example in EXAMPLES]
    assert pages.count("README") >= 3
    assert {"install", "callbacks", "backends"} <= set(pages)


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_runs(code: str) -> None:
    """In a process of its own, as a reader would run it; it must print something."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
