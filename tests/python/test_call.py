# SPDX-License-Identifier: Apache-2.0
"""Names, numbers, options and what a call returns."""

from __future__ import annotations

import inspect
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest

A = np.arange(8, dtype=np.float32)


def test_readme_rules() -> None:
    x = A
    assert ew.kernel("i < 2: 0; else x")(x).tolist() == [0, 0, 2, 3, 4, 5, 6, 7]
    assert ew.kernel("i >= n-3: min(x, cap); else x")(x, cap=5.5).tolist() == [0, 1, 2, 3, 4, 5, 5.5, 5.5]
    assert ew.kernel("i % 2 == 0: x; else -x")(x).tolist() == [0, -1, 2, -3, 4, -5, 6, -7]
    assert ew.kernel("isnan(x): 0; x > hi: hi; else x")(x, hi=4).tolist() == [0, 1, 2, 3, 4, 4, 4, 4]
    assert np.allclose(ew.kernel("x*(1 - float(i)/n)")(x), x * (1 - np.arange(8) / 8))
    made = ew.kernel("2*i < n: i; else i-n")(shape=(8,))
    assert made.tolist() == [0, 1, 2, 3, -4, -3, -2, -1] and made.dtype == np.int64


def test_the_positional_argument_is_x_or_the_only_name_left(both: Callable[..., Any]) -> None:
    k = ew.kernel("i < 4: a; else a*b")
    assert both(k, lambda: ((A,), {"b": 2.0})).tolist() == [0, 1, 2, 3, 8, 10, 12, 14]
    assert both(k, lambda: ((2.0,), {"a": A})).tolist() == [0, 1, 2, 3, 8, 10, 12, 14]
    k = ew.kernel("x + y")
    assert both(k, lambda: ((A,), {"y": 1.0})).tolist() == (A + 1).tolist()
    assert both(k, lambda: ((), {"y": 1.0, "x": A})).tolist() == (A + 1).tolist()
    with pytest.raises(TypeError, match=r"could be any of `a`, `b`; the arguments are `a`, `b`"):
        both(ew.kernel("a + b"), lambda: A)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "`x`, `gain` are missing; the arguments are `x`, `gain`"),
        ((A,), {}, "`gain` is missing"),
        ((A,), {"gain": None}, "`gain` is missing"),
        ((A,), {"Gain": 1.0}, r"no argument `Gain` \(did you mean `gain`\?\); the arguments are `x`, `gain`"),
        ((A,), {"gian": 1.0}, r"did you mean `gain`"),
        ((A,), {"gain": 1.0, "ouT": A}, r"did you mean `out`"),
        ((A,), {"zebra": 1.0}, r"has no argument `zebra`; the arguments are"),
        ((A, A), {}, "one positional argument, not 2"),
        ((A,), {"x": A, "gain": 1.0}, "`x` was given twice"),
        ((A,), {"gain": 1.0, "offset": 3}, "give the whole's shape as `domain=`"),
    ],
)
def test_wrong_names_list_what_there_is(
    both: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        both(ew.kernel("x * gain"), lambda: (args, kwargs))


def test_names_of_the_language_are_no_arguments() -> None:
    for rule, name, message in [
        ("2*i < n: i; else i-n", "n", r"`n` is no argument, it is the number of elements: give `shape=`"),
        ("x*i", "i", r"`i` is no argument, it is the position of the element"),
        ("# scores\n[q, k]; x + k", "k", r"`k` is no argument, it is an axis of the rule's header"),
        ("[b, n]; x + n", "n", r"`n` is no argument, it is an axis"),
    ]:
        with pytest.raises(TypeError, match=message):
            ew.kernel(rule)(**({"x": A} if "x" in rule else {}), **{name: 3})


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("x*gain", r"one positional argument, not 2; .*, as in `k\(x, gain=gain\)`; in"),
        ("a*b + c", r"one positional argument, not 2; .*, as in `k\(a, b=b\)`; in"),
        ("-x", r"one positional argument, not 2; the arguments are `x`; what to write to is `out=`; in"),
        ("i", r"no positional argument, not 2; the rule has no arguments; in"),
        ("[y, x]; y*x", r"not 2; the rule has no arguments: `x` is an axis of the rule's header; another name"),
    ],
)
def test_positional_arguments_that_are_too_many(rule: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ew.kernel(rule)(A, A)


class Series:
    def to_numpy(self) -> np.ndarray:
        return A

    def __array__(self) -> np.ndarray:
        return A


class Picture:
    def __array__(self) -> np.ndarray:
        return A


class Tracer:
    """As JAX has them: an attribute of theirs that needs data fails."""

    @property
    def __dlpack__(self) -> Any:
        raise RuntimeError("ConcretizationTypeError")


class Traced(Tracer):
    pass


Tracer.__module__ = "jax._src.core"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Series(), r"but a .*Series: pass x.to_numpy\(\)"),
        (Picture(), r"but a .*Picture: pass numpy.asarray\(x\)"),
        ([1.0], r"but a list: pass numpy.asarray\(x\) or torch.as_tensor\(x\)"),
        (Traced(), "`x` is a tracer of JAX, which has no data .* or by jax.pure_callback"),
    ],
)
def test_what_could_be_an_array_says_how(both: Callable[..., Any], value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        both(ew.kernel("x*2"), lambda: ((value,), {}))


def test_no_arguments_at_all() -> None:
    k = ew.kernel("i")
    assert k.arguments == ()
    with pytest.raises(TypeError, match="takes no positional argument"):
        k(A)
    with pytest.raises(TypeError, match="has no arguments"):
        k(x=A, shape=3)
    with pytest.raises((TypeError, ValueError), match="shape="):
        k()
    assert k(shape=3).tolist() == [0, 1, 2]
    assert k(shape=(2, 2)).tolist() == [[0, 1], [2, 3]]
    assert k(out=np.zeros(3, np.int64)).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="negative"):
        k(shape=(-1,))
    with pytest.raises(TypeError, match="`shape`"):
        k(shape="ab")


