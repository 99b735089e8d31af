# SPDX-License-Identifier: Apache-2.0
"""Functions that promise no bits, on a device: each within its bound of the exact value, or no worse than torch there.
Where ELSEWISE_RESULTS names a folder, what was measured is kept there; tools/ulp_table.py makes the page from it."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def test_every_function_is_within_its_bound_or_as_torch(torch: Any, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("ulp_table", ROOT / "tools/ulp_table.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = tool
    spec.loader.exec_module(tool)
    folder = Path(os.environ.get("ELSEWISE_RESULTS") or tmp_path)
    kept = json.loads(tool.save(folder, "cuda", 1_000_000).read_text())
    bad = tool.beyond(kept)
    assert len(kept["worst"]) > 25 and not bad, bad
