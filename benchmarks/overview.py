# SPDX-License-Identifier: Apache-2.0
"""Everyday rules by `k.bench()`: time of each beside a copy of its result and plain torch, as a table and a picture.

    python benchmarks/overview.py [--cpu] [--quick]

It runs on the GPU if there is one. Table and picture (where matplotlib is installed) are kept in benchmarks/results/
with device, date and versions. Quote ratios of one run, never times of two.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import elsewise as ew
import torch
from _measure import RESULTS, machine, place

SEED = "i<n/4: x*0.5; i>=n-n/4: x*2; else x"
FADE = "[.., t]; t < fade: x*float(t)/fade; t >= len(t)-fade: x*float(len(t)-1-t)/fade; else x"
NAMES = ("copy", "this rule", "plain torch")


def calls(device: str, size: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Rules with their arguments, each of `size` float32 elements."""

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=device)

    x = random(size)
    side = 1 << (size.bit_length() - 1) // 3  # of a few square masks
    steps = "; ".join(f"i < {k}*n//16: x*{k}.5" for k in range(1, 16)) + "; else x"
    return {
        "first and last quarter scaled": (SEED, {"x": x}),
        "the same, in place": (SEED, {"x": x, "out": x}),
        "a scale for each of 16 parts": (steps, {"x": x}),
        "causal mask": ("[.., r, c]; c <= r: x; else -inf", {"x": random(size // side**2, side, side)}),
        "short fades": (FADE, {"x": random(size // 128, 128), "fade": 16}),
        "border of 8": ("[.., v, u]; border(v, u) < 8: 0; else x", {"x": random(size // 65536, 256, 256)}),
        "lookup by block of 128": ("x*s[i//128]", {"x": x, "s": random(size // 128)}),
    }


def table(found: dict[str, ew.Bench]) -> list[str]:
    lines = [f"{'us a call':<32}" + "".join(f"{name:>14}" for name in NAMES) + f"{'of copy':>10}{'of torch':>10}"]
    for name, b in found.items():
        times = "".join(f"{b.seconds(which) * 1e6:>14,.1f}" for which in NAMES)
        lines.append(f"{name:<32}{times}{b.of_copy:>10.2f}{b.seconds() / b.seconds('plain torch'):>10.2f}")
    return lines


def draw(found: dict[str, ew.Bench], path: Path, title: str) -> bool:
    """Bars over the copy's time; False without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(8, 0.9 + 0.52 * len(found)), layout="constrained")
    axes = figure.subplots()
    for k, (which, color) in enumerate((("this rule", "#1f77b4"), ("plain torch", "#c7c7c7"))):
        ratios = [b.seconds(which) / b.seconds("copy") for b in found.values()]
        label = "elsewise" if which == "this rule" else which
        bars = axes.barh([p + 0.36 * k for p in range(len(found))], ratios, 0.34, color=color, label=label)
        axes.bar_label(bars, fmt="%.2f", padding=3, fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8, linestyle=":")
    axes.set_yticks([p + 0.18 for p in range(len(found))], list(found))
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_xlabel("time of a call over that of y.copy_(x), dotted")
    axes.set_title(title, fontsize="medium")
    axes.legend(loc="best")
    figure.savefig(path, dpi=150)
    return True


def main() -> None:
    """All of them, one after another."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true", help="measure the CPU though there is a GPU")
    parser.add_argument("--quick", action="store_true", help="small and with few samples")
    options = parser.parse_args()
    cuda = torch.cuda.is_available() and not options.cpu
    size = 1 << (18 if options.quick else 26 if cuda else 24)
    device = "cuda" if cuda else "cpu"
    found = {}
    for name, (rule, given) in calls(device, size).items():
        found[name] = ew.kernel(rule).bench(**given, repeats=3 if options.quick else 15)
        print(f"{name}: {found[name].of_copy:.2f} of copy", flush=True)
    head = [*machine(cuda), f"{size:,} float32 elements each; caches as the call before left them", ""]
    lines = [*head, *table(found)]
    print("", *lines, sep="\n")
    if options.quick:
        return
    RESULTS.mkdir(exist_ok=True)
    text = place("overview", cuda, "txt")
    text.write_text("\n".join(lines) + "\n")
    picture = text.with_suffix(".png")
    named = next(iter(found.values())).device
    kept = f"{text} and {picture}" if draw(found, picture, named) else f"{text}; no picture without matplotlib"
    print(f"\nkept in {kept}")


if __name__ == "__main__":
    main()
