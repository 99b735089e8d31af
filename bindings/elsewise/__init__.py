# SPDX-License-Identifier: Apache-2.0
"""Elementwise kernels from one-line rules about positions.

    >>> import numpy as np, elsewise as ew
    >>> double_tail = ew.kernel("i < n/2: x; else 2*x")
    >>> double_tail(np.ones(4, np.float32))
    array([1., 1., 2., 2.], dtype=float32)

This file names what is public and computes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _elsewise, _errors
from ._environment import CacheInfo, cache_info, clear_cache, doctor
from ._errors import Diagnostic, FixIt, SpecError, SpecWarning

_public: list[Any] = [CacheInfo, Diagnostic, FixIt, SpecError, SpecWarning]
try:
    from ._bench import Bench
    from ._check import Check
    from ._explain import Explanation
    from ._kernel import Kernel, format, kernel
    from ._pointer import Pointer, ptr
except ModuleNotFoundError as _missing:
    if _missing.name != "numpy" or TYPE_CHECKING:
        raise
    _elsewise.register_package(None, _errors.fault, None, None, None)  # so that `doctor` can say what fails

    def __getattr__(name: str) -> Any:
        """Without NumPy only `doctor` has its use, and says so; any other name says what is missing."""
        if name in __all__:
            raise ImportError("elsewise needs NumPy: pip install numpy", name="numpy")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
else:
    _public += [Bench, Check, Explanation, Pointer, format, kernel, ptr]

__version__: str = _elsewise.version()

for _object in _public:
    _object.__module__ = "elsewise"  # as people see them in tracebacks

__all__ = [
    "Bench",
    "CacheInfo",
    "Check",
    "Diagnostic",
    "Explanation",
    "FixIt",
    "Kernel",
    "Pointer",
    "SpecError",
    "SpecWarning",
    "__version__",
    "cache_info",
    "clear_cache",
    "doctor",
    "format",
    "kernel",
    "ptr",
]
