# SPDX-License-Identifier: Apache-2.0
"""`k.bench(...)`: the time of one call beside a copy of its result and beside the same rule in plain torch, taken in
turns. A result that differs from plain torch's is not timed, and no argument is written."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _call, _check, _elsewise, _explain, _options, _torch
from ._machine import described

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ._elsewise import Kernel

_SAMPLE = 2e-3  # seconds that a sample of short calls takes together
_MOST_CALLS = 1000
_FLUSH = {"cpu": 256 << 20, "cuda": 512 << 20}  # bytes written to empty the caches
_RULE, _COPY, _TORCH = "this rule", "copy", "plain torch"


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: the median of some samples, the least and the greatest. bytes: that it moves, by the model
    of explain(), or None. cold: with empty caches."""

    name: str
    cold: bool
    median: float
    least: float
    greatest: float
    bytes: int | None

    @property
    def bandwidth(self) -> float | None:
        """Bytes a second, or None."""
        return None if self.bytes is None or not self.median else self.bytes / self.median


@dataclass(frozen=True)
class Bench:
    """Measured times of one call; printed, it is a table.

    rule, signature, device, versions: what ran, and where. in_place: `out` was an input. shape: the result's.
    timings: `this rule`, `copy` (the same result copied) and `plain torch`, each a name, the `median`, `least` and
    `greatest` seconds of a call, the `bytes` that it moves and the `bandwidth`; with `cold=True` again with `cold` set.
    samples, calls: how many samples a timing has, and of how many calls in a row. check: how the results agreed.
    bytes_at_most: the rule's bytes are a bound.
    """

    rule: str
    signature: str
    device: str
    versions: str
    shape: tuple[int, ...]
    in_place: bool
    timings: tuple[Timing, ...]
    samples: int
    calls: int
    check: str
    bytes_at_most: bool

    def seconds(self, name: str = _RULE, cold: bool = False) -> float:
        """The median of a timing."""
        return self._timing(name, cold).median

    @property
    def of_copy(self) -> float:
        """The rule's time over the copy's."""
        return self.seconds() / self.seconds(_COPY)

    def _timing(self, name: str, cold: bool) -> Timing:
        for timing in self.timings:
            if (timing.name, timing.cold) == (name, cold):
                return timing
        there = ", ".join(repr(t.name) for t in self.timings if not t.cold)
        raise KeyError(f"no timing {name!r}{' with cold caches' if cold else ''}; there are {there}")

    def __str__(self) -> str:
        return "\n".join(_table(self))

    __repr__ = __str__

    def plot(self, path: str | Path | None = None) -> Any:
        """Bars of the medians with their extremes, by matplotlib, to a file if `path` is given; returns the axes.
        ImportError without matplotlib."""
        try:
            from matplotlib.figure import Figure  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise ImportError("plot() needs matplotlib: pip install matplotlib", name="matplotlib") from None
        figure = Figure(figsize=(7, 0.6 + 0.45 * len(self.timings)), layout="constrained")
        axes = figure.subplots()
        scale, unit = _unit(min(t.median for t in self.timings))
        for place, t in enumerate(reversed(self.timings)):
            error = [[(t.median - t.least) * scale], [(t.greatest - t.median) * scale]]
            axes.barh(place, t.median * scale, xerr=error, capsize=3, color="C0" if t.name == _RULE else "0.7")
        axes.set_yticks(range(len(self.timings)), [_label(t) for t in reversed(self.timings)])
        axes.set_xlabel(f"{unit} a call")
        axes.set_title(f"{_explain.cut(' '.join(self.rule.split()), 60)}\n{self.device}", fontsize="medium")
        if path is not None:
            figure.savefig(path)
        return axes


def bench(self: Kernel, /, *args: Any, **kwargs: Any) -> Bench:
    """Measures this call beside a copy of its result and the same rule in plain torch, taking turns.

    Takes what a call takes, `stream=` aside. `repeats=15`: samples of each, of which the median is shown; `cold=True`
    adds calls with empty caches. The rule writes into memory of its own, in place into a clone. Times are the GPU's own
    (events) on CUDA; on the CPU those of the caller, with the threads of torch. First the results are compared, within
    what :meth:`Kernel.check` allows.

    Returns a :class:`Bench`. Raises as a call does; RuntimeError if torch is not installed or the results differ. An
    argument of the rule that is called `repeats` or `cold` is the argument.
    """
    torch = _torch.needed("bench()")
    repeats = 15 if "repeats" in self.arguments else _options.whole("repeats", kwargs.pop("repeats", 15))
    cold = False if "cold" in self.arguments else _options.flag("cold", kwargs.pop("cold", False))
    if repeats < 1:
        raise ValueError(f"`repeats` is at least 1, not {repeats}")
    if kwargs.get("stream") is not None:
        raise TypeError("bench() takes no `stream=`: it measures on torch's current one")
    with _call.naming(self):
        return _bench(self, torch, args, dict(kwargs), repeats, cold)


