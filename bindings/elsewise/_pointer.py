# SPDX-License-Identifier: Apache-2.0
"""Raw addresses with what is needed to use them. Nothing here looks at memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, SupportsInt

from ._dtypes import spelling


@dataclass(frozen=True)
class Pointer:
    """An address, its dtype, shape, and strides in elements."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def lengths(name: str, shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of lengths; an int is a shape of one axis."""
    try:
        result = (shape.__index__(),) if hasattr(shape, "__index__") else tuple(length.__index__() for length in shape)
    except (TypeError, AttributeError):
        raise TypeError(f"`{name}` is an int or a sequence of ints, not {shape!r}") from None
    if any(length < 0 for length in result):
        raise ValueError(f"`{name}` holds a negative length: {result}")
    return result


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides, pitch = [], 1
    for length in reversed(shape):
        strides.append(pitch)
        pitch *= max(length, 1)
    return tuple(reversed(strides))


def ptr(address: SupportsInt, dtype: Any, shape: int | Sequence[int], strides: Sequence[int] | None = None) -> Pointer:
    """A raw address for :meth:`Kernel.launch`.

    address: anything that `int()` takes: an int, a PyCUDA `DeviceAllocation`, a `ctypes.c_void_p` value.
    dtype: "f32", "float32", `np.float32`, `torch.float32`, …
    shape: an int or a tuple. strides: in elements; None means contiguous. The address is that of element 0.
    """
    shape = lengths("shape", shape)
    if strides is None:
        strides = contiguous(shape)
    strides = tuple(int(stride) for stride in strides)
    if len(strides) != len(shape):
        raise ValueError(f"`strides` {strides} needs one entry for each of the {len(shape)} axes of `shape`")
    return Pointer(int(address), spelling(dtype), shape, strides)
