# SPDX-License-Identifier: Apache-2.0
"""Where benchmarks keep their tables and pictures: here, or where ELSEWISE_RESULTS says. It imports nothing that a
benchmark of memory would weigh."""

from __future__ import annotations

import os
from pathlib import Path

RESULTS = Path(os.environ.get("ELSEWISE_RESULTS") or Path(__file__).parent / "results")
