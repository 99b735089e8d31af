# SPDX-License-Identifier: Apache-2.0
"""The cases of the bank on a device, those that need one too: more than 2**31 elements, streams, a second device."""

from __future__ import annotations

from typing import Any

import pytest
import runner


@pytest.mark.parametrize(("case", "framework", "seed"), runner.runs(("cuda",)))
def test_case(case: dict[str, Any], framework: str, seed: int) -> None:
    runner.run(case, framework, seed)
