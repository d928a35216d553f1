"""Links of Markdown that is written for the repository, as the site needs them.

In the repository a link leads to a file; on the site to a page, or to the file at the repository's
address where the site has no such page.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping

CODE = re.compile(
    r"(^```.*?^```[^\n]*$|^~~~.*?^~~~[^\n]*$|(`+)(?!`)[^\n]*?\2)", re.DOTALL | re.MULTILINE
)
# Code between the brackets is no part of the words here.
LINK = re.compile(r"(\[[^\[\]]*)?\]\((?!\w+:|#)([^)\s#]*)(#[^)\s]*)?\)")

FILE = re.compile(r"\[(?:\w+/)*([\w-]+)\.md")
"""The words of a link that are a page's file."""

Anchor = Callable[[str], tuple[str, str]]
"""From a fragment to a page and a fragment there."""


def relinked(
    text: str, source: str, page: str, pages: Mapping[str, str], address: str, linalg: Anchor
) -> str:
    """The text of the file `source` of the repository, as the page `page` of the site.

    `pages` are the pages by the files that they are made from; `address` is where other files are.
    """

    def link(found: re.Match[str]) -> str:
        words, target, fragment = found[1] or "", found[2], found[3] or ""
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if file == "docs/linalg.md":
            there, fragment = linalg(fragment.removeprefix("#"))
            return f"{words}]({_from(page, there)}{fragment})"
        if file in pages:
            if name := FILE.fullmatch(words):
                words = f"[{name[1].replace('-', ' ')}"
            return f"{words}]({_from(page, pages[file])}{fragment})"
        return f"{words}]({address}/blob/main/{file}{fragment})"

    return outside_code(text, lambda plain: LINK.sub(link, plain))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Changes all that is no code."""
    pieces, at = [], 0
    for found in CODE.finditer(text):
        pieces += [change(text[at : found.start()]), found[0]]
        at = found.end()
    return "".join([*pieces, change(text[at:])])


def _from(page: str, there: str) -> str:
    return posixpath.relpath(there, posixpath.dirname(page) or ".")
