# SPDX-License-Identifier: Apache-2.0
"""Where and when work is launched: contexts, streams, one kernel a call, graphs, and what a call costs in memory."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import elsewise as ew
import pytest

from .test_results import plain_seed


class Driver:
    """The few functions of libcuda that say whose context is current."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.cuda.cuCtxDestroy_v2.argtypes = [ctypes.c_void_p]

    def current(self) -> int | None:
        context = ctypes.c_void_p()
        assert self.cuda.cuCtxGetCurrent(ctypes.byref(context)) == 0
        return context.value

    def create(self) -> int:
        context = ctypes.c_void_p()
        assert self.cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
        assert context.value
        return context.value

    def destroy(self, context: int) -> None:
        popped = ctypes.c_void_p()
        assert self.cuda.cuCtxPopCurrent_v2(ctypes.byref(popped)) == 0 and popped.value == context
        assert self.cuda.cuCtxDestroy_v2(context) == 0


@pytest.fixture
def driver(torch: Any) -> Driver:
    torch.zeros(1, device="cuda")
    return Driver()


def test_a_foreign_context_stays_current(torch: Any, seed: ew.Kernel, driver: Driver) -> None:
    x = torch.randn(10000, device="cuda")
    expected = plain_seed(torch, x)
    out = torch.zeros_like(x)
    fresh = ew.kernel("i<n/4: x*0.5; i>=n-n/4: x*2; else x  # first compiled under a foreign context")
    torch.cuda.synchronize()
    foreign = driver.create()
    try:
        assert driver.current() == foreign
        seed(x, out=out)
        assert driver.current() == foreign
        fresh(x, out=out)
        assert driver.current() == foreign
        for bad in (lambda: seed(x, out=out[1:]), lambda: seed(x[1:], out=x[:-1]), lambda: seed(x, y=3)):
            with pytest.raises((ValueError, TypeError)):
                bad()
            assert driver.current() == foreign
    finally:
        driver.destroy(foreign)
    torch.cuda.synchronize()
    assert torch.equal(out, expected)


def test_a_thread_without_a_context(torch: Any, seed: ew.Kernel, driver: Driver) -> None:
    x = torch.randn(10000, device="cuda")
    out, expected = torch.zeros_like(x), plain_seed(torch, x)
    torch.cuda.synchronize()
    contexts: list[int | None] = []

    def work() -> None:
        contexts.append(driver.current())
        seed(x, out=out)
        contexts.append(driver.current())
        try:
            seed(x, out=out[1:])
        except ValueError:
            contexts.append(driver.current())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert contexts == [None, None, None] and torch.equal(out, expected)


def test_threads(torch: Any, seed: ew.Kernel) -> None:
    good: list[bool] = []

    def work(k: int) -> None:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = torch.full((1000 + k,), float(k), device="cuda")
            results = [seed(x) for _ in range(200)]
            expected = plain_seed(torch, x)
        stream.synchronize()
        good.append(all(torch.equal(r, expected) for r in results))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert good == [True] * 6


def test_torchs_current_stream(torch: Any, seed: ew.Kernel) -> None:
    stream = torch.cuda.Stream()
    x = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        x.fill_(3.0)
        y = seed(x)
        assert not stream.query()  # nothing was waited for
    stream.synchronize()
    assert torch.equal(y, plain_seed(torch, x))


def test_a_given_stream(torch: Any, seed: ew.Kernel) -> None:
    stream = torch.cuda.Stream()
    x, out = torch.ones(1 << 20, device="cuda"), torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    torch.cuda._sleep(200_000_000)  # on the current stream, which the call does not use
    seed(x, out=out, stream=stream)
    y = seed(x, stream=stream.cuda_stream)
    stream.synchronize()
    assert not torch.cuda.current_stream().query()
    torch.cuda.synchronize()
    assert torch.equal(out, plain_seed(torch, x)) and torch.equal(y, out)


