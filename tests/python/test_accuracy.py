# SPDX-License-Identifier: Apache-2.0
"""Every row of the builtin table that promises no bits against the exact value, its derivative against differences of
that, and its own bits in every place of a tensor. Random programs (`ew_tests fuzz`) hold the rest of the table."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import elsewise as ew
import numpy as np
import pytest
import ulp_table

COUNT = int(os.environ.get("ELSEWISE_ULP_INPUTS", "100000"))  # for longer


BOUNDED = {row.name: row for row in ulp_table.rows() if row.bounded}
DTYPES = {"f32": np.float32, "f64": np.float64}


def test_every_row_without_promised_bits_has_a_reference_here() -> None:
    assert set(BOUNDED) == set(ulp_table.references())
    assert len(BOUNDED) > 25


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BOUNDED)
def test_results_are_within_the_bound(name: str, dtype: str) -> None:
    row = BOUNDED[name]
    ours, theirs = (of(row, "cpu") for of in (ulp_table.ours, ulp_table.theirs))
    mine, torch = ulp_table.worst(name, row.arity, dtype, COUNT, ours, theirs)
    assert mine.ulps <= (row.ulp or torch.ulps), mine


@pytest.mark.parametrize("path", sorted(ulp_table.RESULTS.glob("ulp-*.json")), ids=lambda path: path.stem)
def test_kept_results_are_within_the_bounds(path: Path) -> None:
    kept = json.loads(path.read_text())
    assert set(kept["worst"]) == set(BOUNDED)
    assert not ulp_table.beyond(kept)
    kept["worst"]["exp"]["f32"]["elsewise"]["ulps"] = 100.0
    assert set(ulp_table.beyond(kept)) == {("exp", "f32")}


def test_the_measure_sees_what_is_wrong() -> None:
    want = np.array([1.0, 1.0, 0.0, 0.0, np.inf, np.nan, 1e300], dtype=np.longdouble)
    got = np.array([1.0, 1 + 2**-23, -0.0, 0.0, 1.0, 1.0, np.inf], dtype=np.float32)
    assert ulp_table.ulps(got, want).tolist() == [0, 1, np.inf, 0, np.inf, np.inf, 0]


# Where each derivative is tried: inside the function's domain, away from its kinks.
SAFE: dict[str, list[float]] = {
    "log": [0.5, 3.0],
    "log2": [0.5, 3.0],
    "log10": [0.5, 3.0],
    "log1p": [-0.5, 3.0],
    "asin": [-0.5, 0.3],
    "acos": [-0.5, 0.3],
    "atanh": [-0.5, 0.3],
    "acosh": [1.5, 3.0],
    "pow": [0.5, 2.5],
}


@pytest.mark.parametrize("name", BOUNDED)
def test_derivatives_are_those_of_the_reference(name: str) -> None:
    row = BOUNDED[name]
    function = ulp_table.references()[name]
    parts = row.derivative.split(";")
    assert len(parts) == row.arity
    first = np.array(SAFE.get(name, [-1.7, -0.4, 0.6, 2.2]))
    at = [first, np.full_like(first, 1.3)][: row.arity]
    step = np.longdouble(2) ** -16
    for k, part in enumerate(parts):
        up, down = ([x.astype(np.longdouble) + sign * step * (j == k) for j, x in enumerate(at)] for sign in (1, -1))
        slope = (function(*up) - function(*down)) / (2 * step)
        kernel = ew.kernel(part.strip())
        wanted = {letter: x for letter, x in zip("ab", at) if letter in kernel.arguments}
        got = kernel(**wanted) if wanted else np.full_like(first, float(part))
        np.testing.assert_allclose(got, slope.astype(np.float64), rtol=1e-7, atol=1e-9, err_msg=part)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BOUNDED)
def test_an_element_has_the_same_bits_in_every_place(name: str, dtype: str) -> None:
    """Body, tail and every alignment of a vector loop; a strided one; several threads. NaNs are a class."""
    row = BOUNDED[name]
    kernel = ew.kernel(f"{name}({', '.join('xy'[: row.arity])})")
    operands = [x[:200] for x in ulp_table.inputs(row.arity, dtype, 400)]
    call: Callable[..., Any] = lambda *v: kernel(**dict(zip("xy", v)))  # noqa: E731
    alone = np.concatenate([call(*(x[k : k + 1] for x in operands)) for k in range(len(operands[0]))])

    def of(values: Any) -> Any:
        one_nan = np.where(np.isnan(values), DTYPES[dtype](np.nan), values)
        return one_nan.view(np.uint32 if dtype == "f32" else np.uint64)

    def same(got: Any, want: Any) -> bool:
        return bool(np.array_equal(of(got), want))

    bits = of(alone)

    for length in range(1, 71):
        first = length % 17
        assert same(call(*(x[first : first + length] for x in operands)), bits[first : first + length]), length
    assert same(call(*(x[::3] for x in operands)), bits[::3])
    many = 4000  # of 200 each: enough for every thread
    assert same(call(*(np.tile(x, many) for x in operands)), np.tile(bits, many))


# --- ramps ------------------------------------------------------------------------------------------------------------


def test_a_ramp_of_positions_is_exact_however_large_they_are() -> None:
    n, fade = 2**31 + 11, 1000
    i = np.array([0, n - fade - 1, n - fade, n - fade + 1, n - fade // 2, n - 2, n - 1])
    got = ew.kernel("ramp(p + 0*i, m - fade, m)")(p=i, m=n, fade=fade)
    want = np.clip((i - (n - fade)) / fade, 0, 1)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=2**-23, atol=0)


def test_a_ramp_without_length_is_a_step() -> None:
    k = ew.kernel("ramp(x, 2, 2)")
    assert k(np.array([1, 1.9, 2, 3], dtype=np.float32)).tolist() == [0, 0, 1, 1]
    assert np.isnan(k(np.array([np.nan], dtype=np.float32))[0])
    assert ew.kernel("ramp(i, 3, 3)")(shape=(5,)).tolist() == [0, 0, 0, 1, 1]


def test_a_ramp_of_positions_does_not_widen_halves() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(8, dtype=torch.bfloat16)
    assert ew.kernel("x * ramp(i, 0, 4)")(x).dtype == torch.bfloat16
    assert ew.kernel("x * smoothstep(i, 0, 4)")(x).dtype == torch.bfloat16


def test_ramps_of_whole_data_subtract_as_whole_numbers() -> None:
    x = np.array([0, 100, 200, 255], dtype=np.uint8)
    assert ew.kernel("ramp(x, 50, 250)")(x).tolist() == [0, 0.25, 0.75, 1]
    low = np.array([-(2**31), 0, 2**31 - 1], dtype=np.int32)
    assert ew.kernel("ramp(x, -2147483648, 2147483647)")(low).tolist() == [0, 0.5, 1]
    ends = np.array([-(2**63), -(2**62), 0, 2**62, 2**63 - 1], dtype=np.int64)
    whole = ew.kernel("ramp(x, a, b)")
    assert whole(ends, a=-(2**63), b=2**63 - 1).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert whole.check(ends, a=-(2**63), b=2**63 - 1)


# --- halves -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rest", ["x*2", "x // x", "x % x", "x % 3"])
@pytest.mark.parametrize("rule", ["where(x < 0, 0, x)", "where(x > 0, x, 0)", "where(x >= 1, x, 1)", "relu(x)"])
def test_a_zero_keeps_its_sign_beside_other_arithmetic(rule: str, rest: str) -> None:
    """The value that no position takes may not change how the other is worked."""
    x = np.array([-0.0, 0.0, -1, 1, 2, np.nan, -np.inf, np.inf] * 40, dtype=np.float16)
    got, want = ew.kernel(f"where(i > n, {rest}, {rule})")(x), ew.kernel(rule)(x)
    assert got.view(np.uint16).tolist() == want.view(np.uint16).tolist()


@pytest.mark.parametrize("rule", ["x*({})", "({}) - x"])
@pytest.mark.parametrize("whole", ["y << 31", "y << 12", "y*65536", "y & -65536"])
def test_whole_numbers_beyond_a_half_are_worked_in_floats(rule: str, whole: str) -> None:
    x = np.array([0, -0.0, 1, 2, -3, 1e-7, np.inf] * 40, dtype=np.float16)
    y = np.array([1, 3, 5, 0, -2, 1, 4] * 40, dtype=np.int32)
    with np.errstate(invalid="ignore", over="ignore"):
        single = {"x": x.astype(np.float32), "w": eval(whole, {"y": y}).astype(np.float32)}
        want = eval(rule.format("w"), single).astype(np.float16)
    got = ew.kernel(rule.format(whole))(x=x, y=y)
    assert np.array_equal(got, want, equal_nan=True) and np.array_equal(np.signbit(got), np.signbit(want))


# --- whole numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_wrap_and_reflect_go_any_distance(length: int) -> None:
    positions = np.arange(-50, 50)
    assert ew.kernel("wrap(x, k)")(positions, k=length).tolist() == [p % length for p in positions]
    mirrored = np.pad(np.arange(length), (50, 100), mode="reflect")[: len(positions)]
    assert ew.kernel("reflect(x, k)")(positions, k=length).tolist() == mirrored.tolist()
    assert ew.kernel("reflect(i - 50, k)")(shape=(100,), k=length).tolist() == mirrored.tolist()


def test_wrapping_into_nothing_is_a_division_by_zero() -> None:
    with pytest.raises(ZeroDivisionError):
        ew.kernel("wrap(i, k)")(shape=(4,), k=0)


def test_bits_of_every_dtype() -> None:
    for kind in (np.uint8, np.int8, np.int16, np.int32, np.int64):
        info = np.iinfo(kind)
        x = np.array([0, 1, info.max, info.min, info.max // 3], dtype=kind)
        width = 8 * x.itemsize
        want = [bin(int(v) & (2**width - 1)).count("1") for v in x]
        got = ew.kernel("popcount(x)")(x)
        assert got.dtype == kind and got.tolist() == want
        assert ew.kernel("bit(x, 1)")(x).tolist() == [bool(int(v) >> 1 & 1) for v in x]
    assert ew.kernel("popcount(-1 - i)")(shape=(2,)).tolist() == [64, 63]
