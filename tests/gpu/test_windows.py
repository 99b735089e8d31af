# SPDX-License-Identifier: Apache-2.0
"""Windows on a device: the slice of the whole, positions beyond 32 bits, in place, and no compilation for another
place."""

from __future__ import annotations

import random
from typing import Any

import elsewise as ew
import pytest

RULES = [
    "i<n/4: x*0.5; i>=n-n/4: x*2; else x",
    "x + float(i)/n",
    "x > 0 and i % 2 == 0: -x; else x*float(i)",
    "border() < 2: 0; else x",
]
PLANES = [
    "[.., r, c]; c <= r: x; else 0",
    "[.., r, c]; r == 2: x; r > 3: x*r + c; else float(i)",
    "[.., r, c]; i >= 300*r + 5: x; else 1",
    "[.., r, c]; x + 7//r + c%r",
]


@pytest.mark.parametrize("rule", RULES + PLANES)
@pytest.mark.parametrize("shape", [(30_000,), (70, 513), (3, 40, 260)], ids=str)
def test_a_window_is_the_slice_of_the_whole(torch: Any, rule: str, shape: tuple[int, ...]) -> None:
    if rule in PLANES and len(shape) < 2:
        shape = (150, 200)
    k, draw = ew.kernel(rule), random.Random(1)
    for x in (
        torch.randn(shape, device="cuda"),
        torch.randn(shape[::-1], device="cuda").permute(*range(len(shape))[::-1]),
    ):
        whole = k(x)
        for _ in range(12):
            window = tuple(slice(*sorted(draw.sample(range(length + 1), 2))) for length in shape)
            at = tuple(s.start for s in window)
            part = k(x[window], domain=shape, offset=at)
            assert torch.equal(part, whole[window]), (window, x.stride())
            y = x[window].clone()
            k(y, domain=shape, offset=at, out=y)
            assert torch.equal(y, whole[window]), (window, x.stride(), "in place")


@pytest.mark.parametrize("at", [2**31 - 2, 2**32 - 1, 2**40, 2**53 + 1, 2**60 - 1000])
def test_positions_beyond_32_bits(torch: Any, at: int) -> None:
    got = ew.kernel("i")(shape=1000, domain=2**60, offset=at, device="cuda")
    assert torch.equal(got.cpu(), torch.arange(1000) + at)
    x = torch.randn(1000, device="cuda")
    cut = ew.kernel("i < edge: x; else 0")(x, edge=at + 300, domain=2**60, offset=at)
    assert torch.equal(cut[:300], x[:300]) and not cut[300:].any()
    plane = ew.kernel("[r, c]; r*2 + c == i - r*(len(c)-3) - r: 1; else 0")
    assert plane(shape=(8, 64), domain=(2**20, 2**39), offset=(2**19, at % 2**38), device="cuda").all()


def test_another_place_compiles_nothing(torch: Any) -> None:
    k = ew.kernel("[r, c]; c <= r: x*i; else len(r)*0.125")
    x = torch.randn(64, 256, device="cuda")
    k(x, domain=(10**6, 10**6))
    before = ew.cache_info()
    for at in range(0, 10**6 - 300, 99_991):
        k(x, domain=(10**6, 10**6), offset=(at, 10**6 - 300 - at))
    after = ew.cache_info()
    assert after.compiles == before.compiles and after.plans == before.plans
