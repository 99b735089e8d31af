# SPDX-License-Identifier: Apache-2.0
"""Every row of the builtin table that promises its bits, and every cast, on a device: the CPU's bits on special and
random values, or its refusal. What the CPU's bits are worth is for the fuzzer's oracle to say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import elsewise as ew
import numpy as np
import pytest
from builtins_page import field

ROOT = Path(__file__).resolve().parents[2]
FLOATS, WHOLE = (
    ("float16", "bfloat16", "float32", "float64"),
    ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
)
BY_RULE = {"Float": FLOATS, "Whole": WHOLE, "WholeTest": WHOLE, "Noise": WHOLE}  # any other rule: every dtype
OTHERS = ("Length", "Border", "CastInt", "CastFloat", "CastTo")  # take no element, or are casts
DEVICE = "cuda"


def rows() -> dict[str, tuple[int, tuple[str, ...]]]:
    """name: how many operands, and their dtypes."""
    table = (ROOT / "grammar/builtins.def").read_text()
    found = {}
    for row in re.split(r"^(?=\{\.name)", table, flags=re.MULTILINE)[1:]:
        rule = field(row, "rule", r"Rule::(\w+)")
        if field(row, "sameness", r"Sameness::(\w+)", "Bits") == "Ulp" or rule in OTHERS:
            continue
        found[field(row, "name", r'"([^"]*)"')] = (
            int(field(row, "min_arguments", r"(\d+)")),
            BY_RULE.get(rule, (*FLOATS, *WHOLE)),
        )
    return found


def values(torch: Any, dtype: str, seed: int) -> Any:
    """Special values, and random ones of every size, in another order for each seed."""
    rng = np.random.default_rng(seed)
    kind = getattr(torch, dtype)
    if dtype in WHOLE:
        limits = torch.iinfo(kind)
        special = [limits.min, limits.min + 1, -2, -1, 0, 1, 2, 3, 7, 31, 63, 64, limits.max - 1, limits.max]
        wide = np.uint64 if limits.max >= 2**63 else np.int64
        drawn = rng.integers(limits.min, limits.max, 4000, dtype=wide, endpoint=True)
        small = rng.integers(max(limits.min, -9), 9, 2000).astype(wide)
        kept = np.array([v for v in special if limits.min <= v <= limits.max], wide)
        every = torch.from_numpy(np.concatenate([np.repeat(kept, 40), drawn, small])).to(kind)
    else:
        limits = torch.finfo(kind)
        special = [0.0, limits.smallest_normal, limits.smallest_normal / 4, limits.max, np.inf, 0.5, 1, 1.5, 2.5, 3]
        drawn = rng.standard_normal(6000) * 10.0 ** rng.uniform(-6, 4, 6000)
        signed = np.array([*special, *(-v for v in special), np.nan])
        every = torch.from_numpy(np.concatenate([np.repeat(signed, 40), drawn])).to(kind)
    return every[torch.from_numpy(rng.permutation(len(every)))]


def outcome(kernel: ew.Kernel, operands: dict[str, Any]) -> Any:
    try:
        return kernel(**operands).cpu()
    except (ZeroDivisionError, OverflowError) as error:
        return type(error).__name__, str(error)


def same(torch: Any, got: Any, want: Any) -> bool:
    """The same bits; NaNs are a class."""
    if isinstance(want, tuple):
        return bool(got == want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    if not want.dtype.is_floating_point:
        return bool(torch.equal(got, want))
    nan = want.isnan()
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[want.element_size()]
    return bool(torch.equal(got.isnan(), nan) and torch.equal(got.view(bits)[~nan], want.view(bits)[~nan]))


@pytest.mark.parametrize("name", rows())
def test_the_cpus_bits(torch: Any, name: str) -> None:
    count, dtypes = rows()[name]
    letters = "xyz"[:count]
    for dtype in dtypes:
        operands = {letter: values(torch, dtype, seed) for seed, letter in enumerate(letters)}
        if name == "where":
            operands["x"] = operands["x"] != 0
        kernel = ew.kernel(f"{name}({', '.join(letters)})")
        want = outcome(kernel, operands)
        got = outcome(kernel, {letter: x.to(DEVICE) for letter, x in operands.items()})
        assert same(torch, got, want), (name, dtype)


@pytest.mark.parametrize(
    "to", ["bool", "u8", "i8", "i16", "i32", "i64", "u16", "u32", "u64", "f16", "bf16", "f32", "f64", "int", "float"]
)
def test_casts(torch: Any, to: str) -> None:
    for dtype in (*FLOATS, *WHOLE, "bool"):
        x = values(torch, "int8", 1) != 0 if dtype == "bool" else values(torch, dtype, 1)
        kernel = ew.kernel(f"{to}(x)")
        assert same(torch, kernel(x.to(DEVICE)).cpu(), kernel(x)), (to, dtype)


def test_every_row_is_here_or_in_the_table_of_accuracy() -> None:
    assert {"min", "clip", "frac", "ramp", "lerp", "wrap", "popcount", "isfinite", "where"} <= set(rows())
    assert len(rows()) > 25