def trace_of(torch: Any, tmp_path: Path, work: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Device activity, and names of CUDA API calls, while `work` ran."""
    from torch.profiler import ProfilerActivity, profile, record_function

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        torch.cuda.synchronize()
        with record_function("the calls"):
            work()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    span = next(e for e in events if e.get("name") == "the calls" and e.get("cat") == "user_annotation")
    begin, end = span["ts"], span["ts"] + span["dur"]
    device = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    api = [e["name"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver") and begin <= e["ts"] <= end]
    return device, api


def test_a_hundred_calls_are_a_hundred_kernels_and_nothing_else(torch: Any, seed: ew.Kernel, tmp_path: Path) -> None:
    x = torch.randn(1 << 16, device="cuda")
    out = torch.zeros_like(x)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            seed(x, out=out)
            seed(x, out=x)
            kept = [seed(x) for _ in range(50)]
        stream.synchronize()
        del kept

        def work() -> None:
            for k in range(50):
                seed(x, out=out if k % 2 else x)
            kept = [seed(x) for _ in range(50)]
            assert len(kept) == 50

        before = ew.cache_info()
        device, api = trace_of(torch, tmp_path, work)
        after = ew.cache_info()
        beside, _ = trace_of(torch, tmp_path, lambda: out.add_(1.0))  # torch's own, on that stream
    default, _ = trace_of(torch, tmp_path, lambda: out.add_(1.0))
    streams = [{e["args"]["stream"] for e in events} for events in (device, beside, default)]
    assert streams[0] == streams[1] != streams[2]
    assert [e["cat"] for e in device] == ["kernel"] * 100
    assert {e["name"].split("(")[0] for e in device} == {"elsewise"}
    assert not [
        name for name in api if "ynchronize" in name or "emcpy" in name or "Malloc" in name or "EventQuery" in name
    ], api
    assert after.launches - before.launches == 100 and after.compiles == before.compiles


def test_one_launch_a_call(torch: Any, seed: ew.Kernel) -> None:
    for x in (
        torch.zeros(100, device="cuda"),
        torch.zeros(1 << 24, device="cuda"),
        torch.zeros(50, 70, device="cuda").t()[3:],
    ):
        before = ew.cache_info().launches
        seed(x)
        assert ew.cache_info().launches == before + 1
    before = ew.cache_info().launches
    seed(torch.zeros(0, device="cuda"))
    assert ew.cache_info().launches == before


def test_compilations_stay(torch: Any) -> None:
    k = ew.kernel("i < edge: x*gain; else x  # test_streams")
    x = torch.zeros(5000, device="cuda")
    k(x, edge=3, gain=2.0)
    k(x.view(50, 100)[:, :64], edge=3, gain=2.0)
    before = ew.cache_info()
    for n in (1, 100, 1024, 4999):
        for edge in (0, 5, 2**50):
            for gain in (0.5, 1e30):
                k(x[:n], edge=edge, gain=gain)
    for columns in (60, 72, 96):
        k(x.view(50, 100)[:, :columns], edge=3, gain=2.0)
    after = ew.cache_info()
    assert after.nvrtc == before.nvrtc and after.orc == before.orc


def test_memory(torch: Any, seed: ew.Kernel) -> None:
    x = torch.randn(1 << 22, device="cuda")
    seed(x)
    seed(x, out=x)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    seed(x, out=x)
    assert torch.cuda.max_memory_allocated() == before
    y = seed(x)
    assert torch.cuda.max_memory_allocated() == before + y.numel() * 4


def test_graph_capture_and_replay(torch: Any, seed: ew.Kernel) -> None:
    x, out = torch.randn(10000, device="cuda"), torch.zeros(10000, device="cuda")
    seed(x, out=out)  # compiled before the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        seed(x, out=out)
        y = seed(out)
    for _ in range(3):
        x.normal_()
        graph.replay()
        assert torch.equal(out, plain_seed(torch, x)) and torch.equal(y, plain_seed(torch, out))


def test_devices(torch: Any, seed: ew.Kernel) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    x = torch.randn(1000, device="cuda:1")
    assert torch.cuda.current_device() == 0
    y = seed(x)
    assert y.device == x.device and torch.equal(y, plain_seed(torch, x)) and torch.cuda.current_device() == 0
    with pytest.raises(ValueError, match="cuda:0"):
        ew.kernel("x + y")(x, y=torch.zeros(1000, device="cuda:0"))


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **env},
        check=False,
    )


def test_without_a_visible_device() -> None:
    code = """
import numpy as np, elsewise as ew
k = ew.kernel('x*2')
assert k(np.ones(4)).tolist() == [2.0] * 4
assert '__global__' in k.emit('cuda')
try: k.launch(out=ew.ptr(256, 'f32', 4), x=ew.ptr(512, 'f32', 4), device=0)
except RuntimeError as error: assert 'CUDA_VISIBLE_DEVICES' in str(error), error
else: raise AssertionError
"""
    done = run(code, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr


def test_without_nvrtc() -> None:
    code = """
import ctypes, sys, elsewise as ew
ew._elsewise.set_nvrtc_paths([])
import torch
from elsewise import _torch
_torch.loaded()
ew._elsewise.set_nvrtc_paths([])
facts = {name: remedy for name, _, remedy in ew._elsewise.environment()}
if not facts['nvrtc']: print('found elsewhere'); sys.exit(0)
x, out = torch.ones(8, device='cuda'), torch.full((8,), 7.0, device='cuda')
try: ew.kernel('x*2')(x, out=out)
except RuntimeError as error: assert 'nvidia-cuda-nvrtc' in str(error), error
else: raise AssertionError
assert out.tolist() == [7.0] * 8
"""
    done = run(code, CUDA_HOME="", CUDA_PATH="")
    assert done.returncode == 0, done.stderr
    if "found elsewhere" in done.stdout:
        pytest.skip("this system's loader finds an NVRTC that cannot be hidden")


def test_after_a_fork() -> None:
    code = """
import os, torch, elsewise as ew
k = ew.kernel('x*2')
x, out = torch.ones(8, device='cuda'), torch.zeros(8, device='cuda')
k(x, out=out)
child = os.fork()
if child == 0:
    try: k(x, out=out)
    except RuntimeError as error: os._exit(0 if 'fork' in str(error) else 2)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
assert k(x, out=out).tolist() == [2.0] * 8
"""
    done = run(code)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_demo_uses_the_gpu() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "elsewise", "demo"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "max error 0 against plain torch" in done.stdout and "NVIDIA" in done.stdout
