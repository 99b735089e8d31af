# SPDX-License-Identifier: Apache-2.0
"""Tensors with more elements than 32 bits count, all of them there: both ends, the seams at 2^31 and 2^32, in place, by
indexed reads and by shape. What a window alone can reach is in test_windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import elsewise as ew
import pytest

N = 2**32 + 1000
SEAMS = (0, 2**31, 2**32, N)
RULE = (
    "i < 3: x + 1; i >= n-3: x - 1; 2147483646 <= i < 2147483650: x + 20;"
    " 4294967294 <= i and i < 4294967298: x - 20; else x"
)
CHANGED = {
    **dict.fromkeys(range(3), 1),
    **dict.fromkeys(range(N - 3, N), -1),
    **dict.fromkeys(range(2**31 - 2, 2**31 + 2), 20),
    **dict.fromkeys(range(2**32 - 2, 2**32 + 2), -20),
}
CHUNK = 2**28


def need(torch: Any, size: int) -> None:
    """Skips where the device has less than `size` bytes, and what comparing takes, free."""
    torch.cuda.empty_cache()
    free, size = torch.cuda.mem_get_info()[0], size + 2**31
    if free < size:
        pytest.skip(f"{free >> 30} GiB of the device's memory are free, of {(size >> 30) + 1} needed")


@pytest.fixture
def x(torch: Any) -> Iterator[Any]:
    """Bytes that repeat with a period that is no power of two, so that an element 2^31 or 2^32 away is another."""
    need(torch, 2 * N)
    x = torch.empty(N, dtype=torch.int8, device="cuda")
    for begin in range(0, N, CHUNK):
        part = x[begin : begin + CHUNK]
        part.copy_(pattern(torch, begin, len(part)))
    yield x
    del x
    torch.cuda.empty_cache()


def pattern(torch: Any, begin: int, length: int) -> Any:
    period = (torch.arange(101, device="cuda") + begin) % 101
    return period.to(torch.int8).repeat(length // 101 + 1)[:length]


def near(seam: int, length: int = N) -> Iterator[int]:
    yield from range(max(seam - 6, 0), min(seam + 6, length))


def same_but(torch: Any, got: Any, changed: dict[int, int]) -> None:
    """Every element of `got`, a chunk at a time."""
    for begin in range(0, N, CHUNK):
        part = got[begin : begin + CHUNK]
        want = pattern(torch, begin, len(part))
        for position, by in changed.items():
            if begin <= position < begin + len(part):
                want[position - begin] += by
        assert torch.equal(part, want), begin


def test_a_rule_about_both_ends_and_the_seams(torch: Any, x: Any) -> None:
    got = ew.kernel(RULE)(x)
    assert got.dtype == torch.int8 and got.shape == x.shape
    for seam in SEAMS:
        for position in near(seam):
            assert got[position].item() == position % 101 + CHANGED.get(position, 0), position
    same_but(torch, got, CHANGED)
    same_but(torch, x, {})


def test_in_place(torch: Any, x: Any) -> None:
    ew.kernel(RULE)(x, out=x)
    same_but(torch, x, CHANGED)


def test_a_read_at_an_index(torch: Any, x: Any) -> None:
    reverse = ew.kernel("x[n-1-i]")(x)
    for begin in range(0, N, CHUNK):
        part = reverse[begin : begin + CHUNK]
        end = N - begin
        assert torch.equal(part.flip(0), pattern(torch, end - len(part), len(part))), begin
    del reverse
    left = ew.kernel("i > 0: x[i-1]; else 100")(x)
    assert left[0].item() == 100
    for begin in range(1, N, CHUNK):
        part = left[begin : begin + CHUNK]
        assert torch.equal(part, pattern(torch, begin - 1, len(part))), begin


def test_an_element_that_is_an_index_beyond_32_bits(torch: Any, x: Any) -> None:
    at = torch.tensor([p for seam in SEAMS for p in near(seam)], device="cuda")
    got = ew.kernel("x[clip(at[i], 0, len(x)-1)]")(x=x, at=at, shape=len(at))
    assert torch.equal(got.long(), at % 101)
    outside = torch.tensor([-1, N, 2**40, -(2**63), 2**63 - 1], device="cuda")
    rule = "0 <= at and at < len(x): x[at]; else -7"
    assert ew.kernel(rule)(x=x, at=outside).tolist() == [-7] * 5
    assert torch.equal(ew.kernel(rule)(x=x, at=at).long(), at % 101)


def test_a_row_length_beyond_32_bits(torch: Any, x: Any) -> None:
    half = x[: N // 2 * 2].view(2, N // 2)
    got = ew.kernel("[r, c]; c == len(c)-1: x + 10; r == 1 and c < 2: x - 10; else x")(half)
    last = N // 2 - 1
    same_but(torch, got.view(-1), {last: 10, N - 1: 10, N // 2: -10, N // 2 + 1: -10})


def test_by_shape(torch: Any) -> None:
    need(torch, N)
    got = ew.kernel("i >= 4294967296: u8(i - 4294967296); else u8(i % 251)")(shape=N, device="cuda")
    assert got.dtype == torch.uint8 and got.shape == (N,)
    for seam in SEAMS:
        for position in near(seam):
            want = (position - 2**32) % 256 if position >= 2**32 else position % 251
            assert got[position].item() == want, position
    period = torch.arange(251, device="cuda").to(torch.uint8)
    whole = 2**32 // 251
    for begin in range(0, whole, 2**20):
        rows = got[begin * 251 : min(begin + 2**20, whole) * 251].view(-1, 251)
        assert bool((rows == period).all()), begin


def test_halves_beyond_31_bits(torch: Any) -> None:
    n = 2**31 + 7
    need(torch, 4 * n)
    x = torch.ones(n, dtype=torch.float16, device="cuda")
    got = ew.kernel("i<n/4: x*0.5; i>=n-n/4: x*2; i >= 2147483646 or i < 2: 7; else x")(x)
    quarter = n // 4
    assert bool((got[:quarter] == 0.5).all()) and bool((got[n - quarter :] == 2).all())
    assert bool((got[quarter : n - quarter] == 1).all())
    for position in (0, quarter - 1, quarter, n - quarter - 1, n - quarter, 2**31 - 1, 2**31, n - 1):
        want = 0.5 if position < quarter else 2 if position >= n - quarter else 1
        assert got[position].item() == want, position
    ew.kernel("2147483646 <= i < 2147483650: x + 3; else x")(x, out=x)
    assert x[2**31 - 3 : 2**31 + 3].tolist() == [1, 4, 4, 4, 4, 1] and x[-1].item() == 1
    assert int((x != 1).sum()) == 4


def test_rows_of_more_than_32_bits_where_a_thread_takes_one_position(torch: Any) -> None:
    length = 2**32 + 512
    need(torch, 2 * (2 * length + 1))
    base = torch.zeros(2, 2 * length + 1, dtype=torch.uint8, device="cuda")
    out = base[:, : 2 * length : 2]
    kernel = ew.kernel("[r, t]; t % 251 + 1")
    kernel(shape=(2, length), out=out)
    for row in range(2):
        for begin in range(0, length, CHUNK):
            part = out[row, begin : begin + CHUNK]
            want = ((torch.arange(251, device="cuda") + begin) % 251 + 1).to(torch.uint8)
            assert torch.equal(part, want.repeat(len(part) // 251 + 1)[: len(part)]), (row, begin)
    assert not bool(base[:, 1 : 2**20 : 2].any())


def test_a_length_beyond_32_bits_in_a_window_of_no_position(torch: Any) -> None:
    k = torch.arange(60000, device="cuda")
    for whole in (2**32, 2**31 + 5, 100_000):
        assert bool(ew.kernel("k < n: 1; else 0")(k=k, domain=whole).all()), whole
