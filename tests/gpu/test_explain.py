# SPDX-License-Identifier: Apache-2.0
"""What `explain` says of a function that a device has loaded, and `bench` by the device's own clock. That numbers of
positions are right is tested on the CPU."""

from __future__ import annotations

from typing import Any

import elsewise as ew
import pytest


def test_a_loaded_function_tells_of_itself(torch: Any) -> None:
    k = ew.kernel("i<n/4: x*0.5; i>=n-n/4: x*2; else x # told of on a device")
    x = torch.randn(1 << 20, device="cuda")
    before = ew.cache_info()
    e = k.explain(x)
    assert (e.code.compiled, e.code.registers) == (False, None)
    assert ew.cache_info() == before
    k(x)
    ran = ew.cache_info()
    e = k.explain(x)
    major, minor = torch.cuda.get_device_capability()
    assert e.code.compiled and e.code.plan_cached and e.device == "cuda:0"
    assert e.code.target == f"sm_{major}{minor}"
    assert e.code.registers is not None and 8 <= e.code.registers <= 255
    assert e.code.local_bytes == 0 and e.code.shared_bytes == 0
    assert e.code.binary is not None and e.code.binary // 10 == major
    assert (e.code.grid, e.code.block) == (1024, (256, 1))
    assert ew.cache_info() == ran


def test_in_place_blocks_start_no_thread(torch: Any, seed: Any) -> None:
    x = torch.randn(1 << 20, device="cuda")
    before = x.clone()
    e = seed.explain(x, out=x)
    assert e.untouched == e.not_launched == 1 << 19 and e.code.grid == 512
    assert torch.equal(x, before)


def test_misaligned_operands_have_a_cure(torch: Any) -> None:
    x, y = torch.randn(1001, device="cuda")[1:], torch.randn(1000, device="cuda")
    operands = ew.kernel("x + y").explain(x=x, y=y).operands
    assert operands[0].access == "element by element" and "clone()" in operands[0].cure
    assert operands[1].access == "vector"


def test_exact_counts_on_the_device(torch: Any) -> None:
    x = torch.randn(10_000, device="cuda")
    e = ew.kernel("x > 0: 0; i < 100: 1; else x").explain(x, exact=True)
    positive = x > 0
    first = int((~positive[:100]).sum())
    assert [p.positions for p in e.pieces] == [int(positive.sum()), first, 10_000 - int(positive.sum()) - first]


@pytest.mark.parametrize("in_place", [False, True])
def test_bench_by_events(torch: Any, seed: Any, in_place: bool) -> None:
    x = torch.randn(1 << 22, device="cuda")
    before = x.clone()
    b = seed.bench(x, repeats=5, cold=True, **({"out": x} if in_place else {}))
    assert torch.equal(x, before)
    assert len(b.timings) == 6 and all(0 < t.least <= t.median <= t.greatest for t in b.timings)
    assert b.seconds() < b.seconds("plain torch")
    assert torch.cuda.get_device_name() in b.device and b.check.startswith("Check(ok")
