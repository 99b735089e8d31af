# SPDX-License-Identifier: Apache-2.0
"""Every example on the device: each uses it by itself, checks its own result, and says where it ran."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HOST_ONLY = {"long_file", "rules_from_file"}  # their subjects are files, and their arrays are NumPy's


def run(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_example(example: Path) -> None:
    text = run(str(example))
    print(f"--- {example.name}\n{text}")  # for the log, with pytest's -rP
    assert "cuda" in text or example.stem in HOST_ONLY, text


def test_the_doctor_runs_a_rule_on_the_device() -> None:
    text = run("-m", "elsewise", "doctor")
    assert "\nrule on GPU" in text and "4096 elements right" in text.split("\nrule on GPU")[1]
    assert "\ncuda:0" in text and " GiB" in text


def test_a_new_file_runs_on_the_device(tmp_path: Path) -> None:
    path = tmp_path / "start.py"
    rule = "i < edge: 0; else x*gain"
    run("-m", "elsewise", "new", rule, "--out", str(path))
    assert "against plain torch: Check(ok, 1000000 elements)" in run(str(path))
