# SPDX-License-Identifier: Apache-2.0
"""Faults of the run time as Python exceptions. It words nothing: messages arrive whole from the compiler and the run
time."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FixIt:
    """A change that mends a spec: put `replacement` in place of the UTF-8 bytes `begin` to `end` (exclusive)."""

    begin: int
    end: int
    replacement: str
    label: str

    def apply(self, spec: str) -> str:
        """The spec with this change made."""
        text = spec.encode()
        return (text[: self.begin] + self.replacement.encode() + text[self.end :]).decode()


@dataclass(frozen=True)
class Diagnostic:
    """One error or warning about a spec. Lines and columns count characters from 1; the end is exclusive."""

    code: str
    error: bool
    message: str
    note: str
    rendered: str
    line: int
    column: int
    end_line: int
    end_column: int
    fixits: tuple[FixIt, ...]

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Diagnostic:
        return cls(**{**fields, "fixits": tuple(FixIt(*fixit) for fixit in fields["fixits"])})


class SpecError(SyntaxError):
    """A spec is wrong. It has a SyntaxError's place (`lineno`, `offset`, `text`, …), so that tracebacks and notebooks
    draw a caret.

    `diagnostics`: every error and warning found, in the order of the text; the first error gives the place.
    `fixits`: the first error's ways to mend the spec. `str()` shows all diagnostics with their source lines.
    """

    diagnostics: tuple[Diagnostic, ...]
    fixits: tuple[FixIt, ...]
    spec: str

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = (), spec: str = "", call: str = "") -> None:
        self.diagnostics = tuple(diagnostics)
        self.spec = spec
        self._call = call  # of a list
        errors = [d for d in self.diagnostics if d.error]
        self.fixits = errors[0].fixits if errors else ()
        if not errors:
            super().__init__(message)
            return
        first = errors[0]
        lines = spec.split("\n")
        text = lines[first.line - 1] if first.line <= len(lines) else ""
        place: tuple[Any, ...] = ("<spec>", first.line, first.column, text)
        if sys.version_info >= (3, 10):
            place += (first.end_line, first.end_column)
        super().__init__(f"{call}: {first.message}" if call else first.message, place)
        if sys.version_info < (3, 10):
            self.end_lineno, self.end_offset = first.end_line, first.end_column
        if sys.version_info >= (3, 11):
            for fixit in first.fixits:
                self.add_note(f"{fixit.label}: {fixit.apply(spec)}" if fixit.label else f"try: {fixit.apply(spec)}")
            if first.note:
                self.add_note(first.note)
            for other in self.diagnostics:
                if other is not first:
                    self.add_note("also: " + other.rendered.rstrip("\n"))

    def __str__(self) -> str:
        if not self.diagnostics:
            return super().__str__()
        call = [f"{self._call}:"] if self._call else []
        return "\n".join([*call, *(d.rendered.rstrip("\n") for d in self.diagnostics)])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.diagnostics, self.spec, self._call)


class SpecWarning(SyntaxWarning):
    """A spec holds what has no effect, or can hardly be meant. It names the line that made the kernel."""


_EXCEPTIONS: dict[str, type[Exception]] = {
    "type": TypeError,
    "value": ValueError,
    "index": IndexError,
    "zero": ZeroDivisionError,
    "overflow": OverflowError,
    "environment": RuntimeError,
    "internal": RuntimeError,
}


def fault(kind: str, message: str, diagnostics: list[dict[str, Any]], spec: str) -> Exception:
    """The exception of a fault; called from C."""
    if kind == "spec":
        call = re.match(r"in call \d+ of the list(?=: )", message)
        return SpecError(message, [Diagnostic.of(d) for d in diagnostics], spec, call[0] if call else "")
    return _EXCEPTIONS[kind](message)
