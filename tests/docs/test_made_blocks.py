# SPDX-License-Identifier: Apache-2.0
"""A block of a page below `<!-- ewc … -->` is what that command prints, to the letter.

It says which command to run again when it is not; it rewrites nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from pages import ROOT, blocks

BUILD = ROOT / os.environ.get("ELSEWISE_BUILD_DIR", "build/dev")


def made() -> list[Any]:
    return [pytest.param(b.above, b.text, id=b.name) for b in blocks() if b.above.startswith("ewc ")]


@pytest.mark.parametrize(("command", "shown"), made())
def test_block_is_what_the_command_prints(command: str, shown: str) -> None:
    path = os.pathsep.join([str(BUILD / "python/elsewise"), os.environ["PATH"]])
    done = subprocess.run(
        command, shell=True, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip() == shown.rstrip(), f"run `{command}` and paste"


def test_there_are_such_blocks() -> None:
    assert len(made()) >= 3


def test_table_of_builtins_is_as_the_rows_say() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools/builtins_page.py"), "--check"], check=False)
    assert done.returncode == 0, "run tools/builtins_page.py"


def test_page_of_the_interface_is_as_the_docstrings_say() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools/api_page.py"), "--check"], check=False)
    assert done.returncode == 0, "run tools/api_page.py"


def test_page_of_the_functions_accuracy_is_as_the_measurements_say() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools/ulp_table.py"), "--check"], check=False)
    assert done.returncode == 0, "run tools/ulp_table.py"
