# SPDX-License-Identifier: Apache-2.0
"""`make bench`: that it knows every benchmark there is, and leaves none out in silence. It runs none of them."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import time
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


def test_the_cpu_beside_a_gpu_is_not_missed_without_one(
    everything: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(everything.torch.cuda, "is_available", lambda: False)
    step = next(step for step in everything.STEPS if step.name == "overview, CPU")
    assert everything.left_out(step, quick=False) == "the overview is of the CPU here"


def test_a_failure_is_shown_and_fails(
    everything: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "good.py").write_text("import os; print('fine'); print('kept in', os.environ['ELSEWISE_RESULTS'])")
    (tmp_path / "bad.py").write_text("import sys\nprint('a reason')\nsys.exit(3)")
    steps = (everything.Step("good", "good.py", "ends"), everything.Step("bad", "bad.py", "does not"))
    for name, value in (("HERE", tmp_path), ("LOGS", tmp_path / "logs"), ("STEPS", steps)):
        monkeypatch.setattr(everything, name, value)
    monkeypatch.setattr(sys, "argv", ["everything.py"])
    assert everything.main() == 1
    said = capsys.readouterr().out
    assert "1/2  good: ends" in said and "2/2  bad: FAILED" in said and "a reason" in said and "failed: bad" in said
    kept = f"fine\nkept in {tmp_path / 'logs'}\n"
    assert (tmp_path / "logs/good.log").read_text() == kept and f"\n{kept}\n" in said
    assert f"logs, tables and pictures in {tmp_path / 'logs'}; failed: bad" in said
    monkeypatch.setattr(sys, "argv", ["everything.py", "--keep"])
    assert everything.main() == 1
    said = capsys.readouterr().out
    assert f"kept in {tmp_path / 'results'}\n" in said
    assert f"tables and pictures in {tmp_path / 'results'}, logs in {tmp_path / 'logs'}" in said


def test_a_long_log_is_shown_from_its_end(
    everything: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "long.py").write_text("print(*range(100), sep='\\n')")
    for name, value in (("HERE", tmp_path), ("LOGS", tmp_path), ("STEPS", (everything.Step("long", "long.py", ""),))):
        monkeypatch.setattr(everything, name, value)
    monkeypatch.setattr(sys, "argv", ["everything.py"])
    assert everything.main() == 0
    said = capsys.readouterr().out
    assert f"… 40 lines before these in {tmp_path / 'long.log'}\n40\n" in said and "\n99\n" in said


def test_an_interrupt_ends_it_in_a_word(tmp_path: Path) -> None:
    """With what it runs, and without a traceback."""
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(600)")
    (tmp_path / "run.py").write_text(
        f"import signal, sys; sys.path.insert(0, {str(HERE)!r}); import everything, pathlib\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background work ignores it
        f"everything.HERE = everything.LOGS = pathlib.Path({str(tmp_path)!r})\n"
        "everything.STEPS = (everything.Step('slow', 'slow.py', ''),)\n"
        "sys.exit(everything.main())"
    )
    process = subprocess.Popen([sys.executable, str(tmp_path / "run.py")], stdout=-1, stderr=-1, text=True)
    while not (tmp_path / "slow.log").exists():
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and not err
    assert out == f"\nstopped in slow; logs in {tmp_path}, tables and pictures in {tmp_path}\n"
