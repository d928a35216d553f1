"""Of every mesh with every scalar, size and sharding: the compiled programs of one process."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import jax
import pytest
from sharded import FULL

PROGRAMS_KEPT_FOR = 50
"""Tests after which compiled programs are dropped. Linux gives a process 65,530 mappings of memory,
which those of 270 tests use up: XLA dies of that."""

_ended = itertools.count(1)


@pytest.fixture(autouse=FULL)
def programs_are_dropped() -> Iterator[None]:
    yield
    if next(_ended) % PROGRAMS_KEPT_FOR == 0:
        jax.clear_caches()
