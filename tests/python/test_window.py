# SPDX-License-Identifier: Apache-2.0
"""Windows: a part of a domain, computed as it is in the whole."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest
from elsewise import _elsewise

RULES = {
    "flat bounds": "i < n/4: x*0.5; i >= n-n/4: x*2; else x",
    "flat values": "x + float(i)/n",
    "flat, two residuals": "i % 3 == 0: x; x > 0 and i % 2 == 0: -x; else x*float(i)",
    "no position": "x > 0: x; else -x",
    "only the length": "x*n",
    "border": "border() < 1: 0; border() < 2: x*2; else x",
}
PLANES = {
    "causal": "[.., r, c]; c <= r: x; else 0",
    "inner axis": "[.., c]; c >= len(c)/2: x*c; else x",
    "row axis": "[.., r, c]; r == 2: x; r > 3: x*r + c; else 0",
    "everything": "[.., r, c]; x + r*10 + c*100 + i*1000 + n + len(c) - len(r)",
    "flat by row": "[.., r, c]; i >= 3*r + 5: x; else 1",
    "either": "[.., r, c]; r < 1 or c < 2 or i > 30: x; else i",
    "a position as divisor": "[.., r, c]; x + 7//r + c%r",
    "border of axes": "[.., r, c]; border(r) < 1: 1; border(r, c) < 2: x; else c",
    "a row that conditions empty": "[.., r, c]; r % 2 == 0: x; r + c < 4: c; else -x",
    "let": "[.., r, c]; let w = ramp(c, 1, len(c)-2)\nr < 3: x*w; else x*(1-w)",
}


def windows(shape: tuple[int, ...], count: int, seed: int) -> list[tuple[slice, ...]]:
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        ends = [sorted(draw.sample(range(length + 1), 2)) for length in shape]
        found.append(tuple(slice(*e) for e in ends))
    return [tuple(slice(0, length) for length in shape), *found]


def offset(window: tuple[slice, ...]) -> tuple[int, ...]:
    return tuple(s.start for s in window)


def layouts(x: np.ndarray) -> list[np.ndarray]:
    """The same elements in several memory orders."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    return [x, np.asfortranarray(x), x[..., ::-1].copy()[..., ::-1], wide[..., ::2]]


@pytest.mark.parametrize("rule", [*RULES.values(), *PLANES.values()], ids=[*RULES, *PLANES])
@pytest.mark.parametrize("shape", [(40,), (5, 8), (3, 4, 6)], ids=str)
def test_a_window_is_the_slice_of_the_whole(rule: str, shape: tuple[int, ...]) -> None:
    if rule in PLANES.values() and len(shape) < 2 and "r" in rule:
        shape = (7, 9)
    k = ew.kernel(rule)
    x = np.random.default_rng(3).integers(-5, 5, shape).astype(np.float32)
    whole = k(x)
    for y in layouts(x):
        for window in windows(shape, 12, 5):
            part = k(y[window], domain=shape, offset=offset(window))
            assert part.dtype == whole.dtype and part.tobytes() == whole[window].tobytes(), (y.strides, window)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int64", "uint8", "bool"])
def test_of_any_dtype(dtype: str) -> None:
    x = np.arange(60).reshape(6, 10).astype(dtype)
    for rule in ("[r, c]; c < r: x; else 0", "i < n/3: x; else x*x", "i == 7: x; else n"):
        k = ew.kernel(rule)
        whole = k(x)
        for window in windows(x.shape, 8, 1):
            assert k(x[window], domain=x.shape, offset=offset(window)).tobytes() == whole[window].tobytes(), window


def test_repeated_arguments_stay_repeated() -> None:
    k = ew.kernel("[r, c]; c < r: x*row; c == r: column; else len(row) + len(column) + s")
    x, row = np.arange(48, dtype=np.float32).reshape(6, 8), np.arange(8, dtype=np.float32)
    column, s = np.arange(6, dtype=np.float32).reshape(6, 1), np.array(3, np.float32)
    whole = k(x=x, row=row, column=column, s=s)
    for window in windows(x.shape, 30, 2):
        r, c = window
        if 1 in x[window].shape:
            continue
        part = k(x=x[window], row=row[c], column=column[r], s=s, domain=x.shape, offset=offset(window))
        assert np.array_equal(part, whole[window]), window


