# SPDX-License-Identifier: Apache-2.0
"""Rules over named axes on a device, against plain torch there: masks, borders, per-row rules, layouts, in place."""

from __future__ import annotations

import itertools
from typing import Any

import elsewise as ew
import pytest


def positions(torch: Any, shape: tuple[int, ...]) -> list[Any]:
    return [torch.arange(n, device="cuda").reshape([-1] + [1] * (len(shape) - 1 - d)) for d, n in enumerate(shape)]


@pytest.mark.parametrize("shape", [(3, 5, 2048), (64, 33, 17), (2, 1, 300), (7, 100, 3), (0, 4, 4)])
def test_rules_on_layouts(torch: Any, shape: tuple[int, ...]) -> None:
    b, h, t = positions(torch, shape)
    n = torch.arange(b.numel() * h.numel() * t.numel(), device="cuda").reshape(shape)
    zero = torch.zeros((), device="cuda")
    face = torch.minimum(torch.minimum(h, shape[1] - 1 - h), torch.minimum(t, shape[2] - 1 - t))
    for order in itertools.permutations(range(3)):
        x = torch.randn([shape[d] for d in order], device="cuda").permute([order.index(d) for d in range(3)])
        for rule, want in {
            "[b, h, t]; t <= h: x; else 0": torch.where(t <= h, x, zero),
            "[b, h, t]; b == 0 and h % 2 == 0: x*2; t < len(t)/4: 0; else x": torch.where(
                (b == 0) & (h % 2 == 0), x * 2, torch.where(t < shape[2] // 4, zero, x)
            ),
            "[.., y, z]; border(y, z) < 2: 0; else x": torch.where(face < 2, zero, x),
            "[b, h, t]; i < n//2 and t < 3: 0; else x": torch.where((n < n.numel() // 2) & (t < 3), zero, x),
            "[b, ..]; x + b": x + b,
        }.items():
            assert torch.equal(ew.kernel(rule)(x), want.broadcast_to(shape)), (rule, x.stride())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int64"])
def test_causal_of_every_width(torch: Any, dtype: str) -> None:
    x = torch.ones(4, 513, 513, device="cuda", dtype=getattr(torch, dtype))
    r, c = positions(torch, (513, 513))
    y = ew.kernel("[.., r, c]; c <= r: x; else 0")(x)
    assert y.dtype == x.dtype and torch.equal(y, torch.where(c <= r, x, torch.zeros_like(x)))


def test_in_place_and_parameters(torch: Any) -> None:
    x = torch.randn(100, 1000, device="cuda")
    r, c = positions(torch, (100, 1000))
    k = ew.kernel("[r, c]; c < r*w + 1: x; else 0")
    before = ew.cache_info().compiles
    for w in (0, 1, 9, 2**40, 2**63):
        y = x.clone()
        k(y, w=w, out=y)
        assert torch.equal(y, torch.where((c < r * min(w, 10**6) + 1), x, torch.zeros_like(x)))
    assert ew.cache_info().compiles - before <= 2  # 64 and 128 bits


def test_a_broadcast_row_operand(torch: Any) -> None:
    x, gain = torch.randn(20, 30, 40, device="cuda"), torch.randn(30, 1, device="cuda")
    b, _, t = positions(torch, (20, 30, 40))
    y = ew.kernel("[b, h, t]; t < b: x*gain; else x")(x, gain=gain)
    assert torch.equal(y, torch.where(t < b, x * gain, x))
