# SPDX-License-Identifier: Apache-2.0
"""Kernels are cheap to make and to drop: time of an equal spec, and memory of many distinct ones.

benchmarks/many_kernels.py measures both at length; here they only have bounds.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
import weakref
from pathlib import Path

import elsewise as ew
import numpy as np
import pytest

RULE = "i<n/4: x*0.5; i>=n-n/4: x*2; else x"

MANY = """
import gc, os, sys
from pathlib import Path
import elsewise as ew
import numpy as np

def resident():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

x = np.ones(64, np.float32)
kept = []
early = 0
for j in range(1500):
    kernel = ew.kernel(f"i<n/4: x*{j}.5; i>=n-n/4: x*2; else x+{j}")
    assert kernel(x)[-1] == 2
    if len(sys.argv) > 1:
        kept.append(kernel)
    if j == 499:
        early = resident()
print(resident() - early)
"""


def grown(*arguments: str) -> int:
    """Bytes that a new process gains from the 500th to the 1500th distinct spec."""
    child = [sys.executable, "-c", MANY, *arguments]
    done = subprocess.run(child, capture_output=True, text=True, timeout=300, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not say what is resident")
def test_memory_of_dropped_kernels_levels_off() -> None:
    assert grown() < 4 << 20  # a thousand kernels: 4 KB each would be seen


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system does not say what is resident")
def test_memory_of_kept_kernels_is_seen() -> None:
    """The measurement above can fail: kernels that stay alive cost what it would see."""
    assert grown("keep") > 8 << 20


def test_an_equal_spec_costs_microseconds() -> None:
    kept = ew.kernel(RULE)
    rounds = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(500):
            ew.kernel(RULE)
        rounds.append((time.perf_counter() - start) / 500)
    assert min(rounds) < 5e-6
    del kept


def test_a_dropped_kernel_is_gone_but_its_code_is_kept_for_a_while() -> None:
    text = f"x + {os.getpid()}  # kept for a while"
    kernel = ew.kernel(text)
    kernel(np.ones(3, np.float32))
    compiled = ew.cache_info().compiles
    gone = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None
    ew.kernel(text)(np.ones(3, np.float32))
    assert ew.cache_info().compiles == compiled  # among the last 64
    for j in range(64):
        ew.kernel(f"x * {j} + {os.getpid()}")
    ew.kernel(text)(np.ones(3, np.float32))
    assert ew.cache_info().compiles == compiled + 1
