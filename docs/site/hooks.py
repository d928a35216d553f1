"""What mkdocs does not do by itself: generated pages, links out of docs/, tutorials, formulas.

Every fact on a generated page is the package's or another page's; `make site` runs it.
"""

from __future__ import annotations

import html
import logging
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import latex2mathml.converter
import ziamath
from mkdocs.structure.files import File, Files

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import families  # noqa: E402  They lie beside this file.
import functions  # noqa: E402
import links  # noqa: E402
import notebooks  # noqa: E402
import operations  # noqa: E402

log = logging.getLogger("mkdocs.hooks.lapax")

BESIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Pages that lie in the repository's root."""

FRONT = "---\nhide: [navigation]\n---\n\n"
"""The first page stands alone in its tab."""

MANIFEST = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
ADDRESS = MANIFEST["workspace"]["package"]["repository"]

sources: dict[str, str] = {}
"""The file of the repository that a page's Markdown is of."""

written: set[str] = set()
"""Pages whose links are the site's own."""


def on_config(config: Any) -> Any:
    """The address, which is the manifest's, and the generated pages in the navigation."""
    config.extra["social"] = [{"icon": "material/source-repository", "link": ADDRESS}]
    by_op = [
        {name: [f"operations/{op}.md" for op in ops]}
        for name, ops in sorted(operations.families().items())
    ]
    by_family = [{it.title: it.page} for it in families.families()]
    (reference,) = [tab["Reference"] for tab in config.nav if "Reference" in tab]
    for item in reference:
        if isinstance(item, dict) and "Operations" in item:
            item["Operations"] = [item["Operations"], *by_op]
        elif isinstance(item, dict) and "lapax.linalg" in item:
            item["lapax.linalg"] = [item["lapax.linalg"], *by_family]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds what is generated."""
    for name, page in BESIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        _add(files, config, page, FRONT + text if page == "index.md" else text)
        sources[page] = name
    routines = set(re.findall(r"^## (\w+)$", _read("routes.md"), re.MULTILINE))
    if missing := operations.missing():
        log.warning("docs/site/examples.py has no %s", ", ".join(sorted(missing)))
    generated = [
        *operations.pages(routines),
        *families.pages(),
        (functions.PAGE, functions.page()),
    ]
    for page, text in generated:
        _add(files, config, page, text)
        written.add(page)
    font = Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf"
    _add(files, config, "assets/math.ttf", font.read_bytes())
    for path in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        _add_tutorial(files, config, path)
    return files


def _read(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def _add(files: Files, config: Any, page: str, content: str | bytes) -> None:
    if old := files.get_file_from_path(page):
        files.remove(old)
    files.append(File.generated(config, page, content=content))


def _add_tutorial(files: Files, config: Any, path: Path) -> None:
    log.info("running %s", path.name)
    tutorial = notebooks.run(path)
    page = f"tutorials/{path.name}"
    download = f"Run when this page was built: [the notebook]({path.stem}.ipynb)."
    head, _, rest = tutorial.text.lstrip().partition("\n")
    _add(files, config, page, f"{head}\n\n{download}\n{rest}")
    _add(files, config, f"tutorials/{path.stem}.ipynb", tutorial.notebook)
    for name, picture in tutorial.pictures.items():
        _add(files, config, f"tutorials/{name}", picture)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links as the site has them."""
    uri = page.file.src_uri
    if uri in written:
        return markdown
    pages = {f"docs/{it.src_uri}": it.src_uri for it in files} | BESIDE
    source = sources.get(uri, f"docs/{uri}")
    return links.relinked(markdown, source, uri, pages, ADDRESS, families.anchor)


MATH = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, page: Any, config: Any, files: Files) -> str:
    """Formulas as MathML, which browsers draw by themselves."""

    def mathml(found: re.Match[str]) -> str:
        display = "block" if found[2] == "[" else "inline"
        return latex2mathml.converter.convert(html.unescape(found[3]), display=display)

    return MATH.sub(mathml, content)