def _bench(
    kernel: Kernel, torch: Any, args: tuple[Any, ...], kwargs: dict[str, Any], repeats: int, cold: bool
) -> Bench:
    out = kwargs.pop("out", None)
    explanation = kernel.explain(*args, **kwargs, out=out)
    values, options, _ = _call.by_name(kernel, args, dict(kwargs))
    for name, value in values.items():
        if not isinstance(value, (bool, int, float, np.generic, np.ndarray, torch.Tensor)):
            raise TypeError(f"bench() takes torch tensors and NumPy arrays, and `{name}` is {_options.kind_of(value)}")
    work = _Work(kernel, torch, values, options, out, explanation)
    agreed = work.verify()
    timer = _Cuda(torch, work.like.device) if work.like.is_cuda else _Cpu(torch)
    with timer:
        timings, calls = _measure(work, timer, repeats, cold)
    return Bench(
        rule=kernel.spec,
        signature=explanation.signature,
        device=described(torch, explanation.device),
        versions=f"torch {torch.__version__}" + ("" if work.library == "torch" else f", NumPy {np.__version__}"),
        shape=explanation.shape,
        in_place=work.in_place,
        timings=tuple(timings),
        samples=repeats,
        calls=calls,
        check=agreed,
        bytes_at_most=explanation.bytes_at_most,
    )


class _Work:
    """What is timed: the rule into memory of its own, a copy of the same result, and plain torch."""

    def __init__(
        self,
        kernel: Kernel,
        torch: Any,
        values: dict[str, Any],
        options: dict[str, Any],
        out: Any,
        explanation: _explain.Explanation,
    ) -> None:
        self.kernel, self.torch, self.explanation = kernel, torch, explanation
        aliases = [name for name, value in values.items() if out is not None and _same_view(value, out)]
        self.in_place = bool(aliases)
        named = {name: value for name, value in options.items() if value is not None}
        self.out = kernel(**values, **named) if out is None else _like(out)
        self.library = "numpy" if isinstance(self.out, np.ndarray) else "torch"
        self.original = _clone(out) if self.in_place else None
        self.values = {**values, **dict.fromkeys(aliases, self.out)}
        into = {name: value for name, value in named.items() if name in ("shape", "domain", "offset")}
        self.call: Callable[[], Any] = lambda: kernel(**self.values, **into, out=self.out)
        self.like = _check.to_torch(torch, self.out)
        asked = {**options, "dtype": options["dtype"] if out is None else self.like.dtype}
        self.plain = _check.plain(kernel, torch, values, asked, self.like)
        source = _clone(self.out)
        target = self.out if not self.in_place else _clone(self.out)
        self.copy: Callable[[], Any] = (
            (lambda: np.copyto(target, source)) if self.library == "numpy" else (lambda: target.copy_(source))
        )

    def restore(self) -> None:
        """In place, the input as it was."""
        if self.original is None:
            return
        if self.library == "numpy":
            np.copyto(self.out, self.original)
        else:
            self.out.copy_(self.original)

    def verify(self) -> str:
        """How the result agrees with plain torch; RuntimeError if it does not."""
        self.restore()
        self.call()
        result = _check.to_torch(self.torch, self.out)
        expected = self.plain()
        check = _check.compare(self.torch, result, expected, *_elsewise.allowance(self.kernel))
        if not check:
            raise RuntimeError(f"the result is not plain torch's, so its time says nothing: {check!r}")
        return repr(check)


