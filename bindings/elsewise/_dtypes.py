# SPDX-License-Identifier: Apache-2.0
"""Every way to name a dtype, and how NumPy and torch name ours. No rule of promotion stands here."""

from __future__ import annotations

import sys
from typing import Any

from . import _elsewise

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
_PYTHON: dict[type, str] = {bool: "bool", int: "i64", float: "f64"}  # as NumPy and torch take them


def find(dtype: Any) -> str | None:
    """Our spelling of a dtype named in any way, or None if it has none here."""
    if isinstance(dtype, str):
        return _SPELLINGS.get(dtype.rsplit(".", 1)[-1])
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _PYTHON[dtype]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        return _SPELLINGS.get(str(dtype).rsplit(".", 1)[-1])
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None)  # np.dtype, np.float32, jnp.float32
    if isinstance(name, str):
        return _SPELLINGS.get({"bool_": "bool"}.get(name, name)) if name not in ("int", "float", "long") else None
    return None


def spelling(dtype: Any) -> str:
    """Like `find`; a TypeError that lists the dtypes otherwise."""
    found = find(dtype)
    if found is None:
        raise TypeError(f"no such dtype here: {dtype!r}; there are {' '.join(TORCH_NAMES)}")
    return found


def of_torch(dtype: Any) -> bool:
    """True if this names a dtype in torch's own way."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(dtype, torch.dtype)
