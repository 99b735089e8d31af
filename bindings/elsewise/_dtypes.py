# SPDX-License-Identifier: Apache-2.0
"""Every way to name a dtype, and how NumPy and torch name ours. No rule of promotion stands here."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import _elsewise, _options

TORCH_NAMES: dict[str, str] = {spelling: name for spelling, name, _ in _elsewise.dtypes}
SIZES: dict[str, int] = {spelling: size for spelling, _, size in _elsewise.dtypes}
_SPELLINGS: dict[str, str] = {
    **{name: spelling for spelling, name in TORCH_NAMES.items()},
    **{spelling: spelling for spelling in TORCH_NAMES},
    "half": "f16",
    "float": "f32",
    "double": "f64",
    "short": "i16",
    "int": "i32",
    "long": "i64",  # torch's aliases
}
_MODULES = ("torch", "np", "numpy", "jnp", "jax.numpy", "ml_dtypes")
_PYTHON: dict[type, str] = {bool: "bool", int: "i64", float: "f64"}  # as NumPy and torch take them


def find(dtype: Any) -> str | None:
    """Our spelling of a dtype named in any way, or None if it has none here."""
    if isinstance(dtype, str):
        module, dot, last = dtype.rpartition(".")
        return _SPELLINGS.get(last) if not dot or module in _MODULES else None
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        return _SPELLINGS.get(str(dtype).rsplit(".", 1)[-1])
    if isinstance(dtype, type) and dtype in np.sctypeDict.values():
        dtype = np.dtype(dtype)  # np.longlong is an int64 by another name
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None)  # np.dtype, jnp.float32, bfloat16
    if isinstance(name, str):
        return _SPELLINGS.get({"bool_": "bool"}.get(name, name)) if name not in ("int", "float", "long") else None
    return None


def spelling(dtype: Any) -> str:
    """Like `find`; a TypeError that lists the dtypes otherwise."""
    found = find(dtype)
    if found is None:
        named = isinstance(dtype, (str, type)) or type(dtype).__name__.endswith("dtype")
        shown = repr(dtype) if named else _options.kind_of(dtype)
        raise TypeError(f"no such dtype here: {shown}{_nearest(dtype)}; there are {' '.join(TORCH_NAMES)}")
    if isinstance(dtype, np.dtype) and not dtype.isnative:
        raise TypeError(f"dtype {dtype.str!r} has the other byte order; results have this computer's: {found!r}")
    return found


def _nearest(dtype: Any) -> str:
    """A suggestion for a name that is no dtype anywhere; `longdouble` is one, and not a slip of `double`."""
    if not isinstance(dtype, str):
        return ""
    try:
        np.dtype(dtype)
    except TypeError:
        return _options.nearest(dtype.rpartition(".")[2], _SPELLINGS)
    return ""


def of_torch(dtype: Any) -> bool:
    """True if this names a dtype in torch's own way."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(dtype, torch.dtype)
