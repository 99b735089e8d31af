# SPDX-License-Identifier: Apache-2.0
"""Writes the table of builtins in grammar/language.md from the rows of grammar/builtins.h and grammar/dtypes.def.

    python tools/builtins_page.py [--check]

It reads signatures and descriptions and invents none; `--check` only says whether the page is as it would write it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

GRAMMAR = Path(__file__).resolve().parents[1] / "grammar"
BEGIN, END = "<!-- builtins: made by tools/builtins_page.py -->", "<!-- /builtins -->"


def rows() -> list[tuple[str, str]]:
    """(signature, description) of every builtin, casts to a dtype last."""
    table = (GRAMMAR / "builtins.h").read_text()
    table = table[table.index("builtin_rows[]") : table.index("#define DTYPE")]
    found = re.findall(r'\.signature = "([^"]*)".*?\.doc = "([^"]*)"', table, re.DOTALL)
    casts = {
        "Bool": "true where x is not 0, NaN included",
        "UInt": "x as {}; floats truncate and saturate, NaN is 0, integers wrap",
        "Int": "x as {}; floats truncate and saturate, NaN is 0, integers wrap",
        "Float": "x rounded to {}, to nearest, ties to even",
    }
    dtypes = (GRAMMAR / "dtypes.def").read_text()
    for spelling, kind, torch in re.findall(r'^DTYPE\(\w+, "(\w+)", \d, (\w+), "(\w+)"\)', dtypes, re.MULTILINE):
        found.append((f"{spelling}(x)", casts[kind].format(torch)))
    return found


def table() -> str:
    lines = ["| function | gives |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in rows())]
    return "\n".join([BEGIN, *lines, END])


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
