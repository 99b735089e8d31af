# SPDX-License-Identifier: Apache-2.0
"""The rules of the benchmarks as Triton kernels, one for each, as one writes them by hand: whole blocks, masked loads,
32 bits wherever the size allows.

Nothing is tuned by trying, and none takes part in any result of ours. Needs Triton.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 1024


def cdiv(n: int, block: int) -> int:
    return (n + block - 1) // block


def wide(n: int) -> bool:
    return n + BLOCK >= 2**31


@triton.jit
def flat(n, WIDE: tl.constexpr, B: tl.constexpr):
    block = tl.program_id(0)
    if WIDE:
        block = block.to(tl.int64)
    i = block * B + tl.arange(0, B)
    return i, i < n


@triton.jit
def _seed(out, x, n, SHIFT: tl.constexpr, WIDE: tl.constexpr, B: tl.constexpr):
    i, mask = flat(n, WIDE, B)
    v = tl.load(x + i, mask=mask)
    q = n // 4
    if SHIFT:
        v = tl.where(i < q, v >> 1, tl.where(i >= n - q, v << 1, v))
    else:
        v = tl.where(i < q, v * 0.5, tl.where(i >= n - q, v * 2.0, v))
    tl.store(out + i, v, mask=mask)


def seed(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    n = x.numel()
    _seed[(cdiv(n, BLOCK),)](out, x, n, not x.is_floating_point(), wide(n), BLOCK)
    return out


@triton.jit
def _half_zero(out, x, n, WIDE: tl.constexpr, B: tl.constexpr):
    i, mask = flat(n, WIDE, B)
    v = tl.load(x + i, mask=mask & (i >= n // 2), other=0.0)
    tl.store(out + i, v, mask=mask)


def half_zero(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    n = x.numel()
    _half_zero[(cdiv(n, BLOCK),)](out, x, n, wide(n), BLOCK)
    return out


@triton.jit
def _fade_flat(out, x, n, length, fade, WIDE: tl.constexpr, B: tl.constexpr):
    i, mask = flat(n, WIDE, B)
    t = i % length
    up = tl.minimum(t.to(tl.float32) / fade, 1.0)
    down = tl.minimum((length - 1 - t).to(tl.float32) / fade, 1.0)
    v = tl.load(x + i, mask=mask)
    tl.store(out + i, v * up * down, mask=mask)


@triton.jit
def _fade_rows(out, x, length, fade, B: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * length
    t = tl.program_id(1) * B + tl.arange(0, B)
    mask = t < length
    up = tl.minimum(t.to(tl.float32) / fade, 1.0)
    down = tl.minimum((length - 1 - t).to(tl.float32) / fade, 1.0)
    v = tl.load(x + at + t, mask=mask)
    tl.store(out + at + t, v * up * down, mask=mask)


def fade(x: torch.Tensor, out: torch.Tensor, edge: int) -> torch.Tensor:
    n, length = x.numel(), x.shape[-1]
    if length < 2 * BLOCK:
        _fade_flat[(cdiv(n, BLOCK),)](out, x, n, length, float(edge), wide(n), BLOCK)
    else:
        _fade_rows[(n // length, cdiv(length, BLOCK))](out, x, length, float(edge), BLOCK)
    return out


@triton.jit
def _pieces(out, x, gains, n, piece, WIDE: tl.constexpr, B: tl.constexpr):
    i, mask = flat(n, WIDE, B)
    v = tl.load(x + i, mask=mask)
    g = tl.load(gains + i // piece, mask=mask)
    tl.store(out + i, v * g, mask=mask)


def pieces(x: torch.Tensor, out: torch.Tensor, gains: torch.Tensor) -> torch.Tensor:
    n = x.numel()
    _pieces[(cdiv(n, BLOCK),)](out, x, gains, n, n // gains.numel(), wide(n), BLOCK)
    return out


@triton.jit
def _table(out, x, entries, n, WIDE: tl.constexpr, B: tl.constexpr):
    i, mask = flat(n, WIDE, B)
    v = tl.load(x + i, mask=mask, other=0)
    tl.store(out + i, tl.load(entries + v.to(tl.int32), mask=mask), mask=mask)


def table(x: torch.Tensor, out: torch.Tensor, entries: torch.Tensor) -> torch.Tensor:
    n = x.numel()
    _table[(cdiv(n, BLOCK),)](out, x, entries, n, wide(n), BLOCK)
    return out


@triton.jit
def _dequantized(out, q, scale, n, GROUP: tl.constexpr, WIDE: tl.constexpr, B: tl.constexpr):
    i, mask = flat(n, WIDE, B)
    v = tl.load(q + i, mask=mask, other=0)
    s = tl.load(scale + i // GROUP, mask=mask)
    tl.store(out + i, v.to(tl.float16) * s, mask=mask)


def dequantized(q: torch.Tensor, out: torch.Tensor, scale: torch.Tensor, group: int) -> torch.Tensor:
    n = q.numel()
    _dequantized[(cdiv(n, BLOCK),)](out, q, scale, n, group, wide(n), BLOCK)
    return out


@triton.jit
def _causal(out, x, length, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.program_id(1) * B + tl.arange(0, B)
    mask = c < length
    at = row.to(tl.int64) * length
    v = tl.load(x + at + c, mask=mask & (c <= row % length), other=float("-inf"))
    tl.store(out + at + c, v, mask=mask)


def causal(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    length = x.shape[-1]
    _causal[(x.numel() // length, cdiv(length, BLOCK))](out, x, length, BLOCK)
    return out


@triton.jit
def _sliding(out, x, lens, heads, length, window, B: tl.constexpr):
    row = tl.program_id(0)
    r = row % length
    visible = tl.load(lens + row // length // heads).to(tl.int32)
    c = tl.program_id(1) * B + tl.arange(0, B)
    mask = c < length
    at = row.to(tl.int64) * length
    live = (c <= r) & (r - c < window) & (c < visible)
    v = tl.load(x + at + c, mask=mask & live, other=float("-inf"))
    tl.store(out + at + c, v, mask=mask)


def sliding(x: torch.Tensor, out: torch.Tensor, lens: torch.Tensor, window: int) -> torch.Tensor:
    length = x.shape[-1]
    grid = (x.numel() // length, cdiv(length, BLOCK))
    _sliding[grid](out, x, lens, x.shape[1], length, window, BLOCK)
    return out


@triton.jit
def _alibi(out, x, slope, heads, length, B: tl.constexpr):
    row = tl.program_id(0)
    r = row % length
    m = tl.load(slope + row // length % heads)
    c = tl.program_id(1) * B + tl.arange(0, B)
    mask = c < length
    at = row.to(tl.int64) * length
    v = tl.load(x + at + c, mask=mask & (c <= r), other=0.0)
    tl.store(out + at + c, tl.where(c <= r, v + m * (c - r), float("-inf")), mask=mask)


def alibi(x: torch.Tensor, out: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    length = x.shape[-1]
    _alibi[(x.numel() // length, cdiv(length, BLOCK))](out, x, slope, x.shape[1], length, BLOCK)
    return out


@triton.jit
def _rotary(out, x, cos, sin, pairs, period, WIDE: tl.constexpr, B: tl.constexpr):
    p, mask = flat(pairs, WIDE, B)
    both, inside = flat(pairs * 2, WIDE, 2 * B)
    a, b = tl.split(tl.reshape(tl.load(x + both, mask=inside, other=0.0), [B, 2]))
    c = tl.load(cos + p % period, mask=mask, other=0.0)
    s = tl.load(sin + p % period, mask=mask, other=0.0)
    turned = tl.reshape(tl.join(a * c - b * s, b * c + a * s), [2 * B])
    tl.store(out + both, turned, mask=inside)


def rotary(x: torch.Tensor, out: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    pairs, block = x.numel() // 2, BLOCK // 2
    _rotary[(cdiv(pairs, block),)](out, x, cos, sin, pairs, cos.numel(), wide(x.numel()), block)
    return out


@triton.jit
def scaled(v, i, n):
    q = n // 4
    return tl.where(i < q, v * 0.5, tl.where(i >= n - q, v * 2.0, v))


@triton.jit
def _seed_to_rows(out, x, rows, columns, n, S: tl.constexpr):
    r = tl.program_id(0) * S + tl.arange(0, S)
    c = tl.program_id(1) * S + tl.arange(0, S)
    mask = (r < rows)[None, :] & (c < columns)[:, None]
    v = tl.load(x + c[:, None] * rows + r[None, :], mask=mask, other=0.0)
    i = r[:, None] * columns + c[None, :]
    mask = (r < rows)[:, None] & (c < columns)[None, :]
    tl.store(out + i, scaled(tl.trans(v), i, n), mask=mask)


def seed_to_rows(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """`x` is a transposed view, `out` is not: tiles are turned on the way."""
    rows, columns = x.shape
    _seed_to_rows[(cdiv(rows, 64), cdiv(columns, 64))](out, x, rows, columns, x.numel(), 64)
    return out


@triton.jit
def _seed_by_columns(out, x, rows, columns, n, B: tl.constexpr):
    c = tl.program_id(0)
    r = tl.program_id(1) * B + tl.arange(0, B)
    mask = r < rows
    v = tl.load(x + c * rows + r, mask=mask)
    tl.store(out + c * rows + r, scaled(v, r * columns + c, n), mask=mask)


def seed_by_columns(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Both are transposed views: each column lies dense in memory."""
    rows, columns = x.shape
    _seed_by_columns[(columns, cdiv(rows, BLOCK))](out, x, rows, columns, x.numel(), BLOCK)
    return out


