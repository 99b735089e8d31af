# SPDX-License-Identifier: Apache-2.0
"""Tests on a device. Without one every test is skipped in sight, with the reason."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest


def no_gpu() -> str | None:
    """None if there is a CUDA device that torch can use, else why not."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no CUDA driver (libcuda.so.1)"
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return "no CUDA device"
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    return None if torch.cuda.is_available() else "torch sees no CUDA device"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if "tests/gpu" in str(item.path)]
    why = no_gpu() if here else None
    if why is not None:
        for item in here:
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def torch() -> Any:
    import torch
    from elsewise import _torch

    _torch.loaded()
    return torch


@pytest.fixture(scope="session")
def seed() -> Any:
    import elsewise as ew

    return ew.kernel("i<n/4: x*0.5; i>=n-n/4: x*2; else x")
