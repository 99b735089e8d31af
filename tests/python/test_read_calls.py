# SPDX-License-Identifier: Apache-2.0
"""Calls of rules that read at indices, on the CPU: memory layouts, dtypes, ranks, what a call is refused for, and that
nothing is written then."""

from __future__ import annotations

import itertools
from typing import Any

import elsewise as ew
import numpy as np
import pytest

torch = pytest.importorskip("torch")

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


def values(dtype: str, *shape: int) -> Any:
    generator = torch.Generator().manual_seed(len(shape))
    return torch.randint(0, 100, shape, generator=generator).to(getattr(torch, dtype))


def layouts(x: Any) -> dict[str, Any]:
    """The same values in memory of every kind."""
    every = {"plain": x, "stepped": torch.stack([x, x], -1)[..., 0]}
    if x.ndim > 1:
        every["turned"] = x.transpose(0, -1).contiguous().transpose(0, -1)
        every["inside"] = torch.nn.functional.pad(x.to(torch.float64), (1, 2, 1, 0)).to(x.dtype)[..., 1:, 1:-2]
    return every


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_and_layouts_of_a_table(dtype: str) -> None:
    for shape in ((37,), (5, 9), (3, 4, 5), (2, 3, 2, 7)):
        axes = "abcd"[: len(shape)]
        at = ", ".join(f"len({a})-1-{a}" for a in axes)
        kernel = ew.kernel(f"[{', '.join(axes)}]; s[{at}]")
        x = values(dtype, *shape)
        want = x.flip(tuple(range(x.ndim)))
        for name, table in layouts(x).items():
            got = kernel(s=table, shape=shape)
            assert got.dtype == x.dtype and torch.equal(got, want), (shape, name)


