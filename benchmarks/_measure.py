# SPDX-License-Identifier: Apache-2.0
"""How the benchmarks measure: events around one call, in turn with what it is compared with, and what is said of the
machine.

It knows no rule and no peer, and it judges nothing: a sample is a time, never a verdict.
"""

from __future__ import annotations

import datetime
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import elsewise as ew
import torch
from _results import RESULTS

Work = Callable[[], Any]
FLUSH_BYTES = 256 << 20  # several times the second-level cache of any device there is
SPIN_CYCLES = 1_000_000  # about 0.5 ms, longer than any caller needs for one call, or for a list of hundreds


def event_seconds(work: Work) -> float:
    """One call between two events."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3


def device_time(work: Work, repeats: int, flush: torch.Tensor | None) -> float:
    """Median seconds of device work, each call between two events; `flush` is written before each, so that no cache
    helps."""
    for _ in range(5):
        work()
    samples = []
    for _ in range(repeats):
        if flush is not None:
            flush.zero_()
        samples.append(event_seconds(work))
    return statistics.median(samples)


def in_turn(works: Mapping[str, Work], rounds: int, how: str, flush: torch.Tensor) -> dict[str, list[float]]:
    """Samples of each work, one of each a round, so that a clock that drifts does so for all of them.

    how: 'idle': the device waits for the call, and its caches hold what the same call before left there. 'flushed':
    after a large write, which leaves no input in a cache. 'queued': as 'idle', but the device is kept busy until the
    call has been queued, so that the caller's time is not in it.
    """
    for work in works.values():
        for _ in range(3):
            work()
    samples: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            if how == "flushed":
                flush.zero_()
            else:
                work()
                torch.cuda.synchronize()
                if how == "queued":
                    torch.cuda._sleep(SPIN_CYCLES)
            samples[name].append(event_seconds(work))
    return samples


def wall_time(work: Work, repeats: int) -> float:
    for _ in range(3):
        work()
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def host_time(work: Work, calls: int = 400, rounds: int = 25) -> float:
    """Median over rounds of the seconds that the caller spends in one call; the device keeps up, since the queue is
    emptied between rounds."""
    cuda = torch.cuda.is_available()
    for _ in range(50):
        work()
    samples = []
    for _ in range(rounds):
        if cuda:
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            work()
        samples.append((time.perf_counter() - start) / calls)
    return statistics.median(samples)


def cupy_stream(cupy: Any) -> Any:
    """torch's current stream as one of CuPy's."""
    current = torch.cuda.current_stream()
    if hasattr(cupy.cuda.Stream, "from_external"):
        return cupy.cuda.Stream.from_external(current)
    return cupy.cuda.ExternalStream(current.cuda_stream)


def facts(cuda: bool) -> dict[str, str]:
    """Date, device, processor and versions: what a figure means nothing without."""
    found = {"date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC"}
    if cuda:
        p = torch.cuda.get_device_properties(0)
        found["device"] = f"{p.name}, {p.multi_processor_count} multiprocessors, {p.total_memory / 2**30:.0f} GiB"
    with open("/proc/cpuinfo") as cpuinfo:
        model = next((line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith("model name")), "?")
    found["processor"] = f"{model}, {torch.get_num_threads()} threads"
    versions = [f"elsewise {ew.__version__}", f"torch {torch.__version__}", f"python {platform.python_version()}"]
    if cuda:
        versions.insert(2, f"CUDA {torch.version.cuda}")
        for name in ("triton", "cupy"):
            try:
                versions.append(f"{name} {__import__(name).__version__}")
            except ImportError:
                continue
    found["versions"] = ", ".join(versions)
    return found


def machine(cuda: bool) -> list[str]:
    return [f"{name:<10}{value}" for name, value in facts(cuda).items()]


def place(benchmark: str, cuda: bool, ending: str) -> Path:
    """Where a run is kept: one file a benchmark, device and day."""
    name = torch.cuda.get_device_name().replace(" ", "-") if cuda else "cpu"
    RESULTS.mkdir(exist_ok=True)
    return RESULTS / f"{benchmark}-{name}-{datetime.date.today():%Y-%m-%d}.{ending}"
