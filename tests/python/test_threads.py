# SPDX-License-Identifier: Apache-2.0
"""Many threads at once, and processes that fork."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import elsewise as ew
import numpy as np
import pytest

from .conftest import SEED, seed_of


def test_threads_share_a_kernel(seed: ew.Kernel) -> None:
    inputs = [np.random.default_rng(k).standard_normal(1000 + k * 37).astype(np.float32) for k in range(8)]
    expected = [seed_of(x) for x in inputs]
    barrier = threading.Barrier(8)

    def work(k: int) -> bool:
        barrier.wait()
        return all(np.array_equal(seed(inputs[k]), expected[k]) for _ in range(300))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_threads_compile_the_same_and_different_rules_at_once() -> None:
    barrier = threading.Barrier(6)

    def work(k: int) -> bool:
        barrier.wait()
        shared = ew.kernel("i < 5: x*3; else x  # test_threads")
        own = ew.kernel(f"i < 5: x*{k + 2}; else x  # test_threads")
        x = np.ones(100, np.float32)
        return bool(shared(x)[:5].sum() == 15 and own(x)[:5].sum() == 5 * (k + 2) and own(x)[5:].sum() == 95)

    for _ in range(5):
        with ThreadPoolExecutor(6) as pool:
            assert all(pool.map(work, range(6)))
        ew.clear_cache()


def test_clearing_the_cache_while_others_call(seed: ew.Kernel) -> None:
    x = np.arange(200_000, dtype=np.float32)
    expected = seed_of(x)
    stop = threading.Event()

    def clear() -> None:
        while not stop.is_set():
            ew.clear_cache()
            time.sleep(0.001)

    thread = threading.Thread(target=clear)
    thread.start()
    try:
        for _ in range(50):
            assert np.array_equal(seed(x), expected)
    finally:
        stop.set()
        thread.join()


def test_large_calls_release_the_interpreter() -> None:
    k = ew.kernel("sqrt(abs(x))*sqrt(abs(x)+1) + sqrt(abs(x)+2)")
    x = np.ones(30_000_000, np.float64)
    out = np.empty_like(x)
    k(x, out=out)
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.0005)

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        time.sleep(0.01)
        start, before = time.perf_counter(), ticks
        k(x, out=out)
        seconds, during = time.perf_counter() - start, ticks - before
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert seconds < 0.004 or during > 0, (seconds, during)


def child_works() -> None:
    k = ew.kernel(SEED)
    x = np.arange(3_000_000, dtype=np.float32)
    assert np.array_equal(k(x), seed_of(x))
    fresh = ew.kernel("i < 7: x - 1; else x  # made in the child")
    assert fresh(x)[:7].tolist() == [-1, 0, 1, 2, 3, 4, 5]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_computes_and_compiles(seed: ew.Kernel) -> None:
    x = np.arange(3_000_000, dtype=np.float32)
    seed(x)  # the pool's threads exist before the fork
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=child_works) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert np.array_equal(seed(x), seed_of(x))


def test_a_fork_while_other_threads_call() -> None:
    code = f"""
import os, threading, numpy as np, elsewise as ew
k = ew.kernel({SEED!r})
x = np.arange(1_000_000, dtype=np.float32)
expected = k(x)
stop = threading.Event()
def work():
    while not stop.is_set():
        k(x)
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
codes = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(k(x), expected) else 1)
    codes.append(os.waitpid(child, 0)[1])
stop.set()
for t in threads: t.join()
assert codes == [0] * 5, codes
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


def test_workers_get_kernels_by_pickle() -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        x = np.arange(8, dtype=np.float32)
        assert np.array_equal(pool.apply(apply, (ew.kernel("x*2"), x)), x * 2)


def apply(k: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    return k(x)


def test_exit_with_work_in_other_threads() -> None:
    code = """
import threading, numpy as np, elsewise as ew
k = ew.kernel('i < 3: x*2; else x')
x = np.zeros(2_000_000, np.float32)
k(x)
def work():
    while True: k(x)
for _ in range(2): threading.Thread(target=work, daemon=True).start()
import time; time.sleep(0.2)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], timeout=60, capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
