# SPDX-License-Identifier: Apache-2.0
"""What compiles, what does not compile again, and what keeps nothing alive."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from typing import Any

import elsewise as ew
import numpy as np
import pytest


def compiles() -> int:
    return ew.cache_info().compiles


def test_n_scalars_bounds_and_strides_of_a_kind_never_compile_again() -> None:
    k = ew.kernel("i < edge: x*gain; i >= n-edge: x+1; else x  # test_cache 1")
    x = np.arange(5000, dtype=np.float32)
    grid = np.arange(10000, dtype=np.float32).reshape(100, 100)
    k(x, gain=2.0, edge=3)
    k(grid[:50, :60], gain=2.0, edge=3)
    before = compiles()
    for n in (0, 1, 7, 64, 1000, 4999):
        k(x[:n], gain=2.0, edge=3)
    for gain in (0.0, -1.5, float("inf"), float("nan"), 1e300):
        k(x, gain=gain, edge=3)
    for edge in (0, -1, 10, 2**40, 2**70):
        k(x, gain=2.0, edge=edge)
    for rows, columns in ((50, 61), (3, 7), (99, 98)):
        k(grid[:rows, :columns], gain=2.0, edge=3)
    assert compiles() == before
    k(x, gain=2, edge=3)  # of another kind
    assert compiles() == before + 1


def test_a_new_dtype_compiles_once() -> None:
    k = ew.kernel("i < 3: x*2; else x  # test_cache 2")
    k(np.zeros(8, np.float32))
    before = compiles()
    k(np.zeros(8, np.float64))
    assert compiles() == before + 1
    k(np.zeros(9, np.float64))
    k(np.zeros(8, np.float32))
    assert compiles() == before + 1


def test_equal_text_is_one_spec() -> None:
    text = "i < 3: x*2; else x  # test_cache 3"
    first = ew.kernel(text)
    first(np.zeros(8, np.float32))
    before = compiles()
    ew.kernel(text)(np.zeros(8, np.float32))
    assert compiles() == before


def test_a_repeated_call_makes_no_plan() -> None:
    k = ew.kernel("i < 3: x*2; else x  # test_cache 4")
    x, out = np.zeros(64, np.float32), np.zeros(64, np.float32)
    k(x)
    k(x, out=out)
    before = ew.cache_info().plans
    for _ in range(10):
        k(x)
        k(x, out=out)
    assert ew.cache_info().plans == before


def test_alternating_shapes_reuse_their_plans() -> None:
    k = ew.kernel("i < 3: x*2; else x  # test_cache 5")
    arrays = [np.zeros(n, np.float32) for n in (64, 128, 256)]
    for array in arrays:
        k(array)
    before = ew.cache_info()
    for _ in range(3):
        for array in arrays:
            k(array)
    after = ew.cache_info()
    assert after.plans == before.plans and after.plan_hits > before.plan_hits


def test_plans_hold_no_tensor(torch: Any) -> None:
    k = ew.kernel("x + y")
    x, y, out = torch.zeros(8), torch.zeros(8), torch.zeros(8)
    a, b = np.zeros(8), np.zeros(8)
    k(x, y=y)
    k(x, y=y, out=out)
    result = k(x, y=y)
    k(a, y=b, out=a)
    refs = [weakref.ref(o) for o in (x, y, out, result, a, b)]
    del x, y, out, result, a, b
    gc.collect()
    assert [ref() for ref in refs] == [None] * 6


def test_arrays_are_not_left_exported() -> None:
    k = ew.kernel("x + y")
    x = np.zeros(8)
    k(x, y=x)
    with pytest.raises(ValueError):
        k(x, y=np.zeros(9))
    x.resize(16, refcheck=False)  # refused by NumPy while a buffer is exported
    assert k(x, y=x).shape == (16,)


def test_references_are_balanced(torch: Any) -> None:
    k = ew.kernel("x * g")
    g = 2.5
    for x in (np.zeros(4, np.float32), torch.zeros(4)):
        out = k(x, g=g)
        k(x, g=g, out=out)
        counts = [sys.getrefcount(o) for o in (x, out, g, k)]
        for _ in range(100):
            k(x, g=g)
            k(x, g=g, out=out)
            with pytest.raises(TypeError):
                k(x)
            with pytest.raises(ValueError):
                k(x, g=g, out=(type(x) is np.ndarray and np.zeros(5, np.float32)) or torch.zeros(5))
        assert [sys.getrefcount(o) for o in (x, out, g, k)] == counts


def test_memory_does_not_grow(torch: Any) -> None:
    k = ew.kernel("i < edge: x*2; else x")

    def resident() -> int:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    arrays = [np.zeros(16, np.float32), torch.zeros(16)]
    for _ in range(2000):
        for x in arrays:
            k(x, edge=3)
    before = resident()
    for step in range(20000):
        for x in arrays:
            k(x, edge=step)
    assert resident() - before < 4 << 20


def test_clear_cache_compiles_anew() -> None:
    k = ew.kernel("i < 3: x*2; else x  # test_cache 6")
    x = np.arange(8, dtype=np.float32)
    expected = k(x)
    ew.clear_cache()
    assert np.array_equal(k(x), expected)
    assert np.array_equal(k(x, out=x.copy()), expected)


def test_neither_torch_nor_much_time_is_needed_to_import() -> None:
    code = (
        "import sys, elsewise, numpy; k = elsewise.kernel('x*2'); k(numpy.zeros(4)); k.emit('llvm');"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_torch_may_be_imported_later() -> None:
    code = """
