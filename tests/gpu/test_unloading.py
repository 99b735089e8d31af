# SPDX-License-Identifier: Apache-2.0
"""Modules of kernels that nobody has any more: unloaded behind their last launch, never in a capture, and never while a
graph holds them. The driver is asked for what is left of its memory."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path
from typing import Any

import elsewise as ew


def fresh(torch: Any, j: int, what: str) -> ew.Kernel:
    """A kernel that was never compiled before, called once."""
    kernel = ew.kernel(f"i<n/4: x*{j}.5; else x+{j}  # {what} {os.getpid()}")
    kernel(torch.ones(64, device="cuda"))
    return kernel


def forget() -> None:
    """Pushes the last kernels out of those that are kept for a while."""
    gc.collect()
    for j in range(64):
        ew.kernel(f"x*{j}  # only made")


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE")


def test_memory_of_dropped_kernels_levels_off(torch: Any) -> None:
    for j in range(300):
        fresh(torch, j, "first")
    torch.cuda.synchronize()
    device, host = torch.cuda.mem_get_info()[0], resident()
    for j in range(1000):
        fresh(torch, j, "then")
    torch.cuda.synchronize()
    assert device - torch.cuda.mem_get_info()[0] <= 8 << 20
    assert resident() - host <= 32 << 20


def test_a_kernel_dropped_while_its_work_is_on_its_way(torch: Any) -> None:
    stream = torch.cuda.Stream()
    results = []
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        for j in range(100):
            kernel = ew.kernel(f"x*{j}  # on its way {os.getpid()}")
            results.append(kernel(torch.ones(1000, device="cuda")))
            del kernel
    forget()
    stream.synchronize()
    for j, result in enumerate(results):
        assert torch.equal(result, torch.full_like(result, j))


def test_a_graph_outlives_its_kernel(torch: Any) -> None:
    kernel = fresh(torch, 7, "of the graph")
    x, y = torch.ones(64, device="cuda"), torch.zeros(64, device="cuda")
    kernel(x, out=y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(x, out=y)
    del kernel
    forget()
    for j in range(40):
        fresh(torch, j, "after the graph")
    forget()
    x.fill_(2)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, torch.cat([torch.full((16,), 15.0), torch.full((48,), 9.0)]).cuda())


def test_kernels_dropped_in_a_capture_leave_it_whole(torch: Any) -> None:
    held = fresh(torch, 3, "captured")
    x, y = torch.ones(64, device="cuda"), torch.zeros(64, device="cuda")
    held(x, out=y), held(y, out=y)
    for other_thread in (False, True):
        dropped = [fresh(torch, j, f"dropped {other_thread}") for j in range(120)]
        torch.cuda.synchronize()

        def drop(kernels: list[ew.Kernel] = dropped) -> None:
            kernels.clear()
            forget()

        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            held(x, out=y)
            if other_thread:
                thread = threading.Thread(target=drop)
                thread.start()
                thread.join()
            else:
                drop()
            held(y, out=y)
        y.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y, torch.cat([torch.full((16,), 12.25), torch.full((48,), 7.0)]).cuda())
