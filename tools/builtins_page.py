# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of builtins in grammar/language.md from the rows of grammar/builtins.def and grammar/dtypes.def.

    python tools/builtins_page.py [--check]

It reads signatures, rules, descriptions and bounds, and invents none; `--check` only says whether the page is as it
would write it.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

GRAMMAR = Path(__file__).resolve().parents[1] / "grammar"
BEGIN, END = "<!-- builtins: made by tools/builtins_page.py -->", "<!-- /builtins -->"

# What each Rule of grammar/builtins.h says of dtypes, for people.
RULES = {
    "Numeric": "promotes",
    "Rounding": "as x",
    "Float": "float",
    "Predicate": "bool",
    "Whole": "whole only",
    "WholeTest": "bool, of whole only",
    "Ratio": "float",
    "Select": "promotes",
    "Length": "whole",
    "Border": "whole",
    "Noise": "float",
    "CastInt": "whole",
    "CastFloat": "float",
}


@dataclass(frozen=True)
class Row:
    signature: str
    rule: str
    doc: str
    sameness: str  # between processors
    ulp: int
    note: str  # against torch


def field(row: str, name: str, pattern: str, missing: str = "") -> str:
    found = re.search(rf"\.{name} = {pattern}", row)
    return found.group(1) if found else missing


def groups() -> list[tuple[str, list[Row]]]:
    """(title, rows), as the table has them; casts to a dtype come from the table of dtypes."""
    found: list[tuple[str, list[Row]]] = []
    table = (GRAMMAR / "builtins.def").read_text()
    for title, text in re.findall(r"^// == (.*)\n((?:(?!// == |#define).*\n)*)", table, re.MULTILINE):
        rows = [
            Row(
                field(row, "signature", r'"([^"]*)"'),
                field(row, "rule", r"Rule::(\w+)"),
                field(row, "doc", r'"([^"]*)"'),
                field(row, "sameness", r"Sameness::(\w+)", "Bits"),
                int(field(row, "ulp", r"(\d+)", "0")),
                field(row, "note", r'"([^"]*)"'),
            )
            for row in re.split(r"^(?=\{\.name)", text, flags=re.MULTILINE)[1:]
        ]
        found.append((title, rows))
    return found


def casts() -> list[tuple[str, str, str]]:
    """(signature, dtypes, description)."""
    said = {
        "Bool": "true where x is not 0, NaN included",
        "UInt": "x as {}; floats truncate and saturate, NaN is 0, integers wrap",
        "Int": "x as {}; floats truncate and saturate, NaN is 0, integers wrap",
        "Float": "x rounded to {}, to nearest, ties to even",
    }
    dtypes = (GRAMMAR / "dtypes.def").read_text()
    rows = re.findall(r'^DTYPE\(\w+, "(\w+)", \d, (\w+), "(\w+)"\)', dtypes, re.MULTILINE)
    return [(f"{spelling}(x)", spelling, said[kind].format(torch)) for spelling, kind, torch in rows]


def accuracy(row: Row) -> str:
    if row.rule in ("Whole", "WholeTest", "Predicate", "Select", "Length", "Border", "CastInt", "CastFloat"):
        text = "exact"
    elif row.sameness == "Bits":
        text = "same bits"
    elif row.ulp:
        text = f"{row.ulp} ULP"
    else:
        text = "no worse than torch"
    return f"{text}; {row.note}" if row.note else text


def table() -> str:
    lines = [BEGIN]
    for title, rows in groups():
        lines += ["", f"**{title}**", "", "| function | gives | dtype | accuracy |", "|---|---|---|---|"]
        lines += [f"| `{r.signature}` | {r.doc} | {RULES[r.rule]} | {accuracy(r)} |" for r in rows]
    lines += [f"| `{signature}` | {text} | {dtype} | exact |" for signature, dtype, text in casts()]
    return "\n".join([*lines, END])


def main(arguments: list[str]) -> int:
    page = GRAMMAR / "language.md"
    text = page.read_text()
    begin, end = text.index(BEGIN), text.index(END) + len(END)
    made = text[:begin] + table() + text[end:]
    if arguments == ["--check"]:
        return int(made != text)
    page.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
