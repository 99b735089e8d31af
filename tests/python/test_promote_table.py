# SPDX-License-Identifier: Apache-2.0
"""The checked-in table of torch's promotion is that of the torch in use; C++ unit tests compare promote() with it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("torch")
HERE = Path(__file__).resolve().parents[1] / "unit"


def test_table_is_that_of_this_torch() -> None:
    found = importlib.util.spec_from_file_location("promote_table", HERE / "promote_table.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    assert module.table() == (HERE / "promote_table.inc").read_text(encoding="utf-8")
