# SPDX-License-Identifier: Apache-2.0
"""The pages of the project and their blocks of code, for the tests that run them. It chooses nothing to run.

A block below `<!-- needs: gpu -->` or `<!-- needs: gpu cupy -->` is run by tests/gpu, where the named packages are, and
by nothing else; every other block is run everywhere.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("ELSEWISE_BUILD_DIR", "build/dev")
PAGES = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "grammar/language.md",
    "examples/README.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
)
PACKAGES = {"cupy", "pycuda", "torch", "triton"}  # that a block may need beside a GPU


class Block(NamedTuple):
    """A block of code; `line` is its first one on the page, `above` the comment that stands over it, or ""."""

    page: str
    line: int
    language: str
    above: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def needs(self) -> tuple[str, ...]:
        found = re.fullmatch(r"needs: (gpu(?: \w+)*)", self.above)
        return tuple(found.group(1).split()) if found else ()


def blocks(language: str | None = None) -> list[Block]:
    """Every block, or those of a language, in the order of the pages."""
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        for match in re.finditer(r"(?:^<!-- ([^\n]*) -->\n)?^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, match.start(3)) + 1
            if language is None or match.group(2) == language:
                found.append(Block(page, line, match.group(2), match.group(1) or "", match.group(3)))
    return found


def run_python(block: Block) -> None:
    """Runs a block from its top; a result `# [1 2 3]` beside an expression is what the expression gives."""
    names: dict[str, Any] = {}
    lines = block.text.splitlines()
    for statement in ast.parse(block.text).body:
        ast.increment_lineno(statement, block.line - 1)
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), block.page, "exec"), names)
            continue
        value = eval(compile(ast.Expression(statement.value), block.page, "eval"), names)
        shown = re.search(r"#\s*\[([^\]]*)\]", lines[(statement.end_lineno or block.line) - block.line])
        if shown:
            want = np.array([float(number) for number in shown.group(1).replace(",", " ").split()])
            np.testing.assert_allclose(
                np.asarray(value.cpu() if hasattr(value, "cpu") else value, dtype=float).ravel(),
                want,
                rtol=1e-3,
                err_msg=f"{block.page}:{statement.lineno}",
            )


def command(line: str) -> str:
    """What a command line prints, run in the project's folder with the build's and the environment's programs."""
    path = os.pathsep.join([str(BUILD / "python/elsewise"), str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path}
    done = subprocess.run(line, shell=True, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def like(shown: str) -> str:
    """A regular expression for what is shown, in which `…` stands for anything within a line."""
    return ".*".join(re.escape(part) for part in shown.rstrip().split("…"))
