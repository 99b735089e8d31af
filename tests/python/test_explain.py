# SPDX-License-Identifier: Apache-2.0
"""`k.explain(...)`: its text, its numbers against brute force over random rules, and that a look leaves nothing behind.
How fast anything is stands in test_bench.py."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest
from elsewise import _explain

from .conftest import SEED, outcome, python

pytestmark = pytest.mark.filterwarnings("ignore::elsewise.SpecWarning")  # random pieces hide each other


def text_of(e: Any) -> str:
    """The text without what differs by the CPU."""
    return re.sub(r", for [\w-]+\n", ", for CPU\n", re.sub(r"up to \d+ bits", "up to N bits", str(e)))


def test_the_text_of_a_rule_of_positions() -> None:
    k = ew.kernel(SEED + " # of explain")
    assert text_of(k.explain(np.zeros(1_000_000, np.float32))) == (
        "i<n/4: x*0.5; i>=n-n/4: x*2; else x # of explain\n"
        "x f32 -> f32, shape (1000000,), on cpu\n"
        "\n"
        "piece          where                   positions   share  reads  bytes read    written  does\n"
        "i<n/4: x*0.5   i in [0, 250000)          250,000  25.0 %  x       1,000,000  1,000,000  worked out\n"
        "i>=n-n/4: x*2  i in [750000, 1000000)    250,000  25.0 %  x       1,000,000  1,000,000  worked out\n"
        "else x         else [250000, 750000)     500,000  50.0 %  x       2,000,000  2,000,000  moved as bits\n"
        "\n"
        "loop    one row of 1,000,000 positions; LLVM vectorises each piece's loop, up to N bits at once\n"
        "  x     contiguous, 4,000,000 bytes\n"
        "  out   contiguous, 4,000,000 bytes\n"
        "choice  each row is cut at the bounds, with a loop for each part\n"
        "bytes   4,000,000 read, 4,000,000 written; 1.00 of what a copy of the result moves\n"
        "code    one row, for CPU\n"
        "cache   code not compiled yet, plan not made yet"
    )


def test_the_text_of_a_rule_of_rows_and_elements() -> None:
    k = ew.kernel("[b, t]; t < lens[b] and x > 0: x*gain; t == b: s; else 0")
    x, lens, s = np.ones((4, 6, 2), np.float32)[..., 0], np.array([1, 6, 0, 3]), np.float32(2)
    e = k.explain(x, lens=lens, s=s, gain=2)
    assert (
        text_of(e)
        == """\
[b, t]; t < lens[b] and x > 0: x*gain; t == b: s; else 0
lens i64, x f32, gain int, s float -> f32, shape (4, 6), on cpu

piece                      where                                         positions  reads   bytes read  written  does
t < lens[b] and x > 0:  …  t in [0, lens[b]) of each row where `x > 0`  at most 24  lens x         128       96  worked out
t == b: s                  t in [b, b + 1) of each row                   at most 4                   0       16  one value for all
else 0                     everywhere else                              at most 20                   0       80  one value for all

loop    4 rows (b: 4) of 6 positions (t); LLVM vectorises each piece's loop, up to N bits at once
  lens  at indices, 32 bytes
  x     strided, 96 bytes: 2 elements apart along the inner axis
        pass `x.contiguous()` if it is used more than once
  gain  a launch argument
  s     a launch argument
  out   contiguous, 96 bytes
