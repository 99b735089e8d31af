# SPDX-License-Identifier: Apache-2.0
"""Every example runs alone and checks itself, without torch as well. What it prints is held by tests/docs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import python

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(example: Path, *arguments: str, **env: str) -> str:
    done = python(str(example), *arguments, **env)
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_without_torch(example: Path, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('hidden')")
    text = run(example, PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert text.strip() and "torch on" not in text


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_asserts(example: Path) -> None:
    text = example.read_text()
    assert "\nassert " in text or "\n    assert " in text or "\n        assert " in text


def test_rules_from_json_are_those_from_toml() -> None:
    tomllib = pytest.importorskip("tomllib")
    import json

    assert json.loads((EXAMPLES / "rules.json").read_text()) == tomllib.loads((EXAMPLES / "rules.toml").read_text())


def test_rules_from_another_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"double": {"rule": "x*2"}, "wrong": {"rule": "x*"}, "short": {"rule": "x*gain"}}')
    lines = run(EXAMPLES / "rules_from_file.py", str(path)).splitlines()
    assert lines[0].startswith("double") and lines[0].endswith("2.00")
    assert any(line.startswith("wrong: ") for line in lines) and any("`gain` is missing" in line for line in lines)
