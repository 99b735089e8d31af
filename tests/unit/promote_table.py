# SPDX-License-Identifier: Apache-2.0
"""Writes promote_table.inc: what torch.result_type and torch.can_cast say of every pair of the language's dtypes.

Run it by hand when dtypes are added: `python tests/unit/promote_table.py > tests/unit/promote_table.inc`. The unit
tests read the table; tests/python/test_promote_table.py compares it with the torch that is installed.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^DTYPE\((\w+), \"\w+\", \d+, \w+, \"(\w+)\"\)$", re.MULTILINE)
DTYPES = ROW.findall((ROOT / "grammar/dtypes.def").read_text(encoding="utf-8"))
SCALARS = {"Bool": True, "I64": 1, "F64": 1.0}


def operands() -> list[tuple[str, str, object]]:
    """Each dtype in each category: tensors with dimensions and without, and Python's three scalars."""
    found: list[tuple[str, str, object]] = []
    for name, spelled in DTYPES:
        dtype = getattr(torch, spelled)
        found.append((name, "Dim", torch.ones(2, dtype=dtype)))
        found.append((name, "ZeroDim", torch.ones((), dtype=dtype)))
    return found + [(name, "Scalar", value) for name, value in SCALARS.items()]


def table() -> str:
    names = {getattr(torch, spelled): name for name, spelled in DTYPES}
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        "// torch's promotion, written by promote_table.py. It is only compared with.",
        "// PROMOTE(a, category of a, b, category of b, result); NO_PROMOTE: where torch raises",
    ]
    for a, ca, x in operands():
        for b, cb, y in operands():
            if (ca, cb) == ("Scalar", "Scalar"):
                continue  # Python's own business
            try:
                lines.append(f"PROMOTE({a}, {ca}, {b}, {cb}, {names[torch.result_type(x, y)]})")
            except RuntimeError as error:
                assert "is not supported" in str(error), error
                lines.append(f"NO_PROMOTE({a}, {ca}, {b}, {cb})")
    lines.append("// CAN_CAST(from, to, whether)")
    for a, spelled_a in DTYPES:
        for b, spelled_b in DTYPES:
            can = torch.can_cast(getattr(torch, spelled_a), getattr(torch, spelled_b))
            lines.append(f"CAN_CAST({a}, {b}, {str(can).lower()})")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
