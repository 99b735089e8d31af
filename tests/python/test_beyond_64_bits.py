# SPDX-License-Identifier: Apache-2.0
"""Comparisons that no tensor has entered are right whatever their size: against Python's own integers and doubles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest

LAST = 2**63 - 1
NUMBERS = (LAST, 2**63, 2**64, 2**65 + 1, -LAST, -(2**63), -(2**64), 2**62)

# By rule of a flat position: what Python says.
FLAT: dict[str, Callable[[int, int, float], bool]] = {
    "i*k*0.5 > 0": lambda i, k, a: i * k * 0.5 > 0,
    "float(i - k) < 0": lambda i, k, a: float(i - k) < 0,
    "i*k + 0.5 <= a": lambda i, k, a: i * k + 0.5 <= a,
    "where(i > 1, i*k, 0.5) > 0.25": lambda i, k, a: (float(i * k) if i > 1 else 0.5) > 0.25,
    "i + k < where(i%2 == 0, a, 5.0)": lambda i, k, a: i + k < (a if i % 2 == 0 else 5.0),
    "i*a < k": lambda i, k, a: i * a < k,
    "i*a == k": lambda i, k, a: i * a == k,
    "-(i*a) >= k": lambda i, k, a: -(i * a) >= k,
    "i*k < i*a + 1": lambda i, k, a: i * k < i * a + 1,
    "i*k != i*a": lambda i, k, a: i * k != i * a,
    "min(i, k) < max(i, k)": lambda i, k, a: min(i, k) < max(i, k),
}
# The same of a row and a column: bounds of rows.
ROWS: dict[str, Callable[[int, int, int, float], bool]] = {
    "c <= r and c < k": lambda r, c, k, a: c <= r and c < k,
    "c < min(r + 2, k)": lambda r, c, k, a: c < min(r + 2, k),
    "c >= r and c > k": lambda r, c, k, a: c >= r and c > k,
    "c*3 < max(r, k)": lambda r, c, k, a: c * 3 < max(r, k),
    "c*2 < k - r": lambda r, c, k, a: c * 2 < k - r,
    "c*3 == k - r": lambda r, c, k, a: c * 3 == k - r,
    "c*1000 < where(r < 2, k, 5)": lambda r, c, k, a: c * 1000 < (k if r < 2 else 5),
    "c*1000 < where(r < 2, a, 5.0)": lambda r, c, k, a: c * 1000 < (a if r < 2 else 5.0),
    "c <= where(r%2 == 0, a, 5.0)": lambda r, c, k, a: c <= (a if r % 2 == 0 else 5.0),
}
REALS = (1e30, -1e30, 1e19, float(2**63), float(-(2**63)), 0.25, math.inf, math.nan)


def values(rule: str, k: int, a: float) -> dict[str, Any]:
    return {name: value for name, value in (("k", k), ("a", a)) if name in ew.kernel(rule).arguments}


@pytest.mark.parametrize("rule", FLAT)
def test_flat(rule: str) -> None:
    kernel = ew.kernel(f"{rule}: 1; else 0")
    for k in NUMBERS:
        for a in REALS:
            want = [int(FLAT[rule](i, k, a)) for i in range(5)]
            assert kernel(shape=5, **values(rule, k, a)).tolist() == want, (k, a)


@pytest.mark.parametrize("rule", ROWS)
def test_rows(rule: str) -> None:
    kernel = ew.kernel(f"[r, c]; {rule}: 1; else 0")
    for k in NUMBERS:
        for a in REALS:
            want = [[int(ROWS[rule](r, c, k, a)) for c in range(5)] for r in range(4)]
            assert kernel(shape=(4, 5), **values(rule, k, a)).tolist() == want, (k, a)


@pytest.mark.parametrize("rule", FLAT)
def test_a_read_that_a_comparison_guards_is_not_reached_elsewhere(rule: str) -> None:
    """The host looks where a read is reached by exact numbers; so must the code."""
    kernel = ew.kernel(f"{rule}: 0; else s[i + 2]")
    for k in NUMBERS:
        for a in REALS:
            reached = [i for i in range(5) if not FLAT[rule](i, k, a)]
            s = np.full(9, -777.0)[2:5]
            s[:] = 5
            try:
                result = kernel(shape=5, s=s, **values(rule, k, a))
            except IndexError:
                assert any(i + 2 >= 3 for i in reached), (k, a)
            else:
                assert all(i + 2 < 3 for i in reached), (k, a)
                assert set(result.tolist()) <= {0.0, 5.0}, (k, a)


def test_an_index_that_one_arm_makes_of_nan_does_not_hide_the_other() -> None:
    s = np.arange(3.0)
    kernel = ew.kernel("s[int(where(i%2 == 0, a, 5.0))]")
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        kernel(s=s, shape=4, a=math.nan)
    assert ew.kernel("s[int(where(i%2 == 0, a, 2.0))]")(s=s, shape=4, a=math.nan).tolist() == [0, 2, 0, 2]
    assert ew.kernel("s[int(float(i)*a)]")(s=s, shape=2, a=math.nan).tolist() == [0, 0]  # NaN is 0 everywhere
    rows = ew.kernel("[r, c]; c < where(r%2 == 0, a, 5.0): s[c]; else 0")
    with pytest.raises(IndexError):
        rows(s=s, shape=(2, 5), a=math.nan)


def test_guards_that_share_their_parts_are_split_in_time() -> None:
    lets = "\n".join(f"let c{k + 1} = c{k} and (i < {k + 5} or not c{k})" for k in range(40))
    result = ew.kernel(f"let c0 = i > 1\n{lets}\nc40: x\nelse 0")(np.ones(9))
    assert result.tolist() == [0, 0, 1, 1, 1, 0, 0, 0, 0]


def test_the_length_of_a_domain_beyond_32_bits_in_a_window_of_no_position() -> None:
    k = np.arange(60000, dtype=np.int64)
    for whole in (2**32, 2**31 + 5, 100_000):
        assert ew.kernel("k < n: 1; else 0")(k=k, domain=whole).all()
