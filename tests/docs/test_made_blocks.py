# SPDX-License-Identifier: Apache-2.0
"""A block of a page below `<!-- ewc … -->` is what that command prints, to the letter.

It says which command to run again when it is not; it rewrites nothing.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pages import ROOT, blocks, command


def made() -> list[Any]:
    return [pytest.param(b.above, b.text, id=b.name) for b in blocks() if b.above.startswith("ewc ")]


@pytest.mark.parametrize(("line", "shown"), made())
def test_block_is_what_the_command_prints(line: str, shown: str) -> None:
    assert command(line).rstrip() == shown.rstrip(), f"run `{line}` and paste"


def test_there_are_such_blocks() -> None:
    assert len(made()) >= 3


@pytest.mark.parametrize("tool", ["builtins_page", "api_page", "ulp_table"])
def test_page_is_as_its_tool_makes_it(tool: str) -> None:
    done = subprocess.run([sys.executable, str(ROOT / f"tools/{tool}.py"), "--check"], check=False)
    assert done.returncode == 0, f"run tools/{tool}.py"
