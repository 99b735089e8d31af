# SPDX-License-Identifier: Apache-2.0
"""Reads at indices as people write them, on the CPU against plain torch: neighbours, gathers, tables, scales, packed
bits, and what is refused, with the way out."""

from __future__ import annotations

import re
from typing import Any

import elsewise as ew
import numpy as np
import pytest

torch = pytest.importorskip("torch")


def arange(*shape: int) -> Any:
    n = 1
    for d in shape:
        n *= d
    return torch.arange(n, dtype=torch.float32).reshape(shape)


def fixed(spec: str, **kinds: str) -> tuple[str, str]:
    """The code of the first error, and the rule after its first fix-it."""
    try:
        kernel = ew.kernel(spec)
        kernel.emit("torch", **{name: kind for name, kind in kinds.items() if name in kernel.arguments})
    except (ew.SpecError, TypeError) as error:
        first = next(d for d in error.diagnostics if d.error)  # type: ignore[union-attr]
        return first.code, first.fixits[0].apply(spec) if first.fixits else ""
    return "", spec


# Neighbours


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1030])
def test_neighbours_under_guards(n: int) -> None:
    x = torch.randn(n)
    left = torch.cat([x[:1] * 0, x[:-1]])
    assert torch.equal(ew.kernel("i > 0: x[i-1]; else 0")(x), left)
    assert torch.equal(ew.kernel("where(i > 0, x - x[i-1], x)")(x), torch.where(torch.arange(n) > 0, x - left, x))
    smooth = x.clone()
    smooth[1:-1] = (x[:-2] + x[1:-1] + x[2:]) / 3
    assert torch.equal(ew.kernel("0 < i < n-1: (x[i-1] + x + x[i+1]) / 3; else x")(x), smooth)
    assert torch.equal(ew.kernel("i == 0: 0; else x[i-1]")(x), left)


def test_neighbours_of_a_picture() -> None:
    x = arange(5, 7)
    inner = "x[r-1, c] + x[r+1, c] + x[r, c-1] + x[r, c+1] - 4*x"
    got = ew.kernel(f"[r, c]; border() >= 1: {inner}; else 0")(x)
    want = torch.zeros(5, 7)
    want[1:-1, 1:-1] = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]
    assert torch.equal(got, want)


def test_edges_by_clip_wrap_and_reflect() -> None:
    x = torch.randn(9)
    i = torch.arange(9)
    for rule, at in {
        "x[clip(i-3, 0, n-1)]": (i - 3).clamp(0, 8),
        "x[wrap(i-3, n)]": (i - 3) % 9,
        "x[(i+4) % n]": (i + 4) % 9,
        "x[min(i+2, n-1)]": (i + 2).clamp(max=8),
        "x[n-1-i]": 8 - i,
        "x[reflect(i-3, n)]": (i - 3).abs(),
        "x[i//2]": i // 2,
        "x[i/2]": i // 2,
        "x[i]": i,
    }.items():
        assert torch.equal(ew.kernel(rule)(x), x[at]), rule


def test_own_places_along_the_other_axes() -> None:
    x = torch.randn(3, 4, 8)
    half = ew.kernel("[.., d]; d < len(d)/2: -x[.., d + len(d)/2]; else x[.., d - len(d)/2]")
    want = torch.cat([-x[..., 4:], x[..., :4]], -1)
    assert torch.equal(half(x), want)
    w = torch.randn(4, 1)
    assert torch.equal(ew.kernel("[b, h, t]; x * w[.., 0]")(x, w=w), x * w)
    assert torch.equal(ew.kernel("[b, h, t]; x[b, .., clip(t+1, 0, len(t)-1)]")(x), x[:, :, [1, 2, 3, 4, 5, 6, 7, 7]])
    assert torch.equal(ew.kernel("x[..] + x")(x), x * 2)


# Tables, gathers, scales


