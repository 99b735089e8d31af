# SPDX-License-Identifier: Apache-2.0
"""Read rules and their parameters from a configuration file (rules.toml beside this one, or another), and make kernels
of them on the fly.

    python examples/rules_from_file.py [rules.toml | rules.json]

A rule is text that is parsed and checked, never evaluated as Python; a wrong one is shown with its place. TOML is read
by Python 3.11 or the package tomli; without either the same rules are taken from rules.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import elsewise as ew
import numpy as np

try:
    import tomllib
except ImportError:
    try:
        import tomli as tomllib
    except ImportError:
        tomllib = None


def read(path: Path) -> dict[str, dict[str, Any]]:
    if path.suffix == ".toml":
        return tomllib.loads(path.read_text())
    return json.loads(path.read_text())


def plain(name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The results that the rules of rules.toml should have."""
    y = x.copy()
    if name == "mute_head":
        y[:3] = 0
    elif name == "soft_clip":
        y = np.clip(x, np.float32(-0.5), np.float32(0.5))
    elif name == "every_other":
        y[1::2] *= -1
    elif name == "taper":
        up = np.arange(4, dtype=np.float32) / np.float32(4)
        y[:4] *= up
        y[-4:] *= up[::-1]
    return y


beside = Path(__file__).with_name("rules.toml" if tomllib else "rules.json")
path = Path(sys.argv[1]) if len(sys.argv) > 1 else beside
x = np.linspace(-1, 1, 12, dtype=np.float32)

for name, entry in read(path).items():
    text = entry.pop("rule").strip()
    try:
        rule = ew.kernel(text)
        y = rule(x, **entry)
    except (ew.SpecError, TypeError) as error:  # of the file: shown, and the next one is read
        print(f"{name}: {error}")
        continue
    if path == beside:
        assert np.array_equal(y, plain(name, x)), name
    print(f"{name:<12} {', '.join(rule.arguments):<12} {' '.join(f'{v:5.2f}' for v in y[:5])} … {y[-1]:5.2f}")

try:
    ew.kernel("i < edge: 0; otherwise x")
except ew.SpecError as error:
    print(f"a wrong one, at column {error.offset}: {error.msg}")
