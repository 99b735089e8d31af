# SPDX-License-Identifier: Apache-2.0
"""Every length up to 4099 at every alignment, between guard zones that must stay as they are. tests/gpu has the
twin."""

from __future__ import annotations

import elsewise as ew
import numpy as np
import pytest

GUARD = 64
MOST = 4099
MARK = 123


def lengths(every: int) -> list[int]:
    return sorted(
        {*range(0, MOST + 1, every), *range(130), *(2**k + d for k in range(5, 13) for d in (-1, 0, 1)), MOST}
    )


@pytest.mark.parametrize("offset", range(16))
def test_every_length_at_every_offset(seed: ew.Kernel, offset: int) -> None:
    """f32, input and output at the same offset; the expected result by slices."""
    source = np.random.default_rng(offset).standard_normal(MOST + 2 * GUARD + 16).astype(np.float32)
    half, twice = source * np.float32(0.5), source * np.float32(2)
    memory = np.full(MOST + 2 * GUARD + 16, MARK, np.float32)
    begin = GUARD + offset
    for n in range(MOST + 1):
        out = memory[begin : begin + n]
        seed(source[begin : begin + n], out=out)
        q = n // 4
        good = (
            np.array_equal(out[:q], half[begin : begin + q])
            and np.array_equal(out[q : n - q], source[begin + q : begin + n - q])
            and np.array_equal(out[n - q :], twice[begin + n - q : begin + n])
        )
        guards = (memory[begin - GUARD : begin] == MARK).all() and (memory[begin + n : begin + n + GUARD] == MARK).all()
        assert good and guards, (n, offset)
        out[:] = MARK


@pytest.mark.parametrize("dtype", ["i1", "f2", "f8"])
@pytest.mark.parametrize("in_place", [False, True])
def test_other_widths(dtype: str, in_place: bool) -> None:
    k = ew.kernel("i<n/4: x+1; i>=n-n/4: x-1; else x")
    source = np.random.default_rng(1).integers(-50, 50, MOST + 2 * GUARD + 16).astype(dtype)
    memory = source.copy()
    for offset in (0, 1, 3, 8, 15):
        begin = GUARD + offset
        for n in lengths(97):
            if in_place:
                k(memory[begin : begin + n], out=memory[begin : begin + n])
            else:
                k(source[begin : begin + n], out=memory[begin : begin + n])
            expected = source.copy()
            expected[begin : begin + n // 4] += expected.dtype.type(1)
            expected[begin + n - n // 4 : begin + n] -= expected.dtype.type(1)
            assert np.array_equal(memory, expected), (n, offset)
            memory[:] = source


def test_input_and_output_at_different_offsets(seed: ew.Kernel) -> None:
    source = np.random.default_rng(2).standard_normal(600).astype(np.float32)
    for n in (0, 1, 5, 64, 257, 500):
        for a in range(8):
            for b in range(8):
                memory = np.full(700, MARK, np.float32)
                seed(source[a : a + n], out=memory[GUARD + b : GUARD + b + n])
                expected = source[a : a + n].copy()
                expected[: n // 4] *= np.float32(0.5)
                expected[n - n // 4 :] *= np.float32(2)
                assert np.array_equal(memory[GUARD + b : GUARD + b + n], expected)
                memory[GUARD + b : GUARD + b + n] = MARK
                assert (memory == MARK).all()


def test_rows_at_every_length(seed: ew.Kernel) -> None:
    """Rows of a larger array: what lies between them is a guard zone too."""
    source = np.random.default_rng(3).standard_normal((7, 300)).astype(np.float32)
    for n in range(131):
        memory = np.full((7, 300), MARK, np.float32)
        seed(source[:, 5 : 5 + n], out=memory[:, 9 : 9 + n])
        flat = source[:, 5 : 5 + n].copy().reshape(-1)
        flat[: flat.size // 4] *= np.float32(0.5)
        flat[flat.size - flat.size // 4 :] *= np.float32(2)
        assert np.array_equal(memory[:, 9 : 9 + n], flat.reshape(7, n)), n
        memory[:, 9 : 9 + n] = MARK
        assert (memory == MARK).all(), n


def test_a_large_array_shared_among_threads(seed: ew.Kernel) -> None:
    n = 3_000_001
    x = np.arange(n, dtype=np.float32)
    expected = x.copy()
    expected[: n // 4] *= np.float32(0.5)
    expected[n - n // 4 :] *= np.float32(2)
    assert np.array_equal(seed(x), expected)
    assert np.array_equal(seed(x, out=x), expected)


@pytest.mark.parametrize("pieces", [15, 16, 17, 400])
def test_many_pieces(pieces: int) -> None:
    """From 16 loops on each is a function of its own, so that the time to compile stays linear."""
    edge = 7
    rule = "; ".join(f"i < {edge * (p + 1)}: x*{p + 2} + gain" for p in range(pieces - 1)) + "; else x"
    x = np.arange(edge * pieces + 30, dtype=np.float32)
    piece = np.arange(x.size) // edge
    want = np.where(piece < pieces - 1, x * (piece + 2).astype(np.float32) + np.float32(0.5), x)
    assert np.array_equal(ew.kernel(rule)(x, gain=0.5), want)
    rows = np.asfortranarray(np.broadcast_to(x, (3, x.size)))
    rule = "[r, c]; " + "; ".join(f"c < {edge * p} + r: x*{p + 2}" for p in range(1, pieces)) + "; else x"
    piece = (np.arange(x.size) - np.arange(3)[:, None]) // edge + 1
    want = np.where(piece < pieces, x * (np.maximum(piece, 1) + 2).astype(np.float32), x)
    assert np.array_equal(ew.kernel(rule)(rows), want)
