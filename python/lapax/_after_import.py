"""Acting on a module right after somebody imports it, without importing it oneself."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType


def after_import(name: str, then: Callable[[], None]) -> Callable[[], None]:
    """Calls `then` after each import of the module, at once where it is imported already.

    Returns what undoes it. The module must be a source file on its package's path.
    """
    if name in sys.modules:
        then()
    finder = _Finder(name, then)
    sys.meta_path.insert(0, finder)

    def undo() -> None:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)

    return undo


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name, self._then = name, then

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path, target) if name == self._name else None
        if found is None or found.origin is None:
            return None
        loader = _Loader(name, found.origin, self._then)
        return importlib.util.spec_from_file_location(
            name,
            found.origin,
            loader=loader,
            submodule_search_locations=found.submodule_search_locations,
        )


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, then: Callable[[], None]) -> None:
        super().__init__(name, path)
        self._then = then

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        self._then()
