"""What was built holds together: `python docs/site/built.py out/site`.

Every link and anchor inside the site leads somewhere, nothing is fetched from elsewhere when a page
is shown, no page names a folder of the machine that built it, and no example, whose lines begin
with `>>>`, is shown as a quotation.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
}
"""Attributes whose address a browser gets by itself."""

KEPT = {"canonical", "alternate", "next", "prev"}
"""What a `link` is that is not got."""

FOLDERS = re.compile(r"/(?:home|root|Users|work|tmp)/[\w.]+")
"""The beginnings of places on one machine."""


class Page(HTMLParser):
    """The links, the anchors, what is fetched, and the number of quotations of a page."""

    def __init__(self, text: str) -> None:
        """Reads all of it."""
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.quotations = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by HTMLParser."""
        found = dict(attrs)
        self.quotations += tag == "blockquote"
        self.anchors |= {found[it] or "" for it in ("id", "name") if it in found}
        kept = set((found.get("rel") or "").split()) & KEPT
        for name, value in attrs:
            if value and (tag, name) in FETCHED and not kept:
                self.fetched.append(value)
            elif value and name in ("href", "src"):
                self.links.append(value)


def faults(folder: Path) -> Iterator[str]:
    """One line for each."""
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in folder.rglob("*.html")}
    for path, page in sorted(pages.items()):
        name = path.relative_to(folder.resolve())
        for address in page.fetched:
            if urlsplit(address).netloc:
                yield f"{name}: is got from elsewhere: {address}"
        for address in (*page.links, *page.fetched):
            if fault := _dead(folder, path, address, pages):
                yield f"{name}: {fault}: {address}"
        if page.quotations:
            yield f"{name}: shows code as {page.quotations} quotations"
        for place in sorted(set(FOLDERS.findall(path.read_text("utf-8")))):
            yield f"{name}: names a place of one machine: {place}"
    for style in folder.rglob("*.css"):
        for address in re.findall(r"url\(['\"]?(https?://[^)'\"]+)", style.read_text("utf-8")):
            yield f"{style.relative_to(folder)}: is got from elsewhere: {address}"


def _dead(folder: Path, path: Path, address: str, pages: dict[Path, Page]) -> str:
    """Why a link of the page leads nowhere; "" where it does."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return ""
    base = folder.resolve() if parts.path.startswith("/") else path.parent
    target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if path.name == "404.html" and not target.exists():
        return ""  # Its links are from the site's address, which a folder has not.
    if not target.is_file():
        return "leads nowhere"
    fragment = unquote(parts.fragment)
    if fragment and target in pages and fragment not in pages[target].anchors:
        return "names no place"
    return ""


def main(folder: Path) -> int:
    """Prints what is wrong; 1 where anything is, 0 otherwise."""
    count = len(list(folder.rglob("*.html")))
    found = list(faults(folder))
    print(
        "\n".join(found)
        or f"{count} pages: every link leads somewhere, nothing is got from elsewhere"
    )
    return 1 if found or not count else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