@pytest.mark.parametrize(
    "gain", [2, True, 2.5, np.float32(2.5), np.int8(2), np.bool_(True), np.float64(2.5), np.float16(2.5)]
)
def test_parameters_are_python_or_numpy_numbers(both: Callable[..., Any], gain: Any) -> None:
    result = both(ew.kernel("x * gain"), lambda: ((A,), {"gain": gain}))
    assert result.dtype == np.float32 and result.tolist() == (A * np.float32(gain)).tolist()


@pytest.mark.parametrize("gain", [1j, "2", [2.0], object(), np.complex64(1), np.datetime64("2020-01-01")])
def test_other_values_are_refused(both: Callable[..., Any], gain: Any) -> None:
    with pytest.raises(TypeError, match="`gain`"):
        both(ew.kernel("x * gain"), lambda: ((A,), {"gain": gain}))


def test_integers_of_any_size_compare_exactly(both: Callable[..., Any]) -> None:
    k = ew.kernel("i < edge: x; else 0")
    for edge in (3, 2**62, 2**63, 2**64, 2**100, -(2**63), -(2**64), -(2**100)):
        expected = [v if p < edge else 0 for p, v in enumerate(A.tolist())]
        assert both(k, lambda edge=edge: ((A,), {"edge": edge})).tolist() == expected, edge
    with pytest.raises(OverflowError, match="128 bits"):
        both(k, lambda: ((A,), {"edge": 2**127}))


def test_an_integer_that_does_not_fit_the_data(both: Callable[..., Any]) -> None:
    out = np.full(4, 7, np.int8)
    with pytest.raises(OverflowError, match="g"):
        both(ew.kernel("x * g"), lambda: ((np.ones(4, np.int8),), {"g": 300, "out": out}))
    assert out.tolist() == [7, 7, 7, 7]


def test_zero_division(both: Callable[..., Any]) -> None:
    out = np.full(4, 7, np.int32)
    with pytest.raises(ZeroDivisionError):
        both(ew.kernel("x + n // g"), lambda: ((np.ones(4, np.int32),), {"g": 0, "out": out}))
    assert out.tolist() == [7, 7, 7, 7]


@pytest.mark.parametrize("dtype", ["f64", "float64", np.float64, np.dtype("f8"), float])
def test_dtype_in_any_spelling(both: Callable[..., Any], dtype: Any) -> None:
    result = both(ew.kernel("x"), lambda: ((A,), {"dtype": dtype}))
    assert result.dtype == np.float64