def test_in_place_and_into_out() -> None:
    k = ew.kernel("i < n/4: x*0.5; i >= n-n/4: x*2; else x")
    x = np.arange(1000, dtype=np.float32)
    whole = k(x)
    y, z = x.copy(), np.zeros_like(x)
    for at in range(0, 1000, 130):
        assert k(y[at : at + 130], out=y[at : at + 130], domain=1000, offset=at).base is y
        k(x[at : at + 130], out=z[at : at + 130], domain=(1000,), offset=[at])
    assert np.array_equal(y, whole) and np.array_equal(z, whole)
    for value in (np.int64(130), np.array([130]), (np.int32(130),)):  # what an int may be
        assert np.array_equal(k(x[130:140], domain=np.int64(1000), offset=value), whole[130:140])


def test_without_an_offset_it_begins_at_the_first_position() -> None:
    k = ew.kernel("[r, c]; r*100 + c + n")
    assert k(shape=(2, 2), domain=(5, 7)).tolist() == [[35, 36], [135, 136]]
    assert ew.kernel("x + n")(np.array(1, np.float32), domain=(), offset=()).tolist() == 2  # no axes at all
    assert k(shape=(0, 2), domain=(5, 7), offset=(5, 5)).shape == (0, 2)
    assert k(shape=(0, 2), domain=(0, 7)).shape == (0, 2)


FAR = [2**31 - 2, 2**31, 2**32 - 1, 2**33 + 5, 2**40, 2**53 + 1, 2**59 + 3, 2**60 - 4]


@pytest.mark.parametrize("at", FAR)
def test_positions_beyond_memory(at: int) -> None:
    """The n of a window is a domain's, which may be larger than any memory."""
    assert ew.kernel("i")(shape=(4,), domain=(2**60,), offset=(at,)).tolist() == [at + k for k in range(4)]
    x = np.array([1, 2, 3, 4], np.float32)
    below = ew.kernel("i < edge: x; i == edge: -x; else 0")
    for edge in (at - 1, at, at + 2, at + 7, -(2**127), 2**127 - 2, at + 1.5):
        want = [float(v) if at + k < edge else -float(v) if at + k == edge else 0.0 for k, v in enumerate(x.tolist())]
        assert below(x, edge=edge, domain=2**60, offset=at).tolist() == want, edge
    assert ew.kernel("2*i - n > 3 - n: i//3; else 0")(shape=2, domain=2**60, offset=at).tolist() == [
        at // 3,
        (at + 1) // 3,
    ]
    halves = ew.kernel("i < n/2: 1; else 2")(shape=4, domain=2 * at + 4, offset=at) if at < 2**58 else None
    assert halves is None or halves.tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize("rows", [2**20, 2**31 + 1, 2**40])
def test_flat_positions_of_windows_of_more_axes(rows: int) -> None:
    length = 2**59 // rows
    for r, c in itertools.product((0, 5, rows - 2), (0, 3, length - 3)):
        flat = [[(r + a) * length + c + b for b in range(3)] for a in range(2)]
        assert ew.kernel("i")(shape=(2, 3), domain=(rows, length), offset=(r, c)).tolist() == flat
        cut = flat[1][1]
        got = ew.kernel("i < cut: 1; else 0")(shape=(2, 3), domain=(rows, length), offset=(r, c), cut=cut).tolist()
        assert got == [[int(p < cut) for p in line] for line in flat]
        turned = np.empty((3, 2), np.int64).T
        assert ew.kernel("[a, b]; i + 2*b - a")(out=turned, domain=(rows, length), offset=(r, c)).tolist() == [
            [flat[a][b] + 2 * (c + b) - (r + a) for b in range(3)] for a in range(2)
        ]


def test_lengths_are_the_domains() -> None:
    x = np.ones((2, 3), np.float32)
    k = ew.kernel("[r, c]; x*0 + n*10000 + len(r)*1000 + len(c)*100 + len(x)*10 + len(x, 1)")
    assert k(x, domain=(5, 7), offset=(3, 1)).tolist() == [[355757] * 3] * 2
    k = ew.kernel("x*y*0 + len(y) + 10*len(y, 1)")
    assert k(x=x, y=np.ones((1, 3), np.float32), domain=(5, 7))[0, 0] == 71  # repeated along the rows
    k = ew.kernel("x*0 + len(table)")  # of which only the length is asked: it is whole
    assert k(x=x, table=np.ones(9, np.float32), domain=(5, 7))[0, 0] == 9


def test_where_a_length_cannot_be_known_it_is_refused() -> None:
    k = ew.kernel("x*len(x)")
    one = np.ones(1, np.float32)
    with pytest.raises(
        ValueError, match=r"`len\(x\)`: the window is 1 long on axis 0, so `x` of length 1 may be a part"
    ):
        k(one, domain=5, offset=2)
    assert k(one, domain=1).tolist() == [1]
    assert ew.kernel("x*n")(one, domain=5, offset=2).tolist() == [5]