import elsewise, numpy as np
k = elsewise.kernel('x*2')
assert k(np.ones(4)).tolist() == [2.0] * 4
try:
    import torch
except ImportError:
    raise SystemExit
assert k(torch.ones(4)).tolist() == [2.0] * 4
assert k(torch.ones(4), out=torch.zeros(4)).tolist() == [2.0] * 4
assert elsewise._elsewise.path_counts()[0] == 2
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_arrays_need_no_torch_whatever_the_options() -> None:
    code = """
import sys
sys.modules['torch'] = None
import elsewise as ew, numpy as np
x = np.ones(4, np.float32)
assert ew.kernel('x*2')(x, device='cpu', dtype='f64', shape=4).tolist() == [2.0] * 4
assert ew.kernel('i')(shape=3).tolist() == ew.kernel('i')(out=np.zeros(3, np.int64), device='cpu').tolist() == [0, 1, 2]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_asking_for_what_comes_out_anyway_compiles_nothing() -> None:
    k = ew.kernel("i < 3: x*2; else x  # test_cache asked 1")
    x = np.arange(8, dtype=np.float32)
    expected = k(x)
    before = compiles()
    out = np.empty_like(x)
    k(x, out=out)
    assert np.array_equal(out, expected)
    assert np.array_equal(k(x, dtype=np.float32), expected)
    assert compiles() == before


def test_asking_first_compiles_what_nobody_asks_for() -> None:
    k = ew.kernel("i < 3: x*2; else x  # test_cache asked 2")
    x = np.arange(8, dtype=np.float32)
    k(x, out=np.empty_like(x))
    before = compiles()
    k(x)
    assert compiles() == before


def test_asking_for_another_dtype_or_for_doubles_to_work_in_compiles() -> None:
    k = ew.kernel("i < 3: x*2; else x  # test_cache asked 3")
    x = np.arange(8, dtype=np.float32)
    k(x)
    before = compiles()
    assert k(x, dtype=np.float64).dtype == np.float64
    assert compiles() == before + 1
    # A 0-d f64 makes the result f64 and works weak floats in f32; asking for f64 works them in f64.
    third = ew.kernel("s*0 + 1/float(3)  # test_cache asked 4")
    s = np.array(0.0)
    assert third(s=s, shape=(2,)).dtype == np.float64
    assert (third(s=s, shape=(2,), dtype=np.float64) == 1 / 3).all()
