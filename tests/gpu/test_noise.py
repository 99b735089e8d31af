# SPDX-License-Identifier: Apache-2.0
"""Noise by position on a device: the CPU's bits, in any layout, and at positions that only a device's memory has room
for. tests/python holds the CPU's to what is published."""

from __future__ import annotations

from typing import Any

import elsewise as ew
import pytest

SEED = 0x299F31D0A4093822
LENGTHS = (1, 3, 4, 5, 255, 256, 1023, 1024, 1025, 1_000_003)


def philox(position: int, seed: int, stream: int) -> int:
    """The word of a position, in Python's own integers."""
    mask = 2**32 - 1
    x, k = [position >> 2 & mask, position >> 34, stream & mask, stream >> 32], [seed & mask, seed >> 32]
    for _ in range(10):
        first, second = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [second >> 32 ^ x[1] ^ k[0], second & mask, first >> 32 ^ x[3] ^ k[1], first & mask]
        k = [k[0] + 0x9E3779B9 & mask, k[1] + 0xBB67AE85 & mask]
    return x[position & 3]


@pytest.mark.parametrize("function", ["rand", "randn"])
def test_the_cpus_bits(torch: Any, function: str) -> None:
    kernel = ew.kernel(f"{function}(seed, part)")
    for part in (0, 2**63 + 5):
        for n in LENGTHS:
            want = kernel(shape=n, device="cpu", seed=SEED, part=part)
            assert torch.equal(kernel(shape=n, device="cuda", seed=SEED, part=part).cpu(), want), n
    buffer = torch.zeros(5000, device="cuda")
    whole = kernel(shape=4096, device="cpu", seed=SEED, part=1)
    for offset in range(9):
        kernel(out=buffer[offset : offset + 4096], seed=SEED, part=1)
        assert torch.equal(buffer[offset : offset + 4096].cpu(), whole), offset


@pytest.mark.parametrize(
    "spec",
    [
        "x + rand(seed)",
        "x * randn(seed, 3)",
        "[r, c]; c < r: 0; else x + rand(seed)",
        "rand(seed) < 0.1: 0; rand(seed) < 0.2: x*randn(seed); else x/0.9",
        "x + rand(i % 7, seed)",
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_rules_in_every_layout(torch: Any, spec: str, dtype: str) -> None:
    kernel = ew.kernel(spec)
    full = torch.linspace(1, 2, 120 * 90, device="cuda", dtype=getattr(torch, dtype)).reshape(120, 90)
    for x in (full, full.t(), full[1::2, 3:50], full[:, ::3], full[5:6].expand(7, 90)):
        assert torch.equal(kernel(x, seed=7).cpu(), kernel(x.cpu(), seed=7)), x.shape


def test_positions_beyond_the_first_word_of_the_counter(torch: Any) -> None:
    n = 2**34 + 1027
    if torch.cuda.mem_get_info()[0] < n + 2**30:
        pytest.skip("less than 17 GiB of the device's memory are free")
    got = ew.kernel("u8(rand(seed) * 256)")(shape=n, device="cuda", seed=SEED)
    for position in (*range(2**34 - 5, 2**34 + 5), *range(n - 5, n)):
        assert got[position].item() == philox(position, SEED, 0) >> 24, position
