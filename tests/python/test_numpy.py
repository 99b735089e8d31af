# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays of every layout: the right result, or a clear error with nothing written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest

from .conftest import seed_of

LAYOUTS: dict[str, Callable[[], np.ndarray]] = {
    "contiguous": lambda: np.arange(24, dtype=np.float32).reshape(4, 6),
    "transposed": lambda: np.arange(24, dtype=np.float32).reshape(4, 6).T,
    "sliced": lambda: np.arange(96, dtype=np.float32).reshape(8, 12)[1::2, 3:9],
    "reversed": lambda: np.arange(24, dtype=np.float32)[::-1],
    "reversed rows": lambda: np.arange(24, dtype=np.float32).reshape(4, 6)[::-1, ::-2],
    "expanded": lambda: np.broadcast_to(np.arange(6, dtype=np.float32), (4, 6)),
    "permuted": lambda: np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1),
    "offset": lambda: np.arange(25, dtype=np.float32)[1:],
    "empty": lambda: np.zeros(0, np.float32),
    "empty in the middle": lambda: np.zeros((3, 0, 2), np.float32),
    "no axes": lambda: np.array(3, np.float32),
    "length 1": lambda: np.arange(6, dtype=np.float32).reshape(1, 6, 1),
    "one element": lambda: np.ones((1, 1), np.float32),
    "nine axes": lambda: np.arange(512, dtype=np.float32).reshape((2,) * 9).transpose(8, *range(8)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(both: Callable[..., Any], seed: ew.Kernel, layout: str) -> None:
    x = LAYOUTS[layout]()
    before = x.copy()
    result = both(seed, lambda: x, fast=x.ndim <= 8)
    assert result.dtype == np.float32 and np.array_equal(result, seed_of(x)) and np.array_equal(x, before)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "expanded"])
def test_layouts_of_out(both: Callable[..., Any], seed: ew.Kernel, layout: str) -> None:
    x = np.random.default_rng(0).standard_normal(LAYOUTS[layout]().shape).astype(np.float32)

    def make() -> tuple[Any, dict[str, Any]]:
        return (x,), {"out": LAYOUTS[layout]()}

    assert np.array_equal(both(seed, make), seed_of(x))


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "expanded"])
def test_in_place(both: Callable[..., Any], seed: ew.Kernel, layout: str) -> None:
    def make() -> tuple[Any, dict[str, Any]]:
        x = LAYOUTS[layout]()
        return (x,), {"out": x}

    assert np.array_equal(both(seed, make), seed_of(LAYOUTS[layout]()))


def test_out_is_returned_itself(seed: ew.Kernel) -> None:
    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    assert seed(x, out=out) is out and seed(x, out=x) is x


def test_a_permuted_dense_input_gives_a_permuted_dense_output(both: Callable[..., Any]) -> None:
    x = np.zeros((2, 3, 4), np.float32).transpose(2, 0, 1)
    assert both(ew.kernel("x + 1"), lambda: x).strides == x.strides


