# SPDX-License-Identifier: Apache-2.0
"""One launch over a list of tensors, on a device."""

from __future__ import annotations

from typing import Any

import elsewise as ew
import pytest

RULES = ["i<n/4: x*0.5; i>=n-n/4: x*2; else x", "i%3==1: 0; else x + i", "i>0: y[i-1]; else x", "x*y"]


def lists(torch: Any) -> tuple[list[Any], list[Any]]:
    torch.manual_seed(2)
    lengths = [1, 3, 4, 5, 1023, 1024, 1025, 4096, 0, 100_000] + [4096] * 300
    xs = [torch.randn(n, device="cuda") for n in lengths]
    xs += [torch.randn(2003, device="cuda")[3:], torch.randn(999, device="cuda")[::3]]
    return xs, [torch.randn(x.shape, device="cuda") for x in xs]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("in_place", [False, True])
def test_a_list_is_what_its_calls_are(torch: Any, rule: str, in_place: bool) -> None:
    k = ew.kernel(rule)
    xs, ys = lists(torch)
    by_list = {"y": ys} if "y" in k.arguments else {}
    expected = [k(x, **({"y": y} if by_list else {})) for x, y in zip(xs, ys, strict=True)]
    results = k.foreach(xs, out=xs if in_place else None, **by_list)
    assert all(torch.equal(r, e) for r, e in zip(results, expected, strict=True))


def test_hundreds_of_tensors_are_one_launch(torch: Any) -> None:
    k = ew.kernel(RULES[0])
    xs = [torch.randn(4096, device="cuda") for _ in range(400)]
    expected = [k(x) for x in xs]
    k.foreach(xs, out=[x.clone() for x in xs])
    before = ew.cache_info().launches
    results = k.foreach(xs)
    assert ew.cache_info().launches - before == 1
    assert all(torch.equal(r, e) for r, e in zip(results, expected, strict=True))


def test_in_a_graph(torch: Any) -> None:
    k = ew.kernel(RULES[0])
    xs = [torch.ones(64, device="cuda") for _ in range(50)]
    k.foreach(xs, out=xs)
    for x in xs:
        x.fill_(1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        k.foreach(xs, out=xs)
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    assert all(x[0].item() == 0.25 and x[-1].item() == 4 and x[30].item() == 1 for x in xs)


def test_on_another_stream(torch: Any) -> None:
    k = ew.kernel(RULES[0])
    xs = [torch.randn(5000, device="cuda") for _ in range(20)]
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    results = k.foreach(xs, stream=side)
    side.synchronize()
    assert all(torch.equal(r, k(x)) for r, x in zip(results, xs, strict=True))


def test_devices_and_hosts_do_not_mix(torch: Any) -> None:
    with pytest.raises(ValueError, match="in call 1 of the list"):
        ew.kernel("x*2").foreach([torch.ones(3, device="cuda"), torch.ones(3)])


def test_what_every_call_gets_is_kept_for_the_stream(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What torch's allocator is told of, so that it hands no block on which another stream still reads."""
    from elsewise import _call

    kept: list[int] = []
    monkeypatch.setattr(_call, "record", lambda torch, on, tensor: kept.append(tensor.data_ptr()))
    xs, y = [torch.ones(3, device="cuda"), torch.ones(5, device="cuda")], torch.tensor(2.0, device="cuda")
    results = ew.kernel("x*y").foreach(xs, y=y, stream=torch.cuda.current_stream())
    assert set(kept) == {t.data_ptr() for t in (*results, *xs, y)}
