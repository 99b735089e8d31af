# SPDX-License-Identifier: Apache-2.0
"""`python -m elsewise demo`: the first rule of the README on a million elements, checked, timed and weighed beside
plain torch (NumPy where torch is missing). Every figure is measured when it runs; the exit status is 0 only if the
results are equal."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from . import __version__, _torch, kernel
from ._machine import NO_CUDA, has_cuda, processor

RULE = "i<n/4: x*0.5; i>=n-n/4: x*2; else x"


def plain_torch(x: Any) -> Any:
    import torch

    n = x.numel()
    i = torch.arange(n, device=x.device)
    return torch.where(i < n // 4, x * 0.5, torch.where(i >= n - n // 4, x * 2, x))


def plain_numpy(x: Any) -> Any:
    import numpy as np

    n = x.size
    i = np.arange(n)
    return np.where(i < n // 4, x * np.float32(0.5), np.where(i >= n - n // 4, x * np.float32(2), x))


def _data(torch: Any, n: int, device: str) -> Any:
    if torch is None:
        import numpy as np

        return np.random.default_rng(0).standard_normal(n, np.float32)
    return torch.randn(n, generator=torch.Generator().manual_seed(0)).to(device)


def demo(n: int, device: str | None) -> int:
    torch = _torch.installed()
    if device is None:
        device = "cuda" if has_cuda(torch) else "cpu"
    if n < 4:
        print(f"the demo needs n >= 4, not {n}", file=sys.stderr)
        return 2
    if device == "cuda" and not has_cuda(torch):
        print(NO_CUDA, file=sys.stderr)
        return 2
    plain, peer = (plain_numpy, "plain NumPy") if torch is None else (plain_torch, "plain torch")
    rule = kernel(RULE)
    x = _data(torch, n, device)
    start = time.perf_counter()
    y = rule(x)
    _wait(torch, device)
    first_call = time.perf_counter() - start
    expected = plain(x)
    error = float(abs(y - expected).max())
    equal = int((y == expected).sum())

    name = torch.cuda.get_device_name() if device == "cuda" else processor()
    print(f"elsewise {__version__} on {name}" + (f", torch {torch.__version__}" if torch is not None else ""))
    print()
    print(f"rule      {RULE}")
    print(f"elements  {n:,} of float32")
    print()
    show = (0, 1, n // 2, n - 2, n - 1)
    print("position  " + "".join(f"{k:>14,}" for k in show))
    print("x         " + "".join(f"{float(x[k]):>14.6f}" for k in show))
    print("result    " + "".join(f"{float(y[k]):>14.6f}" for k in show))
    print()
    print(f"max error {error:g} against {peer} ({equal:,} of {n:,} elements equal)")
    print()

    out = x.copy() if torch is None else x.clone()
    work: list[tuple[str, str, Callable[[], Any]]] = [
        ("elsewise", "elsewise", lambda: rule(x)),
        ("elsewise, in place", "in place", lambda: rule(out, out=out)),
        (peer, "plain", lambda: plain(x)),
    ]
    times = _times(torch, device, [function for _, _, function in work])
    peaks = [_peak_cuda(torch, f) if device == "cuda" else _peak_cpu(key, n) for _, key, f in work]
    print(f"{'':<20}{'time':>12}{'':>8}{'peak extra memory':>24}")
    for (label, _, _), seconds, peak in zip(work, times, peaks):
        ratio = "" if label == peer else f"{times[-1] / seconds:.1f}x"
        print(f"{label:<20}{seconds * 1e6:>9.1f} us{ratio:>8}{peak / 2**20:>20.1f} MiB")
    print()
    print(
        "elsewise makes a new result, rule(x); in place it is the input, rule(x, out=x): only what changes is touched"
    )
    print(
        f"first call, code made for it: {first_call * 1e3:.1f} ms; memory is that beyond the input, the result included"
    )
    return 0 if error == 0 and equal == n else 1


def _wait(torch: Any, device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _times(torch: Any, device: str, work: list[Callable[[], Any]]) -> list[float]:
    """Median seconds of one call of each; on a GPU device time, by events around batches of calls. They take turns, so
    that a computer that slows down slows all of them.
    """
    for function in work:
        for _ in range(3):
            function()
    samples: list[list[float]] = [[] for _ in work]
    for _ in range(30):
        for function, of_function in zip(work, samples):
            if device == "cuda":
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                for _ in range(20):
                    function()
                end.record()
                end.synchronize()
                of_function.append(begin.elapsed_time(end) / 20e3)
            else:
                start = time.perf_counter()
                function()
                of_function.append(time.perf_counter() - start)
    return [statistics.median(of_function) for of_function in samples]


def _peak_cuda(torch: Any, function: Callable[[], Any]) -> int:
    """Bytes that torch's allocator held at most during one call, beyond what it held before."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    function()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated() - before)


def _peak_cpu(what: str, n: int) -> int:
    """Growth of resident memory during one call, measured in a process of its own."""
    command = [sys.executable, "-m", "elsewise", "demo", "--measure", what, "-n", str(n)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return int(json.loads(done.stdout)["bytes"])


def measure(what: str, n: int) -> int:
    """The child's side: prints how much resident memory one call took at its peak."""
    torch = _torch.installed()
    plain = plain_numpy if torch is None else plain_torch
    rule = kernel(RULE)

    def call(x: Any) -> Any:
        if what == "plain":
            return plain(x)
        return rule(x, out=x) if what == "in place" else rule(x)

    call(_data(torch, 1000, "cpu"))  # imports, code and thread pools are not what is weighed
    x = _data(torch, n, "cpu")
    call(x[: max(n // 100, 4)])
    before = _resident("VmRSS")
    reset = _reset_peak()
    before = max(before, 0 if reset else _resident("VmHWM"))
    result = call(x)
    print(json.dumps({"bytes": max(_resident("VmHWM") - before, 0), "first": float(result[0])}))
    return 0


def _resident(field: str) -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field + ":"))


def _reset_peak() -> bool:
    try:
        with open("/proc/self/clear_refs", "w") as refs:
            refs.write("5")
    except OSError:
        return False
    return True
