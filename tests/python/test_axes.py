# SPDX-License-Identifier: Apache-2.0
"""Rules over named axes on the CPU, against plain torch: layouts, in place, lengths, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import elsewise as ew
import pytest

torch = pytest.importorskip("torch")


def positions(shape: tuple[int, ...]) -> list[Any]:
    return [torch.arange(n).reshape([-1] + [1] * (len(shape) - 1 - d)) for d, n in enumerate(shape)]


def layouts(shape: tuple[int, ...]) -> Any:
    """The shape in every memory order, with a gap, backwards in memory where NumPy allows it, and repeated."""
    rank = len(shape)
    for order in itertools.permutations(range(rank)):
        yield torch.randn([shape[d] for d in order]).permute([order.index(d) for d in range(rank)])
    yield torch.randn([n + 2 for n in shape])[tuple(slice(1, n + 1) for n in shape)]
    yield torch.randn((1, *shape[1:])).expand(shape)


@pytest.mark.parametrize("shape", [(5, 7, 33), (1, 6, 6), (3, 1, 40), (4, 5, 1), (0, 3, 2)])
def test_rules_on_layouts(shape: tuple[int, ...]) -> None:
    b, h, t = positions(shape)
    n = torch.arange(b.numel() * h.numel() * t.numel()).reshape(shape)
    zero = torch.zeros(())
    face = torch.minimum(torch.minimum(h, shape[1] - 1 - h), torch.minimum(t, shape[2] - 1 - t))
    for x in layouts(shape):
        for rule, want in {
            "[b, h, t]; t <= h: x; else 0": torch.where(t <= h, x, zero),
            "[.., r, c]; c > r + 2: 0; else x*2": torch.where(t > h + 2, zero, x * 2),
            "[b, h, t]; b == 0 and h % 2 == 0: x*2; t < len(t)/4: 0; else x": torch.where(
                (b == 0) & (h % 2 == 0), x * 2, torch.where(t < shape[2] // 4, zero, x)
            ),
            "[.., y, z]; border(y, z) < 2: 0; else x": torch.where(face < 2, zero, x),
            "[b, h, t]; i < n//2 and t < 3: 0; else x": torch.where((n < n.numel() // 2) & (t < 3), zero, x),
            "[b, ..]; x + b": x + b,
        }.items():
            assert torch.equal(ew.kernel(rule)(x), want.broadcast_to(shape)), (rule, x.stride())


def test_in_place() -> None:
    x = torch.randn(6, 50)
    want = torch.where(torch.arange(50) <= torch.arange(6)[:, None], x, 0.0)
    ew.kernel("[r, c]; c <= r: x; else 0")(x, out=x)
    assert torch.equal(x, want)


def test_lengths_of_arguments_shape_nothing() -> None:
    x, s = torch.ones(2, 10), torch.zeros(3, 4)
    y = ew.kernel("[b, t]; t < len(s): x*len(s, 1); else x")(x, s=s)
    assert torch.equal(y, torch.where(torch.arange(10) < 3, 4.0, 1.0).expand(2, 10))
    with pytest.raises(TypeError, match=r"`len\(s, 1\)`: `s` has 1 axis, shape \(3,\)"):
        ew.kernel("[b, t]; t < len(s, 1): x; else 0")(x, s=torch.zeros(3))


def test_ranks() -> None:
    with pytest.raises(ValueError, match=r"the rule names 3 axes \[b, h, t\], the domain has 2: shape \(4, 5\)"):
        ew.kernel("[b, h, t]; x*t")(torch.ones(4, 5))
    with pytest.raises(ValueError, match=r"the rule names 2 axes \[\.\., r, c\], the domain has 1: shape \(4,\)"):
        ew.kernel("[.., r, c]; x*c")(torch.ones(4))
    assert torch.equal(
        torch.as_tensor(ew.kernel("[r, c]; r*10 + c")(shape=(2, 3))), torch.tensor([[0, 1, 2], [10, 11, 12]])
    )


def test_a_check_of_a_row_that_no_position_reaches() -> None:
    k = ew.kernel("[b, t]; b > 5 and t < 3: x * (t // k); else x")
    x = torch.ones(4, 5)
    assert torch.equal(k(x, k=0), x)
    with pytest.raises(ZeroDivisionError):
        k(torch.ones(7, 5), k=0)


def test_bounds_beyond_64_bits() -> None:
    k = ew.kernel("[b, t]; t < b*k: x; else 0")
    x = torch.ones(3, 4)
    assert torch.equal(k(x, k=2**63), torch.tensor([[0.0] * 4, [1.0] * 4, [1.0] * 4]))
    assert torch.equal(k(x, k=-(2**63)), torch.zeros(3, 4))


def test_emit_with_a_rank() -> None:
    k = ew.kernel("[.., r, c]; c <= r: x; else 0")
    assert "rows over 1 axis" in k.emit("cuda", x="f32")
    assert "rows over 2 axes" in k.emit("cuda", x="f32[4]")
    with pytest.raises(ValueError, match="the rule names 1 axis"):
        ew.kernel("[t]; x*t").emit("cuda", x="f32[2]")