choice  each row is cut at the bounds; elements are tested in the parts that need it
checks  `lens[b]` is in bounds: the host worked its indices out; rows test them too, ahead of the guards
bytes   at most 128 read, 96 written; 1.17 of what a copy of the result moves
code    rows over 1 axis, for CPU
cache   code not compiled yet, plan not made yet"""  # noqa: E501
    )


def brute(guards: list[Callable[..., np.ndarray]], shape: tuple[int, ...], *data: Any) -> list[int]:
    """Positions of each piece, `else` the last, by guards as functions of index arrays."""
    where = np.indices(shape)
    piece = np.full(shape, len(guards))
    for number, guard in reversed(list(enumerate(guards))):
        piece[guard(*where, *data)] = number
    return [int((piece == p).sum()) for p in range(len(guards) + 1)]


# Guards as the language and as NumPy have them, of n positions along a line (i), or r and c of (rows, columns).
LINE = [
    ("i < {a}", "i < {a}"),
    ("i >= n - {a}", "i >= n - {a}"),
    ("{a} <= i < {b}", "({a} <= i) & (i < {b})"),
    ("i < n/{d} or i > n - n/{d}", "(i < n//{d}) | (i > n - n//{d})"),
    ("3*i + {a} > 2*n - i", "3*i + {a} > 2*n - i"),
    ("i != {a}", "i != {a}"),
    ("border() < {d}", "np.minimum(i, n - 1 - i) < {d}"),
    ("i % {d} == 0", "i % {d} == 0"),
    ("x > {d}", "x > {d}"),
    ("i < {b} and x > {d}", "(i < {b}) & (x > {d})"),
]
PLANE = [
    ("c <= r", "c <= r"),
    ("r < {a} and c > {b}", "(r < {a}) & (c > {b})"),
    ("c + r < {a}", "c + r < {a}"),
    ("border() < {d}", "np.minimum(np.minimum(r, R - 1 - r), np.minimum(c, C - 1 - c)) < {d}"),
    ("c == r + {d}", "c == r + {d}"),
    ("i < {a}*{d}", "r*C + c < {a}*{d}"),
    ("len(c) - c > r", "C - c > r"),
    ("r >= {a} or c < {d}", "(r >= {a}) | (c < {d})"),
    ("c < lens[r]", "c < lens[r]"),
    ("c < {b} and x > {d}", "(c < {b}) & (x > {d})"),
    ("r//{d} == c//{d}", "r//{d} == c//{d}"),
]


@pytest.mark.parametrize("seed", range(60))
def test_positions_are_those_of_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    plane = bool(seed % 2)
    shape = (rng.randint(1, 12), rng.randint(1, 12)) if plane else (rng.randint(1, 60),)
    pieces, guards = [], []
    for _ in range(rng.randint(1, 5)):
        ours, theirs = rng.choice(PLANE if plane else LINE)
        numbers = {"a": rng.randint(-3, 30), "b": rng.randint(0, 20), "d": rng.randint(1, 4)}
        pieces.append(f"{ours.format(**numbers)}: {rng.choice(['x', '0', '-x', 'x*2'])}")
        names = "r, c, x, lens" if plane else "i, x, lens"
        R, C = shape if plane else (1, shape[0])
        guards.append(eval(f"lambda {names}: {theirs.format(**numbers)}", {"np": np, "n": shape[-1], "R": R, "C": C}))
    data = np.random.default_rng(seed)
    x = data.integers(0, 6, shape).astype(np.float32)
    layout = rng.choice(["plain", "transposed", "gaps"])
    if layout == "transposed":
        x = np.array(x.T).T
    elif layout == "gaps":
        x = np.repeat(x, 2, axis=-1)[..., ::2]
    lens = data.integers(-2, 15, shape[0])
    k = ew.kernel(("[r, c]; " if plane else "") + "; ".join([*pieces, "else x"]))
    given = {"lens": lens} if "lens" in k.arguments else {}
    want = brute(guards, shape, x, lens)
    e = k.explain(x, **given)
    for piece, count in zip(e.pieces, want):
        assert piece.at_least <= count <= piece.at_most, (k, piece, want)
        assert piece.positions in (None, count), (k, piece, want)
        decides = any(word in k.spec for word in ("x >", "lens", "%", "//"))
        assert decides or piece.positions == count, (k, piece, want)
        if piece.segments is not None:
            assert sum(end - begin for begin, end in piece.segments) == count
    counted = k.explain(x, **given, exact=True)
    assert [piece.positions for piece in counted.pieces] == want, k
    assert counted.bytes_read <= e.bytes_read and counted.bytes_written == e.bytes_written == x.size * (
        4 if e.dtype == "f32" else 8
    )


@pytest.mark.parametrize("seed", range(20))
def test_positions_of_a_window_are_those_of_the_whole(seed: int) -> None:
    rng = random.Random(seed)
    domain = (rng.randint(3, 12), rng.randint(3, 12))
    offset = tuple(rng.randint(0, length - 1) for length in domain)
    extent = tuple(rng.randint(1, length - begin) for length, begin in zip(domain, offset))
    a, d = rng.randint(0, 40), rng.randint(1, 4)
    k = ew.kernel(f"[r, c]; i < {a}: 0; c <= r: x; border() < {d}: 2; else 3")
    R, C = domain
    r, c = np.indices(domain)
    guards = [r * C + c < a, c <= r, np.minimum(np.minimum(r, R - 1 - r), np.minimum(c, C - 1 - c)) < d, r >= 0]
    piece = np.select(guards, range(4))[tuple(slice(o, o + e) for o, e in zip(offset, extent))]
    e = k.explain(np.zeros(extent, np.float32), domain=domain, offset=offset)
    assert [p.positions for p in e.pieces] == [int((piece == p).sum()) for p in range(4)]
    assert (e.domain, e.offset, e.shape) == (domain, offset, extent)
    exact = k.explain(np.zeros(extent, np.float32), domain=domain, offset=offset, exact=True)
    assert [p.positions for p in exact.pieces] == [p.positions for p in e.pieces]


def test_segments_are_where_a_piece_is_the_first() -> None:
    e = ew.kernel("2 <= i < 5: 0; i < 8: 1; i > 20: 2; else x").explain(np.zeros(12, np.float32))
    assert [p.segments for p in e.pieces] == [((2, 5),), ((0, 2), (5, 8)), (), ((8, 12),)]
    e = ew.kernel("2 <= i < 5: 0; else x").explain(np.zeros(3, np.float32), domain=12, offset=4)
    assert [p.segments for p in e.pieces] == [((4, 5),), ((5, 7),)]
    assert ew.kernel("x > 0: 0; else x").explain(np.zeros(3, np.float32)).pieces[0].segments is None


def test_many_equal_rows_are_looked_at_once(torch: Any) -> None:
    x = torch.zeros(1, 1, 1, dtype=torch.float32).expand(1 << 25, 64, 64)
    out = torch.empty(1, dtype=torch.float32)
    k = ew.kernel("[.., r, c]; c <= r: x; else 0")
    e = k.explain(x)  # 2^31 rows, of which 64 differ; nothing of it is allocated
    assert [p.positions for p in e.pieces] == [2080 << 25, 2016 << 25]
    assert e.bytes_read == 4 and e.bytes_written == 4 << 37
    far = ew.kernel("[r, c]; c <= r: x; else 0").explain(out.expand(1 << 22, 3))
    assert [p.positions for p in far.pieces] == [None, None]
    assert [(p.at_least, p.at_most) for p in far.pieces] == [(0, 3 << 22)] * 2


def test_bytes_are_each_element_once() -> None:
    f32 = np.float32
    x, row, column = np.zeros((4, 6), f32), np.zeros(6, f32), np.zeros((4, 1), f32)

    def moved(rule: str, **args: Any) -> tuple[int, int, bool]:
        e = ew.kernel(rule).explain(**args)
        return e.bytes_read, e.bytes_written, e.bytes_at_most

    assert moved("x", x=x) == (96, 96, False)
    assert moved("i < 6: 0; else x", x=x) == (72, 96, False)
    assert moved("x + row + column", x=x, row=row, column=column) == (96 + 24 + 16, 96, False)
    assert moved("i < 6: x; else row", x=x, row=row) == (24 + 24, 96, False)
    assert moved("x > 0: row; else x", x=x, row=row) == (96 + 24, 96, True)
    assert moved("x*s[i/8]", x=x, s=np.zeros(3, f32)) == (96 + 12, 96, True)
    assert moved("i == 5: s[2]; else 0", s=np.zeros(30, f32), shape=24)[0] == 4
    assert moved("[r, c]; c < 3: x; else y", x=x, y=x.astype(np.float64)) == (48 + 96, 192, False)
    assert moved("i < 6: x*2; else x", x=x, out=x) == (24, 24, False)
    assert moved("i < 6: 0; else x", x=x, out=x) == (0, 24, False)
    assert moved("x > 0: 0; else x", x=x, out=x)[2]
    assert ew.kernel("x + 1").explain(x).bytes_copied == 192
    assert ew.kernel("len(s)").explain(s=x, shape=2).bytes_read == 0


def test_in_place_says_what_stays() -> None:
    x = np.arange(100, dtype=np.float32)
    before = x.copy()
    e = ew.kernel(SEED).explain(x, out=x)
    assert (e.untouched, e.not_launched) == (50, 0)
    assert e.pieces[2].does == "nothing: the element itself, in place"
    assert e.operands[0].access == "in place, as `out`"
    assert "in place  50 positions keep their element" in str(e)
    assert (x == before).all()


def test_a_look_compiles_and_keeps_nothing() -> None:
    k = ew.kernel("i < edge: 0; else x*3 # looked at")
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    before = ew.cache_info()
    e = k.explain(x, edge=2)
    assert (e.code.compiled, e.code.plan_cached, e.code.code_bytes) == (False, False, None)
    k.explain(x, edge=2, out=out)
    assert ew.cache_info() == before and not out.any()
    k(x, edge=2)
    ran = ew.cache_info()
    e = k.explain(x, edge=2)
    assert (e.code.compiled, e.code.plan_cached) == (True, True)
    assert e.code.code_bytes is not None and 50 < e.code.code_bytes < 100_000
    other = k.explain(np.ones(7, np.float32), edge=2)
    assert (other.code.compiled, other.code.plan_cached) == (True, False)
    assert k.explain(np.ones(7), edge=2).code.compiled is False
    assert ew.cache_info() == ran


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("x + y", {"x": np.zeros(3), "y": np.zeros(4)}),
    ("x + y", {"x": np.zeros(3)}),
    ("x", {"x": np.zeros(3), "z": 3}),
    ("s[i + 1]", {"s": np.zeros(3)}),
    ("[a, b]; x", {"x": np.zeros(3)}),
    ("x + k", {"x": np.zeros(3, np.int8), "k": 1000}),
    ("i < n//k: x; else 0", {"x": np.zeros(3), "k": 0}),
    ("i >= e: x; i < e: 0", {"x": np.zeros(3), "e": float("nan")}),
    ("x", {"x": np.zeros(3), "out": np.zeros(4)}),
    ("x", {"x": np.zeros(3), "domain": 5, "offset": 4}),
    ("x", {"x": "text"}),
    ("x", {"x": np.zeros(3), "dtype": "i8"}),
    ("x", {"x": np.zeros(3), "device": "gpu"}),
]


@pytest.mark.parametrize(("rule", "args"), REFUSED)
def test_it_raises_what_the_call_raises(rule: str, args: dict[str, Any]) -> None:
    k = ew.kernel(rule)
    how, told = outcome(k, (), dict(args))
    assert how != "result"
    assert outcome(k.explain, (), dict(args)) == (how, told)


def test_overlap_is_refused_too() -> None:
    x = np.zeros(10, np.float32)
    with pytest.raises(ValueError, match="overlaps `x`"):
        ew.kernel("x").explain(x[:-1], out=x[1:])


def test_an_argument_may_be_called_exact() -> None:
    k = ew.kernel("x > exact: 0; else x")
    e = k.explain(np.arange(4.0), exact=2)
    assert e.pieces[0].positions is None
    with pytest.raises(TypeError, match="`exact` is True or False"):
        ew.kernel("x").explain(np.arange(4.0), exact=1)


def test_exact_counts_with_the_doubles_that_a_value_brings() -> None:
    # The guard is worked in doubles only because the value is one.
    k = ew.kernel("x > float(i)/3 + 0.1: y; else 0")
    x = (np.arange(1000, dtype=np.float64) / 3 + 0.1).astype(np.float32)
    y = np.ones(1000, np.float64)
    assert k.explain(x, y=y, exact=True).pieces[0].positions == int(k(x, y=y).sum())
    assert int(k(x, y=y).sum()) != int(k(x, y=y.astype(np.float32)).sum())


def test_noise_in_a_guard_is_counted_as_it_falls() -> None:
    k = ew.kernel("rand(7) < 0.25: 0; else 1")
    e = k.explain(shape=(1000,), dtype="f32", exact=True)
    assert e.pieces[1].positions == int(k(shape=(1000,), dtype="f32").sum())


def test_torch_tensors(torch: Any) -> None:
    x = torch.ones(4, 6).T
    e = ew.kernel("[r, c]; c < 2: x; else y").explain(x, y=torch.zeros(6, 4))
    assert e.strides == (1, 6) and e.loop.axes == ((("r",), 6), (("c",), 4))
    assert [o.access for o in e.operands] == ["contiguous", "strided", "contiguous"]
    assert e.operands[1].cure and e.operands[1].why == "4 elements apart along the inner axis"
    assert e.device == "cpu" and e.code.registers is None and e.code.grid is None


def test_an_explanation_is_plain_and_frozen() -> None:
    e = ew.kernel("i < 2: 0; else x").explain(np.zeros(4, np.float32))
    with pytest.raises(dataclasses.FrozenInstanceError):
        e.rule = ""  # type: ignore[misc]
    assert e == ew.kernel("i < 2: 0; else x").explain(np.zeros(4, np.float32))
    assert repr(e) == str(e)
    assert e._repr_html_().startswith("<pre>") and "&lt;" in e._repr_html_()
    assert e.pieces[0].ranges == ((("i", 0, 2),),)
    assert ew.kernel("[r, c]; c < r: 0; else x").explain(np.zeros((2, 4))).pieces[0].ranges == ((("c", 0, "r"),),)


def test_a_text_stays_within_a_page() -> None:
    pieces = "; ".join(f"i < {10 * p}: x*{p}" for p in range(1, 300))
    e = ew.kernel(pieces + "; else x").explain(np.zeros(5000, np.float32))
    assert len(e.pieces) == 300 and all(p.positions in (10, 2010) for p in e.pieces)
    lines = str(e).splitlines()
    assert len(lines) < 40 and max(map(len, lines)) <= 130
    assert "… and 282 more pieces" in lines and "… and 34 more lines" in lines
    long = "[rows, columns]; " + " and ".join(f"(rows + columns < {n} or x > {n})" for n in range(9)) + ": x*2; else x"
    names = ew.kernel(long.replace("x > 3", "a_name_that_is_long > 3")).explain(
        np.zeros((500, 4000), np.float32), a_name_that_is_long=np.zeros((500, 4000))
    )
    assert max(map(len, str(names).splitlines())) <= 130 and "a_name_that_is_long" in str(names)


def test_a_piece_has_bytes_of_its_own() -> None:
    x, y, s = np.zeros(100, np.float32), np.zeros(100), np.zeros(5, np.float32)
    e = ew.kernel("i < 10: x; i < 30: x + y; i < 40: s[i//10]; i > 1000: y; else 0").explain(x, y=y, s=s)
    assert [(p.bytes_read, p.bytes_written) for p in e.pieces] == [
        (40, 80),
        (20 * 12, 160),
        (20, 80),  # no more than there is of `s`
        (0, 0),
        (0, 60 * 8),
    ]
    assert sum(p.bytes_read for p in e.pieces) == e.bytes_read
    inside = ew.kernel(SEED).explain(x, out=x)
    assert [(p.bytes_read, p.bytes_written) for p in inside.pieces] == [(100, 100), (100, 100), (0, 0)]


def test_what_is_left_of_a_piece_is_what_the_text_says() -> None:
    e = ew.kernel("i < 20: 0; i < 50: 1; else x").explain(np.zeros(100, np.float32))
    assert e.pieces[1].where == "i in [0, 50)" and e.pieces[1].segments == ((20, 50),)
    assert "i in [20, 50) " in str(e) and "else [50, 100) " in str(e)


def test_checks_of_a_call() -> None:
    s, x = np.zeros(10, np.float32), np.zeros(1280, np.float32)
    e = ew.kernel("s[i//128]*x + lut[clip(int(x), 0, len(lut)-1)]").explain(s=s, x=x, lut=s)
    assert e.checks == (
        "`s[i//128]` is in bounds: the host worked its indices out",
        "`lut[clip(int(x), 0, len(lut)-1)]` is in bounds: proved, as `lut` is not empty",
    )
    assert "checks  `s[i//128]` is in bounds" in str(e)
    many = ew.kernel(" + ".join(f"s[{k}]" for k in range(9))).explain(s=s, shape=4)
    assert len(many.checks) == 9 and "… and 3 more" in str(many)
    assert ew.kernel("x + 1").explain(x).checks == ()


def test_the_command() -> None:
    said = python("-m", "elsewise", "explain", SEED, "--arg", "x=f32:64x1000", "--device", "cpu").stdout
    assert "i in [48000, 64000)" in said and "one row of 64,000 positions (axis 0 and axis 1 as one)" in said
    said = python(
        *("-m", "elsewise", "explain", "[b, t]; t < lens[b]: x*g; else 0", "--arg", "x=f16:4x50", "--arg", "g=0.5"),
        *("--arg", "lens=i64:4", "--exact", "--out", "x", "--device", "cpu"),
    ).stdout
    assert "in place" in said and "at most 200" not in said
    for arguments, told in [
        (["x", "--arg", "y=f32:3"], "the rule has no argument `y`; its arguments: x"),
        (["x"], "say what `x` is: --arg x="),
        (["x", "--arg", "x=f33:3"], "no such dtype here"),
        (["x", "--arg", "x=f32:a"], "is no shape"),
        (["x", "--arg", "x"], "is no NAME=KIND"),
        (["x", "--arg", "x=what"], "a kind is"),
    ]:
        assert told in python("-m", "elsewise", "explain", *arguments, code=2).stderr
    assert "did you mean" in python("-m", "elsewise", "explain", "clamp(x)", "--arg", "x=f32:3", code=1).stderr
    assert (
        "do not broadcast"
        in python(*("-m", "elsewise", "explain", "x+y", "--arg", "x=f32:3", "--arg", "y=f32:4"), code=1).stderr
    )


def test_the_command_allocates_nothing_that_it_only_describes() -> None:
    command, large = ("-m", "elsewise", "explain", "i < 2: 0; else x"), ("--arg", "x=f32:1000000000000000")
    said = python(*command, *large, "--device", "cpu").stdout
    assert "contiguous, 4,000,000,000,000,000 bytes" in said
    said = python(*command, *large, "--device", "cpu", "--exact", code=2).stderr
    assert said == "--arg x=f32:1000000000000000: there is no memory for its 4,000,000,000,000,000 bytes\n"
    assert "more than 64 bits" in python(*command, "--arg", "x=f32:99999999999999999999", code=2).stderr
    assert "there is no memory" in python(*command, "--arg", "x=f32:4000000000000x4000000000000", code=2).stderr


@pytest.mark.parametrize("command", ["explain", "bench"])
def test_a_device_that_is_not_there_is_named(command: str, torch: Any) -> None:
    call = ("-m", "elsewise", command, "x*2", "--arg", "x=f32:4", "--device")
    if not torch.cuda.is_available():
        said = python(*call, "cuda", code=2).stderr
        assert said == "no CUDA device that torch can use: see python -m elsewise doctor\n"
    assert "`device` is 'cpu', 'cuda'" in python(*call, "gpu", code=2).stderr


def test_cut() -> None:
    assert _explain.cut("abcdef", 6) == "abcdef" and _explain.cut("abcdefg", 6) == "abcd …"


def test_many_short_rows_on_a_cpu_are_said_to_be_slow() -> None:
    k = ew.kernel("[y, x, c]; border(y, x) < w: 0; else img")
    text = str(k.explain(img=np.zeros((64, 64, 3), np.uint8), w=8))
    assert "short rows take a CPU far longer than a copy does: put a longer axis last" in " ".join(text.split())
    assert "short rows" not in str(k.explain(img=np.zeros((3, 64, 64), np.uint8), w=8))
