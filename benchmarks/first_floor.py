# SPDX-License-Identifier: Apache-2.0
"""The first rule beside its peers, all in one run on one machine: time of the work, time of the caller, time to a first
result.

    python benchmarks/first_floor.py [--cpu] [--quick]

On a GPU: device time by CUDA events, with what torch's own copy takes as the limit; host time of `k(x, out=y)` beside
`torch.mul(x, .5, out=y)`; source to first result in new processes. Without one, or with --cpu, wall time on the CPU. A
peer that is not installed is left out and named.
The table is printed and kept in benchmarks/results/ with date, device and versions. Quote ratios of one run, never
times of two.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

import elsewise as ew
import torch
from _measure import Work, cupy_stream, device_time, host_time, machine, place, wall_time

RULE = "i<n/4: x*0.5; i>=n-n/4: x*2; else x"

RAW = r"""
extern "C" __global__ void seed(float* out, const float* x, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i < n / 4 ? x[i] * 0.5f : i >= n - n / 4 ? x[i] * 2.0f : x[i];
}
"""


def eager(x: torch.Tensor) -> torch.Tensor:
    n = x.numel()
    i = torch.arange(n, device=x.device)
    return torch.where(i < n // 4, x * 0.5, torch.where(i >= n - n // 4, x * 2, x))


def slices(y: torch.Tensor) -> torch.Tensor:
    n = y.numel()
    y[: n // 4] *= 0.5
    y[n - n // 4 :] *= 2
    return y


def clone_and_slices(x: torch.Tensor) -> torch.Tensor:
    return slices(x.clone())


def peers_of(k: ew.Kernel, x: torch.Tensor, y: torch.Tensor, left_out: list[str]) -> dict[str, Work]:
    """Every way to do the same work; what cannot run here is named in `left_out`."""
    n = x.numel()
    work: dict[str, Work] = {
        "y.copy_(x): the limit": lambda: y.copy_(x),
        "elsewise k(x, out=y)": lambda: k(x, out=y),
        "elsewise k(x)": lambda: k(x),
        "torch.mul(x, .5, out=y): one plain op": lambda: torch.mul(x, 0.5, out=y),
        "torch eager, where + arange": lambda: eager(x),
        "torch clone, then slices": lambda: clone_and_slices(x),
    }
    try:
        torch._dynamo.reset()
        compiled = torch.compile(eager, dynamic=False)
        compiled(x)
        work["torch.compile, static shape"] = lambda: compiled(x)
    except Exception as error:  # no compiler on this machine, for one
        left_out.append(f"torch.compile ({type(error).__name__})")
    if x.is_cuda:
        try:
            import cupy
        except ImportError:
            left_out.append("CuPy (not installed)")
        else:
            raw = cupy.RawKernel(RAW, "seed")
            stream = cupy_stream(cupy)
            blocks, args = ((n + 255) // 256,), (y.data_ptr(), x.data_ptr(), cupy.int64(n))

            def run_raw() -> None:
                with stream:
                    raw(blocks, (256,), args)

            work["CuPy RawKernel, one float a thread"] = run_raw
    return work


def in_place_of(k: ew.Kernel, y: torch.Tensor) -> dict[str, Work]:
    return {"torch, two slice ops": lambda: slices(y), "elsewise k(y, out=y)": lambda: k(y, out=y)}


def verify(k: ew.Kernel, x: torch.Tensor, work: dict[str, Work], y: torch.Tensor) -> None:
    """A benchmark of wrong results is none."""
    expected = eager(x)
    for name, function in work.items():
        if "copy_" in name or "mul" in name:
            continue
        y.zero_()
        result = function()
        result = y if result is None else result
        if not torch.equal(result, expected):
            sys.exit(f"{name}: wrong result at n = {x.numel()}")


FIRST = {
    "elsewise": f"""
import torch, time, elsewise as ew
x = torch.ones(4096, device={{device!r}}); y = torch.empty_like(x); x.add_(1); {{sync}}
t = time.perf_counter()
ew.kernel({RULE!r})(x, out=y); {{sync}}
print(time.perf_counter() - t)
""",
    "torch.compile": """
