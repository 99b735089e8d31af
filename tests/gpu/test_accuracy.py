# SPDX-License-Identifier: Apache-2.0
"""Functions that promise no bits, on a device: each within its bound of the exact value, or no worse than torch there.
Where ELSEWISE_RESULTS names a folder, what was measured is kept there; tools/ulp_table.py makes the page from it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import ulp_table


def test_every_function_is_within_its_bound_or_as_torch(torch: Any, tmp_path: Path) -> None:
    folder = Path(os.environ.get("ELSEWISE_RESULTS") or tmp_path)
    kept = json.loads(ulp_table.save(folder, "cuda", 1_000_000).read_text())
    bad = ulp_table.beyond(kept)
    assert len(kept["worst"]) > 25 and not bad, bad