X = np.ones((2, 3), np.float32)
WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "an offset alone": ({"offset": (0, 0)}, TypeError, "`offset=` says where a window begins .* as `domain=`"),
    "too far": (
        {"domain": (5, 7), "offset": (4, 0)},
        ValueError,
        r"leaves its domain on axis 0: offset 4 and extent 2 are beyond the length 5 of `domain=\(5, 7\)`",
    ),
    "too far on the last axis": ({"domain": (5, 7), "offset": (0, 5)}, ValueError, "axis 1: offset 5 and extent 3"),
    "too large": ({"domain": (5, 2)}, ValueError, "axis 1: offset 0 and extent 3 are beyond the length 2"),
    "before the first": (
        {"domain": (5, 7), "offset": (0, -1)},
        ValueError,
        "`offset` is -1 on axis 1: a window begins",
    ),
    "another rank": (
        {"domain": 50},
        ValueError,
        r"`domain=\(50,\)` has 1 axis, and what is computed 2 axes, shape \(2, 3\); give `shape=`",
    ),
    "more axes": ({"domain": (1, 5, 7)}, ValueError, "has 3 axes, and what is computed 2 axes"),
    "an offset of another rank": (
        {"domain": (5, 7), "offset": 3},
        ValueError,
        r"`offset` \(3,\) needs one entry for each of the 2 axes",
    ),
    "a negative length": ({"domain": (5, -7)}, ValueError, "`domain` holds a negative length"),
    "too many positions": ({"domain": (2**40, 2**40)}, OverflowError, r"has more than 2\*\*60 positions"),
    "a float": ({"domain": (5, 7.0)}, TypeError, "`domain` is an int or a sequence of ints"),
    "a float offset": ({"domain": (5, 7), "offset": 1.5}, TypeError, "`offset` is an int or a sequence of ints"),
    "beyond 64 bits": ({"domain": (5, 7), "offset": (0, 2**70)}, ValueError, "needs more than 64 bits"),
    "a length beyond 64 bits": ({"domain": (5, 2**70)}, ValueError, "`domain` holds the length"),
    "an out of another shape": ({"domain": (5, 7), "out": np.empty((5, 7), np.float32)}, ValueError, "`out` has shape"),
}


