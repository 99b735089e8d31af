# SPDX-License-Identifier: Apache-2.0
"""What kernels cost to make and to drop: equal specs, distinct ones, and the memory of ten thousand.

    python benchmarks/many_kernels.py [--cuda] [--count=10000]

Each distinct spec is made, called once on a small tensor (a NumPy array; with --cuda a torch tensor there) and dropped.
Memory is what stays resident after a collection, asked of the kernel, and never given back by force. The table is
printed as it is made and kept in benchmarks/results/ with date and device.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import os
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import elsewise as ew
from _results import RESULTS

RULE = "i<n/4: x*0.5; i>=n-n/4: x*2; else x"


def resident() -> float:
    """MB of this process, after a collection."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def equal_spec(repeats: int = 20000) -> float:
    """Microseconds of `ew.kernel()` for a spec that is alive: the best of several rounds."""
    kept = ew.kernel(RULE)
    rounds = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(repeats):
            ew.kernel(RULE)
        rounds.append((time.perf_counter() - start) / repeats * 1e6)
    del kept
    return min(rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cuda", action="store_true", help="call on a CUDA tensor, with torch")
    parser.add_argument("--count", type=int, default=10000, help="distinct specs")
    options = parser.parse_args()
    x: Any
    if options.cuda:
        import torch

        x = torch.ones(64, device="cuda")
        device = torch.cuda.get_device_name()
    else:
        import numpy as np

        x = np.ones(64, np.float32)
        device = cpu_name()

    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    today = datetime.date.today().isoformat()
    say(f"many kernels, {today}, {device}, Python {platform.python_version()}, elsewise {ew.__version__}")
    say(f"ew.kernel() of a spec that is alive: {equal_spec():.2f} us")
    say("")
    say(f"{options.count} distinct specs, each made, called once on 64 elements and dropped")
    say(f"{'specs':>7} {'resident MB':>12} {'make, us':>10} {'first call, ms':>15}")
    made: list[float] = []
    called: list[float] = []
    step = max(options.count // 10, 1)
    for j in range(options.count):
        start = time.perf_counter()
        kernel = ew.kernel(f"i<n/4: x*{j}.5; i>=n-n/4: x*2; else x+{j}")
        middle = time.perf_counter()
        kernel(x)
        called.append((time.perf_counter() - middle) * 1e3)
        made.append((middle - start) * 1e6)
        del kernel
        if (j + 1) % step == 0:
            make, call = statistics.median(made[-step:]), statistics.median(called[-step:])
            say(f"{j + 1:>7} {resident():>12.1f} {make:>10.1f} {call:>15.2f}")
    name = device.replace(" ", "-") if options.cuda else "cpu"
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"many_kernels-{name}-{today}.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"\nkept in {path}")


if __name__ == "__main__":
    main()
