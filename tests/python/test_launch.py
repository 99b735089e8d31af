# SPDX-License-Identifier: Apache-2.0
"""Raw addresses on the CPU, and arrays of other libraries. tests/gpu has the addresses on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest
from elsewise import _interface


def test_pointers(seed: ew.Kernel) -> None:
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    result = seed.launch(out=ew.ptr(out.ctypes.data, "f32", 8), x=ew.ptr(x.ctypes.data, np.float32, (8,)), device="cpu")
    assert result is None and out.tolist() == [0, 0.5, 2, 3, 4, 5, 12, 14]


def test_bare_addresses_take_dtype_and_shape(seed: ew.Kernel) -> None:
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    seed.launch(out=out.ctypes.data, x=x.ctypes.data, dtype="f32", shape=8, device="cpu")
    assert out.tolist() == [0, 0.5, 2, 3, 4, 5, 12, 14]
    with pytest.raises(TypeError, match="bare address"):
        seed.launch(out=out.ctypes.data, x=x.ctypes.data, device="cpu")
    with pytest.raises(TypeError, match="both"):
        seed.launch(out=out.ctypes.data, x=x.ctypes.data, dtype="f32", device="cpu")


def test_numbers_stay_parameters() -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    k = ew.kernel("x * gain")
    k.launch(out=out.ctypes.data, x=x.ctypes.data, gain=3, dtype="f32", shape=(4,), device="cpu")
    assert out.tolist() == [0, 3, 6, 9]


def test_strides_are_in_elements() -> None:
    x, out = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((4, 3), np.float32)
    k = ew.kernel("x")
    k.launch(out=ew.ptr(out.ctypes.data, "f32", (4, 3)), x=ew.ptr(x.ctypes.data, "f32", (4, 3), (1, 4)), device="cpu")
    assert np.array_equal(out, x.T)


def test_arrays_may_stand_beside_pointers() -> None:
    x, y, out = np.ones(4, np.float32), np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    ew.kernel("x + y").launch(out=out, x=ew.ptr(x.ctypes.data, "f32", 4), y=y, device="cpu")
    assert out.tolist() == [1, 2, 3, 4]


def test_what_calls_refuse_launches_refuse(seed: ew.Kernel) -> None:
    x = np.arange(9, dtype=np.float32)
    with pytest.raises(ValueError, match="overlap"):
        seed.launch(out=ew.ptr(x.ctypes.data + 4, "f32", 8), x=ew.ptr(x.ctypes.data, "f32", 8), device="cpu")
    assert x.tolist() == list(range(9))
    with pytest.raises(ValueError, match="out"):
        seed.launch(out=ew.ptr(x.ctypes.data, "f32", 7), x=ew.ptr(x.ctypes.data, "f32", 8), device="cpu")
    with pytest.raises(TypeError, match="missing"):
        seed.launch(out=ew.ptr(x.ctypes.data, "f32", 8), device="cpu")
    with pytest.raises(TypeError, match="launch"):
        seed(ew.ptr(x.ctypes.data, "f32", 8))
    with pytest.raises(TypeError, match="`out`"):
        seed.launch(out=1.5, x=ew.ptr(x.ctypes.data, "f32", 8), device="cpu")


def test_ptr_checks_what_it_can() -> None:
    p = ew.ptr(64, "float32", (2, 3))
    assert (p.address, p.dtype, p.shape, p.strides) == (64, "f32", (2, 3), (3, 1))
    with pytest.raises(TypeError, match="no such dtype"):
        ew.ptr(64, "c8", 3)
    with pytest.raises(ValueError, match="strides"):
        ew.ptr(64, "f32", (2, 3), (1,))
    with pytest.raises(ValueError, match="negative"):
        ew.ptr(64, "f32", -1)


class Producer:
    """An array of some other library that knows DLPack."""

    def __init__(self, array: np.ndarray, versioned: bool = True) -> None:
        self.array, self.versioned, self.calls = array, versioned, 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        if max_version is not None and not self.versioned:
            raise TypeError("unexpected keyword `max_version`")
        self.calls += 1
        return self.array.__dlpack__(**({"max_version": max_version} if self.versioned else {}))


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack_producers(both: Callable[..., Any], seed: ew.Kernel, versioned: bool) -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6).T
    result = both(seed, lambda: Producer(x, versioned), fast=False)
    assert np.array_equal(result, seed(x)) and isinstance(result, np.ndarray)
    out = Producer(np.zeros((6, 4), np.float32), versioned)
    assert seed(x, out=out) is out and np.array_equal(out.array, seed(x))


def test_a_read_only_producer_is_not_written(seed: ew.Kernel) -> None:
    array = np.zeros(8, np.float32)
    array.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        seed(np.ones(8, np.float32), out=Producer(array))
    assert not array.any()


def test_producers_of_what_has_no_place_here(both: Callable[..., Any], seed: ew.Kernel) -> None:
    with pytest.raises(TypeError, match="`x`: its dtype is none of bool u8"):
        both(seed, lambda: Producer(np.zeros(8, np.complex64)))

    class Elsewhere(Producer):
        def __dlpack_device__(self) -> tuple[int, int]:
            return (7, 0)  # Vulkan

    with pytest.raises(TypeError, match="neither a CPU nor CUDA"):
        both(seed, lambda: Elsewhere(np.zeros(8, np.float32)))


def test_memory_of_a_producer_is_given_back(seed: ew.Kernel) -> None:
    import weakref

    base = np.arange(8, dtype=np.float32)
    view = base[:]
    seed(Producer(view))
    ref = weakref.ref(view)
    del view
    assert ref() is None
    assert not _interface.known(3)


def test_stream_objects_of_all_libraries() -> None:
    from elsewise._options import stream as _stream

    class Torch:
        cuda_stream = 11

    class CuPy:
        ptr = 12

    class PyCUDA:
        handle = 13

    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, 14)

    assert [_stream(s) for s in (None, 0, 10, Torch(), CuPy(), PyCUDA(), Protocol())] == [None, 0, 10, 11, 12, 13, 14]
