# SPDX-License-Identifier: Apache-2.0
"""Runs every benchmark that this machine can run, one after another, and says what it left out and why.

    python benchmarks/everything.py [--quick] [--keep] [--list]

What each prints is shown when it ends, and lies in a file of its own under build/bench, as tables and pictures do;
--keep puts those into benchmarks/results. It measures nothing itself, and fails if one of them does.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
LOGS = HERE.parent / "build/bench"
BAR, SHOWN = 24, 60  # characters; lines of what a step printed


@dataclass(frozen=True)
class Step:
    """One script. modules: without which it cannot run; quick: what makes it short, None: it is left out then;
    no_gpu: why it is left out without one."""

    name: str
    script: str
    what: str
    arguments: tuple[str, ...] = ()
    gpu: bool = False
    modules: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = None
    no_gpu: str = "no GPU"


STEPS = (
    Step("overview", "overview.py", "everyday rules beside copy and plain torch", quick=("--quick",)),
    Step("first_floor", "first_floor.py", "the first rule beside its peers", quick=("--quick",)),
    Step("many_kernels", "many_kernels.py", "cost and memory of many rules", ("--count=2000",), quick=("--count=200",)),
    Step("peers/cpu", "peers/cpu.py", "numba and numexpr on the first rule", modules=("numba", "numexpr")),
    Step(
        *("overview, CPU", "overview.py", "the CPU beside a GPU", ("--cpu",)),
        gpu=True,
        no_gpu="the overview is of the CPU here",
    ),
    Step("on_device", "on_device.py", "every row with its bars", gpu=True, quick=("--quick", "--budget=120")),
    Step("axes", "axes.py", "rules over named axes", gpu=True),
    Step("many_kernels, GPU", "many_kernels.py", "the same on the GPU", ("--cuda", "--count=2000"), gpu=True),
    Step("peers", "peers/peers.py", "Triton and CuPy by hand", gpu=True, modules=("cupy", "triton")),
    Step("peers/limit", "peers/limit.py", "how close to a copy code can come", gpu=True, modules=("cupy",)),
    Step("peers/segments", "peers/segments.py", "what skipped loads and segments buy", gpu=True, modules=("cupy",)),
)


def left_out(step: Step, quick: bool) -> str:
    """Why it is not run here; "" if it is."""
    if step.gpu and not torch.cuda.is_available():
        return step.no_gpu
    missing = [name for name in step.modules if importlib.util.find_spec(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    return "takes long, and --quick was asked for" if quick and step.quick is None else ""


def bar(done: int, of: int, text: str) -> str:
    full = BAR * done // max(1, of)
    return f"[{'#' * full}{'.' * (BAR - full)}] {done}/{of}  {text}"


def show(text: str, end: bool) -> None:
    """On a terminal in place of the line before; else only what has ended, a line each."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text}", end="\n" if end else "", flush=True)
    elif end:
        print(text, flush=True)


def run(step: Step, done: int, of: int, quick: bool, results: Path) -> int:
    """Its exit status; what it printed is in its log, and shown."""
    log = LOGS / f"{step.name.replace('/', '-').replace(', ', '-')}.log"
    arguments = step.quick if quick and step.quick is not None else step.arguments
    start = time.perf_counter()
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, str(HERE / step.script), *arguments],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "ELSEWISE_RESULTS": str(results)},
        )
        try:
            while process.poll() is None:
                show(bar(done, of, f"{step.name}: {step.what}, {time.perf_counter() - start:.0f} s"), end=False)
                time.sleep(0.5)
        finally:
            process.kill()  # of one that has ended: nothing
            process.wait()
    took = f"{time.perf_counter() - start:.0f} s"
    lines = log.read_text(errors="replace").strip().splitlines()
    if process.returncode == 0:
        show(bar(done + 1, of, f"{step.name}: {step.what}, {took}"), end=True)
        more = [f"… {len(lines) - SHOWN} lines before these in {log}"] if len(lines) > SHOWN else []
        print("", *more, *lines[-SHOWN:], "", sep="\n", flush=True)
        return 0
    show(bar(done + 1, of, f"{step.name}: FAILED after {took}; the end of {log}:"), end=True)
    print(*lines[-12:], sep="\n", flush=True)
    return process.returncode


def main() -> int:
    """1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the short ones, shortened")
    parser.add_argument("--keep", action="store_true", help="tables and pictures into benchmarks/results")
    parser.add_argument("--list", action="store_true", help="only say what would run")
    options = parser.parse_args()
    reasons = {step: left_out(step, options.quick) for step in STEPS}
    chosen = [step for step in STEPS if not reasons[step]]
    for step in STEPS:
        if reasons[step]:
            print(f"left out: {step.name} ({step.what}): {reasons[step]}", flush=True)
    if options.list:
        print(*(f"runs: {step.name} ({step.what})" for step in chosen), sep="\n")
        return 0
    LOGS.mkdir(parents=True, exist_ok=True)
    results = HERE / "results" if options.keep else LOGS
    failed = []
    for k, step in enumerate(chosen):
        try:
            if run(step, k, len(chosen), options.quick, results):
                failed.append(step.name)
        except KeyboardInterrupt:
            print(f"\nstopped in {step.name}; logs in {LOGS}, tables and pictures in {results}")
            return 130
    kept = "logs, tables and pictures in" if results == LOGS else f"tables and pictures in {results}, logs in"
    print(f"{kept} {LOGS}" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return min(len(failed), 1)


if __name__ == "__main__":
    sys.exit(main())
