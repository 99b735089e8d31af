# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries as arguments: whatever has `__dlpack__` or `__cuda_array_interface__`. The work of whoever
still writes them on another stream is waited for on the device, never on the host."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from . import _elsewise, _options
from ._dtypes import TORCH_NAMES, find
from ._pointer import contiguous

_DLPACK_CPU, _DLPACK_CUDA, _DLPACK_PINNED, _DLPACK_MANAGED = 1, 2, 3, 13
_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
_DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING


def known(value: Any) -> bool:
    return _has(value, "__cuda_array_interface__") or _has(value, "__dlpack__")


def is_traced(value: Any) -> bool:
    """True for what stands for an array of JAX while a function is traced."""
    return any(kind.__name__ == "Tracer" and kind.__module__.split(".")[0] == "jax" for kind in type(value).__mro__)


def _has(value: Any, name: str) -> bool:
    """Like hasattr(), but an attribute that fails is there; why it fails is said where it is used."""
    try:
        return hasattr(value, name)
    except Exception:
        return True


def view(name: str, value: Any, writable: bool, stream: int) -> _elsewise.View:
    """The memory of an array; `stream` is where it will be used."""
    if writable and type(value).__module__.split(".")[0] in ("jax", "jaxlib"):
        raise ValueError(f"`{name}` is a JAX array, which cannot be written")
    if _has(value, "__cuda_array_interface__"):
        try:
            interface = value.__cuda_array_interface__
        except Exception as error:
            raise TypeError(f"`{name}`: its `__cuda_array_interface__` fails: {_said(error)}") from error
        found = _of_interface(name, interface, stream)
    else:
        found = _of_dlpack(name, value, stream)
    if writable and found.readonly:
        raise ValueError(f"`{name}` is read-only")
    return found


def _of_dlpack(name: str, value: Any, stream: int) -> _elsewise.View:
    try:
        kind = int(value.__dlpack_device__()[0])
    except Exception as error:
        raise TypeError(f"`{name}` has `__dlpack__`, but its `__dlpack_device__` fails: {_said(error)}") from error
    if kind not in (_DLPACK_CPU, _DLPACK_CUDA, _DLPACK_PINNED, _DLPACK_MANAGED):
        raise TypeError(f"`{name}` is on a device (DLPack type {kind}) that is neither a CPU nor CUDA")
    options: dict[str, Any] = {"stream": stream or 1} if kind in (_DLPACK_CUDA, _DLPACK_MANAGED) else {}
    try:
        try:
            capsule = value.__dlpack__(max_version=(1, 0), **options)
        except TypeError:  # a producer of before DLPack 1.0
            capsule = value.__dlpack__(**options)
    except Exception as error:
        kind_of_error = ValueError if isinstance(error, (BufferError, ValueError)) else TypeError
        raise kind_of_error(f"`{name}`: its `__dlpack__` fails: {_said(error)}") from error
    try:
        return _elsewise.View.from_dlpack(capsule)
    except TypeError as error:
        raise TypeError(f"`{name}`: {error}") from None


def _said(error: Exception) -> str:
    """What an exception of somebody else's says, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _of_interface(name: str, interface: dict[str, Any], stream: int) -> _elsewise.View:
    try:
        element = np.dtype(interface["typestr"])
        mask = interface.get("mask")
        address, readonly = interface["data"]
        address = _options.within("data", _options.whole("data", address or 0))
        shape = _options.lengths("shape", interface["shape"])
        pitches = interface.get("strides")
        if pitches is not None:
            pitches = _options.steps("strides", pitches, len(shape))
        producer = interface.get("stream")
        if producer is not None:
            producer = _options.whole("stream", producer)
    except Exception as error:
        raise TypeError(f"`{name}` has a broken `__cuda_array_interface__`: {_said(error)}") from error
    dtype = find(element)
    if dtype is None:
        raise TypeError(f"`{name}` has dtype {element}; the dtypes are {' '.join(TORCH_NAMES)}")
    if not element.isnative:
        raise ValueError(f"`{name}` has the other byte order ({element.str})")
    if mask is not None:
        raise TypeError(f"`{name}` is a masked array, and its mask would be ignored")
    size = element.itemsize
    if pitches is None:
        strides = contiguous(shape)
    elif any(pitch % size for pitch in pitches):
        raise ValueError(f"`{name}` is not aligned to its elements of {size} bytes")
    else:
        strides = tuple(pitch // size for pitch in pitches)
    ordinal = ordinal_of(address) if address else 0
    if producer is not None and producer != (stream or 1):
        wait(ordinal, producer, stream)
    return _elsewise.View(address, dtype, shape, strides, ordinal, bool(readonly))


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
