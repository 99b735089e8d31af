# SPDX-License-Identifier: Apache-2.0
"""The rows of the benchmark on a device: rules with their inputs, what they must give, their peers and their bars.

It times nothing and runs nothing by itself; every size has a small stand-in, so that all of it can be checked on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import elsewise as ew
import torch
from _measure import Work, cupy_stream

COPY, OURS, TORCH, COMPILED, TRITON, CUPY = "copy", "elsewise", "torch", "torch.compile", "Triton", "CuPy raw"
SEED = "i<n/4: x*0.5; i>=n-n/4: x*2; else x"
SHIFT = "i<n/4: x>>1; i>=n-n/4: x<<1; else x"
FADE = "x*ramp(t, 0, fade)*ramp(len(t)-1-t, 0, fade)"


@dataclass(frozen=True)
class Bar:
    """Ours is to take at most `limit` of the time of each work in `over`."""

    over: tuple[str, ...]
    limit: float


BEST = Bar((COMPILED, TRITON), 1.0)


@dataclass
class Case:
    """One rule on one set of tensors. Works return the result, or None when it is in `out`."""

    size: str
    rule: str
    args: dict[str, Any]
    out: torch.Tensor
    want: Callable[[], torch.Tensor]
    ours: Work
    peers: dict[str, Work]
    moved: int  # the fewest bytes: each element that matters is read once, each of the result written once
    bars: list[Bar] = field(default_factory=list)
    streams: float | None = None  # how much of the limit of `moved` bytes is asked for
    copy: Work | None = None
    copied: int = 0  # bytes that `copy` moves
    exact: bool = True
    refresh: Work | None = None  # before each series: what a work changes in place is made new
    in_place: bool = False
    flush: bool = False  # as the peers' scripts do for small sizes


@dataclass
class Tools:
    """The peers that are there; what is not, and why, is in `missing`."""

    triton: Any = None
    cupy: Any = None
    compiles: bool = False
    missing: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def found(cuda: bool, interpret: bool = False) -> Tools:
        tools = Tools()
        if cuda or interpret:
            try:
                import _triton

                tools.triton = _triton
            except ImportError as error:
                tools.missing[TRITON] = str(error)
        if cuda:
            try:
                import cupy

                tools.cupy = cupy
            except ImportError as error:
                tools.missing[CUPY] = str(error)
            tools.compiles = True
        return tools

    def by_hand(self, name: str, *args: Any) -> dict[str, Work]:
        """The Triton kernel of that name; nothing if there is no Triton."""
        return {TRITON: lambda: getattr(self.triton, name)(*args)} if self.triton else {}

    def compiled(self, function: Callable[..., torch.Tensor], *args: Any, dynamic: bool = False) -> dict[str, Work]:
        if not self.compiles:
            return {}
        made = torch.compile(function, dynamic=dynamic)
        return {COMPILED: lambda: made(*args)}

    def raw(self, source: str, x: torch.Tensor, out: torch.Tensor) -> dict[str, Work]:
        """A kernel `seed(out, x, n)` of one element a thread."""
        if not self.cupy:
            return {}
        kernel, stream = self.cupy.RawKernel(source, "seed"), cupy_stream(self.cupy)
        n = x.numel()
        blocks, args = ((n + 255) // 256,), (out.data_ptr(), x.data_ptr(), self.cupy.int64(n))

        def run() -> None:
            with stream:
                kernel(blocks, (256,), args)

        return {CUPY: run}


@dataclass(frozen=True)
class Row:
    """`cases` makes one case after another, so that only one's tensors are alive; `small` asks for the stand-ins."""

    name: str
    cases: Callable[[Tools, str, bool], Iterator[Case]]
    recompiles: bool = True  # else what torch compiled for one case serves the next, if its shapes are dynamic


