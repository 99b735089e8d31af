# SPDX-License-Identifier: Apache-2.0
"""`make bench`: that it knows every benchmark there is, and leaves none out in silence. It runs none of them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def everything(torch: Any, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("everything", HERE / "everything.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "everything", module)  # where its dataclasses look for themselves
    spec.loader.exec_module(module)
    return module


def test_every_script_is_a_step(everything: ModuleType) -> None:
    scripts = {str(p.relative_to(HERE)) for p in HERE.glob("**/*.py") if not p.name.startswith("_")}
    assert {step.script for step in everything.STEPS} == scripts - {"everything.py"}


def test_what_is_left_out_has_a_reason(everything: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    step = everything.Step
    steps = (
        step("here", "a.py", "runs", quick=("--quick",)),
        step("long", "b.py", "long"),
        step("there", "c.py", "elsewhere", gpu=True, quick=()),
        step("needy", "d.py", "with a peer", modules=("sys", "no_such_module"), quick=()),
    )
    monkeypatch.setattr(everything, "STEPS", steps)
    monkeypatch.setattr(everything.torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["everything.py", "--list", "--quick"])
    assert everything.main() == 0
    assert capsys.readouterr().out.splitlines() == [
        "left out: long (long): takes long, and --quick was asked for",
        "left out: there (elsewhere): no GPU",
        "left out: needy (with a peer): not installed: no_such_module",
        "runs: here (runs)",
    ]
    monkeypatch.setattr(everything.torch.cuda, "is_available", lambda: True)
    assert everything.left_out(steps[2], quick=False) == ""


def test_a_failure_is_shown_and_fails(
    everything: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "good.py").write_text("print('fine')")
    (tmp_path / "bad.py").write_text("import sys\nprint('a reason')\nsys.exit(3)")
    steps = (everything.Step("good", "good.py", "ends"), everything.Step("bad", "bad.py", "does not"))
    for name, value in (("HERE", tmp_path), ("LOGS", tmp_path / "logs"), ("STEPS", steps)):
        monkeypatch.setattr(everything, name, value)
    monkeypatch.setattr(sys, "argv", ["everything.py"])
    assert everything.main() == 1
    said = capsys.readouterr().out
    assert "1/2  good: ends" in said and "2/2  bad: FAILED" in said and "a reason" in said and "failed: bad" in said
    assert (tmp_path / "logs/good.log").read_text() == "fine\n"
