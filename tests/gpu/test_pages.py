# SPDX-License-Identifier: Apache-2.0
"""Runs the blocks of the pages that need a GPU, and another package where they say so."""

from __future__ import annotations

import importlib.util

import pytest
from pages import Block, blocks, run_python


@pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for b in blocks("python") if b.needs])
def test_python_block(block: Block) -> None:
    for package in block.needs[1:]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    run_python(block)
