# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays as arguments, and arrays for results. Nothing is converted or copied: what cannot be used as it lies is
refused."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from . import _elsewise
from ._dtypes import SIZES, TORCH_NAMES, find


@functools.lru_cache(64)
def _spelling(dtype: np.dtype[Any]) -> str | None:
    return None if dtype.fields or dtype.subdtype else find(dtype)


def view(name: str, array: np.ndarray[Any, Any], writable: bool) -> _elsewise.View:
    """The memory of an array. Raises TypeError for dtypes without a place here, ValueError for layouts."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"`{name}` is a masked array, and its mask would be ignored: pass {name}.filled(value)")
    dtype = _spelling(array.dtype)
    if dtype is None:
        raise TypeError(f"`{name}` has dtype {array.dtype}; the dtypes are {' '.join(TORCH_NAMES)}")
    if not array.dtype.isnative:
        raise ValueError(
            f"`{name}` has the other byte order ({array.dtype.str}): pass {name}.astype({name}.dtype.newbyteorder('='))"
        )
    size = array.dtype.itemsize
    if array.__array_interface__["data"][0] % size or any(stride % size for stride in array.strides):
        raise ValueError(f"`{name}` is not aligned to its elements of {size} bytes: pass {name}.copy()")
    if writable and not array.flags.writeable:
        raise ValueError(f"`{name}` is read-only")
    strides = [stride // size for stride in array.strides]
    return _elsewise.View(array.ctypes.data, dtype, array.shape, strides, readonly=not array.flags.writeable)


def dtype_of(spelling: str) -> np.dtype[Any]:
    """NumPy's dtype of this spelling. bf16 has one if the package ml_dtypes is there."""
    if spelling == "bf16":
        try:
            import ml_dtypes  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise TypeError("a bf16 result in NumPy needs the package ml_dtypes; or give dtype='f32'") from None
        return np.dtype(ml_dtypes.bfloat16)  # type: ignore[no-any-return,unused-ignore]
    return np.dtype(TORCH_NAMES[spelling])


def allocate(shape: tuple[int, ...], strides: tuple[int, ...], spelling: str) -> np.ndarray[Any, Any]:
    """An array of these lengths and strides (in elements) that fill its memory. Called from C as well."""
    dtype = dtype_of(spelling)
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], d))  # memory order: the slowest axis first
    array = np.empty([shape[d] for d in order], dtype)
    return array.transpose(sorted(range(len(shape)), key=order.__getitem__))


def scalar(value: Any) -> bool | int | float | None:
    """A NumPy scalar as a Python one; None if it is none, or of another kind."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer) and not isinstance(value, np.timedelta64):  # which is derived from it
        return int(value)
    if isinstance(value, np.floating) and value.dtype.itemsize <= SIZES["f64"]:
        return float(value)
    return None