@pytest.mark.parametrize(("options", "error", "message"), WRONG.values(), ids=WRONG)
def test_wrong_windows(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        ew.kernel("i < 3: x; else x*2")(X, **options)
    assert "; in `i < 3: x; else x*2`" in str(caught.value)


def test_every_offset_is_looked_at() -> None:
    """Also that of a call whose plan is there already, and of a rule that asks for no position."""
    for rule in ("x*i", "x*2"):
        k = ew.kernel(rule)
        k(X, domain=(5, 7), offset=(3, 4))
        with pytest.raises(ValueError, match="leaves its domain on axis 0"):
            k(X, domain=(5, 7), offset=(4, 4))


def test_no_tensor_says_how_much() -> None:
    with pytest.raises(ValueError, match=r"how much of `domain=\(5,\)` is computed; give `shape=`"):
        ew.kernel("i")(domain=5)
    with pytest.raises(ValueError, match="how much of"):
        ew.kernel("i + len(s)")(s=np.ones(3), domain=5)


def test_only_what_the_window_reaches_is_a_fault() -> None:
    k = ew.kernel("i < 5: x + i//k; else x")
    x = np.ones(4, np.float32)
    assert k(x, k=0, domain=20, offset=5).tolist() == [1] * 4
    with pytest.raises(ZeroDivisionError):
        k(x, k=0, domain=20, offset=4)
    k = ew.kernel("[r, c]; r < 2: x*(c//k); else x")
    assert k(X, k=0, domain=(6, 9), offset=(2, 1)).tolist() == X.tolist()
    with pytest.raises(ZeroDivisionError):
        k(X, k=0, domain=(6, 9), offset=(1, 1))
    cube = ew.kernel("i*i*i")
    assert cube(shape=2, domain=2**40, offset=2**20).tolist() == [2**60, (2**20 + 1) ** 3]
    with pytest.raises(OverflowError):
        cube(shape=2, domain=2**40, offset=2**21)
    assert cube(shape=2, domain=2**40, offset=2**21 - 2)[1] == (2**21 - 1) ** 3
    with pytest.raises(OverflowError):
        cube(shape=3, domain=2**40, offset=2**21 - 2)
    # Within a window of a plane the row-major positions between its rows are not reached.
    k = ew.kernel("i == 12: 1//z; else 0")
    assert k(shape=(2, 3), domain=(5, 10), offset=(1, 3), z=0).tolist() == [[0] * 3] * 2
    with pytest.raises(ZeroDivisionError):
        k(shape=(2, 3), domain=(5, 10), offset=(1, 0), z=0)


def test_an_empty_window_reaches_nothing() -> None:
    for rule in ("x + i//k", "[t]; x + t//k", "x + 1//k"):
        assert ew.kernel(rule)(np.ones(0, np.float32), k=0, domain=20, offset=5).shape == (0,)


def test_another_place_compiles_nothing_and_plans_nothing() -> None:
    k = ew.kernel("i < n/4: x*0.125; i >= n-n/4: x*7; else x + i")
    plane = ew.kernel("[r, c]; c <= r: x*i; else len(r)*0.125")
    x = np.ones((8, 16), np.float32)
    k(x[0], domain=10**6, offset=7), plane(x, domain=(10**6, 10**6))
    before = _elsewise.counters()
    for at in range(0, 10**6 - 16, 99_991):
        k(x[0], domain=10**6, offset=at), plane(x, domain=(10**6, 10**6), offset=(at, 10**6 - 16 - at))
    after = _elsewise.counters()
    assert after["orc"] == before["orc"] and after["plans"] == before["plans"], "the next chunk is planned already"
    k(x[0], domain=10**9, offset=10**8), plane(x, domain=(2**40, 999), offset=(2**39, 5))
    assert _elsewise.counters()["orc"] == before["orc"], "another domain runs the same code"


def test_the_everyday_call_runs_the_code_that_it_had() -> None:
    k = ew.kernel("x*0.3125 + 4")  # no position: a window changes nothing
    k(np.ones(5, np.float32))
    before = _elsewise.counters()
    assert k(np.ones(5, np.float32), domain=50, offset=3).tolist() == [4.3125] * 5
    assert _elsewise.counters()["orc"] == before["orc"]
    assert "origin" not in ew.kernel("x*i").emit("cuda") and "origin" in ew.kernel("x*i").emit("cuda", window=True)


def test_addresses() -> None:
    k = ew.kernel("i < 5: 0; else x*i")
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    k.launch(out=ew.ptr(out.ctypes.data, "f32", 4), x=ew.ptr(x.ctypes.data, "f32", 4), device="cpu", domain=9, offset=3)
    assert out.tolist() == [0, 0, 5, 6]
    with pytest.raises(ValueError, match="leaves its domain on axis 0: offset 6 and extent 4"):
        k.launch(out=ew.ptr(out.ctypes.data, "f32", 4), x=x, device="cpu", domain=9, offset=6)


def test_torch_tensors(torch: Any) -> None:
    x = torch.randn(6, 10).t()
    k = ew.kernel("[r, c]; c < r: x*i; else len(c)")
    part = k(x[2:7, 1:5], domain=torch.Size((10, 6)), offset=(2, 1))
    assert isinstance(part, torch.Tensor) and part.stride() == (1, 5)
    assert torch.equal(part, k(x)[2:7, 1:5])


@pytest.mark.parametrize("rule", [*RULES.values(), *PLANES.values(), "x*len(x)"], ids=[*RULES, *PLANES, "len"])
def test_check_compares_windows(torch: Any, rule: str) -> None:
    x = torch.randn(5, 8)
    k = ew.kernel(rule)
    assert k.check(x[1:4, 2:7], domain=(5, 8), offset=(1, 2))
    assert k.check(x[3:, 5:], domain=(2**20, 2**20), offset=(2**20 - 2, 2**20 - 3))
    assert k.check(x[:2, :4], domain=(5, 8))


def test_torch_source_takes_the_window(torch: Any) -> None:
    k = ew.kernel("[r, c]; 7*i*c < 3*n*r: x; border() < 2: i; else len(x, 1)")
    names: dict[str, Any] = {}
    exec(str(k.emit("torch", x="f32[2]", window=True)), names)
    rule: Callable[..., Any] = names["rule"]
    x = torch.randn(5, 8)
    assert torch.equal(rule(x), k(x))
    assert torch.equal(rule(x[2:4, 3:8], domain=(5, 8), offset=(2, 3)), k(x)[2:4, 3:8])
    assert "domain=" not in str(k.emit("torch", x="f32[2]"))


def test_the_option_of_emit_gives_way_to_an_argument() -> None:
    k = ew.kernel("x*window*i")
    assert '(x: f32, "window": f64)' in str(k.emit("ir", window="f64"))
    assert "origin" in str(k.emit("ir", window=True))
    with pytest.raises(TypeError, match="`window` is True or False"):
        ew.kernel("x").emit("ir", window=1)
