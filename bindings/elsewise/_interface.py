# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries as arguments: whatever has `__dlpack__` or `__cuda_array_interface__`. The work of whoever
still writes them on another stream is waited for on the device, never on the host."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from . import _elsewise
from ._dtypes import TORCH_NAMES, find
from ._pointer import contiguous

_DLPACK_CPU, _DLPACK_CUDA, _DLPACK_PINNED, _DLPACK_MANAGED = 1, 2, 3, 13
_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
_DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING


def known(value: Any) -> bool:
    return hasattr(value, "__cuda_array_interface__") or hasattr(value, "__dlpack__")


def view(name: str, value: Any, writable: bool, stream: int) -> _elsewise.View:
    """The memory of an array; `stream` is where it will be used."""
    if writable and type(value).__module__.split(".")[0] in ("jax", "jaxlib"):
        raise ValueError(f"`{name}` is a JAX array, which cannot be written")
    if hasattr(value, "__cuda_array_interface__"):
        found = _of_interface(name, value.__cuda_array_interface__, stream)
    else:
        found = _of_dlpack(name, value, stream)
    if writable and found.readonly:
        raise ValueError(f"`{name}` is read-only")
    return found


def _of_dlpack(name: str, value: Any, stream: int) -> _elsewise.View:
    kind = int(value.__dlpack_device__()[0])
    if kind not in (_DLPACK_CPU, _DLPACK_CUDA, _DLPACK_PINNED, _DLPACK_MANAGED):
        raise TypeError(f"`{name}` is on a device (DLPack type {kind}) that is neither a CPU nor CUDA")
    options: dict[str, Any] = {"stream": stream or 1} if kind in (_DLPACK_CUDA, _DLPACK_MANAGED) else {}
    try:
        capsule = value.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # a producer of before DLPack 1.0
        capsule = value.__dlpack__(**options)
    try:
        return _elsewise.View.from_dlpack(capsule)
    except TypeError as error:
        raise TypeError(f"`{name}`: {error}") from None


def _of_interface(name: str, interface: dict[str, Any], stream: int) -> _elsewise.View:
    import numpy as np

    dtype = find(np.dtype(interface["typestr"]))
    if dtype is None:
        raise TypeError(f"`{name}` has dtype {interface['typestr']}; the dtypes are {' '.join(TORCH_NAMES)}")
    if interface.get("mask") is not None:
        raise TypeError(f"`{name}` is a masked array, and its mask would be ignored")
    size = np.dtype(interface["typestr"]).itemsize
    address, readonly = interface["data"]
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is None:
        strides = contiguous(shape)
    elif any(stride % size for stride in strides):
        raise ValueError(f"`{name}` is not aligned to its elements of {size} bytes")
    else:
        strides = tuple(stride // size for stride in strides)
    ordinal = ordinal_of(address) if address else 0
    producer = interface.get("stream")
    if producer is not None and producer != (stream or 1):
        wait(ordinal, producer, stream)
    return _elsewise.View(address or 0, dtype, shape, strides, ordinal, bool(readonly))


@functools.lru_cache(None)
def _driver() -> ctypes.CDLL:
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuPointerGetAttribute.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64]
    driver.cuEventCreate.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint]
    driver.cuEventRecord.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    driver.cuStreamWaitEvent.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint]
    driver.cuEventDestroy_v2.argtypes = [ctypes.c_void_p]
    driver.cuCtxPushCurrent_v2.argtypes = [ctypes.c_void_p]
    driver.cuCtxPopCurrent_v2.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
    driver.cuDevicePrimaryCtxRetain.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int]
    _check(driver.cuInit(0), "cuInit")
    return driver


def _check(status: int, what: str) -> None:
    if status:
        raise RuntimeError(f"{what} failed with CUDA error {status}")


def ordinal_of(address: int) -> int:
    """The device that owns an address."""
    ordinal = ctypes.c_int()
    status = _driver().cuPointerGetAttribute(ctypes.byref(ordinal), _ORDINAL, address)
    if status:
        raise ValueError(f"0x{address:x} is not an address of CUDA memory (error {status})")
    return ordinal.value


@functools.lru_cache(None)
def _context(ordinal: int) -> ctypes.c_void_p:
    context = ctypes.c_void_p()
    _check(_driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal), "cuDevicePrimaryCtxRetain")
    return context


def wait(ordinal: int, producer: int, consumer: int) -> None:
    """Makes what follows on stream `consumer` wait for what stands on stream `producer`."""
    driver, event, popped = _driver(), ctypes.c_void_p(), ctypes.c_void_p()
    _check(driver.cuCtxPushCurrent_v2(_context(ordinal)), "cuCtxPushCurrent")
    try:
        _check(driver.cuEventCreate(ctypes.byref(event), _DISABLE_TIMING), "cuEventCreate")
        try:
            _check(driver.cuEventRecord(event, producer), "cuEventRecord")
            _check(driver.cuStreamWaitEvent(consumer, event, 0), "cuStreamWaitEvent")
        finally:
            driver.cuEventDestroy_v2(event)
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(popped))
