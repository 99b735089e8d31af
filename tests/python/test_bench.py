# SPDX-License-Identifier: Apache-2.0
"""`k.bench(...)`: what it compares, what it leaves alone, and its arithmetic. No test here depends on how fast anything
is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import elsewise as ew
import numpy as np
import pytest
from elsewise import _bench, _check

from .conftest import SEED, python


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bench, "_SAMPLE", 1e-5)
    monkeypatch.setattr(_bench, "_FLUSH", {"cpu": 1 << 12, "cuda": 1 << 12})


def test_a_table_of_three(torch: Any) -> None:
    x = torch.randn(10_000)
    b = ew.kernel(SEED).bench(x, repeats=3)
    assert [(t.name, t.cold) for t in b.timings] == [("this rule", False), ("copy", False), ("plain torch", False)]
    for t in b.timings:
        assert 0 < t.least <= t.median <= t.greatest < 60
    rule, copy, plain = b.timings
    assert rule.bytes == copy.bytes == 80_000 and plain.bytes is None and plain.bandwidth is None
    assert rule.bandwidth == 80_000 / rule.median
    assert b.seconds() == rule.median and b.seconds("copy") == copy.median
    assert b.of_copy == rule.median / copy.median
    assert (b.samples, b.in_place, b.shape, b.bytes_at_most) == (3, False, (10_000,), False)
    assert b.check == "Check(ok, 10000 elements)" and "cpu" in b.device and "torch" in b.versions
    lines = str(b).splitlines()
    assert lines[0] == SEED and "GB/s" in lines[4]
    assert [line.split("  ")[0] for line in lines[4:7]] == ["this rule", "copy", "plain torch"]
    with pytest.raises(KeyError, match="there are 'this rule', 'copy', 'plain torch'"):
        b.seconds("triton")
    with pytest.raises(KeyError, match="cold"):
        b.seconds(cold=True)


def test_cold_caches(torch: Any) -> None:
    b = ew.kernel("x * 2").bench(torch.ones(100), repeats=2, cold=True)
    assert [t.cold for t in b.timings] == [False] * 3 + [True] * 3
    assert b.seconds(cold=True) > 0 and "copy, caches cold" in str(b)
    assert "caches warm: each finds what the call before left there; cold: after a write of 0 MiB" in str(b)
    warm = str(ew.kernel("x * 2").bench(torch.ones(100), repeats=2))
    assert "caches warm" in warm and "cold" not in warm


def test_nothing_of_the_callers_is_written(torch: Any) -> None:
    x = torch.randn(64, 10)
    before = x.clone()
    b = ew.kernel(SEED).bench(x, out=x, repeats=3)
    assert torch.equal(x, before) and b.in_place and ", in place, " in str(b)
    assert b.timings[0].bytes == 64 * 10 * 4  # what changes is read and written
    out = torch.zeros(64, 10)
    assert not ew.kernel(SEED).bench(x, out=out, repeats=2).in_place
    assert not out.any()
    array = np.arange(12.0)
    ew.kernel("x + 1").bench(array, out=array, repeats=2)
    assert (array == np.arange(12.0)).all()


def test_in_place_each_sample_sees_the_input(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    work: list[Any] = []
    made = _bench._Work.__init__

    def kept(self: Any, *args: Any) -> None:
        made(self, *args)
        work.append(self)

    monkeypatch.setattr(_bench._Work, "__init__", kept)
    x = torch.ones(100)
    b = ew.kernel("x * 2").bench(x, out=x, repeats=4)
    assert b.calls == 1
    assert (work[0].out == 1).all()  # as it was before the last sample, put back
    work[0].call()
    assert (work[0].out == 2).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "float64"])
def test_numpy(dtype: str) -> None:
    x = np.arange(24).astype(dtype).reshape(4, 6).T
    b = ew.kernel("i < 3: 0; else x").bench(x, repeats=2)
    assert "NumPy" in b.versions and b.shape == (6, 4)


def test_what_a_call_takes(torch: Any) -> None:
    x = torch.randn(20)
    assert ew.kernel("x * 2").bench(x, dtype="f64", repeats=1).signature == "x f32 -> f64"
    assert ew.kernel("x * 2").bench(x, out=torch.zeros(20, dtype=torch.float64), repeats=1).timings[1].bytes == 320
    assert ew.kernel("i < n/2: x; else 0").bench(x, domain=100, offset=30, repeats=1).shape == (20,)
    assert ew.kernel("rand(3)").bench(shape=(4, 5), repeats=1).shape == (4, 5)
    assert ew.kernel("s[i//2]").bench(s=x, shape=40, repeats=1).bytes_at_most
    assert ew.kernel("exp(x)").bench(x, repeats=1).check.startswith("Check(ok")
    assert ew.kernel("x + cold + repeats").bench(x, cold=3, repeats=2).samples == 15
    assert "<= " in str(ew.kernel("x > 0: 0; else x").bench(x, repeats=1))


def test_refusals(torch: Any) -> None:
    k, x = ew.kernel("x * 2"), torch.ones(4)
    with pytest.raises(ValueError, match="`repeats` is at least 1, not 0"):
        k.bench(x, repeats=0)
    with pytest.raises(TypeError, match=r"`repeats` is an int, not 1\.5"):
        k.bench(x, repeats=1.5)
    with pytest.raises(TypeError, match="takes no `stream=`"):
        k.bench(x, stream=7)
    with pytest.raises(TypeError, match="the rule has no argument `y`"):
        k.bench(x, y=3)
    with pytest.raises(ValueError, match="overlaps `x`"):
        k.bench(x[:-1], out=x[1:])


def test_wrong_results_are_not_timed(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _check.plain
    monkeypatch.setattr(_check, "plain", lambda *args: lambda: plain(*args)() + 1)
    with pytest.raises(RuntimeError, match=r"not plain torch's, so its time says nothing: Check\(FAILED at 0"):
        ew.kernel("x * 2").bench(torch.ones(4))


def test_plot(torch: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    b = ew.kernel("x * 2").bench(torch.ones(4), repeats=1)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        b.plot()
    drawn: list[Any] = []
    axes = SimpleNamespace(
        barh=lambda place, width, **_: drawn.append(width),
        set_yticks=lambda places, labels: drawn.append(labels),
        set_xlabel=drawn.append,
        set_title=lambda text, **_: drawn.append(text),
    )

    class Figure:
        def __init__(self, **_: Any) -> None:
            pass

        def subplots(self) -> Any:
            return axes

        def savefig(self, path: Path) -> None:
            path.write_text("a picture")

    module = ModuleType("matplotlib")
    figure = ModuleType("matplotlib.figure")
    figure.Figure = Figure  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "matplotlib", module)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", figure)
    assert b.plot(tmp_path / "times.png") is axes
    assert (tmp_path / "times.png").read_text() == "a picture"
    assert len([width for width in drawn if isinstance(width, float)]) == 3
    assert ["plain torch", "copy", "this rule"] in drawn and "us a call" in drawn


def test_the_command() -> None:
    said = python(
        *("-m", "elsewise", "bench", SEED, "--arg", "x=f32:1000", "--device", "cpu", "--repeats", "2", "--out", "x")
    ).stdout
    assert ", in place, " in said and "plain torch" in said
    assert (
        "`repeats` is at least 1"
        in python(*("-m", "elsewise", "bench", "x", "--arg", "x=f32:3", "--repeats", "0"), code=1).stderr
    )
