# SPDX-License-Identifier: Apache-2.0
"""The catalogue of diagnostics is tested whole: every row has a lit test with its slug and an anchored caret line.

It reads texts only; whether the tests pass is lit's business.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r'^DIAGNOSTIC\((\w+), (Error|Warning), "([a-z0-9-]+)", "(.+)"\)$', re.MULTILINE)
CATALOGUE = (ROOT / "compiler/diagnostics/diagnostics.def").read_text(encoding="utf-8")
ROWS = ROW.findall(CATALOGUE)
# A first line that ends in the slug, then the source line, then a caret line anchored at both ends.
EXPECTED = r"(?:error|warning): [^\n]*\[{slug}\](?:{{{{\$}}}})?\n[^\n]*\n[^\n]*-NEXT:{{{{\^}}}}[ \t]*\^~*{{{{\$}}}}"


def lit_tests() -> str:
    """All lit tests, one text."""
    files = [
        f for f in (ROOT / "tests/lit").rglob("*") if f.suffix in (".ew", ".ir", ".test") and "Inputs" not in f.parts
    ]
    return "\n".join(f.read_text(encoding="utf-8") for f in sorted(files))


def test_every_row_is_read() -> None:
    assert len(ROWS) == len(re.findall(r"^DIAGNOSTIC\(", CATALOGUE, re.MULTILINE)) > 40


@pytest.mark.parametrize("slug", [row[2] for row in ROWS])
def test_row_has_a_lit_test_with_a_caret(slug: str) -> None:
    assert re.search(EXPECTED.format(slug=slug), lit_tests()), f"no lit test shows [{slug}] with its caret"


@pytest.mark.parametrize("name", [row[0] for row in ROWS])
def test_row_is_reported_somewhere(name: str) -> None:
    sources = [f for folder in ("compiler", "runtime") for f in (ROOT / folder).rglob("*.cpp")]
    assert any(re.search(rf"Code::{name}\b", f.read_text(encoding="utf-8")) for f in sources), f"nothing reports {name}"


def test_no_two_rows_say_the_same() -> None:
    texts = [re.sub(r"\{\d\}", "{}", text) for _, _, _, text in ROWS]
    assert sorted(texts) == sorted(set(texts))


def test_a_row_without_a_lit_test_would_be_found() -> None:
    """The pattern tells a caret line that is anchored from one that is not, and one row's from another's."""
    good = "# CHECK:{{^}}<spec>:1:1: error: m [some-slug]{{$}}\n# CHECK-NEXT:{{^}}x{{$}}\n# CHECK-NEXT:{{^}}^~{{$}}\n"
    assert re.search(EXPECTED.format(slug="some-slug"), good)
    assert not re.search(EXPECTED.format(slug="other-slug"), good)
    assert not re.search(EXPECTED.format(slug="some-slug"), good.replace("{{^}}^~{{$}}", "^~"))
    assert not re.search(EXPECTED.format(slug="some-slug"), good.replace("{{^}}^~{{$}}", "{{^}}x{{$}}"))
