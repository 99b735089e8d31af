# SPDX-License-Identifier: Apache-2.0
"""A block of a page below `<!-- ewc … -->` is what that command prints, to the letter.

It says which command to run again when it is not; it rewrites nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("ELSEWISE_BUILD_DIR", "build/dev")
PAGES = ("README.md", "ARCHITECTURE.md")


def blocks() -> list[Any]:
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        for match in re.finditer(r"^<!-- (ewc [^\n]*) -->\n```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, match.start()) + 1
            found.append(pytest.param(match.group(1), match.group(2), id=f"{page}:{line}"))
    return found


@pytest.mark.parametrize(("command", "shown"), blocks())
def test_block_is_what_the_command_prints(command: str, shown: str) -> None:
    path = os.pathsep.join([str(BUILD / "python/elsewise"), os.environ["PATH"]])
    done = subprocess.run(
        command, shell=True, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip() == shown.rstrip(), f"run `{command}` and paste"


def test_there_are_such_blocks() -> None:
    assert len(blocks()) >= 3


def test_table_of_builtins_is_as_the_rows_say() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools/builtins_page.py"), "--check"], check=False)
    assert done.returncode == 0, "run tools/builtins_page.py"