@triton.jit
def _channels(out, x, rows, columns, quarter, BY_ROW: tl.constexpr, S: tl.constexpr):
    at = tl.program_id(2).to(tl.int64) * rows * columns
    r = tl.program_id(0) * S + tl.arange(0, S)
    c = tl.program_id(1) * S + tl.arange(0, S)
    mask = (r < rows)[None, :] & (c < columns)[:, None]
    v = tl.trans(tl.load(x + at + c[:, None] * rows + r[None, :], mask=mask, other=0.0))
    mask = (r < rows)[:, None] & (c < columns)[None, :]
    channel = r[:, None] if BY_ROW else c[None, :]
    v = tl.where(channel < quarter, v * 0.5, v)
    tl.store(out + at + r[:, None] * columns + c[None, :], v, mask=mask)


def channels(x: torch.Tensor, out: torch.Tensor, axis: int) -> torch.Tensor:
    """`x` is a view of pictures with the channels elsewhere, `out` is dense: tiles are turned on the way."""
    by_row = axis == -3
    rows, columns = (x.shape[1], x[0, 0].numel()) if by_row else (x[0, ..., 0].numel(), x.shape[-1])
    grid = (cdiv(rows, 64), cdiv(columns, 64), x.shape[0])
    _channels[grid](out, x, rows, columns, x.shape[axis] // 4, by_row, 64)
    return out