def test_lookup_table() -> None:
    lut = torch.randn(256)
    pixels = torch.randint(0, 256, (33, 21), dtype=torch.uint8)
    assert torch.equal(ew.kernel("lut[clip(x, 0, len(lut)-1)]")(pixels, lut=lut), lut[pixels.long()])
    short = lut[:100]
    assert torch.equal(ew.kernel("lut[clip(x, 0, len(lut)-1)]")(pixels, lut=short), short[pixels.long().clamp(max=99)])
    with pytest.raises((ew.SpecError, TypeError), match=r"clip\("):
        ew.kernel("lut[clip(x, 0, 255)]")(pixels, lut=short)


def test_gather_by_data() -> None:
    x, to = torch.randn(50), torch.randint(-100, 100, (20,))
    assert torch.equal(ew.kernel("[t]; x[wrap(at, len(x))]")(x=x, at=to), x[to % 50])
    rows = torch.randn(6, 20)
    pick = torch.randint(0, 6, (20,), dtype=torch.int32)
    got = ew.kernel("[t]; rows[clip(pick, 0, len(rows)-1), t]")(rows=rows, pick=pick)
    assert torch.equal(got, rows[pick.long(), torch.arange(20)])


def test_scales_of_a_quantised_tensor() -> None:
    q = torch.randint(-128, 128, (1000,), dtype=torch.int8)
    s = torch.rand(8)
    got = ew.kernel("q*s[i/128]")(q=q, s=s)
    assert torch.equal(got, q * s[torch.arange(1000) // 128])
    with pytest.raises(IndexError, match=r"s\[i/128\]"):
        ew.kernel("q*s[i/128]")(q=q, s=s[:7])
    out = torch.full((1000,), 7.0)
    with pytest.raises(IndexError):
        ew.kernel("q*s[i/128]")(q=q, s=s[:7], out=out)
    assert (out == 7).all()
    assert torch.equal(ew.kernel("q*s[i/block]")(q=q, s=s, block=128), got)


def test_packed_nibbles() -> None:
    w = torch.randint(0, 256, (50,), dtype=torch.uint8)
    got = ew.kernel("(w[i//2] >> (4*(i%2))) & 15")(w=w, shape=100)
    want = torch.stack([w & 15, w >> 4], -1).reshape(-1)
    assert torch.equal(got.long(), want.long())
    with pytest.raises(IndexError):
        ew.kernel("(w[i//2] >> (4*(i%2))) & 15")(w=w, shape=102)


def test_rows_of_their_own_length() -> None:
    x = torch.randn(4, 10)
    lens = torch.tensor([0, 3, 10, 11])
    t = torch.arange(10)
    got = ew.kernel("[b, t]; t < lens[b]: x; else 0")(x, lens=lens)
    assert torch.equal(got, torch.where(t < lens[:, None], x, 0.0))
    with pytest.raises(IndexError):
        ew.kernel("[b, t]; t < lens[b]: x; else 0")(x, lens=lens[:3])
    back = ew.kernel("[b, t]; let k = lens[b]; t < k <= len(t): x[b, clip(k-1-t, 0, len(t)-1)]; else x")(x, lens=lens)
    want = x.clone()
    for row, length in enumerate([0, 3, 10]):
        want[row, :length] = x[row, :length].flip(0)
    assert torch.equal(back, want)


def test_a_bool_table_and_a_read_in_a_guard() -> None:
    keep = torch.tensor([True, False, True])
    x = torch.randn(5, 3)
    assert torch.equal(ew.kernel("[b, c]; keep[c]: x; else 0")(x, keep=keep), torch.where(keep, x, 0.0))
    y = torch.tensor([1.0, -1.0, 2.0, 3.0])
    got = ew.kernel("i > 0 and x[i-1] > 0: x[i-1]; else 0")(y)
    assert torch.equal(got, torch.tensor([0.0, 1.0, 0.0, 2.0]))


def test_nothing_is_read_that_is_not_reached() -> None:
    x = torch.randn(6)
    assert torch.equal(ew.kernel("i < 3: s[i]; else x")(x, s=x[:3]), x)
    assert torch.equal(ew.kernel("where(i < len(s), s[i], x)")(x, s=x[:3]), x)
    assert torch.equal(ew.kernel("i >= len(s): x; else s[i]")(x, s=x[:0]), x)
    assert torch.equal(ew.kernel("i >= len(s) or s[i] > 100: x; else 0")(x, s=x[:0]), x)


def test_nothing_is_read_where_an_earlier_guard_has_every_position() -> None:
    kernel = ew.kernel("i*i < m: 0; else s[i]")
    assert not kernel(s=torch.ones(3), m=1000, shape=(10,)).any()
    with pytest.raises(IndexError, match="index 9 is out of bounds for `s` with 3 elements"):
        kernel(s=torch.ones(3), m=50, shape=(10,))


def test_empty_tables() -> None:
    empty = torch.zeros(0)
    with pytest.raises(IndexError):
        ew.kernel("x + lut[0]")(torch.ones(3), lut=empty)
    assert ew.kernel("x + lut[0]")(torch.ones(0), lut=empty).shape == (0,)
    with pytest.raises(IndexError):
        ew.kernel("lut[clip(int(x), 0, len(lut)-1)]")(torch.ones(3), lut=empty)


@pytest.mark.parametrize(
    ("dtype", "high"), [("uint8", 200), ("uint16", 40000), ("uint32", 3_000_000_000), ("uint64", 2**63), ("int16", 200)]
)
def test_a_number_above_half_its_dtype_is_no_proof(dtype: str, high: int) -> None:
    s = np.zeros(300, np.float32)
    with pytest.raises(ew.SpecError) as caught:
        ew.kernel(f"u > {high}: s[u]; else 0")(u=np.array([1, 250], dtype), s=s)
    assert caught.value.diagnostics[0].code == "index-unproved"


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_unsigned_data_needs_one_end_alone(dtype: str) -> None:
    s = np.arange(200, dtype=np.float32)
    u = np.array([0, 3, 199, 200, 255, np.iinfo(dtype).max], dtype)
    got = ew.kernel("u < len(s): s[u]; else -1")(u=u, s=s)
    assert got.tolist() == [0, 3, 199, -1, -1, -1]


def test_a_table_beyond_every_memory() -> None:
    with pytest.raises(OverflowError, match="an axis is too long"):
        ew.kernel("x + lut[wrap(i, len(lut))]")(torch.ones(3), lut=torch.ones(1).expand(2**61))


def test_integer_data_is_i64_in_brackets() -> None:
    lut = torch.randn(600)
    x = torch.tensor([0, 200, 255], dtype=torch.uint8)
    assert torch.equal(ew.kernel("lut[clip(x + 300, 0, len(lut)-1)]")(x, lut=lut), lut[x.long() + 300])
    low = torch.tensor([-128, 127], dtype=torch.int8)
    assert torch.equal(ew.kernel("lut[clip(2*low + 256, 0, len(lut)-1)]")(low=low, lut=lut), lut[2 * low.long() + 256])


def test_dtypes_of_tables_move() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.uint8, torch.int64):
        x = torch.arange(9).to(dtype)
        got = ew.kernel("x[n-1-i]")(x)
        assert got.dtype == dtype and torch.equal(got, x.flip(0))
    strided = torch.randn(4, 6)[:, ::2].t()
    assert torch.equal(ew.kernel("[r, c]; x[len(r)-1-r, c]")(strided), strided.flip(0))


# What is refused


@pytest.mark.parametrize(
    ("spec", "code", "mended"),
    [
        ("x[-1]", "negative-index", "x[len(x)-1]"),
        ("[b, t]; x[b, -2]", "negative-index", "[b, t]; x[b, len(x, 1)-2]"),
        ("x[]", "empty-brackets", "x"),
        ("x[i][0]", "second-brackets", "x[i, 0]"),
        ("x[1:3]", "slice", "x[1+i]"),
        ("x[::-1]", "slice", "x[len(x)-1-i]"),
        ("x[(i, 0)]", "index-list", "x[i, 0]"),
        ("x[..., 0]", "not-an-operator", "x[.., 0]"),
        ("lut[x]", "index-not-whole", "lut[int(x)]"),
        ("n[0]", "indexed-position", "n"),
        ("let w = x*2; w[0]", "indexed-let", ""),
    ],
)
def test_habits(spec: str, code: str, mended: str) -> None:
    assert fixed(spec, x="f32", lut="f32") == (code, mended)


def test_what_cannot_be_proved_is_refused() -> None:
    for spec in ("lut[int(x)]", "x[at]", "x[i-int(y)]"):
        code, mended = fixed(spec, x="f32", at="i64", lut="f32", y="f32")
        assert code and "clip(" in mended, spec
        assert fixed(mended, x="f32", at="i64", lut="f32", y="f32")[0] == "", mended
    x = torch.randn(4)
    with pytest.raises((ew.SpecError, TypeError), match=r"clip\(int\(x\), 0, len\(lut\)-1\)"):
        ew.kernel("lut[int(x)]")(x, lut=x)


def test_negative_indices_are_out_of_bounds() -> None:
    x = torch.randn(4)
    with pytest.raises(IndexError, match=r"x\[i-1\]"):
        ew.kernel("x[i-1]")(x)
    with pytest.raises(IndexError, match=r"do not count from the end|does not count from the end"):
        ew.kernel("x[i-shift]")(x, shift=2)


def test_calls_that_are_refused() -> None:
    x = torch.randn(4, 5)
    with pytest.raises((ew.SpecError, TypeError), match="axes"):
        ew.kernel("x[i]")(x)
    with pytest.raises(ValueError, match="clone"):
        ew.kernel("[r, c]; x[r, len(c)-1-c]")(x, out=x)
    with pytest.raises((ew.SpecError, TypeError)):
        ew.kernel("x + s[0]")(x, s=torch.tensor(1.0))
    with pytest.raises((ew.SpecError, TypeError)):
        ew.kernel("x + s[0]")(x, s=1.0)
    with pytest.raises(ValueError):
        ew.kernel("[r, c]; x + w[.., c]")(x, w=torch.randn(3, 5))


def test_the_torch_source_reads_the_same() -> None:
    x, lens, lut = torch.randn(4, 10), torch.tensor([0, 3, 10, 11]), torch.randn(7)
    rule = """
        [b, t]
        let k = lens[b]
        t < k and t > 0: x[b, t-1] * lut[wrap(t, len(lut))]
        where(t > 2, x[b, t-3], 0) > 0: 1
        else x"""
    names: dict[str, Any] = {}
    exec(ew.kernel(rule).emit("torch", x="f32[2]", lens="i64[1]", lut="f32[1]"), names)
    assert torch.equal(ew.kernel(rule)(x, lens=lens, lut=lut), names["rule"](x=x, lens=lens, lut=lut))
    with pytest.raises(IndexError):
        exec(ew.kernel("x[i]").emit("torch", x="f32[1]"), names)
        names["rule"](x=torch.zeros(3), shape=(4,))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "uint8", "int8", "int64", "bool"])
