"""What the figures were measured on: processor, cores, versions and the commit."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import jax
import numpy as np


def about() -> dict[str, str]:
    """Names and values, each one line."""
    return {
        "cpu": _processor(),
        "cores": str(cores()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": metadata.version("jaxlib"),
        "numpy": np.__version__,
        "commit": _commit(),
    }


def cores() -> int:
    """How many this process may use; where the system does not say, how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def busy() -> str | None:
    """What makes times here doubtful: more is running than there are cores."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return f"load {load:.1f} on {cores()} cores" if load > cores() else None


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def _commit() -> str:
    """Of the working tree that this file is tracked in; with a plus where that is changed."""
    file = Path(__file__)
    try:
        _git(file.parent, "ls-files", "--error-unmatch", file.name)
        return _git(file.parent, "describe", "--always", "--dirty=+")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
