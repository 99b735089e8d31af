# SPDX-License-Identifier: Apache-2.0
"""Rules of many pieces: bodies that pieces of one shape share, and the search for the piece of a segment."""

import elsewise as ew
import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::elsewise.SpecWarning")


def bounds_of(count, n, random):
    """Half of them tiles of the row, half anywhere: empty, overlapping, outside."""
    if random.integers(2):
        ends = np.sort(random.integers(0, n + 1, count))
        return list(zip([0, *ends[:-1]], ends, strict=True))
    return [tuple(random.integers(-5, n + 6, 2)) for _ in range(count)]


def expected(x, bounds, value):
    out = np.array([value(len(bounds), v, t) for t, v in enumerate(x)], dtype=x.dtype)
    for p, (lo, hi) in reversed(list(enumerate(bounds))):
        for t in range(max(lo, 0), min(hi, len(x))):
            out[t] = value(p, x[t], t)
    return out


@pytest.mark.parametrize("count", [8, 9, 31, 40, 256])
def test_of_one_shape(count):
    random = np.random.default_rng(count)
    for n in (1, 7, 100, 1003):
        bounds = bounds_of(count, n, random)
        rule = "".join(f"{lo} <= i < {hi}: x*{p + 2} + {p}; " for p, (lo, hi) in enumerate(bounds))
        x = random.standard_normal(n).astype(np.float32)
        want = expected(x, bounds, lambda p, v, t: np.float32(np.float32(v * np.float32(p + 2)) + np.float32(p)))
        k = ew.kernel(rule + f"else x*{count + 2} + {count}")
        np.testing.assert_array_equal(k(x), want)
        same = x.copy()
        k(same, out=same)
        np.testing.assert_array_equal(same, want)


@pytest.mark.parametrize("count", [12, 60])
def test_of_several_shapes_in_rows(count):
    random = np.random.default_rng(count)
    bounds = bounds_of(count, 50, random)
    text = ["x", "{p}", "x - {p}", "x + t", "{p}*x"]
    rule = "".join(f"{lo} <= t < {hi}: {text[p % 5].format(p=p)}; " for p, (lo, hi) in enumerate(bounds))
    values = [
        lambda p, v, t: v,
        lambda p, v, t: p,
        lambda p, v, t: v - p,
        lambda p, v, t: v + t,
        lambda p, v, t: p * v,
    ]
    x = random.integers(-50, 50, (9, 50)).astype(np.int32)
    want = np.stack([expected(row, bounds, lambda p, v, t: values[p % 5](p, v, t) if p < count else -v) for row in x])
    k = ew.kernel(f"[r, t]; {rule}else -x")
    np.testing.assert_array_equal(k(x), want)
    np.testing.assert_array_equal(k(x.T.copy().T), want)


def test_behind_a_guard_of_data_each_piece_has_its_own_constant():
    rule = "x < 0: -1; " + "".join(f"i < {p + 1}: x*{p + 2}; " for p in range(12)) + "else x"
    x = np.array([1, 2, -3, 4, 5, 6, 7, -8, 9, 10, 11, 12, 13, 14, -15], dtype=np.float32)
    want = np.array([-1 if v < 0 else v * (t + 2) if t < 12 else v for t, v in enumerate(x)], dtype=np.float32)
    np.testing.assert_array_equal(ew.kernel(rule)(x), want)


def test_halves_bools_and_infinities():
    rule = "".join(f"i < {p + 1}: {p}.5; " for p in range(12)) + "i < 14: inf; else x"
    x = np.arange(20, dtype=np.float16)
    want = np.array([t + 0.5 if t < 12 else np.inf if t < 14 else t for t in range(20)], dtype=np.float16)
    np.testing.assert_array_equal(ew.kernel(rule)(x), want)
    rule = "".join(f"i < {p + 1}: {'true' if p % 3 else 'false'}; " for p in range(12)) + "else x"
    b = np.zeros(20, dtype=bool)
    want = np.array([t % 3 != 0 if t < 12 else False for t in range(20)])
    np.testing.assert_array_equal(ew.kernel(rule)(b), want)


def test_bounds_of_parameters_change_without_a_compilation():
    rule = "".join(f"i < m*{p + 1}: x*{p + 2}; " for p in range(40)) + "else x"
    k, x = ew.kernel(rule), np.arange(1, 301, dtype=np.float32)
    k(x, m=1)
    before = ew.cache_info().compiles
    for m in (0, 2, 7, -3):
        want = np.array([v * (t // m + 2) if m > 0 and t < 40 * m else v for t, v in enumerate(x)], dtype=np.float32)
        np.testing.assert_array_equal(k(x, m=m), want)
    assert ew.cache_info().compiles == before
