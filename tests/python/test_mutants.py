# SPDX-License-Identifier: Apache-2.0
"""The parts of tests/mutants that decide without a build: what is edited, in which order, and what the log keeps. No
mutant is built here."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def mutants() -> Any:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tests/mutants/mutants.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def every(mutants: Any) -> Any:
    return mutants.mutants_of(ROOT)


def test_strings_are_strings_and_comments_nothing(mutants: Any) -> None:
    line = 'a < b; f("x < \\" y"); // c < d'
    spans = mutants.code_spans(line)
    assert [line[begin:end] for begin, end, is_string in spans if is_string] == ['"x < \\" y"']
    assert [line[begin:end] for begin, end, is_string in spans if not is_string] == ["a < b; f(", "); "]


def test_every_rule_has_mutants_and_each_is_one_edit_of_its_line(mutants: Any, every: list[Any]) -> None:
    assert {m.rule for m in every} == {rule.name for rule in mutants.RULES}
    assert len({m.key for m in every}) == len(set(every))
    for m in mutants.draw(every, 1)[:200]:
        text = (ROOT / m.file).read_text()
        new = mutants.changed(m, text).splitlines()
        old = text.splitlines()
        assert [k for k, (a, b) in enumerate(zip(old, new, strict=True), 1) if a != b] == [m.line]


def test_the_order_is_the_seeds_and_goes_round_the_rules(mutants: Any, every: list[Any]) -> None:
    first = mutants.draw(every, 1)
    assert first == mutants.draw(every, 1) != mutants.draw(every, 2)
    assert {m.rule for m in first[: len(mutants.RULES)]} == {rule.name for rule in mutants.RULES}


def test_what_a_file_is_shown_passes_before_it_is_changed(mutants: Any) -> None:
    for number in range(len(mutants.ROUNDS)):
        seen = mutants.suites_of(number)
        assert len(seen) == len({(s.name, *s.command) for s in seen})
        for begins, _ in mutants.FIRST:
            assert all(s in seen for s in mutants.suites_for(begins, number))


def test_a_log_keeps_reasons_and_places(mutants: Any, tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    for key in "abc":
        mutants.note(log, {"key": key, "end": "survived"})
    entries = json.loads(log.read_text())
    entries[1]["why"] = "equivalent"
    log.write_text(json.dumps(entries))
    mutants.note(log, {"key": "b", "end": "killed"})
    assert mutants.read_log(log) == [
        {"key": "a", "end": "survived"},
        {"key": "b", "end": "killed", "why": "equivalent"},
        {"key": "c", "end": "survived"},
    ]


def test_a_short_run_of_the_fuzzer_need_not_hold_everything(mutants: Any, tmp_path: Path) -> None:
    def fails(text: str, code: int = 1) -> str | None:
        shown: str | None = mutants.fails(
            mutants.Suite("fuzz", ["python", "-c", f"print({text!r}); raise SystemExit({code})"], 20), tmp_path
        )
        return shown

    lacks = "MISMATCH: `floor` never occurred\n"
    assert fails(lacks * 2 + "9 passed, 2 failed, 0 skipped") is None
    assert fails(lacks + "MISMATCH: 1 is not 2\n" + "9 passed, 2 failed, 0 skipped") is not None
    assert fails(lacks + "9 passed, 2 failed, 0 skipped") is not None
    assert fails("9 passed, 0 failed, 0 skipped", 3) is not None
    assert fails("9 passed, 0 failed, 0 skipped", 0) is None
