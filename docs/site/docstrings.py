"""Examples in docstrings are code: lines that begin with `>>>`, which Markdown takes for quotes.

mkdocstrings loads this as an extension of griffe, which reads the package.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^>>> .*(?:\n(?:>>>|\.\.\.) .*)*$", re.MULTILINE)


class Examples(Extension):
    """Puts fences around them."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called by griffe for whatever has a docstring."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
