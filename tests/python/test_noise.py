# SPDX-License-Identifier: Apache-2.0
"""Noise by position: the published vectors of its generator, what its numbers promise as a distribution, and that they
depend on the seed, the stream and the position alone. Random programs (`ew_tests fuzz`) hold the CUDA C to it."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import elsewise as ew
import numpy as np
import pytest

# Random123's kat_vectors for philox4x32 with 10 rounds: counter, key, result.
VECTORS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]
SEED, COUNT = 20261202, 2_000_000


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def whole(text: str) -> int:
    """Words as one number, the lowest first."""
    return sum(word << 32 * k for k, word in enumerate(words(text)))


def philox(counter: list[int], key: list[int]) -> list[int]:
    """As the paper has it, in Python's own integers."""
    x, k = list(counter), list(key)
    for _ in range(10):
        first, second = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [second >> 32 ^ x[1] ^ k[0], second & 0xFFFFFFFF, first >> 32 ^ x[3] ^ k[1], first & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return x


def expected_words(seed: int, stream: int, count: int) -> np.ndarray:
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    high = [stream & 0xFFFFFFFF, stream >> 32 & 0xFFFFFFFF]
    found = [word for block in range(-(-count // 4)) for word in philox([block, 0, *high], key)]
    return np.array(found[:count], dtype=np.uint32)


def uniform(seed: int, stream: int, count: int) -> np.ndarray:
    return (expected_words(seed, stream, count) >> 8).astype(np.float32) * np.float32(2.0**-24)


def torch_rule(spec: str, **kinds: str) -> Any:
    pytest.importorskip("torch")
    names: dict[str, Any] = {}
    exec(str(ew.kernel(spec).emit("torch", **kinds)), names)
    return names["rule"]


@pytest.mark.parametrize(("counter", "key", "result"), VECTORS)
def test_the_generator_that_these_tests_compare_with(counter: str, key: str, result: str) -> None:
    assert philox(words(counter), words(key)) == words(result)


@pytest.mark.parametrize(("counter", "key", "result"), [VECTORS[0]])
def test_the_published_words(counter: str, key: str, result: str) -> None:
    got = ew.kernel("rand(key, part)")(shape=(4,), key=whole(key), part=whole(counter) >> 64)
    assert (got * 2.0**24).astype(np.uint32).tolist() == [word >> 8 for word in words(result)]


@pytest.mark.parametrize("seed", [0, 1, 7, -1, 2**31, 2**32, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 0x299F31D0A4093822])
def test_seeds_of_64_bits_signed_or_unsigned(seed: int) -> None:
    for stream in (0, seed):
        want = uniform(seed, stream, 11)
        assert np.array_equal(ew.kernel("rand(s, t)")(shape=(11,), s=seed, t=stream), want)
        assert np.array_equal(ew.kernel(f"rand({seed}, {stream})")(shape=(11,)), want)
    assert np.array_equal(ew.kernel("rand(s)")(shape=(11,), s=seed), uniform(seed, 0, 11))


def test_every_position_has_a_word_of_its_own() -> None:
    want = uniform(SEED, 3, 4096)
    k = ew.kernel("rand(s, 3)")
    assert np.array_equal(k(shape=(4096,), s=SEED), want)
    for length in range(1, 40):
        assert np.array_equal(k(shape=(length,), s=SEED), want[:length]), length
    assert np.array_equal(k(shape=(16, 4, 64), s=SEED).ravel(), want)  # row-major, whatever the shape
    assert k(shape=(), s=SEED) == want[0]


def test_the_position_is_the_row_major_one_under_a_header_and_in_any_layout() -> None:
    want = uniform(SEED, 0, 6 * 7).reshape(6, 7)
    x = np.zeros((7, 6), dtype=np.float32).T
    assert np.array_equal(ew.kernel("x + rand(s)")(x, s=SEED), want)
    assert np.array_equal(ew.kernel("[r, c]; c < r: 0; else x + rand(s)")(x, s=SEED), np.triu(want))
    out = np.zeros((6, 14), dtype=np.float32)[:, ::2]
    assert np.array_equal(ew.kernel("x + rand(s)")(x, s=SEED, out=out), want)
    assert np.array_equal(ew.kernel("i < 20: -1; else rand(s)")(shape=(42,), s=SEED)[20:], want.ravel()[20:])


@pytest.mark.parametrize("function", ["rand", "randn"])
def test_threads_and_places_change_no_bit(function: str) -> None:
    k = ew.kernel(f"{function}(s)")
    whole_of_it = k(shape=(COUNT,), s=5)
    for length in (*range(1, 70), 1023, 1024, 1025, 5000):
        assert np.array_equal(k(shape=(length,), s=5), whole_of_it[:length]), length
    for offset in range(9):
        buffer = np.zeros(1000 + 16, dtype=np.float32)
        k(out=buffer[offset : offset + 1000], s=5)
        assert np.array_equal(buffer[offset : offset + 1000], whole_of_it[:1000])


def test_torch_source_has_the_same_bits() -> None:
    for spec in ("rand(s)", "randn(s)", "rand(s, t)", "randn(s, 2**40 + 3)", "rand(i % 3)", "randn(-1)"):
        kernel = ew.kernel(spec)
        given = {name: value for name, value in {"s": 2**63 + 9, "t": -5}.items() if name in kernel.arguments}
        kinds = dict.fromkeys(given, "int")
        got = torch_rule(spec, **kinds)(**given, shape=(3, 4001))
        want = kernel(shape=(3, 4001), device="cpu", **given)
        assert got.dtype == want.dtype and got.view(-1).tolist() == want.view(-1).tolist(), spec


def test_data_as_a_seed() -> None:
    seeds = np.array([3, -1, 2**40, 3, 0, -(2**63), 9, 9], dtype=np.int64)
    want = [uniform(int(s), 0, 8)[k] for k, s in enumerate(seeds)]
    assert ew.kernel("rand(s)")(s=seeds).tolist() == want
    small = np.array([255, 0, 7], dtype=np.uint8)
    assert ew.kernel("rand(s)")(s=small).tolist() == [uniform(int(s), 0, 3)[k] for k, s in enumerate(small)]


def test_many_pieces_and_streams_and_long_runs() -> None:
    n = 9001  # several runs of words, which a segment begins anywhere in
    streams = [uniform(SEED, t, n) for t in range(7)]
    total = np.zeros(n, dtype=np.float32)
    for u in streams:
        total = total + u
    got = ew.kernel("0 + " + " + ".join(f"rand(s, {t})" for t in range(7)))(shape=n, s=SEED)
    assert np.array_equal(got, total)
    cuts = [5, 6, 70, 1030, 1031, 2900, *range(3001, 3015), 5000, 8999]
    spec = "; ".join(f"i < {cut}: {k} + rand(s, {k % 7})" for k, cut in enumerate(cuts)) + "; else rand(s, 6)"
    want, begin = streams[6].copy(), 0
    for k, cut in enumerate(cuts):
        want[begin:cut] = np.float32(k) + streams[k % 7][begin:cut]
        begin = cut
    assert np.array_equal(ew.kernel(spec)(shape=n, s=SEED), want)
    data = np.arange(n, dtype=np.int64) % 5
    mixed = ew.kernel("rand(s) < 0.5: rand(d); i < 7000: rand(s, 1); else rand(i % 5)")(s=SEED, d=data)
    by_seed = np.array([uniform(k, 0, n) for k in range(5)])[data, np.arange(n)]
    late = np.where(np.arange(n) < 7000, streams[1], by_seed)
    assert np.array_equal(mixed, np.where(streams[0] < 0.5, by_seed, late))


def test_no_elements_and_in_place() -> None:
    assert ew.kernel("rand(1)")(shape=(0,)).shape == (0,)
    x = np.ones(5003, dtype=np.float32)
    ew.kernel("rand(1) < 0.5: x; else randn(2)")(x, out=x)
    assert np.array_equal(x, np.where(uniform(1, 0, 5003) < 0.5, 1, ew.kernel("randn(2)")(shape=5003)))


def test_seed_arithmetic_beyond_64_bits_is_refused() -> None:
    with pytest.raises(OverflowError):
        ew.kernel("rand(s * s)")(shape=3, s=2**40)
    assert ew.kernel("rand(i * s)")(shape=3, s=2**61).tolist() == [
        uniform((k * 2**61) % 2**64, 0, 3)[k] for k in range(3)
    ]
    with pytest.raises(OverflowError):
        ew.kernel("rand(0, i * s)")(shape=9, s=2**61)


# --- types ------------------------------------------------------------------------------------------------------------


def test_noise_promotes_as_a_number_does() -> None:
    torch = pytest.importorskip("torch")
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        x = torch.ones(9, dtype=dtype)
        got = ew.kernel("x + rand(1)*0.5")(x)
        work = torch.float64 if dtype == torch.float64 else torch.float32
        noise = torch.from_numpy(uniform(1, 0, 9)).to(work)
        assert got.dtype == dtype and torch.equal(got, (x.to(work) + noise * 0.5).to(dtype))
    assert ew.kernel("rand(1)")(shape=3, device="cpu").dtype == torch.float32
    wide = ew.kernel("rand(1)")(shape=9, device="cpu", dtype=torch.float64)
    assert wide.tolist() == uniform(1, 0, 9).astype(np.float64).tolist()  # worked in f32, then converted
    half = ew.kernel("rand(1)")(shape=9, device="cpu", dtype=torch.bfloat16)
    assert torch.equal(half, torch.from_numpy(uniform(1, 0, 9)).to(torch.bfloat16))
    assert ew.kernel("x + int(rand(1)*6)")(torch.zeros(99, dtype=torch.int16)).dtype == torch.int64  # as a position


def test_a_comparison_with_noise_is_exact() -> None:
    noise = uniform(1, 0, 1000)
    for p in (0.1, float(noise[17]), 0.25):
        got = ew.kernel("rand(1) < p: 1; else 0")(shape=1000, p=p)
        assert got.tolist() == [int(float(v) < p) for v in noise]


def test_whole_numbers_of_noise() -> None:
    dice = ew.kernel("1 + int(rand(s)*6)")(shape=600_000, s=SEED)
    assert dice.dtype == np.int64
    counts = np.bincount(dice, minlength=7)[1:]
    assert counts.sum() == 600_000 and abs(counts / 600_000 - 1 / 6).max() < 0.002


@pytest.mark.parametrize(("spec", "mended"), [("rand(0.5)", "rand(int(0.5))"), ("randn(1, s)", "randn(1, int(s))")])
def test_a_float_is_no_seed(spec: str, mended: str) -> None:
    with pytest.raises(ew.SpecError) as caught:
        ew.kernel(spec)(shape=3, **({"s": 1.5} if "s)" in spec else {}))
    assert [d.code for d in caught.value.diagnostics] == ["not-whole"] and f"`{mended}`" in str(caught.value)


# --- laziness, sharing, proofs ----------------------------------------------------------------------------------------


def test_the_same_call_is_the_same_number() -> None:
    assert not ew.kernel("rand(3) - rand(3)")(shape=100).any()
    assert ew.kernel("rand(3) - rand(3, 1)")(shape=100).any()
    text = str(ew.kernel("rand(3) * (1 - rand(3))").emit("ir"))
    assert text.count("pos flat") == 1 and text.count("call") == 1, text


def test_guards_of_noise_cover_without_an_else() -> None:
    x = np.ones(1000, dtype=np.float32)
    got = ew.kernel("rand(3) < 0.1: 0; rand(3) >= 0.1: x/0.9")(x)
    assert np.array_equal(got, np.where(uniform(3, 0, 1000) < 0.1, 0, x / np.float32(0.9)))


# --- distribution -----------------------------------------------------------------------------------------------------


def kolmogorov(sorted_cdf: np.ndarray) -> float:
    n = len(sorted_cdf)
    steps = np.arange(n + 1) / n
    return float(max((steps[1:] - sorted_cdf).max(), (sorted_cdf - steps[:-1]).max())) * math.sqrt(n)


def normal_cdf(x: np.ndarray) -> np.ndarray:
    from ctypes import CDLL, c_double

    erfc = CDLL("libm.so.6").erfc
    erfc.restype, erfc.argtypes = c_double, [c_double]
    return np.array([0.5 * erfc(-v / math.sqrt(2)) for v in x])


@pytest.mark.parametrize("stream", [0, 1])
def test_uniform_numbers(stream: int) -> None:
    u = ew.kernel("rand(s, t)")(shape=(COUNT,), s=SEED, t=stream).astype(np.float64)
    assert u.min() >= 0 and u.max() < 1
    error = 1 / math.sqrt(COUNT)
    assert abs(u.mean() - 1 / 2) < 4 * error * math.sqrt(1 / 12)
    assert abs(u.var() - 1 / 12) < 4 * error * math.sqrt(1 / 180)
    assert kolmogorov(np.sort(u)) < 1.95  # one in a thousand is beyond
    cells = np.bincount((u * 1024).astype(int), minlength=1024)
    assert abs(((cells - COUNT / 1024) ** 2).sum() / (COUNT / 1024) - 1023) < 4 * math.sqrt(2 * 1023)


@pytest.mark.parametrize("stream", [0, 1])
def test_normal_numbers(stream: int) -> None:
    z = ew.kernel("randn(s, t)")(shape=(COUNT,), s=SEED, t=stream).astype(np.float64)
    error = 1 / math.sqrt(COUNT)
    assert abs(z.mean()) < 4 * error
    assert abs(z.var() - 1) < 4 * error * math.sqrt(2)
    assert abs((z**3).mean()) < 4 * error * math.sqrt(15)
    assert abs((z**4).mean() - 3) < 4 * error * math.sqrt(96)
    for beyond in (1, 2, 3, 4):
        part = 2 * NormalDist().cdf(-beyond)
        assert abs((abs(z) > beyond).mean() - part) < 4 * math.sqrt(part / COUNT), beyond
    assert kolmogorov(normal_cdf(np.sort(z[:200_000]))) < 1.95


def test_normal_numbers_are_the_quantiles_of_their_words() -> None:
    """To within 4e-7 of each, at the ends too, and finite."""
    z = ew.kernel("randn(s)")(shape=(50_000,), s=SEED)
    word = expected_words(SEED, 0, 50_000).astype(np.float64)
    lower = np.minimum(word + 0.5, 2.0**32 - word - 0.5) / 2**32
    want = np.array([NormalDist().inv_cdf(p) for p in lower])
    want = np.where(word >= 2**31, -want, want)
    assert (abs(z - want) <= 4e-7 * abs(want)).all()
    furthest = ew.kernel("abs(randn(i % 2048))")(shape=(4 * COUNT,))
    assert np.isfinite(furthest).all() and 5 < furthest.max() < 6.4


def test_streams_seeds_and_neighbours_are_unrelated() -> None:
    a = ew.kernel("randn(1)")(shape=(COUNT,)).astype(np.float64)
    others = [
        ew.kernel(spec)(shape=(COUNT,)) for spec in ("randn(2)", "randn(1, 1)", "randn(0, 1)", "randn(2**32 + 1)")
    ]
    for b in [*others, np.roll(a, 1), np.roll(a, 4), np.roll(a, 1024)]:
        assert abs((a * b).mean()) < 4.5 / math.sqrt(COUNT)
        assert abs((a**2 * b.astype(np.float64) ** 2).mean() - 1) < 4.5 * math.sqrt(8 / COUNT)
