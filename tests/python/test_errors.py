# SPDX-License-Identifier: Apache-2.0
"""A wrong spec as a SyntaxError: its place, its caret, its cures."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import traceback
import warnings
from pathlib import Path

import elsewise as ew
import pytest


def error_of(spec: str) -> ew.SpecError:
    with pytest.raises(ew.SpecError) as caught:
        ew.kernel(spec)
    return caught.value


def marked(error: ew.SpecError) -> str:
    """The characters that the caret stands under in a printed traceback."""
    lines = traceback.format_exception_only(type(error), error)
    at = next(k for k, line in enumerate(lines) if set(line.strip()) == {"^"})
    source, caret = lines[at - 1], lines[at]
    return source[caret.index("^") : caret.rindex("^") + 1]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("i<n/4: x*(i/n); else x", "i/n"),
        ("i < 3: x; else fooo(x)", "fooo"),
        ("i < 2: x\n2 <= i < 4: wibble(x)\nelse 0", "wibble"),
    ],
)
def test_the_caret_stands_under_what_is_wrong(spec: str, text: str) -> None:
    error = error_of(spec)
    line = spec.split("\n")[(error.lineno or 0) - 1]
    assert error.filename == "<spec>" and error.text == line
    assert error.offset is not None and error.end_offset is not None
    assert (
        text in line[error.offset - 1 : error.end_offset - 1] or line[error.offset - 1 : error.end_offset - 1] in text
    )
    assert marked(error) == line[error.offset - 1 : error.end_offset - 1]


def test_columns_count_characters_not_bytes() -> None:
    error = error_of("i < 3: é + 1; else frob(x)")
    assert [(d.line, d.column) for d in error.diagnostics] == [(1, 8), (1, 20)]
    assert marked(error) == "é"


def test_lines_are_counted() -> None:
    error = error_of("i < 2: x\n2 <= i < 4: wibble(x)\nelse 0")
    assert (error.lineno, error.offset) == (2, 13)


def test_a_spec_error_is_a_syntax_error_with_everything_on_it() -> None:
    error = error_of("i<n/4: x*(i/n); else x")
    assert isinstance(error, SyntaxError)
    assert error.msg == error.diagnostics[0].message and error.msg.strip()
    assert len(error.fixits) == 2  # float(a)/b and a//b
    for fixit in error.fixits:
        ew.kernel(fixit.apply(error.spec))  # the cure cures
    assert any("//" in fixit.replacement for fixit in error.fixits)
    assert "^" in str(error) and "i<n/4: x*(i/n); else x" in str(error)


def test_several_errors_come_at_once() -> None:
    error = error_of("i < 2: fooo(x)\ni < 4: bar_(x)\nelse x")
    assert len([d for d in error.diagnostics if d.error]) == 2
    assert [d.line for d in error.diagnostics] == [1, 2]
    assert str(error).count("^") >= 2
    notes = "\n".join(getattr(error, "__notes__", []))
    assert "bar_" in notes  # printed below the traceback's caret


def test_coverage_says_what_is_left() -> None:
    error = error_of("i < n/4: x; i >= n-n/4: 0")
    assert "i in [n/4, n-n/4)" in str(error)
    assert any("else" in fixit.replacement for fixit in error.fixits)


@pytest.mark.parametrize(
    "spec", ["", "   ", "i <", "else", "x +", "((((", "i<3: x", "# only a comment", "x = 3", "i < 3 ? 1 : 2"]
)
def test_broken_specs_are_spec_errors(spec: str) -> None:
    error = error_of(spec)
    assert error.diagnostics and error.msg


def test_errors_survive_copying() -> None:
    error = error_of("i<n/4: x*(i/n); else x")
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert str(again) == str(error) and again.diagnostics == error.diagnostics and again.offset == error.offset


def test_warnings_point_at_the_caller() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ew.kernel("i < 3: x; i < 2: 0; else 1")
    assert [w.category for w in caught] == [ew.SpecWarning]
    assert caught[0].filename == __file__
    assert "^" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ew.kernel("i < 3: x; else 1")


def test_kinds_that_do_not_fit_fail_at_the_call() -> None:
    import numpy as np

    k = ew.kernel("x & 3")
    assert k(np.array([5, 6], np.int32)).tolist() == [1, 2]
    with pytest.raises((ew.SpecError, TypeError)):
        k(np.array([5.0, 6.0], np.float32))


def test_warnings_name_the_line_of_another_file(tmp_path: Path) -> None:
    helper = tmp_path / "rules_of_a_helper.py"
    helper.write_text("import elsewise as ew\n\n\ndef make():\n    return ew.kernel('i < 0.25: 0; else x')\n")
    program = tmp_path / "program.py"
    program.write_text("import rules_of_a_helper\nfor _ in range(3):\n    rules_of_a_helper.make()\n")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{helper}:5: SpecWarning: <spec>:1:1: warning: `i < 0.25` compares the position" in done.stderr
    assert "return ew.kernel('i < 0.25: 0; else x')" in done.stderr
    assert done.stderr.count("SpecWarning") == 1  # once, though the kernel was made three times
    assert "`i < 0.25*n: 0; else x`" in done.stderr
    assert issubclass(ew.SpecWarning, SyntaxWarning)


@pytest.mark.parametrize(
    ("spec", "seen"),
    [
        ("i < 3:\tx;\telse\tfoo_(x)", "foo_"),
        ("x + gr\u0065\u0301 # combining", "\u0301"),
        ("i < 3: x # 日本\nelse foo_(x)", "foo_"),
        ("# é\r\nfoo_(x)", "foo_"),
        ("else\n  foo_(\n    x)", "foo_"),
    ],
)
def test_places_in_unusual_lines(spec: str, seen: str) -> None:
    error = error_of(spec)
    line = spec.split("\n")[(error.lineno or 0) - 1]
    assert line[(error.offset or 0) - 1 : (error.end_offset or 0) - 1] == seen
    assert "".join(traceback.format_exception(error)).count("^") >= len(seen)
    assert pickle.loads(pickle.dumps(error)).diagnostics == error.diagnostics
