# SPDX-License-Identifier: Apache-2.0
"""Raw addresses with what is needed to use them. Nothing here looks at memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, SupportsInt

from . import _options
from ._dtypes import spelling


@dataclass(frozen=True)
class Pointer:
    """An address, its dtype, shape, and strides in elements."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides, pitch = [], 1
    for length in reversed(shape):
        strides.append(pitch)
        pitch *= max(length, 1)
    return tuple(reversed(strides))


def ptr(address: SupportsInt, dtype: Any, shape: int | Sequence[int], strides: Sequence[int] | None = None) -> Pointer:
    """A raw address for :meth:`Kernel.launch`.

    address: an int, or an object that stands for one: a PyCUDA `DeviceAllocation`, a `ctypes.c_void_p`.
    dtype: "f32", "float32", `np.float32`, `torch.float32`, …
    shape: an int or a tuple. strides: in elements; None means contiguous. The address is that of element 0.
    """
    shape = _options.lengths("shape", shape)
    strides = contiguous(shape) if strides is None else _options.steps("strides", strides, len(shape))
    return Pointer(_options.address(address), spelling(dtype), shape, strides)
