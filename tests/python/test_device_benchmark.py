# SPDX-License-Identifier: Apache-2.0
"""The benchmark on a device stays runnable without one: its rules are right on a CPU, a wrong result is not timed, and
a bar is judged by what was measured.

It times nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import python

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
torch = pytest.importorskip("torch")


@pytest.fixture
def benchmark_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module, without its main()."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import on_device

    yield on_device
    for name in ("on_device", "_rows", "_measure", "_results"):
        sys.modules.pop(name, None)


def test_every_rule_is_right_on_the_cpu() -> None:
    lines = python(str(BENCHMARKS / "on_device.py"), "--cpu-check").stdout.splitlines()
    assert lines[-1].endswith(" cases, 0 faults") and len(lines) > 25


def test_a_name_of_no_row_is_said() -> None:
    assert (
        "no row's name holds `sead`"
        in python(str(BENCHMARKS / "on_device.py"), "--cpu-check", "--only=sead", code=1).stdout
    )


@pytest.mark.parametrize("row", ["seed", "in place", "fade", "dequantized"])
def test_a_wrong_result_is_not_timed(benchmark_of: Any, row: str) -> None:
    rows = next(r for r in benchmark_of.ROWS if r.name == row)
    case = next(rows.cases(benchmark_of.Tools(), "cpu", True))
    right = case.ours
    works, wrong = benchmark_of.verified(case)
    assert "elsewise" in works and not wrong

    def late_element() -> Any:
        result = right()
        flat = (case.out if result is None else result).view(-1)
        flat[-1] = flat[-1] * 2 + 1
        return result

    case.ours = late_element
    works, wrong = benchmark_of.verified(case)
    assert "elsewise" not in works and wrong["elsewise"] == "wrong result"
    case.ours = lambda: None  # writes nothing
    works, wrong = benchmark_of.verified(case)
    assert "elsewise" not in works and wrong["elsewise"] == "wrong result"


def test_bars(benchmark_of: Any) -> None:
    bar, best = benchmark_of.Bar(("copy",), 1.02), benchmark_of.Bar(("torch.compile", "Triton"), 1.0)
    idle = {"copy": 100.0, "elsewise": 101.0, "Triton": 110.0}
    found = benchmark_of.verdict(bar, {"idle": idle, "queued": {**idle, "elsewise": 103.0}})
    assert found["met"] is True and found["queued"] == 1.03
    assert benchmark_of.verdict(bar, {"idle": {**idle, "elsewise": 102.5}})["met"] is False
    # a peer that is missing leaves a bar open, unless the one that is there is faster already
    assert benchmark_of.verdict(best, {"idle": idle})["met"] is None
    assert benchmark_of.verdict(best, {"idle": {**idle, "Triton": 90.0}})["met"] is False
    assert benchmark_of.verdict(best, {"idle": {**idle, "torch.compile": 105.0}})["met"] is True
    assert benchmark_of.verdict(best, {"idle": {"copy": 1.0, "elsewise": 1.0}})["met"] is None


def test_growth_shows_a_step(benchmark_of: Any) -> None:
    def grown(n: int, us: float) -> dict[str, Any]:
        return {"row": "growth", "size": str(n), "moved": 8 * n, "times": {"idle": {"elsewise": us}}}

    rows = [grown(1 << k, 2.0**k) for k in (29, 30)] + [grown(1 << 31, 2.3 * 2**30)]
    assert [bar["met"] for bar in benchmark_of.steps(rows)] == [True, False]
