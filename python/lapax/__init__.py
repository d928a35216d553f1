"""lapax: XLA custom calls for dense linear algebra, for JAX.

`lapax.install()` lets jax.numpy.linalg, jax.scipy.linalg and jax.lax.linalg compute on liblapax;
`lapax.ffi` has one function per op, `lapax.ffi_call` takes any target by name, and
`lapax.targets()` lists them. Importing the package registers its targets and starts no backend.
"""

from __future__ import annotations

import jax
import jax.export

from lapax._supported import require_supported_jax

require_supported_jax(jax.__version__)

from lapax import _callback, _library, ffi  # noqa: E402  The gate comes before what needs JAX.
from lapax._backend import Backend, backend, backends, set_backend  # noqa: E402
from lapax._call import ffi_call  # noqa: E402
from lapax._callback import host_callback  # noqa: E402
from lapax._explain import Call, Explanation, explain  # noqa: E402
from lapax._install import (  # noqa: E402
    exporting,
    install,
    installed,
    is_installed,
    left_to_jax,
    uninstall,
)
from lapax._library import LibraryError  # noqa: E402
from lapax._register import export_safety_checks, register  # noqa: E402
from lapax._table import Attr, Code, Dim, Operand, Signature, Target, Variant, targets  # noqa: E402

__version__ = _library.version()

register()
_callback.register()

__all__ = [
    "Attr",
    "Backend",
    "Call",
    "Code",
    "Dim",
    "Explanation",
    "LibraryError",
    "Operand",
    "Signature",
    "Target",
    "Variant",
    "backend",
    "backends",
    "explain",
    "export_safety_checks",
    "exporting",
    "ffi",
    "ffi_call",
    "host_callback",
    "install",
    "installed",
    "is_installed",
    "left_to_jax",
    "set_backend",
    "targets",
    "uninstall",
]
