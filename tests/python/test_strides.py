# SPDX-License-Identifier: Apache-2.0
"""The strides of a new result are those that torch gives: random views of one or two tensors. Values are checked along
the way, so that every layout is also computed right. (A number beside a tensor is an operand of torch's, without
dimensions, which can change the strides of axes of length 1; a rule's numbers do not.)"""

from __future__ import annotations

import random
from typing import Any

import elsewise as ew
import pytest

torch = pytest.importorskip("torch")


def view(rng: random.Random, shape: list[int]) -> Any:
    """A tensor of `shape`: some axes permuted in memory, some sliced with a step, some expanded."""
    order = list(range(len(shape)))
    if rng.random() < 0.6:
        rng.shuffle(order)
    steps = [rng.choice((1, 1, 1, 2)) for _ in shape]
    expand = [rng.random() < 0.15 for _ in shape]
    room = [1 if e else n * s for n, s, e in zip(shape, steps, expand)]
    base = torch.randn([room[d] for d in order]).permute([order.index(d) for d in range(len(shape))])
    for d, step in enumerate(steps):
        if not expand[d]:
            base = base[(slice(None),) * d + (slice(None, None, step),)]
    return base.expand(shape)


@pytest.mark.parametrize("seed", range(8))
def test_strides_are_torchs(seed: int) -> None:
    rng = random.Random(seed)
    torch.manual_seed(seed)
    rules = [(ew.kernel("-x"), 1), (ew.kernel("x + y"), 2)]
    different = 0
    for _ in range(150):
        shape = [rng.choice((1, 2, 3, 4, 5)) for _ in range(rng.randrange(5))]
        for kernel, count in rules:
            tensors = []
            for _ in range(count):
                own = [1 if rng.random() < 0.1 else n for n in shape[rng.choice((0, 0, 0, 1)) :]]
                tensors.append(view(rng, own))
            x = tensors[0]
            expected = -x if count == 1 else x + tensors[1]
            result = kernel(x) if count == 1 else kernel(x, y=tensors[1])
            what = [(tuple(t.shape), t.stride()) for t in tensors]
            assert result.shape == expected.shape and result.stride() == expected.stride(), what
            assert torch.equal(result, expected), what
            different += not expected.is_contiguous()
    assert different > 20


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3), (0, 0), (3, 1, 0)])
def test_empty_results_too(shape: tuple[int, ...]) -> None:
    x = torch.empty(shape).transpose(0, -1)
    assert ew.kernel("-x")(x).stride() == (-x).stride()


def test_channels_last() -> None:
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    result = ew.kernel("i < n/2: x; else -x")(x)
    assert result.is_contiguous(memory_format=torch.channels_last) and result.stride() == (x + 1).stride()
    one = torch.randn(2, 1, 4, 5).to(memory_format=torch.channels_last)
    assert ew.kernel("-x")(one).stride() == (-one).stride()
