# SPDX-License-Identifier: Apache-2.0
"""Runs what the pages show: Python blocks with the results in their comments, `>>>` examples, command lines, and what
examples print.

It never decides what a page should say; a block in a language that no test knows fails.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from pages import PACKAGES, PAGES, ROOT, Block, blocks, command, like, run_python

RUN = ("ewc ", "python -m elsewise ", "python examples/")  # command lines that are run
SHOWN = ("make ", ". .venv/bin/")  # that build or install
LANGUAGES = {"python", "sh", "text", "cuda"}


def named(found: list[Block]) -> list[Any]:
    return [pytest.param(block, id=block.name) for block in found]


@pytest.mark.parametrize("block", named([b for b in blocks("python") if not b.needs]))
def test_python_block(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a block may write a file
    run_python(block)


@pytest.mark.parametrize("block", named([b for b in blocks("text") if b.text.startswith(">>>")]))
def test_session(block: Block) -> None:
    """Runs a block of `>>>` lines; what it shows is the end of what Python prints, `…` standing for anything."""
    names: dict[str, Any] = {}
    exec("import elsewise, elsewise as ew, numpy as np", names)
    for source, shown in re.findall(r"^>>> (.*)\n((?:(?!>>>).*\n)*)", block.text, re.MULTILINE):
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(source, "<stdin>", "single"), names)
            said = printed.getvalue()
        except Exception as error:
            said = printed.getvalue() + "".join(traceback.format_exception_only(type(error), error))
        assert re.search(like(shown) + r"\s*\Z", said, re.DOTALL), f"{block.name} shows\n{shown}\nPython says\n{said}"


@pytest.mark.parametrize("block", named(blocks("sh")))
def test_command_lines(block: Block, tmp_path: Path) -> None:
    for line in block.text.replace("\\\n", " ").splitlines():
        shown = line.split(" #")[0].strip()
        if shown.startswith(RUN):
            command(shown.replace("--out ", f"--out {tmp_path}/"))
        else:
            assert not shown or shown.startswith(SHOWN), f"{block.name}: nobody runs `{shown}`"
            if shown.startswith("make "):
                command(f"make --dry-run --silent {shown[5:]} PYTHON={sys.executable} >/dev/null")


@pytest.mark.parametrize("block", named([b for b in blocks("text") if b.above.startswith("python ")]))
def test_what_is_printed(block: Block) -> None:
    """What a block below `<!-- python … -->` shows is what that command prints, `…` standing for what varies."""
    said = command(block.above)
    assert re.fullmatch(like(block.text), said.rstrip()), f"{block.name} shows\n{block.text}\nprinted is\n{said}"


def test_every_example_is_on_its_page() -> None:
    shown = {b.above.split()[1] for b in blocks("text") if b.page == "examples/README.md" and b.above}
    assert shown == {f"examples/{path.name}" for path in (ROOT / "examples").glob("*.py")}


def test_every_block_is_in_a_language_that_is_run_or_shown() -> None:
    for block in blocks():
        assert block.language in LANGUAGES, f"{block.name}: ```{block.language}"
        assert not block.above.startswith("needs") or (block.needs and set(block.needs[1:]) <= PACKAGES), block.name


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", (ROOT / page).read_text()):
        if not target.startswith(("http://", "https://")):
            assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def figures() -> list[Any]:
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        for match in re.finditer(r"^<!-- figures: (\S+) -->\n((?:\|.*\n)+)", text, re.MULTILINE):
            line = text.count("\n", 0, match.start()) + 1
            found.append(pytest.param(match.group(1), match.group(2), id=f"{page}:{line}"))
    return found


@pytest.mark.parametrize(("source", "table"), figures())
def test_figures_are_those_of_the_file(source: str, table: str) -> None:
    """Every figure with a unit in a table below `<!-- figures: file -->` stands in that file, rounded as it is here."""
    known = [float(v.replace(",", "")) for v in re.findall(r"\d[\d,]*\.\d+", (ROOT / source).read_text())]
    shown = re.findall(r"(\d[\d,]*(?:\.\d+)?) (us|ms|s|MiB)\b", table)
    assert shown
    for number, unit in shown:
        value = float(number.replace(",", "")) * (1000 if unit == "s" else 1)
        half = 0.5000001 * 10.0 ** -len(number.partition(".")[2]) * (1000 if unit == "s" else 1)
        assert any(abs(k - value) <= half for k in known), f"{number} {unit} is not in {source}"


def test_there_are_such_tables() -> None:
    assert len(figures()) >= 2


@pytest.mark.parametrize("page", PAGES)
def test_every_row_of_a_table_has_its_cells(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = table.splitlines()
        assert re.fullmatch(r"[|\-: ]+", rows[1]), f"{page}: no rule below {rows[0]}"
        cells = {row: len(re.findall(r"(?<!\\)\|", row)) for row in rows}
        assert len(set(cells.values())) == 1, f"{page}: {cells}"
