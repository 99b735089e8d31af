# SPDX-License-Identifier: Apache-2.0
"""What a proof of coverage had to assume is checked at the call, before anything is written."""

from __future__ import annotations

import math

import elsewise as ew
import numpy as np
import pytest


def test_a_bound_that_is_not_a_number() -> None:
    k = ew.kernel("i < edge: x; i >= edge: 0")
    x = np.arange(1, 5, dtype=np.float32)
    np.testing.assert_array_equal(k(x, edge=1.5), np.array([1, 2, 0, 0], np.float32))
    np.testing.assert_array_equal(k(x, edge=math.inf), x)
    out = np.full(4, 9, np.float32)
    with pytest.raises(ValueError):
        k(x, edge=math.nan, out=out)
    np.testing.assert_array_equal(out, np.full(4, 9, np.float32))


def test_numbers_that_make_none() -> None:
    k = ew.kernel("i < edge-start: x; i >= edge-start: 0")
    x = np.arange(1, 5, dtype=np.float32)
    np.testing.assert_array_equal(k(x, edge=5.0, start=3.0), np.array([1, 2, 0, 0], np.float32))
    with pytest.raises(ValueError):
        k(x, edge=math.inf, start=math.inf)


def test_with_else_there_is_nothing_to_assume() -> None:
    x = np.arange(1, 5, dtype=np.float32)
    np.testing.assert_array_equal(
        ew.kernel("i < edge: x; i >= edge: 0; else 7")(x, edge=math.nan), np.full(4, 7, np.float32)
    )
    np.testing.assert_array_equal(
        ew.kernel("i < edge: x; not (i < edge): 0")(x, edge=math.nan), np.zeros(4, np.float32)
    )


def test_a_tensor_repeats_the_proof() -> None:
    k = ew.kernel("i < edge: x; i >= edge: 0")
    x = np.arange(1, 5, dtype=np.float32)
    np.testing.assert_array_equal(k(x, edge=np.array([0, 9, 2, 9])), np.array([0, 2, 0, 4], np.float32))
    with pytest.raises(ew.SpecError, match="NaN in `edge`"):
        k(x, edge=x)