def test_unknown_dtype() -> None:
    with pytest.raises(TypeError, match="no such dtype here: 'complex64'; there are bool u8"):
        ew.kernel("x")(A, dtype="complex64")


def test_device_and_stream_are_checked(both: Callable[..., Any]) -> None:
    k = ew.kernel("x")
    assert both(k, lambda: ((A,), {"device": "cpu"})).tolist() == A.tolist()
    with pytest.raises(ValueError, match="`device=` asks for cuda:0, but `x` is on the CPU"):
        both(k, lambda: ((A,), {"device": "cuda:0"}))
    with pytest.raises(ValueError, match="not 'gpu'"):
        both(k, lambda: ((A,), {"device": "gpu"}))
    with pytest.raises(ValueError, match="runs on the CPU"):
        both(k, lambda: ((A,), {"stream": 0}))
    with pytest.raises(TypeError, match="stream"):
        both(k, lambda: ((A,), {"stream": "main"}))


def test_a_kernel_is_an_ordinary_object() -> None:
    k = ew.kernel("x * gain")
    assert repr(k) == "elsewise.kernel('x * gain')"
    assert k.spec == "x * gain" and k.arguments == ("x", "gain")
    assert str(inspect.signature(k)) == (
        "(x, *, gain, out=None, shape=None, dtype=None, device=None, domain=None, offset=None, stream=None)"
    )
    assert callable(k) and "Returns" in (ew.Kernel.__doc__ or "")
    again = pickle.loads(pickle.dumps(k))
    assert again.spec == k.spec and again(A, gain=2.0).tolist() == (A * 2).tolist()
    ref = weakref.ref(k)
    del k
    assert ref() is None
    with pytest.raises(TypeError, match=r"elsewise.kernel"):
        ew.Kernel("x")  # type: ignore[call-arg]


def test_only_text_is_a_spec() -> None:
    with pytest.raises(TypeError, match="a spec is a str, not an int"):
        ew.kernel(3)  # type: ignore[arg-type]


def test_broadcasting(both: Callable[..., Any]) -> None:
    row, column = np.arange(3, dtype=np.float32), np.arange(2, dtype=np.float32)[:, None]
    result = both(ew.kernel("a*10 + b"), lambda: ((), {"a": column, "b": row}), fast=True)
    assert result.tolist() == [[0, 1, 2], [10, 11, 12]]
    with pytest.raises(ValueError, match="a"):
        both(ew.kernel("a + b"), lambda: ((), {"a": np.zeros(3), "b": np.zeros(4)}))
    assert both(ew.kernel("x + i"), lambda: ((np.zeros(1),), {"shape": (3,)})).tolist() == [0, 1, 2]


@pytest.mark.parametrize("writable", [False, True])
def test_what_has_no_dimensions_may_be_elsewhere(writable: bool) -> None:
    """The rule alone, without a device: tests/gpu has the calls."""
    from elsewise import _call, _elsewise

    def operand(device: int, shape: tuple[int, ...], library: str = "torch") -> _call.Operand:
        return _call.Operand(_elsewise.View(256, "f32", shape, [1] * len(shape), device), library, None)

    refuse = _call._refuse_other_devices
    there = operand(0, (4,))
    refuse({"x": there, "y": operand(-1, ()), "z": operand(-1, (), "numpy")}, operand(0, (4,)) if writable else None, 0)
    with pytest.raises(ValueError, match=r"`y` is on the CPU, but `x` is on cuda:0"):
        refuse({"x": there, "y": operand(-1, (1,))}, None, None)
    with pytest.raises(ValueError, match=r"`out` is on the CPU, but `x` is on cuda:0"):
        refuse({"x": there}, operand(-1, ()), None)
    with pytest.raises(ValueError, match=r"`y` is on cuda:0, but `x` is on cuda:1"):
        refuse({"x": operand(1, (4,)), "y": operand(0, ())}, None, None)
    with pytest.raises(ValueError, match=r"`y` \(a NumPy array\) is on the CPU"):
        refuse({"x": there, "y": operand(-1, (4,), "numpy")}, None, None)
    with pytest.raises(ValueError, match=r"`device=` asks for the CPU, but `x` is on cuda:0"):
        refuse({"x": there}, None, -1)
