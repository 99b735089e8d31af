# SPDX-License-Identifier: Apache-2.0
"""Run a rule on raw addresses, as people of CUDA Python, PyCUDA and ctypes have them: an address, its dtype, its shape,
and strides in elements if it is not contiguous.

Runs alone: on device memory from the CUDA driver itself if there is a GPU (neither torch nor PyCUDA is needed), and on
host memory in any case. Checks its results against NumPy.
"""

from __future__ import annotations

import ctypes
from typing import Any

import elsewise as ew
import numpy as np

rule = ew.kernel("i<n/4: x*0.5; i>=n-n/4: x*2; else x")
n = 4096
x = np.linspace(-1, 1, n, dtype=np.float32)
expected = x.copy()
expected[: n // 4] *= np.float32(0.5)
expected[n - n // 4 :] *= np.float32(2)

# Host memory of ctypes: nothing but an address is known of it, so dtype, shape and place are said.
source = (ctypes.c_float * n)(*x)
target = (ctypes.c_float * n)()
rule.launch(out=ew.ptr(ctypes.addressof(target), "f32", n), x=ew.ptr(ctypes.addressof(source), "f32", n), device="cpu")
assert np.array_equal(np.frombuffer(target, np.float32), expected)
print(f"ctypes: {n:,} floats at an address, {target[0]:g} … {target[n - 1]:g}")

# A transposed view is an address and strides: positions stay logical.
grid = np.arange(12, dtype=np.float32).reshape(3, 4)
turned = np.empty((4, 3), np.float32)
rule.launch(
    out=ew.ptr(turned.ctypes.data, "f32", (4, 3)),
    x=ew.ptr(grid.ctypes.data, "f32", (4, 3), strides=(1, 4)),
    device="cpu",
)
assert np.array_equal(turned, rule(np.ascontiguousarray(grid.T)))
print(f"transposed: {turned.ravel().tolist()}")


def cuda(name: str, *arguments: Any) -> None:
    if status := getattr(driver, name)(*arguments):
        raise RuntimeError(f"{name} failed with CUDA error {status}")


try:
    driver = ctypes.CDLL("libcuda.so.1")
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        raise OSError
except OSError:
    print("no CUDA device: the rest is left out")
else:
    # PyCUDA: `pycuda.autoprimaryctx`, `mem_alloc`; CUDA Python: `cuMemAlloc`, `int(pointer)`. Here: the same calls.
    context, memory, stream = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
    cuda("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)  # the one that torch, CuPy and Elsewise share
    cuda("cuCtxPushCurrent_v2", context)
    cuda("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(x.nbytes))
    cuda("cuStreamCreate", ctypes.byref(stream), 0)
    cuda("cuMemcpyHtoDAsync_v2", memory, x.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(x.nbytes), stream)
    rule.launch(out=memory.value, x=memory.value, dtype="f32", shape=n, stream=stream.value, device=0)  # in place
    back = np.empty_like(x)
    cuda("cuMemcpyDtoHAsync_v2", back.ctypes.data_as(ctypes.c_void_p), memory, ctypes.c_size_t(x.nbytes), stream)
    cuda("cuStreamSynchronize", stream)
    assert np.array_equal(back, expected)
    print(f"cuda:0: in place on a stream of its own, {back[0]:g} … {back[-1]:g}")
    cuda("cuStreamDestroy_v2", stream)
    cuda("cuMemFree_v2", memory)
    cuda("cuCtxPopCurrent_v2", ctypes.byref(context))
    cuda("cuDevicePrimaryCtxRelease_v2", 0)
