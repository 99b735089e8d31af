# SPDX-License-Identifier: Apache-2.0
"""Writes docs/api.md, the page of the Python interface, from the docstrings of the package.

    python tools/api_page.py [--check]

It needs the package to be importable, adds nothing to what the docstrings say, and fails for a public name without one;
`--check` only says whether the page is as it would write it.
"""

from __future__ import annotations

import difflib
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import elsewise as ew

PAGE = Path(__file__).resolve().parents[1] / "docs/api.md"
MEMBERS = ("spec", "arguments", "foreach", "emit", "launch", "check", "explain", "bench")
GROUPS = {
    "Rules": ("kernel", "Kernel", *(f"Kernel.{name}" for name in MEMBERS), "Check", "Explanation", "Bench", "format"),
    "Raw addresses": ("ptr", "Pointer"),
    "Errors in a rule": ("SpecError", "SpecWarning", "Diagnostic", "FixIt"),
    "This process and machine": ("cache_info", "CacheInfo", "clear_cache", "doctor"),
}
HEAD = """\
# The Python interface

Made from the docstrings by `python tools/api_page.py`; see also [the language](../grammar/language.md) and
[memory, streams and contexts](memory.md).

```python
import elsewise as ew, numpy as np

k = ew.kernel("i < edge: 0; else x*gain")
k(np.ones(4, np.float32), edge=2, gain=3)                        # [0 0 3 3]
k(np.ones(4, np.float32), edge=2, gain=3, out=np.empty(4, np.float32))  # [0 0 3 3]   into memory that you have
k.emit("cuda", x="f32", edge="int", gain="float")                # the CUDA C of it
assert ew.cache_info().compiles >= 1
```
"""


FIELD = re.compile(r"([a-z_]+(?:,? [a-z_]+){0,6}): ")  # "shape: ", "max_abs, max_ulp: "
NEXT_FIELD = re.compile(r"(?<=[.;]) (?=[a-z_]+(?:, [a-z_]+)*: )")  # after another one on the same line


def markdown(doc: str) -> list[str]:
    """A docstring's paragraphs, each on a line, with `name: …` as items of a list, and examples as blocks."""
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n", doc):
        if paragraph.lstrip().startswith(">>>"):
            found += ["```text", *textwrap.dedent(paragraph).splitlines(), "```", ""]
            continue
        items: list[str] = []
        for line in (line.strip() for line in paragraph.splitlines()):
            if not items or FIELD.match(line) or re.match(r"(Raises|Returns) ", line):
                items.append(line)
            else:
                items[-1] += " " + line
        fields = [part for item in items for part in (NEXT_FIELD.split(item) if FIELD.match(item) else [item])]
        for before, item in zip(["", *fields], fields):
            field = FIELD.match(item)
            if before and bool(FIELD.match(before)) > bool(field):
                found.append("")
            found.append(f"- **{field.group(1)}**: {item[field.end() :]}" if field else item)
        found.append("")
    return [re.sub(r":(?:func|class|meth):`([\w.]+)`", r"`\1`", line) for line in found]


def wrapped(line: str) -> str:
    if line.startswith(("```", ">>>")) or not line:
        return line
    return textwrap.fill(
        line,
        120,
        subsequent_indent="  " if line.startswith("- ") else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


def section(name: str) -> list[str]:
    found: Any = ew
    for part in name.split("."):
        found = getattr(found, part)
    doc = found.__doc__
    if not doc:
        raise SystemExit(f"{name} has no docstring")
    doc = inspect.cleandoc(doc)
    title = f"### `{name}{signature(name, found)}`"
    return [title, "", *map(wrapped, markdown(doc))]


def signature(name: str, found: Any) -> str:
    if isinstance(found, type):
        fields = getattr(found, "_fields", None) or tuple(getattr(found, "__dataclass_fields__", ()))
        return f"({', '.join(fields)})" if fields else ""
    if not callable(found):  # a property
        return ""
    parameters = [p for p in inspect.signature(found).parameters.values() if p.name != "self"]
    return "(" + str(inspect.Signature([p.replace(annotation=p.empty) for p in parameters]))[1:]


def page() -> str:
    listed = {name for names in GROUPS.values() for name in names if "." not in name}
    if listed != set(ew.__all__) - {"__version__"}:
        raise SystemExit(f"GROUPS and elsewise.__all__ differ in {listed ^ (set(ew.__all__) - {'__version__'})}")
    lines = [HEAD]
    for group, names in GROUPS.items():
        lines += [f"## {group}", ""]
        for name in names:
            lines += section(name)
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: list[str]) -> int:
    made = page()
    if arguments == ["--check"]:
        there = PAGE.read_text() if PAGE.exists() else ""
        sys.stdout.writelines(difflib.unified_diff(there.splitlines(True), made.splitlines(True), "is", "should be"))
        return int(there != made)
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