@pytest.mark.parametrize("shape", [(1,), (7,), (300,), (4, 9), (2, 3, 5)])
def test_against_the_torch_source(dtype: str, shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    x = (torch.randn(shape) * 5).to(getattr(torch, dtype))
    lut, lens = torch.randn(11).to(getattr(torch, dtype)), torch.randint(-3, 12, (shape[-1],), dtype=torch.int16)
    at = torch.randint(-40, 40, shape, dtype=torch.int8)
    for rule in (
        "x[..]",
        "[.., t]; x[.., len(t)-1-t]",
        "[.., t]; t > 1: x[.., t-2]; else x",
        "[.., t]; where(t < len(t)-1, x[.., min(t+1, len(t)-1)], x)",
        "[.., t]; lut[reflect(t + lens[t], len(lut))]",
        "lut[at % len(lut)]",
        "lut[clip(2*at + 100, 0, len(lut)-1)]",
        "let k = i // 3; k < len(lut): lut[k]; else x",
        "i < len(lut) and lut[i] == lut[0] or i == 2: lut[wrap(i, len(lut))]; else x",
        "[.., t]; t < lens[t] and x[.., t] == x[.., 0]: x[.., 0]; else x",
        "x[.., 0]",
        "where(at > 0, where(at < len(lut), lut[at], x), x)",
        "0 <= at < len(lut): lut[at]; at == -1: lut[len(lut)-1]; else x",
        "lut[where(at % 2 == 0, wrap(at, len(lut)), i % len(lut))]",
    ):
        kernel = ew.kernel(rule)
        tensors = {"x": x, "lut": lut, "lens": lens, "at": at}
        given = {name: tensor for name, tensor in tensors.items() if name in kernel.arguments}
        checked = kernel.check(**given, shape=shape)
        assert checked, (rule, checked)


def test_a_condition_between_equal_arms_is_refused_all_the_same() -> None:
    with pytest.raises(IndexError):
        ew.kernel("where(s[i] > 0, x, x)")(torch.ones(5), s=torch.ones(3))


@pytest.mark.parametrize("ends", ["lowest", "highest"])
@pytest.mark.parametrize(
    "arm", ["where(f, s[i//2], {})", "where(x > 0, where(f, s[i//2], {}), 1)", "where(not f, {}, s[i//2])"]
)
def test_a_read_beside_an_extreme_stays_below_its_condition(arm: str, ends: str) -> None:
    """The table is far too short, and nobody reads it: `f` is false."""
    k = ew.kernel(arm.format(ends))
    page = 4096
    memory = np.zeros(page, dtype=np.int16)
    given = {"x": np.ones(100_000, dtype=np.float32)} if "x" in k.arguments else {"shape": 100_000}
    result = k(**given, s=memory[-1:], f=False, dtype="i16")
    info = np.iinfo(np.int16)
    assert (result == (info.min if ends == "lowest" else info.max)).all()
    assert re.search(r"= read s .* when %", k.emit("ir", s="i16[1]", f="bool", dtype="i16"))


def test_a_read_beside_an_extreme_is_proved_by_its_condition() -> None:
    k = ew.kernel("where(i > 0, x[i-1], lowest)")
    assert k(np.arange(4, dtype=np.int32), dtype="i32").tolist() == [-(2**31), 0, 1, 2]


@pytest.mark.parametrize("bound", ["-9223372036854775807", "-9223372036854775808", "-2**63", "-(2**64)", "2 - 2**63"])
def test_bounds_next_to_the_end_of_64_bits_prove_nothing_false(bound: str) -> None:
    """`v < bound` never holds of a u64, so nothing is read, and `else` is needed."""
    v, empty = np.arange(5, dtype=np.uint64), np.zeros(0, dtype=np.int16)
    try:  # a bound beyond 64 bits need not be followed
        assert ew.kernel(f"v < {bound}: u[v]; else 1")(v=v, u=empty).tolist() == [1] * 5
    except ew.SpecError as error:
        assert "nothing shows that `u[v]` stays in bounds" in str(error)
    assert ew.kernel(f"i < {bound}: 7; else x")(np.arange(3.0)).tolist() == [0, 1, 2]
    with pytest.raises(ew.SpecError, match="cover"):
        ew.kernel(f"i < {bound}: x")


def test_a_bound_next_to_the_end_above() -> None:
    with pytest.raises(ew.SpecError, match="cover"):
        ew.kernel("i > 9223372036854775807: x")
    with pytest.raises(ew.SpecError, match="cover"):
        ew.kernel("0 > 9223372036854775807: x")
    assert ew.kernel("i > 9223372036854775807: 7; else x")(np.arange(3.0)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "step", ["min({0}, {0}+1)", "max({0}, {0}-1)", "where({0}>2, {0}, {0}*1)", "clip({0}, 0, {0}+1)"]
)
def test_an_index_of_many_steps_that_share_takes_no_time_to_speak_of(step: str) -> None:
    """Each uses the one before twice: as a tree the index has 2^60 nodes."""
    lines = [f"let a{k + 1} = {step.format(f'a{k}')}" for k in range(60)]
    x = np.arange(6, dtype=np.float32)
    assert ew.kernel("\n".join(["let a0 = i", *lines, "x[a60]"]))(x=x).tolist() == x.tolist()
