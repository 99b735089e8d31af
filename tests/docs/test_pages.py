# SPDX-License-Identifier: Apache-2.0
"""Runs what the pages show: Python blocks with the results in their comments, `>>>` examples, and `ewc` command lines.

It never decides what a page should say; a block in any other language is not looked at.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ELSEWISE_BUILD_DIR", ROOT / "build/dev"))
BUILD = BUILD if BUILD.is_absolute() else ROOT / BUILD
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "grammar/language.md")


def blocks(language: str) -> list[Any]:
    """Every block of a language on the pages there are, as (page, line, text), named page:line."""
    found = []
    for page in PAGES:
        if (ROOT / page).exists():
            text = (ROOT / page).read_text()
            for match in re.finditer(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
                line = text.count("\n", 0, match.start(1)) + 1
                found.append(pytest.param(page, line, match.group(1), id=f"{page}:{line}"))
    return found


@pytest.mark.parametrize(("page", "line", "text"), blocks("python"))
def test_python_block(page: str, line: int, text: str) -> None:
    """Runs a block from its top; a result `# [1 2 3]` beside an expression is what the expression gives."""
    names: dict[str, Any] = {}
    lines = text.splitlines()
    for statement in ast.parse(text).body:
        ast.increment_lineno(statement, line - 1)
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), page, "exec"), names)
            continue
        value = eval(compile(ast.Expression(statement.value), page, "eval"), names)
        shown = re.search(r"#\s*\[([^\]]*)\]", lines[(statement.end_lineno or line) - line])
        if shown:
            want = np.array([float(number) for number in shown.group(1).replace(",", " ").split()])
            np.testing.assert_allclose(
                np.asarray(value, dtype=float).ravel(), want, rtol=1e-3, err_msg=f"{page}:{statement.lineno}"
            )


@pytest.mark.parametrize(("page", "line", "text"), blocks("text"))
def test_session(page: str, line: int, text: str) -> None:
    """Runs a block of `>>>` lines; what it shows is the end of what Python prints, `…` standing for anything."""
    if not text.startswith(">>>"):
        return
    names: dict[str, Any] = {}
    exec("import elsewise, elsewise as ew, numpy as np", names)
    for source, shown in re.findall(r"^>>> (.*)\n((?:(?!>>>).*\n)*)", text, re.MULTILINE):
        try:
            exec(compile(source, "<stdin>", "single"), names)
            said = ""
        except Exception as error:
            said = "".join(traceback.format_exception_only(type(error), error))
        pattern = ".*".join(re.escape(part) for part in shown.strip().split("…"))
        assert re.search(pattern + r"\s*\Z", said, re.DOTALL), f"{page}:{line} shows\n{shown}\nPython says\n{said}"


@pytest.mark.parametrize(("page", "line", "text"), blocks("sh"))
def test_ewc_lines(page: str, line: int, text: str) -> None:
    path = os.pathsep.join([str(BUILD / "python/elsewise"), os.environ["PATH"]])
    for command in text.splitlines():
        if command.startswith("ewc "):
            done = subprocess.run(
                command, shell=True, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{page}:{line}: {command}\n{done.stderr}"