def positions(x: torch.Tensor, axis: int) -> torch.Tensor:
    """The positions along one axis, shaped to broadcast with `x`."""
    shape = [1] * x.ndim
    shape[axis] = -1
    return torch.arange(x.shape[axis], device=x.device).reshape(shape)


def power(n: int) -> str:
    return f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 else f"{n:,}"


def shape_name(x: torch.Tensor) -> str:
    return "x".join(map(str, x.shape)) + " " + str(x.dtype).removeprefix("torch.")


def random(shape: tuple[int, ...], device: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    if dtype.is_floating_point:
        return torch.randn(shape, device=device, dtype=dtype)
    info = torch.iinfo(dtype)
    return torch.randint(info.min, info.max + 1, shape, device=device, dtype=dtype)


def size_of(*tensors: torch.Tensor) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def into(rule: str, out: torch.Tensor, **args: Any) -> Work:
    kernel = ew.kernel(rule)
    return lambda: kernel(**args, out=out)


def plain(case: Case) -> Case:
    """With the copy of one tensor of `out`'s kind to another as the limit."""
    x = case.args.get("x")
    source = x if x is not None and x.dtype == case.out.dtype and x.shape == case.out.shape else None
    if source is None or source.stride() != case.out.stride():
        source = torch.empty_like(case.out)
        source.normal_() if source.is_floating_point() else source.random_()  # zeros may copy faster
    target = torch.empty_like(case.out)
    case.copy, case.copied = (lambda: target.copy_(source)), 2 * size_of(case.out)
    return case


# The seed rule


def where_seed(x: torch.Tensor) -> torch.Tensor:
    n = x.numel()
    i = torch.arange(n, device=x.device)
    return torch.where(i < n // 4, x * 0.5, torch.where(i >= n - n // 4, x * 2, x))


def where_shift(x: torch.Tensor) -> torch.Tensor:
    n = x.numel()
    i = torch.arange(n, device=x.device)
    return torch.where(i < n // 4, x >> 1, torch.where(i >= n - n // 4, x << 1, x))


def slices(y: torch.Tensor) -> torch.Tensor:
    n = y.numel()
    if y.is_floating_point():
        y[: n // 4] *= 0.5
        y[n - n // 4 :] *= 2
    else:
        y[: n // 4] >>= 1
        y[n - n // 4 :] <<= 1
    return y


RAW = """
extern "C" __global__ void seed(TYPE* out, const TYPE* x, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i < n / 4 ? LOW : i >= n - n / 4 ? HIGH : x[i];
}
"""
RAW_TYPES = {
    torch.float32: ("float", "x[i] * 0.5f", "x[i] * 2.0f"),
    torch.float64: ("double", "x[i] * 0.5", "x[i] * 2.0"),
    torch.int8: ("signed char", "x[i] >> 1", "x[i] << 1"),
}  # the halves need headers


def raw_seed(dtype: torch.dtype) -> str:
    kind, low, high = RAW_TYPES[dtype]
    return RAW.replace("TYPE", kind).replace("LOW", low).replace("HIGH", high)


def seed_case(tools: Tools, device: str, n: int, dtype: torch.dtype, compile: bool, dynamic: bool = False) -> Case:
    x = random((n,), device, dtype)
    y = torch.empty_like(x)
    rule, where = (SEED, where_seed) if dtype.is_floating_point else (SHIFT, where_shift)
    peers: dict[str, Work] = {TORCH: lambda: slices(x.clone())}
    if dtype == torch.float32:
        peers["torch.mul"] = lambda: torch.mul(x, 0.5, out=y)  # one plain op, of another result
        if not dynamic:
            peers["torch where"] = lambda: where(x)
    if compile:
        peers |= tools.compiled(where, x, dynamic=dynamic)
    peers |= tools.by_hand("seed", x, y)
    if dtype in RAW_TYPES:
        peers |= tools.raw(raw_seed(dtype), x, y)
    case = Case(
        size=f"{power(n)} {str(dtype).removeprefix('torch.')}",
        rule=rule,
        args={"x": x},
        out=y,
        want=lambda: slices(x.clone()),
        ours=into(rule, y, x=x),
        peers=peers,
        moved=2 * size_of(x),
        flush=n <= 1 << 22,
    )
    case.copy, case.copied = (lambda: y.copy_(x)), 2 * size_of(x)
    return case


def seeds(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    of_copy = {1 << 28: 1.02, 1 << 24: 1.05}
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8):
        for n in (64, 61) if small else (1 << 28, 1 << 24, 10**6, 1 << 20):
            compile = dtype == torch.float32 or n in (1 << 28, 10**6)
            case = seed_case(tools, device, n, dtype, compile)
            if n in of_copy:
                case.bars = [Bar((COPY,), of_copy[n])]
            else:
                same = tuple(name for name in case.peers if name != "torch.mul")
                case.bars = [Bar(same, 1.03)]
            yield case


def half_zero(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    rule = "i<n/2: 0; else x"
    n = 62 if small else 1 << 28
    x = random((n,), device)
    y = torch.empty_like(x)

    def where(x: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.arange(x.numel(), device=x.device) < x.numel() // 2, 0, x)

    def sliced() -> torch.Tensor:
        z = x.clone()
        z[: n // 2] = 0
        return z

    peers = {TORCH: sliced} | tools.compiled(where, x) | tools.by_hand("half_zero", x, y)
    ours = into(rule, y, x=x)
    yield plain(Case(power(n), rule, {"x": x}, y, sliced, ours, peers, size_of(x) * 3 // 2, [Bar((COPY,), 0.78)]))


def causal(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    rule = "[.., r, c]\nc > r: -inf; else x"

    def where(x: torch.Tensor) -> torch.Tensor:
        return torch.where(positions(x, -1) > positions(x, -2), float("-inf"), x)

    for shape in ((2, 8, 8), (2, 9, 9)) if small else ((64, 2048, 2048), (16, 4096, 4096), (4, 8192, 8192)):
        x = random(shape, device)
        y = torch.empty_like(x)
        mask = positions(x, -1) > positions(x, -2)
        peers: dict[str, Work] = {TORCH: lambda x=x, mask=mask: x.masked_fill(mask, float("-inf"))}
        peers |= tools.compiled(where, x) | tools.by_hand("causal", x, y)
        t = shape[-1]
        moved = size_of(x) + shape[0] * (t * (t + 1) // 2) * 4
        want = peers[TORCH]
        yield plain(
            Case(shape_name(x), rule, {"x": x}, y, want, into(rule, y, x=x), peers, moved, [Bar((COPY,), 0.80)])
        )


def in_place(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    kernel = ew.kernel(SEED)
    limits = {1 << 28: 1.0, 1 << 24: 0.55, 1 << 20: 0.30}
    for n in (64, 63) if small else tuple(limits):
        x = random((n,), device)
        mine, theirs, compiled_on, by_hand_on = (x.clone() for _ in range(4))
        peers: dict[str, Work] = {TORCH: lambda y=theirs: slices(y)}
        peers |= tools.compiled(lambda y: y.copy_(where_seed(y)), compiled_on)
        peers |= tools.by_hand("seed", by_hand_on, by_hand_on)
        all_of = (mine, theirs, compiled_on, by_hand_on)

        def refresh(x: torch.Tensor = x, all_of: tuple[torch.Tensor, ...] = all_of) -> None:
            for y in all_of:
                y.copy_(x)

        case = Case(
            power(n),
            SEED,
            {"x": mine},
            mine,
            lambda x=x: slices(x.clone()),
            lambda y=mine: kernel(x=y, out=y),
            peers,
            4 * (n // 4) * 4,  # the two quarters, read and written
            [Bar((TORCH,), limits.get(n, 1.0))],
            refresh=refresh,
            in_place=True,  # peers/segments.py, whose bar this is, empties no cache: the cold time stands beside
        )
        spare = torch.empty_like(x)
        case.copy, case.copied = (lambda x=x, y=spare: y.copy_(x)), 2 * size_of(x)
        yield case


# Short rows, many pieces


def faded(x: torch.Tensor, fade: int) -> torch.Tensor:
    t, length = positions(x, -1), x.shape[-1]
    return x * (t / fade).clamp(max=1) * ((length - 1 - t) / fade).clamp(max=1)


def fade_case(tools: Tools, x: torch.Tensor, rule: str, fade: int, bars: list[Bar], streams: float | None) -> Case:
    y = torch.empty_like(x)
    peers: dict[str, Work] = {TORCH: lambda: faded(x, fade)}
    peers |= tools.compiled(faded, x, fade) | tools.by_hand("fade", x, y, fade)
    args = {"x": x, "fade": fade}
    ours = into(rule, y, **args)
    return plain(
        Case(shape_name(x), rule, args, y, peers[TORCH], ours, peers, 2 * size_of(x), bars, streams, exact=False)
    )


def short_rows(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    for length in (3, 17) if small else (3, 17, 64, 128, 1000):
        x = random(((100 if small else 1 << 26) // length, length), device)
        yield fade_case(tools, x, f"[r, t]\n{FADE}", max(length // 4, 1), [Bar((COPY,), 1.10)], None)


def fade_in_channels(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    x = random((2, 2, 50) if small else (256, 2, 480_000), device)
    yield fade_case(tools, x, f"[b, c, t]\n{FADE}", 7 if small else 48_000, [BEST], 0.9)


def gain(k: int, count: int) -> float:
    return 0.5 + k / count


def host_bounded(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    n = 512 if small else 1 << 28
    for count in (16, 256):
        bounded = [f"i < {k + 1}*n/{count}: x*{gain(k, count)}" for k in range(count - 1)]
        rule = "\n".join([*bounded, f"else x*{gain(count - 1, count)}"])
        x = random((n,), device)
        y = torch.empty_like(x)
        gains = torch.tensor([gain(k, count) for k in range(count)], device=device)

        def looked_up(x: torch.Tensor, gains: torch.Tensor) -> torch.Tensor:
            return x * gains[torch.arange(x.numel(), device=x.device) // (x.numel() // gains.numel())]

        def want(x: torch.Tensor = x, gains: torch.Tensor = gains) -> torch.Tensor:
            return (x.reshape(gains.numel(), -1) * gains[:, None]).reshape(-1)

        peers: dict[str, Work] = {TORCH: want}
        peers |= tools.compiled(looked_up, x, gains) | tools.by_hand("pieces", x, y, gains)
        bars = [Bar((COPY,), 1.10), *([BEST] if count == 256 else [])]
        ours = into(rule, y, x=x)
        yield plain(Case(f"{count} pieces, {power(n)}", rule, {"x": x}, y, want, ours, peers, 2 * size_of(x), bars))


def lookups(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    rule = "tab[clip(x, 0, len(tab)-1)]"
    n = 300 if small else 1 << 28
    x, tab = random((n,), device, torch.uint8), random((256,), device)
    y = torch.empty(n, device=device)

    def want() -> torch.Tensor:
        return torch.index_select(tab, 0, x.int())

    def looked_up(x: torch.Tensor, tab: torch.Tensor) -> torch.Tensor:
        return tab[x.int()]

    peers = {TORCH: want} | tools.compiled(looked_up, x, tab) | tools.by_hand("table", x, y, tab)
    args = {"x": x, "tab": tab}
    yield plain(Case(f"u8 {power(n)}", rule, args, y, want, into(rule, y, **args), peers, size_of(x, y), [BEST], 0.9))


# Attention and quantization


def sliding(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    rule = "[b, h, r, c]\nc <= r and r - c < w and c < lens[b]: x\nelse -inf"
    shape, w = ((2, 2, 9, 9), 3) if small else ((4, 16, 2048, 2048), 256)
    x, t = random(shape, device), shape[-1]
    lens = torch.randint(t // 2, t + 1, shape[:1], device=device)
    y = torch.empty_like(x)

    def live(x: torch.Tensor, lens: torch.Tensor) -> torch.Tensor:
        r, c = positions(x, -2), positions(x, -1)
        return (c <= r) & (r - c < w) & (c < lens[:, None, None, None])

    def where(x: torch.Tensor, lens: torch.Tensor) -> torch.Tensor:
        return torch.where(live(x, lens), x, float("-inf"))

    moved = size_of(x) + int(live(x, lens).sum()) * shape[1] * 4
    peers: dict[str, Work] = {TORCH: lambda: where(x, lens)}
    peers |= tools.compiled(where, x, lens) | tools.by_hand("sliding", x, y, lens, w)
    args = {"x": x, "lens": lens, "w": w}
    yield plain(Case(shape_name(x), rule, args, y, peers[TORCH], into(rule, y, **args), peers, moved, [BEST], 0.9))


def dequantized(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    rule = "q*s[i/128]"
    n = 512 if small else 1 << 28
    q, s = random((n,), device, torch.int8), random((n // 128,), device, torch.float16)
    y = torch.empty(n, device=device, dtype=torch.float16)

    def shared(q: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return (q.reshape(-1, 128) * s[:, None]).reshape(-1)

    peers: dict[str, Work] = {TORCH: lambda: shared(q, s)}
    peers |= tools.compiled(shared, q, s) | tools.by_hand("dequantized", q, y, s, 128)
    args, moved = {"q": q, "s": s}, size_of(q, s, y)
    yield plain(Case(power(n), rule, args, y, peers[TORCH], into(rule, y, **args), peers, moved, [BEST], 0.9))


def alibi(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    rule = "[b, h, r, c]\nc <= r: x + slope[h]*(c-r)\nelse -inf"
    shape = (2, 2, 9, 9) if small else (4, 16, 2048, 2048)
    x, t = random(shape, device), shape[-1]
    slope = torch.tensor([2.0 ** (-8 * (h + 1) / shape[1]) for h in range(shape[1])], device=device)
    y = torch.empty_like(x)

    def where(x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
        r, c = positions(x, -2), positions(x, -1)
        return torch.where(c <= r, x + slope[:, None, None] * (c - r), float("-inf"))

    moved = size_of(x) + shape[0] * shape[1] * (t * (t + 1) // 2) * 4
    peers: dict[str, Work] = {TORCH: lambda: where(x, slope)}
    peers |= tools.compiled(where, x, slope) | tools.by_hand("alibi", x, y, slope)
    args = {"x": x, "slope": slope}
    ours = into(rule, y, **args)
    yield plain(Case(shape_name(x), rule, args, y, peers[TORCH], ours, peers, moved, [BEST], 0.9, exact=False))


def rotary(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    rule = """[.., t, d]
let c = cos[t, d/2]
let s = sin[t, d/2]
d % 2 == 0: x*c - x[.., d+1]*s
else        x*c + x[.., d-1]*s"""
    shape = (2, 2, 5, 6) if small else (4, 32, 4096, 128)
    x = random(shape, device)
    rates = 10_000 ** (-torch.arange(shape[-1] // 2, device=device, dtype=torch.float32) / (shape[-1] // 2))
    angles = torch.arange(shape[-2], device=device)[:, None] * rates
    cos, sin = angles.cos(), angles.sin()
    y = torch.empty_like(x)

    def paired(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)

    peers: dict[str, Work] = {TORCH: lambda: paired(x, cos, sin)}
    peers |= tools.compiled(paired, x, cos, sin) | tools.by_hand("rotary", x, y, cos, sin)
    args, moved = {"x": x, "cos": cos, "sin": sin}, size_of(x, y, cos, sin)
    ours = into(rule, y, **args)
    yield plain(Case(shape_name(x), rule, args, y, peers[TORCH], ours, peers, moved, [BEST], 0.9, exact=False))


def transposed(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    shape = (6, 10) if small else (16384, 8192)
    x = random(shape, device).t()
    dense, alike = torch.empty(x.shape, device=device), torch.empty_like(x)
    assert dense.stride() != alike.stride() == x.stride()

    def where(x: torch.Tensor) -> torch.Tensor:
        n, (rows, columns) = x.numel(), x.shape
        i = torch.arange(rows, device=x.device)[:, None] * columns + torch.arange(columns, device=x.device)
        return torch.where(i < n // 4, x * 0.5, torch.where(i >= n - n // 4, x * 2, x))

    def sliced() -> torch.Tensor:
        return slices(x.reshape(-1).clone()).reshape(x.shape)

    kernel = ew.kernel(SEED)
    args, moved = {"x": x}, 2 * size_of(x)
    peers = {TORCH: sliced} | tools.compiled(lambda x: where(x).contiguous(), x)
    peers |= tools.by_hand("seed_to_rows", x, dense)
    yield plain(
        Case(f"{shape_name(x)}.t(), dense out", SEED, args, dense, sliced, into(SEED, dense, x=x), peers, moved, [BEST])
    )
    peers = {TORCH: lambda: where(x)} | tools.compiled(where, x) | tools.by_hand("seed_by_columns", x, alike)
    yield plain(
        Case(f"{shape_name(x)}.t(), own out", SEED, args, alike, sliced, lambda: kernel(x), peers, moved, [BEST], 0.9)
    )


def channels(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    n, c, h, w = (2, 20, 3, 18) if small else (64, 256, 56, 56)
    ways = (
        ("to NHWC", "[.., c]; c < len(c)/4: x*0.5; else x", -1, random((n, c, h, w), device).permute(0, 2, 3, 1)),
        ("to NCHW", "[.., c, h, w]; c < len(c)/4: x*0.5; else x", -3, random((n, h, w, c), device).permute(0, 3, 1, 2)),
    )
    for name, rule, axis, x in ways:
        dense = torch.empty(x.shape, device=device)

        def where(x: torch.Tensor, axis: int = axis) -> torch.Tensor:
            c = positions(x, axis)
            return torch.where(c < x.shape[axis] // 4, x * 0.5, x).contiguous()

        peers: dict[str, Work] = {TORCH: lambda x=x, where=where: where(x)} | tools.compiled(where, x)
        peers |= tools.by_hand("channels", x, dense, axis)
        args, moved, ours = {"x": x}, 2 * size_of(x), into(rule, dense, x=x)
        yield plain(Case(f"{shape_name(x)} {name}", rule, args, dense, peers[TORCH], ours, peers, moved, [BEST]))


# Growth


def growth(tools: Tools, device: str, small: bool) -> Iterator[Case]:
    for n in (1 << 6, 1 << 8) if small else (*(1 << k for k in range(20, 32)), (1 << 31) + 4096):
        case = seed_case(tools, device, n, torch.float32, compile=True, dynamic=True)
        case.bars = [Bar((COPY,), 1.05)] if n >= 1 << 24 else []
        case.flush = True  # one method for all sizes, or the cache makes a step of its own
        yield case


ROWS = (
    Row("seed", seeds),
    Row("half zero", half_zero),
    Row("causal", causal),
    Row("in place", in_place),
    Row("short rows", short_rows),
    Row("pieces", host_bounded),
    Row("sliding window", sliding),
    Row("fade", fade_in_channels),
    Row("dequantized", dequantized),
    Row("alibi", alibi),
    Row("rotary", rotary),
    Row("transposed", transposed),
    Row("channels", channels),
    Row("lookup", lookups),
    Row("growth", growth, recompiles=False),
)
