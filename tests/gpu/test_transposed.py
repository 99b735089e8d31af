# SPDX-License-Identifier: Apache-2.0
"""Transposed and permuted inputs with a dense output on a device: through tiles, and the bits are plain torch's."""

from __future__ import annotations

import itertools
from typing import Any

import elsewise as ew
import pytest

DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int64", "bool"]


def filled(torch: Any, shape: tuple[int, ...], dtype: str) -> Any:
    values = torch.randint(-100, 100, shape, device="cuda")
    return values > 0 if dtype == "bool" else values.to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(16, 16), (17, 64), (100, 129), (1000, 300), (64, 4099), (4096, 33)])
def test_a_transposed_input(torch: Any, dtype: str, shape: tuple[int, int]) -> None:
    x = filled(torch, shape[::-1], dtype).t()
    y = torch.zeros(shape, device="cuda", dtype=x.dtype)
    assert torch.equal(ew.kernel("x")(x, out=y), x)
    rows = torch.arange(shape[0], device="cuda")[:, None]
    columns = torch.arange(shape[1], device="cuda")
    zero = torch.zeros((), device="cuda", dtype=x.dtype)
    ew.kernel(f"[r, c]; c <= r: x; else {'bool(0)' if dtype == 'bool' else 0}")(x, out=y)
    assert torch.equal(y, torch.where(columns <= rows, x, zero))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_permutations_beside_dense_and_broadcast_inputs(torch: Any, order: tuple[int, ...], dtype: str) -> None:
    shape = (40, 66, 90)
    x = filled(torch, tuple(shape[d] for d in order), dtype).permute([order.index(d) for d in range(3)])
    z = filled(torch, shape, dtype)
    gain = filled(torch, (66, 1), dtype)
    out = torch.zeros(shape, device="cuda", dtype=x.dtype)
    i = torch.arange(out.numel(), device="cuda").reshape(shape)
    ew.kernel("i<n/4: x; i>=n-n/4: z; z>0: gain; else x")(x, z=z, gain=gain, out=out)
    n = out.numel()
    want = torch.where(i < n // 4, x, torch.where(i >= n - n // 4, z, torch.where(z > 0, gain, x)))
    assert torch.equal(out, want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8"])
def test_channels_to_the_end_and_back(torch: Any, dtype: str) -> None:
    n, c, h, w = 3, 40, 17, 24
    last, first = filled(torch, (n, h, w, c), dtype), filled(torch, (n, c, h, w), dtype)
    channel, zero = torch.arange(c, device="cuda"), torch.zeros((), device="cuda", dtype=last.dtype)
    out = torch.zeros((n, c, h, w), device="cuda", dtype=last.dtype)
    x = last.permute(0, 3, 1, 2)
    ew.kernel("[.., c, h, w]; c < len(c)/4: 0; else x")(x, out=out)
    assert torch.equal(out, torch.where(channel[:, None, None] < c // 4, zero, x))
    ew.kernel("[.., c, h, w]; h == w: x; else 0")(x, out=out)
    h_, w_ = torch.arange(h, device="cuda")[:, None], torch.arange(w, device="cuda")
    assert torch.equal(out, torch.where(h_ == w_, x, zero))
    out = torch.zeros((n, h, w, c), device="cuda", dtype=last.dtype)
    x = first.permute(0, 2, 3, 1)
    ew.kernel("[.., c]; c < len(c)/4: 0; else x")(x, out=out)
    assert torch.equal(out, torch.where(channel < c // 4, zero, x))


def test_heads_before_positions(torch: Any) -> None:
    x = filled(torch, (2, 32, 48, 64), "float32")  # [b, h, t, d]
    out = torch.zeros((2, 48, 32, 64), device="cuda")
    k = ew.kernel("[.., t, h, d]; d < t: x; else -x")
    t, d = torch.arange(48, device="cuda")[:, None, None], torch.arange(64, device="cuda")
    for view in (x.transpose(1, 2), x.transpose(2, 3).contiguous().permute(0, 3, 1, 2)):
        k(view, out=out)
        assert torch.equal(out, torch.where(d < t, view, -view))


def test_many_pieces(torch: Any) -> None:
    x = filled(torch, (500, 300), "float32").t()
    out = torch.zeros(x.shape, device="cuda")
    ew.kernel("[r, c]; " + "; ".join(f"c < {7 * p}: x + {p}" for p in range(1, 60)) + "; else x")(x, out=out)
    c = torch.arange(500, device="cuda")
    assert torch.equal(out, torch.where(c < 7 * 59, x + (c // 7 + 1), x))


def test_in_place_of_another_and_from_anywhere(torch: Any) -> None:
    k = ew.kernel("[r, c]; c < r: x; c == r: x + y; else y")
    rows, columns = torch.arange(300, device="cuda")[:, None], torch.arange(500, device="cuda")
    for lead, pad in itertools.product((0, 1, 3), (0, 1, 4)):
        x = torch.randn(500 * 300 + lead, device="cuda")[lead:].view(500, 300).t()
        y = torch.randn(300, 500 + pad, device="cuda")[:, :500]
        want = torch.where(columns < rows, x, torch.where(columns == rows, x + y, y))
        k(x, y=y, out=y)
        assert torch.equal(y, want), (lead, pad)


def test_several_transposed_inputs_of_several_widths(torch: Any) -> None:
    shape = (257, 130)
    x, z, m = (filled(torch, shape[::-1], d).t() for d in ("float32", "float64", "bool"))
    out = torch.zeros(shape, device="cuda", dtype=torch.float64)
    ew.kernel("m: x; else z")(x, z=z, m=m, out=out)
    assert torch.equal(out, torch.where(m, x.double(), z))


def test_a_window_and_reads_at_indices(torch: Any) -> None:
    x = torch.randn(90, 200, device="cuda").t()
    s = torch.randn(90, device="cuda")
    whole = torch.zeros(200, 90, device="cuda")
    k = ew.kernel("[r, c]; c > 0 and r > 1: x * s[c-1]; else r + x")
    k(x, s=s, out=whole)
    r, c = torch.arange(200, device="cuda")[:, None], torch.arange(90, device="cuda")
    assert torch.equal(whole, torch.where((c > 0) & (r > 1), x * s.roll(1), r + x))
    part = torch.zeros(100, 90, device="cuda")
    k(x[50:150], s=s, out=part, domain=(200, 90), offset=(50, 0))
    assert torch.equal(part, whole[50:150])


@pytest.mark.parametrize("rule", ["[r, c]; i < c*1000000: x; else 0", "[r, c]; i < lut[c]: x; else 0"])
def test_a_far_bound_of_rows_that_lie_apart(torch: Any, rule: str) -> None:
    """A bound that a row works out may be beyond 32 bits, whatever the positions are."""
    x = torch.randn((3000, 4000), device="cuda")
    out = torch.zeros((4000, 3000), device="cuda").t()
    far = torch.arange(4000, device="cuda") * 1000000
    ew.kernel(rule)(x=x, out=out, **({"lut": far} if "lut" in rule else {}))
    i = torch.arange(x.numel(), device="cuda").reshape(x.shape)
    assert torch.equal(out, torch.where(i < far, x, torch.zeros_like(x)))