def _same_view(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return bool(a.ctypes.data == b.ctypes.data and (a.strides, a.shape, a.dtype) == (b.strides, b.shape, b.dtype))
    if hasattr(a, "data_ptr") and hasattr(b, "data_ptr"):
        same = (a.stride(), a.shape, a.dtype) == (b.stride(), b.shape, b.dtype)
        return bool(same and a.data_ptr() == b.data_ptr())
    return False


def _like(value: Any) -> Any:
    """New memory of the same dtype, shape and strides."""
    if isinstance(value, np.ndarray):
        return np.empty_like(value)
    return value.new_empty(0).new_empty_strided(value.shape, value.stride())


def _clone(value: Any) -> Any:
    fresh = _like(value)
    if isinstance(value, np.ndarray):
        np.copyto(fresh, value)
    else:
        fresh.copy_(value)
    return fresh


def _measure(work: _Work, timer: Any, repeats: int, cold: bool) -> tuple[list[Timing], int]:
    functions: dict[str, Callable[[], Any]] = {_RULE: work.call, _COPY: work.copy, _TORCH: work.plain}
    e = work.explanation
    moved = {_RULE: e.bytes_read + e.bytes_written, _COPY: e.bytes_copied, _TORCH: None}
    batches = {}
    for name, function in functions.items():
        timer(function, 1)  # warm-up: code, allocators, clocks
        once = min(timer(function, 1) for _ in range(3 if name != _TORCH else 1))
        batches[name] = max(1, min(_MOST_CALLS, round(_SAMPLE / max(once, 1e-7))))
    if work.in_place:
        batches[_RULE] = 1  # a second call would see what the first one left
    timings = []
    for empty in (False, True) if cold else (False,):
        samples: dict[str, list[float]] = {name: [] for name in functions}
        for _ in range(repeats):
            for name, function in functions.items():
                if name == _RULE:
                    work.restore()
                if empty:
                    timer.flush()
                samples[name].append(timer(function, 1 if empty else batches[name]))
        for name, of in samples.items():
            timings.append(Timing(name, empty, statistics.median(of), min(of), max(of), moved[name]))
    work.restore()
    return timings, batches[_RULE]


class _Cpu:
    """Seconds of the caller."""

    def __init__(self, torch: Any) -> None:
        self.memory: Any = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, function: Callable[[], Any], calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            function()
        return (time.perf_counter() - start) / calls

    def flush(self) -> None:
        if self.memory is None:
            self.memory = np.zeros(_FLUSH["cpu"], np.uint8)
        self.memory += 1


class _Cuda:
    """Seconds between two events on torch's current stream of a device."""

    def __init__(self, torch: Any, device: Any) -> None:
        self.torch = torch
        self.memory: Any = None
        self.device = device
        self.on = torch.cuda.device(device)

    def __enter__(self) -> None:
        self.on.__enter__()

    def __exit__(self, *exception: object) -> None:
        self.on.__exit__(*exception)

    def __call__(self, function: Callable[[], Any], calls: int) -> float:
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls):
            function()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3 / calls

    def flush(self) -> None:
        if self.memory is None:
            self.memory = self.torch.zeros(_FLUSH["cuda"], dtype=self.torch.uint8, device=self.device)
        self.memory.add_(1)


# ---- text


def _unit(seconds: float) -> tuple[float, str]:
    return (1e6, "us") if seconds < 1e-2 else (1e3, "ms") if seconds < 10 else (1.0, "s")


def _label(t: Timing) -> str:
    return t.name + (", caches cold" if t.cold else "")


def _caches(b: Bench) -> str:
    """What the calls find in the caches."""
    warm = "caches warm: each finds what the call before left there"
    if not any(t.cold for t in b.timings):
        return warm
    return f"{warm}; cold: after a write of {_FLUSH['cuda' if b.device.startswith('cuda') else 'cpu'] >> 20} MiB"


def _table(b: Bench) -> list[str]:
    scale, unit = _unit(min(t.median for t in b.timings))
    rows: list[tuple[str, ...]] = [("", "median", "least", "greatest", "of copy", "moved at", "of copy's")]
    for t in b.timings:
        copy = b._timing(_COPY, t.cold)
        rate = share = ""
        if t.bandwidth and copy.bandwidth:
            least = "<= " if t.name == _RULE and b.bytes_at_most else ""
            rate, share = f"{least}{t.bandwidth / 1e9:,.1f} GB/s", f"{100 * t.bandwidth / copy.bandwidth:.0f} %"
        times = [f"{s * scale:,.1f} {unit}" for s in (t.median, t.least, t.greatest)]
        ratio = f"{t.median / copy.median:.2f}" if copy.median else ""
        rows.append((_label(t), *times, ratio, rate, share))
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [
        "  ".join(cell.rjust(width) if k else cell.ljust(width) for k, (cell, width) in enumerate(zip(row, widths)))
        for row in rows
    ]
    in_place = ", in place" if b.in_place else ""
    calls = f"{b.samples} samples" + (f" of {b.calls:,} calls" if b.calls > 1 else "")
    head = [
        *_explain.shortened(b.rule),
        f"{b.signature}, shape {b.shape}{in_place}, on {b.device}, {b.versions}",
        "",
    ]
    foot = [f"{calls} each, taking turns; {_caches(b)}", f"against plain torch: {b.check}"]
    return [line.rstrip() for line in (*head, *lines, "", *foot)]
