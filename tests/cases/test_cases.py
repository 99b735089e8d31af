# SPDX-License-Identifier: Apache-2.0
"""The cases of the bank on a CPU: NumPy's arrays and torch's tensors. Those that need a GPU are in tests/gpu."""

from __future__ import annotations

from typing import Any

import bank
import pytest
import runner
from specs import RULES, WAITING


@pytest.mark.parametrize(("case", "framework", "seed"), runner.runs(("numpy", "cpu")))
def test_case(case: dict[str, Any], framework: str, seed: int) -> None:
    runner.run(case, framework, seed)


@pytest.mark.parametrize("framework", ["numpy", "cpu"])
@pytest.mark.parametrize("case", [pytest.param(c, id=c["id"]) for c in bank.CASES if "forward" in c])
def test_forward(case: dict[str, Any], framework: str) -> None:
    """The values that gradients are taken of."""
    for seed in runner.SEEDS:
        runner.run_forward(case, runner.Framework(framework), seed)


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c["id"]) for c in bank.CASES if "bad" in c and c["kind"] == "alias"]
)
def test_refused(case: dict[str, Any]) -> None:
    runner.run_bad(case, runner.Framework("numpy"), 0)


def test_every_case_has_a_rule() -> None:
    assert list(RULES) == [case["id"] for case in bank.CASES]
    assert bank.check() == 76


def test_what_waits_is_a_case_or_a_kind() -> None:
    known = {case["id"] for case in bank.CASES} | {"kind:" + case["kind"] for case in bank.CASES}
    assert set(WAITING) <= known
