# SPDX-License-Identifier: Apache-2.0
"""What decides a call's domain, in its order, and of which library the result is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest

F = np.float32
LINE, COLUMN, SCALAR = np.ones(3, F), np.ones((2, 1), F), np.ones((), F)


def shape_of(rule: str, **arguments: Any) -> tuple[int, ...]:
    result = ew.kernel(rule)(**arguments)
    assert isinstance(result, np.ndarray)
    return result.shape


def test_shape_comes_first() -> None:
    assert shape_of("x + i", x=LINE, shape=(4, 3)) == (4, 3)
    assert shape_of("x + i", x=SCALAR, shape=5) == (5,)
    assert shape_of("len(s) + i", s=LINE, shape=5) == (5,)
    with pytest.raises(ValueError, match=r"`x` has shape \(3,\), which does not broadcast to `shape=\(4,\)`"):
        shape_of("x + i", x=LINE, shape=4)
    with pytest.raises(ValueError, match=r"`out` has shape \(3,\), but `shape=\(5,\)`"):
        shape_of("i", shape=5, out=np.empty(3, np.int64))


def test_then_the_broadcast_of_what_is_read_elementwise() -> None:
    assert shape_of("a + b", a=LINE, b=COLUMN) == (2, 3)
    assert shape_of("a + b", a=SCALAR, b=LINE) == (3,)  # without dimensions: only if there is no other
    assert shape_of("a + i", a=SCALAR) == ()
    assert shape_of("a + len(s)", a=LINE, s=np.ones((7, 5), F)) == (3,)  # asked for its length alone
    assert shape_of("[r, c]; a", a=np.ones((1, 1), F)) == (1, 1)
    with pytest.raises(ValueError, match=r"`out` has shape \(2, 3\), but `a` has \(3,\)"):  # exactly that shape
        shape_of("a + 1", a=LINE, out=np.empty((2, 3), F))
    with pytest.raises(ValueError, match=r"lengths 3 and 4 on axis -1 do not broadcast"):
        shape_of("a + b", a=LINE, b=np.ones(4, F))


def test_then_the_shape_of_out() -> None:
    out = np.empty((2, 5), np.int64)
    assert ew.kernel("i")(out=out) is out and out.tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert shape_of("i + len(s)", s=LINE, out=np.empty(7, np.int64)) == (7,)


def test_then_that_of_the_only_tensor() -> None:
    assert ew.kernel("i + 10*len(s)")(s=LINE).tolist() == [30, 31, 32]
    assert shape_of("[r, c]; r + len(s, 1)", s=np.ones((4, 2), F)) == (4, 2)
    assert shape_of("k*i + len(s)", s=LINE, k=2) == (3,)
    with pytest.raises(ValueError, match="no tensor says which shape the result has; give `shape=`"):
        shape_of("len(s) + len(t)", s=LINE, t=LINE)  # of two, none is the only one


def test_else_shape_is_asked_for() -> None:
    for rule, arguments in (("i", {}), ("i*k", {"k": 3})):
        with pytest.raises(ValueError, match="give `shape=` or `out=`"):
            shape_of(rule, **arguments)


@pytest.mark.parametrize("rule", ["i", "rule*i"])
def test_without_a_tensor_numpy_unless_torch_is_asked_for(torch: Any, rule: str) -> None:
    k = ew.kernel(rule)
    given: dict[str, Any] = {"shape": 3, **({"rule": 2} if "rule" in rule else {})}
    assert isinstance(k(**given), np.ndarray)
    for plain in ("f32", np.float32, np.dtype("float32"), "float32", float):
        if plain is not float:
            assert isinstance(k(**given, dtype=plain), np.ndarray), plain
    for asked in ({"device": "cpu"}, {"dtype": torch.float32}, {"device": "cpu", "dtype": "f64"}):
        assert isinstance(k(**given, **asked), torch.Tensor), asked
    assert isinstance(k(**given, domain=10, offset=2, device="cpu"), torch.Tensor)


def test_the_only_tensor_says_the_library_too(torch: Any) -> None:
    made = ew.kernel("i + len(s)")(s=torch.ones(4))
    assert isinstance(made, torch.Tensor) and made.tolist() == [4, 5, 6, 7]
    assert ew.kernel("i + len(s)").check(s=torch.ones(4))


def test_both_paths_choose_the_same(both: Callable[..., Any]) -> None:
    assert both(ew.kernel("i + len(s)"), lambda: ((LINE,), {})).tolist() == [3, 4, 5]
    assert both(ew.kernel("i*2"), lambda: ((), {"out": np.empty(3, np.int64)})).tolist() == [0, 2, 4]