def test_bits_move() -> None:
    nan = torch.tensor([0x7FC1, 0x7F81, 0xFFFF, 0x8000, 1], dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    got = ew.kernel("s[n-1-i]")(s=nan)
    assert torch.equal(got.view(torch.int16), nan.flip(0).view(torch.int16))
    byte = np.frombuffer(bytes([0, 1, 2, 255]), dtype=np.bool_)
    assert ew.kernel("s[n-1-i]")(s=byte).view(np.uint8).tolist() == [255, 2, 1, 0]
    assert ew.kernel("where(s[n-1-i], 1, 0)")(s=byte).tolist() == [1, 1, 1, 0]


def test_arrays_that_run_backwards_and_repeat() -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    flip = ew.kernel("[r, c]; x[len(r)-1-r, c]")
    for view in (x, x[::-1], x[:, ::-1], x[::-1, ::-2], x.T, np.broadcast_to(x[:, :1], (3, 4))):
        assert np.array_equal(flip(x=view), view[::-1])
    row = torch.arange(4.0).expand(3, 4)
    assert torch.equal(ew.kernel("[r, c]; row[r, len(c)-1-c] + 0*y")(row=row, y=torch.zeros(3, 4)), row.flip(1))


def test_own_axes_repeat() -> None:
    for shape, w in itertools.product([(2, 3, 5)], [(3, 5), (1, 5), (3, 1), (2, 1, 5), (1, 1, 1), (2, 3, 5)]):
        x, table = torch.randn(shape), torch.randn(w)
        want = x + table[..., [0]]
        assert torch.equal(ew.kernel("[a, b, c]; x + w[.., 0]")(x, w=table), want), w
    with pytest.raises(ValueError, match="own position"):
        ew.kernel("[a, b, c]; x + w[.., 0]")(torch.zeros(2, 3, 5), w=torch.zeros(2, 5))
    with pytest.raises(ValueError, match="without a position"):
        ew.kernel("[a, b]; x + w[.., 0]")(torch.zeros(2, 3), w=torch.zeros(1, 2, 3))


def test_own_axes_of_what_has_more_axes_than_the_domain() -> None:
    x, s = np.arange(4.0), np.arange(12.0).reshape(3, 4)
    pick = ew.kernel("s[k, ..] + x")
    assert np.array_equal(pick(x, s=s, k=2), s[2] + x)
    assert np.array_equal(pick(x, s=s[:, ::-1], k=1), s[1, ::-1] + x)
    assert np.array_equal(pick(x, s=s[:, :1], k=1), s[1, :1] + x)
    assert torch.equal(pick(torch.tensor(x), s=torch.tensor(s), k=0), torch.tensor(s[0] + x))
    with pytest.raises(IndexError):
        pick(x, s=s, k=3)
    with pytest.raises(ValueError, match="own position"):
        pick(x[:3], s=s, k=0)
    s = np.arange(210.0).reshape(7, 2, 3, 5)
    assert np.array_equal(ew.kernel("[a, b, c]; s[6, .., c+1]")(shape=(2, 3, 4), s=s), s[6, ..., 1:])
    assert np.array_equal(ew.kernel("[.., c]; s[6, .., c+1]")(shape=(2, 3, 4), s=s), s[6, ..., 1:])
    assert np.array_equal(ew.kernel("[b, c]; s[6, 1, ..]")(shape=(3, 5), s=s), s[6, 1])
    assert np.array_equal(ew.kernel("s[6, 1, 2, 4, ..]")(shape=3, s=s), np.full(3, s[6, 1, 2, 4]))  # `..` is no axis
    for rule in ("[b, c]; s[.., b, c]", "[b, c]; s[6, .., c]"):
        with pytest.raises(ValueError, match="without a position"):
            ew.kernel(rule)(shape=(3, 5), s=s)


def test_an_index_of_u64_data() -> None:
    lut, x = np.array([10.0, 20, 30, 40]), np.array([0, 3, 4, 2**63, 2**64 - 1], np.uint64)
    assert ew.kernel("0 <= x < len(lut): lut[x]; else -1")(x, lut=lut).tolist() == [10, 40, -1, -1, -1]
    with pytest.raises(ew.SpecError) as refused:
        ew.kernel("lut[x]")(x, lut=lut)
    mended = refused.value.diagnostics[0].fixits[0].apply("lut[x]")
    assert ew.kernel(mended)(x, lut=lut).tolist() == [10, 40, 40, 40, 40]
    assert ew.kernel("lut[clip(x, 0, len(lut)-1)]")(x, lut=lut).tolist() == [10, 40, 40, 10, 10]  # an i64 first
    with pytest.raises(ew.SpecError) as refused:
        ew.kernel("lut[i64(x)]")(x, lut=lut)
    mended = refused.value.diagnostics[0].fixits[0].apply("lut[i64(x)]")
    assert ew.kernel(mended)(x, lut=lut).tolist() == [10, 40, 40, 10, 10]


def test_a_piece_reads_only_what_it_reaches() -> None:
    x = torch.randn(1000)
    short = x[:10]
    t = torch.arange(1000)
    # Chains of guards on data, whose pieces read where their guard alone keeps them in bounds.
    got = ew.kernel("x > 1: 1; i < len(s): s[i]; x < -1: s[len(s)-1]; else x")(x, s=short)
    want = torch.where(x > 1, 1.0, torch.where(t < 10, x, torch.where(x < -1, x[9], x)))
    assert torch.equal(got, want)
    got = ew.kernel("x > 0 and i < len(s): s[i]; x > 0: x; i >= len(s): -x; else s[i] * 2")(x, s=short)
    want = torch.where((x > 0) & (t < 10), x, torch.where(x > 0, x, torch.where(t >= 10, -x, x * 2)))
    assert torch.equal(got, want)
    # A table that is empty, behind a condition that never holds.
    assert torch.equal(ew.kernel("x > 9: 0; i < k: lut[clip(int(x), 0, len(lut)-1)]; else x")(x, lut=x[:0], k=0), x)
    # The index is worked out only there, too.
    assert torch.equal(ew.kernel("where(i < 5, x[i * scale], 0)")(x, scale=2)[:5], x[0:10:2])


def test_rows() -> None:
    x = torch.randn(6, 33)
    t, b = torch.arange(33), torch.arange(6)[:, None]
    for dtype in (torch.int64, torch.int32, torch.int16, torch.uint8):
        lens = torch.tensor([0, 1, 33, 40, 5, 100]).to(dtype)
        got = ew.kernel("[b, t]; t < lens[b]: x; else 0")(x, lens=lens)
        assert torch.equal(got, torch.where(t < lens[:, None].long(), x, 0.0))
        got = ew.kernel("[b, t]; t <= lens[b] and t > 2: x; else 0")(x, lens=lens)
        assert torch.equal(got, torch.where((t <= lens[:, None].long()) & (t > 2), x, 0.0))
    ends = torch.tensor([-(2**63), 2**63 - 1, 2**62, -1, 0, 7])
    for sign, compare in {"<": torch.lt, "<=": torch.le, ">": torch.gt, ">=": torch.ge, "==": torch.eq}.items():
        got = ew.kernel(f"[b, t]; t {sign} lens[b]: x; else 0")(x, lens=ends)
        assert torch.equal(got, torch.where(compare(t, ends[:, None]), x, 0.0)), sign
    # Rows that an earlier piece takes whole ask for no length.
    got = ew.kernel("[b, t]; b >= 3: 0; t < lens[b]: x; else 1")(x, lens=ends[:3])
    assert torch.equal(got, torch.where(b >= 3, 0.0, torch.where(t < ends[:, None], x, 1.0)))
    with pytest.raises(IndexError, match=r"`lens\[b\]`: index 3 is out of bounds for `lens` with 3 elements"):
        ew.kernel("[b, t]; b >= 4: 0; t < lens[b]: x; else 1")(x, lens=ends[:3])
    keep = torch.tensor([True, False] * 3)
    assert torch.equal(ew.kernel("[b, t]; keep[b]: x; else 0")(x, keep=keep), torch.where(keep[:, None], x, 0.0))
    # A row's own start, in every layout of the rows.
    start = torch.tensor([3, 0, 1, 2, 8, 5])
    later = "[b, t]; let at = t + start[b]; 0 <= at < len(t): x[b, at]; else x"
    at = t + start[:, None]
    for view in (x, x.t().contiguous().t()):
        got = ew.kernel(later)(view, start=start)
        assert torch.equal(got, torch.where(at < 33, x.gather(1, at.clamp(max=32)), x))


def test_index_errors_write_nothing() -> None:
    x, out = torch.zeros(1000), torch.full((1000,), 7.0)
    for rule, given, text in [
        ("s[i/128]", {"s": torch.ones(7)}, r"`s\[i/128\]`: index 7 is out of bounds for `s` with 7 elements"),
        ("x[i-1]", {}, r"`x\[i-1\]`: index -1 is out of bounds .* do not count from the end"),
        ("x[i+k]", {"k": 1}, r"index 1000 is out of bounds for `x` with 1000 elements"),
        ("where(i > 2, s[0, i], 0)", {"s": torch.ones(1, 9)}, r"axis 1 of `s`"),
        ("s[clip(int(x), 0, len(s)-1)]", {"s": torch.ones(0)}, "nothing can be read"),
    ]:
        rule = rule + " + 0*x"
        for _ in range(2):
            with pytest.raises(IndexError, match=text):
                ew.kernel(rule)(x=x, out=out, **given)
            assert (out == 7).all(), rule
    assert ew.kernel("x[i+k] + 0*y")(x=x, y=x[:-1], k=1).shape == (999,)


def test_a_changed_parameter_is_looked_at_again() -> None:
    x = torch.arange(10.0)
    kernel = ew.kernel("[t]; t + k < len(t) and t + k >= 0: x[t+k]; else 0")
    for k in (0, 3, -3, 9, 10, -10, 100, 2**62):
        want = torch.tensor([float(t + k) if 0 <= t + k < 10 else 0.0 for t in range(10)])
        assert torch.equal(kernel(x, k=k), want), k
    bare = ew.kernel("y + x[i+k]")
    y = torch.zeros(5)
    assert torch.equal(bare(y=y, x=x, k=5), x[5:])
    with pytest.raises(IndexError):
        bare(y=y, x=x, k=6)
    with pytest.raises(IndexError):
        bare(y=y, x=x, k=-1)
    assert torch.equal(bare(y=y, x=x, k=0), x[:5])


def test_memory_that_out_shares() -> None:
    x = torch.arange(20.0)
    shift = ew.kernel("i > 0: s[i-1]; else 0")
    for out, table in ((x[:10], x[:10]), (x[5:15], x[:10]), (x[0:20:2], x[1:11]), (x[:10], x[9:19])):
        before = x.clone()
        with pytest.raises(ValueError, match=r"s\.clone\(\)"):
            shift(s=table, out=out)
        assert torch.equal(x, before)
    assert torch.equal(shift(s=x[10:20], out=x[0:10])[1:], x[10:19])
    every_other = torch.zeros(20)
    assert torch.equal(shift(s=every_other[1::2], out=every_other[0::2]), torch.zeros(10))
    # In place of what is read by element, with a table beside it.
    y, s = torch.ones(8), torch.arange(2.0)
    assert torch.equal(ew.kernel("x + s[i/4]")(y, s=s, out=y), torch.tensor([1.0] * 4 + [2.0] * 4))


def test_domains() -> None:
    s = torch.arange(6.0)
    assert torch.equal(ew.kernel("s[n-1-i]")(s=s), s.flip(0))
    assert torch.equal(ew.kernel("s[i]")(s=s, shape=3), s[:3])
    out = torch.zeros(2, 2)
    assert torch.equal(ew.kernel("s[i]")(s=s, out=out), s[:4].reshape(2, 2))
    with pytest.raises(ValueError, match="shape="):
        ew.kernel("s[0] + r[0]")(s=s, r=s)
    assert ew.kernel("s[i]")(s=s, shape=(0, 4)).shape == (0, 4)
    assert torch.equal(ew.kernel("x + s[0]")(torch.tensor(1.0), s=s), torch.tensor(1.0))


def test_devices_of_tables() -> None:
    x, s = torch.zeros(4), torch.zeros(4, device="meta")
    with pytest.raises((ValueError, TypeError)):
        ew.kernel("x + s[0]")(x, s=s)


def test_bits_bound_an_index() -> None:
    """However many positions there are: no cut of them is needed to see it."""
    n = 10**6
    i = torch.arange(n)
    s = torch.arange(8.0)
    for index, m, want in (
        ("i & m", 7, i & 7),
        ("i & m", 0, 0 * i),
        ("m & i", 0, 0 * i),
        ("(i-n) & m", 5, (i - n) & 5),
        ("m & (i-n)", 6, (i - n) & 6),
        ("(i%2) | m", 6, (i % 2) | 6),
        ("(i%2) ^ m", 7, (i % 2) ^ 7),
    ):
        assert torch.equal(ew.kernel(f"s[{index}]")(s=s[: int(want.max()) + 1], m=m, shape=n), s[want]), index


def test_comparisons_are_exact_where_they_turn() -> None:
    """A read behind a comparison needs no room where the comparison does not hold, however close."""
    i = np.arange(8)
    for left, right, given in (("float(i)*0.5", "g", {"g": 1.5}), ("i*k", "j", {"k": 2, "j": 6})):
        for op, index in (
            ("<", "i"), ("<=", "i"), (">", "i-4"), (">=", "i-3"), ("==", "i-3"), ("!=", "abs(i-3)-1")
        ):  # fmt: skip
            holds = eval(f"i {op} 3", {"i": i})
            at = np.where(holds, eval(index, {"i": i}), 0)
            s = np.arange(1.0, at.max() + 2)
            got = ew.kernel(f"where({left} {op} {right}, s[{index}], 0)")(s=s, shape=8, **given)
            assert np.array_equal(got, np.where(holds, s[at], 0)), (left, op)


def test_a_comparison_that_never_holds_needs_no_cut() -> None:
    """Where the ends of two ranges meet, one comparison settles every position at once."""
    for never, given in (
        ("float(i%5)*0.25 > g", {"g": 1.0}),
        ("float(i%5)*0.25 < g", {"g": 0.0}),
        ("i%5 > k", {"k": 4}),
        ("i%5 < k", {"k": 0}),
    ):
        for spec in (f"where({never}, s[i], 1)", f"where(not ({never}), 1, s[i])"):
            got = ew.kernel(spec)(s=torch.zeros(1), shape=10**6, **given)
            assert bool((got == 1).all()), spec


def test_faults_are_looked_for_where_they_may_lie() -> None:
    """Of many rows each has the same last position: the call asks once, not row by row."""
    pairs = ew.kernel("[.., t, d]; d % 2 == 0: x[.., d+1]; else x[.., d-1]")
    x = torch.arange(3 * 9000 * 8.0).reshape(3, 9000, 8)
    assert torch.equal(pairs(x), x.reshape(3, 9000, 4, 2).flip(-1).reshape(x.shape))
    with pytest.raises(IndexError, match=r"`x\[\.\., d\+1\]`: index 7 is out of bounds for axis 2"):
        pairs(x[..., :7])


def test_conditions_of_bools_protect_reads_too() -> None:
    """`&`, `|`, `*` and `+` of conditions are `and` and `or`: where the left side settles it, nothing is read."""
    x, s = torch.arange(1.0, 101.0), torch.ones(50)
    want = torch.where(torch.arange(100) < 50, x, 0)
    for spec in ("(i < len(s)) & (s[i] > 0)", "(i < len(s)) * (s[i] > 0)", "not ((i >= len(s)) | (s[i] <= 0))"):
        assert torch.equal(ew.kernel(f"where({spec}, x, 0)")(x, s=s), want), spec
    assert torch.equal(ew.kernel("where(b & (s[i] > 0), x, 0)")(x, s=s, b=False), 0 * x)
    assert torch.equal(ew.kernel("where(b + (s[i] > 0), x, 0)")(x, s=s, b=True), x)
    for spec, b in (("b & (s[i] > 0)", True), ("b | (s[i] > 0)", False), ("b ^ (s[i] > 0)", False)):
        with pytest.raises(IndexError, match=r"`s\[i\]`: index 99 is out of bounds"):
            ew.kernel(f"where({spec}, x, 0)")(x, s=s, b=b)


def test_operands_of_functions_are_read_whether_they_matter_or_not() -> None:
    """Code reads what a ramp that has ended would not ask for: it has to be in bounds."""
    x, s = torch.arange(1.0, 101.0), torch.ones(50)
    for spec, given in (("ramp(0, s[i], g)", {"g": -1}), ("ramp(0, g, s[i])", {"g": 5}), ("clip(s[i], 3, 1)", {})):
        with pytest.raises(IndexError, match=r"`s\[i\]`: index 99 is out of bounds"):
            ew.kernel(f"x*{spec}")(x, s=s, **given)
        assert ew.kernel(f"x*{spec}")(x[:50], s=s, **given).shape == (50,)


def test_conditions_that_are_values_too() -> None:
    """Where the left side settles it, its own value is the result, in loops of many positions as in short ones."""
    rng = np.random.default_rng(0)
    for n in (5, 1000):
        x, y = torch.tensor(rng.random(n) < 0.5), torch.tensor(rng.random(n) < 0.5)
        for spec, want in (
            ("x or y[i]", x | y),
            ("x and y[i]", x & y),
            ("not x or y[i]", ~x | y),
            ("x + y[i]", x | y),
            ("x | (y[i] & x)", x),
            ("where(x, y[i], x)", x & y),
            ("where(x, x, y[i])", x | y),
            ("i % 3 == 1 or y[i]", (torch.arange(n) % 3 == 1) | y),
        ):
            assert torch.equal(ew.kernel(spec)(x=x, y=y) if "x" in spec else ew.kernel(spec)(y=y), want), (spec, n)


def test_an_index_that_divides_behind_a_condition() -> None:
    """It is the same for all positions, and the first of them does not ask for it."""
    y = np.arange(1000, 1128, dtype="u4")[::2]
    for spec in (
        "where(i >= 1, y[reflect(min(u32(3e38), 2), len(y))], 0)",
        "where(i >= 1, y[u32(2) % u32(len(y))], 0)",
        "where(i % 4 != 0, y[(k + 12) % (k + 10)], 0)",
        "where(i % 4 != 0, y[k % max(k+1, 1) + 2], 0)",
    ):
        given = {"k": 0} if "k" in spec else {}
        got = ew.kernel(spec)(y=y, **given)
        reached = np.arange(64) % 4 != 0 if "% 4" in spec else np.arange(64) >= 1
        assert got.tolist() == np.where(reached, 1004, 0).tolist(), spec


def test_what_is_compared_with_a_read_does_not_choose_it() -> None:
    """Only the rows decide that nothing is read: looked for in 20000 columns too, a fault is not excluded in time."""
    rule = "[r, w, p]; p < where((r-2)*(r-18) == {}, 1, 0): where(s[m] > w, 1, 0); else 2"
    given = {"s": torch.zeros(3), "m": 5, "shape": (21, 20000, 2)}
    assert bool((ew.kernel(rule.format(30))(**given) == 2).all())
    with pytest.raises(IndexError, match="index 5 is out of bounds for `s` with 3 elements"):
        ew.kernel(rule.format(17))(**given)
