# SPDX-License-Identifier: Apache-2.0
"""`python -m elsewise demo`, and the types that the package declares."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import elsewise as ew
import pytest

from .conftest import python

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str, code: int = 0, **env: str) -> str:
    done = python(*command, code=code, **env)
    return done.stdout + done.stderr


def test_demo() -> None:
    text = run("-m", "elsewise", "demo", "--device", "cpu")
    assert "i<n/4: x*0.5; i>=n-n/4: x*2; else x" in text and "1,000,000" in text
    assert "max error 0 against plain" in text and "(1,000,000 of 1,000,000 elements equal)" in text
    rows = dict(re.findall(r"^(elsewise|elsewise, in place|plain \w+) .* ([0-9.]+) MiB$", text, re.MULTILINE))
    memory = {name: float(size) for name, size in rows.items()}
    assert memory["elsewise, in place"] < 1 < memory["elsewise"] < 6  # the result has 3.8 MiB
    assert memory[next(name for name in memory if name.startswith("plain"))] > 10


def test_demo_without_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('hidden')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", ""), *sys.path])
    assert "against plain NumPy" in run("-m", "elsewise", "demo", "-n", "10000", PYTHONPATH=path)


def test_demo_of_nothing_is_refused() -> None:
    assert "n >= 4" in run("-m", "elsewise", "demo", "-n", "2", code=2)


def test_public_names_are_documented() -> None:
    for name in ew.__all__:
        if name != "__version__":
            assert getattr(ew, name).__doc__, name
    for method in ("emit", "launch", "check", "explain", "bench"):
        assert getattr(ew.Kernel, method).__doc__


def test_the_stub_declares_what_the_module_has() -> None:
    stub = (Path(ew.__file__).parent / "_elsewise.pyi").read_text()
    declared = set(re.findall(r"^(?:def|class) (\w+)|^(\w+): ", stub, re.MULTILINE))
    names = {a or b for a, b in declared}
    assert names == {name for name in dir(ew._elsewise) if not name.startswith("_")}


def test_a_type_checker_accepts_the_package(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    package = ROOT / "bindings" / "elsewise"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}", str(package)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