@pytest.mark.parametrize("dtype", ["bool", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8"])
def test_dtypes(both: Callable[..., Any], dtype: str) -> None:
    x = np.array([0, 1, 1, 0, 1, 1, 0], dtype)
    result = both(ew.kernel("i < 3: x; else x"), lambda: x, fast=True)
    assert result.dtype == x.dtype and np.array_equal(result, x)


def test_promotion_is_torchs_not_numpys(both: Callable[..., Any]) -> None:
    assert both(ew.kernel("x * 0.5"), lambda: np.arange(4, dtype=np.int32)).dtype == np.float32
    assert both(ew.kernel("x * 0.5"), lambda: np.arange(4, dtype=np.float16)).dtype == np.float16
    assert both(ew.kernel("x / 2"), lambda: np.arange(4, dtype=np.int64)).dtype == np.float32


def test_bfloat16(both: Callable[..., Any]) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.arange(8).astype(ml_dtypes.bfloat16)
    result = both(ew.kernel("x * 0.5"), lambda: x, fast=False)
    assert result.dtype == x.dtype and result.astype(float).tolist() == (np.arange(8) / 2).tolist()


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: np.ones(3, ">f4"), ValueError, "other byte order .*newbyteorder"),
        (lambda: np.frombuffer(bytes(17), np.uint8)[1:].view(np.float32), ValueError, "not aligned .*copy"),
        (lambda: np.zeros(4, [("a", "i1"), ("b", "f4")])["b"], ValueError, "not aligned"),
        (lambda: np.zeros(4, [("a", "f4"), ("b", "f4")]), TypeError, "dtypes are bool u8"),
        (lambda: np.zeros(4, "U3"), TypeError, "dtypes are"),
        (lambda: np.zeros(4, object), TypeError, "dtypes are"),
        (lambda: np.zeros(4, "c8"), TypeError, "complex64"),
        (lambda: np.zeros(4, np.longdouble), TypeError, "dtypes are"),
        (lambda: np.zeros(4, "M8[s]"), TypeError, "datetime64"),
        (lambda: np.ma.masked_array([1.0, 2.0], [True, False]), TypeError, "masked"),
        (lambda: [1.0, 2.0], TypeError, "numpy.asarray"),
    ],
)
def test_what_cannot_be_read(
    both: Callable[..., Any], make: Callable[[], Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        both(ew.kernel("x + 1"), make)
    assert "`x`" in str(caught.value)


def test_an_aligned_field_of_a_structure_is_fine(both: Callable[..., Any]) -> None:
    table = np.zeros(4, [("a", "f4"), ("b", "f4")])
    table["b"] = [1, 2, 3, 4]
    assert both(ew.kernel("x + 1"), lambda: table["b"]).tolist() == [2, 3, 4, 5]


def read_only() -> np.ndarray:
    array = np.zeros(8, np.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (read_only, ValueError, "`out` is read-only"),
        (lambda: np.zeros(7, np.float32), ValueError, "out"),
        (lambda: np.zeros((1, 8), np.float32), ValueError, "out"),
        (lambda: np.zeros(8, np.int32), (TypeError, ValueError), "out"),
        (lambda: np.zeros(8, "c8"), TypeError, "complex64"),
        (lambda: np.zeros(8, ">f4"), ValueError, "byte order"),
        (lambda: np.broadcast_to(np.zeros(1, np.float32), 8), ValueError, "out"),
        (lambda: np.lib.stride_tricks.as_strided(np.zeros(8, np.float32), (8,), (0,)), ValueError, "out"),
        (lambda: 3, TypeError, "`out` is an array or tensor, not an int"),
        (lambda: [0.0] * 8, TypeError, "`out`"),
    ],
)
def test_what_cannot_be_written(
    both: Callable[..., Any], seed: ew.Kernel, make: Callable[[], Any], kind: Any, message: str
) -> None:
    with pytest.raises(kind, match=message):
        both(seed, lambda: ((np.ones(8, np.float32),), {"out": make()}))
    out = make()
    with pytest.raises(kind):
        seed(np.ones(8, np.float32), out=out)
    if isinstance(out, np.ndarray):
        assert not np.any(out.astype(complex) if out.dtype.kind == "c" else out)


@pytest.mark.parametrize("shift", [1, -1, 3])
def test_a_shifted_overlap_is_refused_and_leaves_everything_as_it_was(both: Callable[..., Any], shift: int) -> None:
    base = np.arange(16, dtype=np.float32)
    before = base.copy()
    a, b = base[4:12], base[4 + shift : 12 + shift]
    with pytest.raises(ValueError, match="overlap"):
        both(ew.kernel("x*2"), lambda: ((a,), {"out": b}))
    assert np.array_equal(base, before)


def test_disjoint_parts_of_one_base_are_fine(both: Callable[..., Any]) -> None:
    def make() -> tuple[Any, dict[str, Any]]:
        base = np.arange(16, dtype=np.float32)
        return (base[:8],), {"out": base[8:]}

    assert both(ew.kernel("x*2"), make).tolist() == (np.arange(8) * 2).tolist()


def test_interleaved_views_that_share_no_element_are_fine_or_refused(both: Callable[..., Any]) -> None:
    def make() -> tuple[Any, dict[str, Any]]:
        base = np.arange(16, dtype=np.float32)
        return (base[::2],), {"out": base[1::2]}

    try:
        result = both(ew.kernel("x*2"), make)
    except ValueError as error:
        assert "overlap" in str(error)
    else:
        assert result.tolist() == (np.arange(0, 16, 2) * 2).tolist()


def test_the_same_memory_in_another_order_is_refused(both: Callable[..., Any]) -> None:
    base = np.arange(16, dtype=np.float32).reshape(4, 4)
    before = base.copy()
    with pytest.raises(ValueError, match="overlap"):
        both(ew.kernel("x*2"), lambda: ((base,), {"out": base.T}))
    assert np.array_equal(base, before)


def test_i32_in_place_is_an_error_that_changes_nothing(both: Callable[..., Any]) -> None:
    x = np.arange(8, dtype=np.int32)
    assert both(ew.kernel("x*0.5"), lambda: x).dtype == np.float32
    with pytest.raises((TypeError, ValueError), match="out"):
        both(ew.kernel("x*0.5"), lambda: ((x,), {"out": x}))
    assert x.tolist() == list(range(8))


def test_a_view_with_a_released_base(seed: ew.Kernel) -> None:
    view = np.arange(1000, dtype=np.float32)[500:]
    assert np.array_equal(seed(view), seed_of(np.arange(500, 1000, dtype=np.float32)))


def test_subclasses(both: Callable[..., Any], seed: ew.Kernel, tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "data", np.float32, "w+", shape=(8,))
    mapped[:] = 1
    assert np.array_equal(both(seed, lambda: mapped, fast=False), seed_of(np.ones(8, np.float32)))
    matrix = np.matrix(np.ones((2, 4), np.float32))
    assert np.array_equal(both(seed, lambda: matrix), seed_of(np.ones((2, 4), np.float32)))
