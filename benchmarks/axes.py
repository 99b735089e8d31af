# SPDX-License-Identifier: Apache-2.0
"""Rules over named axes and everyday functions on a GPU: device time beside `y.copy_(x)` and torch operators.

Medians of 30 timings by device events, everything in one run; every result is compared with torch's first.
    python benchmarks/axes.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import elsewise as ew
import torch
from _measure import device_time


def microseconds(work: Callable[[], object]) -> float:
    """Median device time of a call."""
    return device_time(work, 30, None) * 1e6


def row(name: str, rule: str, x: torch.Tensor, eager: Callable[[torch.Tensor], torch.Tensor], **args: Any) -> None:
    """One line: the rule on `x` into a tensor that is there, in place, and `eager`, which must give the same."""
    k, y, z = ew.kernel(rule), torch.empty_like(x), x.clone()
    k(x, out=y, **args)
    if not torch.allclose(y, eager(x), equal_nan=True):
        raise SystemExit(f"{name}: wrong result")
    copy = microseconds(lambda: y.copy_(x))
    ours = microseconds(lambda: k(x, out=y, **args))
    inside = microseconds(lambda: k(z, out=z, **args))
    theirs = microseconds(lambda: eager(x))
    print(
        f"{name:26s} copy {copy:7.1f} us   elsewise {ours:7.1f} us ({ours / copy:.2f} of copy's time)   "
        f"in place {inside:7.1f} us   torch operators {theirs:7.1f} us",
        flush=True,
    )


def main() -> None:
    """All rows, on the current device."""
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, elsewise {ew.__version__}")
    on = {"device": "cuda"}  # a default device would be a mode, in which every call of torch is looked at first
    scores, q = torch.randn(64, 2048, 2048, **on), torch.arange(2048, **on)
    lower, never = q[None, :] <= q[:, None], torch.tensor(float("-inf"), **on)
    near = lower & (q[:, None] - q[None, :] < 256)
    row("causal, -inf", "[.., r, c]\nc <= r: x; else -inf", scores, lambda x: torch.where(lower, x, never))
    row("causal, 0", "[.., r, c]\nc <= r: x; else 0", scores, torch.tril)
    window = "[.., r, c]\nc <= r and r - c < 256: x; else -inf"
    row("sliding window of 256", window, scores, lambda x: torch.where(near, x, never))
    del scores

    pictures, across = torch.randn(64, 3, 1080, 1920, **on), torch.arange(1920, **on)
    down = torch.arange(1080, **on)[:, None]
    edge = torch.minimum(torch.minimum(down, 1079 - down), torch.minimum(across, 1919 - across))
    frame = "[.., v, u]\nborder(v, u) < 8: 0; else x"
    row("picture border of 8", frame, pictures, lambda x: torch.where(edge < 8, 0, x))
    del pictures

    sound, t, fade = torch.randn(512, 2, 480_000, **on), torch.arange(480_000, **on), 48_000
    gain = (t / fade).clamp(max=1) * ((480_000 - 1 - t) / fade).clamp(max=1)
    fades = "[.., t]\nx*ramp(t, 0, fade)*ramp(len(t)-1-t, 0, fade)"
    row("fade in and out", fades, sound, lambda x: x * gain, fade=fade)
    del sound

    x, even = torch.randn(4096, 16384, **on), (torch.arange(4096, **on) % 2 == 0)[:, None]
    row("every other row", "[h, t]\nh % 2 == 0: x*0.5; else x", x, lambda x: torch.where(even, x * 0.5, x))
    row("silu(x)", "silu(x)", x, torch.nn.functional.silu)
    row("exp(x)", "exp(x)", x, torch.exp)


if __name__ == "__main__":
    main()
