# SPDX-License-Identifier: Apache-2.0
"""`pip install .` in an empty environment gives the package and `ewc`. It says nothing of what they compute."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_pip_install_in_an_empty_environment(tmp_path: Path) -> None:
    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    run(sys.executable, "-m", "venv", tmp_path / "venv")
    programs = tmp_path / "venv/bin"
    run(programs / "pip", "install", "--quiet", "--disable-pip-version-check", ROOT)
    code = "import elsewise as ew, numpy as np; print(ew.kernel('i<n/2: x*2; else x')(np.ones(4, np.float32)))"
    assert run(programs / "python", "-c", code).strip() == "[2. 2. 1. 1.]"
    assert "out[p] = piece1(x[p])" in run(programs / "ewc", "-e", "i<n/2: x*2; else x", "--arg=x:f32")
    run(programs / "python", "-m", "elsewise", "new", "i < edge: 0; else x*gain", "--out", "start.py")
    assert "torch is not installed" in run(programs / "python", "start.py")
    assert "torch" not in run(programs / "pip", "list")
