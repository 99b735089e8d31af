# SPDX-License-Identifier: Apache-2.0
"""Every fix-it that the lit tests show, applied and compiled: it mends what it is about, and what it leaves can be
mended as well. What a mended rule means is tests/python/test_habits.py's business."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import elsewise as ew
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tests/lit/errors", "tests/lit/check")
KINDS = re.compile(r"--arg=(\w+):(\S+)")

pytestmark = pytest.mark.filterwarnings("ignore::elsewise.SpecWarning")


def rules() -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """Specs of the RUN lines, and the kinds of arguments that they name."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], None] = {}
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).iterdir()):
            if file.suffix not in (".test", ".ew"):
                continue
            text = file.read_text(encoding="utf-8")
            for line in re.findall(r"^# RUN: (?:not )?%ewc (.*?)(?: 2>&1)? *\|", text, re.MULTILINE):
                try:
                    words = shlex.split(line)
                except ValueError:
                    continue  # a rule that the test's shell makes
                kinds = tuple(match.groups() for word in words if (match := KINDS.fullmatch(word)))
                if "-e" in words:
                    spec = words[words.index("-e") + 1]
                elif "%s" in words:
                    spec = text
                else:
                    continue
                found[spec, kinds] = None  # type: ignore[index]
    return list(found)


def diagnostics(spec: str, kinds: tuple[tuple[str, str], ...]) -> list[ew.Diagnostic]:
    """The errors of a rule, and of what the kinds make of it."""
    try:
        kernel = ew.kernel(spec)
        if kinds:
            kernel.emit("torch", **{name: kind for name, kind in kinds if name in kernel.arguments})
    except ew.SpecError as error:
        return [d for d in error.diagnostics if d.error]
    except TypeError as error:
        return list(getattr(error, "diagnostics", ()))
    return []


def mendable(spec: str, kinds: tuple[tuple[str, str], ...], left: int = 10) -> list[str]:
    """What is left when first fix-its are applied again and again."""
    found = diagnostics(spec, kinds)
    fixits = [d.fixits[0] for d in found if d.fixits]
    if not fixits or not left:
        return [f"[{d.code}] {d.message}" for d in found]
    return mendable(fixits[0].apply(spec), kinds, left - 1)


def test_there_are_many() -> None:
    assert sum(len(d.fixits) for spec, kinds in rules() for d in diagnostics(spec, kinds)) > 100


@pytest.mark.parametrize(("spec", "kinds"), rules())
def test_every_fixit_mends(spec: str, kinds: tuple[tuple[str, str], ...]) -> None:
    found = diagnostics(spec, kinds)
    hopeless = [f"[{d.code}] {d.message}" for d in found if not d.fixits]
    for diagnostic in found:
        for rank, fixit in enumerate(diagnostic.fixits):
            mended = fixit.apply(spec)
            assert mended != spec
            if rank:  # an alternative, for another meaning: it may ask for more
                assert (diagnostic.code, diagnostic.message) not in [
                    (d.code, d.message) for d in diagnostics(mended, kinds) if d.column == diagnostic.column
                ]
                continue
            left = mendable(mended, kinds)
            # Nothing is left but what nobody offered to mend in the first place.
            assert len(left) <= len(hopeless), (diagnostic.code, fixit.label, mended, left)
            if len(found) == 1:
                assert not left, (diagnostic.code, fixit.label, mended, left)


def test_words_stay_apart() -> None:
    """What a fix-it puts beside a word does not become one with it."""
    with pytest.raises(ew.SpecError) as caught:
        ew.kernel("i<3: u8(0); else-1")(shape=5)
    fixit = caught.value.diagnostics[0].fixits[0]
    assert fixit.apply("i<3: u8(0); else-1") == "i<3: u8(0); else i16(-1)"
    assert "`i<3: u8(0); else i16(-1)`" in str(caught.value)
