# SPDX-License-Identifier: Apache-2.0
"""Elementwise kernels from one-line rules about positions.

    >>> import numpy as np, elsewise as ew
    >>> double_tail = ew.kernel("i < n/2: x; else 2*x")
    >>> double_tail(np.ones(4, np.float32))
    array([1., 1., 2., 2.], dtype=float32)

This file names what is public and computes nothing.
"""

from __future__ import annotations

from . import _elsewise
from ._check import Check
from ._environment import CacheInfo, cache_info, clear_cache, doctor
from ._errors import Diagnostic, FixIt, SpecError, SpecWarning
from ._kernel import Kernel, kernel
from ._pointer import Pointer, ptr

__version__: str = _elsewise.version()

for _public in (CacheInfo, Check, Diagnostic, FixIt, Pointer, SpecError, SpecWarning, kernel, ptr):
    _public.__module__ = "elsewise"  # as people see them in tracebacks

__all__ = [
    "CacheInfo",
    "Check",
    "Diagnostic",
    "FixIt",
    "Kernel",
    "Pointer",
    "SpecError",
    "SpecWarning",
    "__version__",
    "cache_info",
    "clear_cache",
    "doctor",
    "kernel",
    "ptr",
]