import torch, time
x = torch.ones(4096, device={device!r}); x.add_(1); {sync}
def eager(x):
    n = x.numel(); i = torch.arange(n, device=x.device)
    return torch.where(i < n // 4, x * 0.5, torch.where(i >= n - n // 4, x * 2, x))
t = time.perf_counter()
torch.compile(eager)(x); {sync}
print(time.perf_counter() - t)
""",
    "CuPy RawKernel": f"""
import torch, time, cupy
x = torch.ones(4096, device={{device!r}}); y = torch.empty_like(x); x.add_(1); {{sync}}
t = time.perf_counter()
cupy.RawKernel({RAW!r}, 'seed')((16,), (256,), (y.data_ptr(), x.data_ptr(), cupy.int64(4096))); {{sync}}
print(time.perf_counter() - t)
""",
}


def first_results(device: str, runs: int) -> dict[str, float | None]:
    """Seconds from source to result in a new process with torch imported and its context made, caches of its own and
    empty."""
    import os
    import tempfile

    sync = "torch.cuda.synchronize()" if device == "cuda" else "None"
    found: dict[str, float | None] = {}
    for name, code in FIRST.items():
        samples = []
        for _ in range(runs):
            with tempfile.TemporaryDirectory() as cache:
                env = {
                    **os.environ,
                    "ELSEWISE_CACHE_DIR": cache,
                    "CUPY_CACHE_DIR": cache,
                    "TORCHINDUCTOR_CACHE_DIR": cache,
                    "TRITON_CACHE_DIR": cache,
                }
                text = code.replace("{device!r}", repr(device)).replace("{sync}", sync)
                done = subprocess.run(
                    [sys.executable, "-c", text], capture_output=True, text=True, env=env, check=False
                )
            if done.returncode:
                break
            samples.append(float(done.stdout.split()[-1]))
        found[name] = statistics.median(samples) if samples else None
    return found


def table(title: str, rows: dict[str, float], base: str) -> list[str]:
    lines = ["", title, f"{'':<40}{'us':>11}{'of ' + base.split(':')[0]:>30}"]
    return lines + [f"{name:<40}{t * 1e6:>11.2f}{rows[base] / t:>30.2f}" for name, t in rows.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true", help="measure the CPU though there is a GPU")
    parser.add_argument("--quick", action="store_true", help="fewer sizes and repeats")
    options = parser.parse_args()
    cuda = torch.cuda.is_available() and not options.cpu
    device = "cuda" if cuda else "cpu"
    k = ew.kernel(RULE)
    left_out: list[str] = []
    lines: list[str] = []

    def say(*more: str) -> None:
        """Shown when it is measured, kept when all is."""
        print(*more, sep="\n", flush=True)
        lines.extend(more)

    say(f"rule      {RULE}   (float32)", *machine(cuda))
    sizes = ([1 << 28, 1 << 24, 1_000_000] if cuda else [1 << 26, 1 << 24, 1 << 22, 1 << 18])[
        : 2 if options.quick else None
    ]
    for n in sizes:
        x, y = torch.randn(n, device=device), torch.empty(n, device=device)
        work = peers_of(k, x, y, left_out)
        verify(k, x, work, y)
        repeats = max(15, min(200, (1 << 31) // n)) if cuda else max(15, min(200, (1 << 28) // n))
        repeats = repeats // 3 if options.quick else repeats
        flush = torch.empty(256 << 20, dtype=torch.uint8, device=device) if cuda and n <= 1 << 22 else None

        def timed(function: Work, repeats: int = repeats, flush: torch.Tensor | None = flush) -> float:
            return device_time(function, repeats, flush) if cuda else wall_time(function, repeats)

        kind = "device time" if cuda else "time"
        say(*table(f"{kind}, n = {n:,}", {name: timed(f) for name, f in work.items()}, "y.copy_(x): the limit"))
        zeros = torch.zeros(n, device=device)  # stays zero, however often it is scaled
        rows = {name: timed(f) for name, f in in_place_of(k, zeros).items()}
        say(*table(f"in place, {kind}, n = {n:,}", rows, "torch, two slice ops"))
        del x, y, zeros, work
    x, y = torch.randn(4096, device=device), torch.empty(4096, device=device)
    work = peers_of(k, x, y, [])
    calls = {name: host_time(f) for name, f in work.items() if "compile" not in name}
    say(*table("host time of a call, n = 4,096", calls, "torch.mul(x, .5, out=y): one plain op"))
    say("", "source to first result, new process, empty caches")
    for name, seconds in first_results(device, 1 if options.quick else 3).items():
        say(f"{name:<40}" + ("          not run" if seconds is None else f"{seconds * 1e3:>11.1f} ms"))
    if left_out:
        say("", "left out: " + ", ".join(dict.fromkeys(left_out)))
    text = "\n".join(lines) + "\n"
    path = place("first_floor", cuda, "txt")
    path.write_text(text)
    print(f"\nkept in {path}")


if __name__ == "__main__":
    main()
