"""Tutorials: Markdown whose Python and bash blocks are run as a notebook, in the root folder.

What comes out is Markdown with the outputs, the pictures, and the notebook to download.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import jupytext
import nbformat
from nbclient import NotebookClient
from nbconvert.exporters import MarkdownExporter
from nbconvert.preprocessors import TagRemovePreprocessor
from traitlets.config import Config

ROOT = Path(__file__).resolve().parents[2]

SECONDS = 300
"""A cell that takes longer fails: the slowest takes ten on two cores."""

KERNEL = "{name: python3, display_name: Python 3, language: python}"
HEADER = f"---\njupyter:\n  kernelspec: {KERNEL}\n---\n\n"
"""For jupytext, which else takes the first block's language for the notebook's."""

SETUP = "%config InlineBackend.figure_formats = ['svg']"
"""Run before the first cell, and not shown."""

HIDDEN = "hidden"


class Tutorial(NamedTuple):
    """A page after its blocks were run."""

    text: str
    pictures: dict[str, bytes]
    notebook: str


def run(path: Path) -> Tutorial:
    """Raises nbclient's CellExecutionError, with the cell and what it said, where a block fails."""
    notebook = jupytext.reads(HEADER + path.read_text(encoding="utf-8"), fmt="md")
    hidden = nbformat.v4.new_code_cell(SETUP, metadata={"tags": [HIDDEN]})
    notebook.cells.insert(0, hidden)
    place = {"metadata": {"path": str(ROOT)}}
    config = Config()
    config.KernelManager.transport = "ipc"
    config.TagRemovePreprocessor.remove_cell_tags = (HIDDEN,)
    client = NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources=place, config=config
    )
    client.execute()
    exporter = MarkdownExporter(config=config)
    exporter.register_preprocessor(TagRemovePreprocessor(config=config), enabled=True)
    text, resources = exporter.from_notebook_node(
        notebook, {"unique_key": path.stem, "output_files_dir": "pictures"}
    )
    del notebook.cells[0]
    return Tutorial(_readable(text), resources["outputs"], nbformat.writes(notebook))


def _readable(text: str) -> str:
    """Cells of bash as such, words for pictures, and no colours of a terminal."""
    text = text.replace("![svg](", "![What was drawn](")
    text = re.sub(r"^```\w+\n%%bash\n", "```bash\n", text, flags=re.MULTILINE)
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
