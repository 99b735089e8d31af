# SPDX-License-Identifier: Apache-2.0
"""Values of a call's keywords that are not meant literally: each is refused by name, with the rule, and nothing raw of
the binding or of Python shows through."""

from __future__ import annotations

import ctypes
import decimal
from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest

X = np.ones(4, np.float32)
ONE = ew.kernel("x+1")
POSITIONS = ew.kernel("i*2")


class Dlpack:
    """An array of a library that is broken in one place."""

    def __init__(self, device: Any, capsule: Any) -> None:
        self.device, self.capsule = device, capsule

    def __dlpack_device__(self) -> Any:
        return self.give(self.device)

    def __dlpack__(self, **_: Any) -> Any:
        return self.give(self.capsule)

    @staticmethod
    def give(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value


class Interface:
    def __init__(self, fields: Any) -> None:
        self.fields = fields

    @property
    def __cuda_array_interface__(self) -> Any:
        return Dlpack.give(self.fields)


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "shape beyond 64 bits": (lambda: POSITIONS(shape=2**70), ValueError, "`shape` holds the length 1180"),
    "a length beyond 64 bits": (lambda: POSITIONS(shape=(2, 2**70)), ValueError, "`shape` holds the length 1180"),
    "too many elements": (lambda: POSITIONS(shape=(2**40, 2**40)), OverflowError, "too many elements"),
    "a negative length": (lambda: POSITIONS(shape=(-1, 2)), ValueError, "`shape` holds a negative length"),
    "a set": (lambda: POSITIONS(shape={3, 4}), TypeError, "`shape` is an int or a sequence of ints, not {3, 4}"),
    "a dict": (lambda: POSITIONS(shape={3: 4}), TypeError, "`shape` is an int or a sequence of ints, not {3: 4}"),
    "True": (lambda: POSITIONS(shape=True), TypeError, "`shape` is an int or a sequence of ints, not True"),
    "True inside": (lambda: POSITIONS(shape=(True, 2)), TypeError, "`shape` is .*not .True, 2."),
    "text": (lambda: POSITIONS(shape="34"), TypeError, "`shape` is an int or a sequence of ints, not '34'"),
    "an iterator": (lambda: POSITIONS(shape=iter((2, 3))), TypeError, "`shape` is .*not a tuple_iterator"),
    "floats": (lambda: POSITIONS(shape=np.array([2.0])), TypeError, "`shape` is .*not a numpy.ndarray"),
    "a device of 2**40": (lambda: POSITIONS(shape=3, device=2**40), ValueError, "`device` 1099511627776"),
    "a negative device": (lambda: POSITIONS(shape=3, device=-7), ValueError, "`device` is .*not -7; the CPU is 'cpu'"),
    "a bool device": (lambda: POSITIONS(shape=3, device=True), TypeError, "`device` is .*not True"),
    "a superscript": (lambda: POSITIONS(shape=3, device="cuda:²"), ValueError, "`device` is .*not 'cuda:²'"),
    "a gpu": (lambda: POSITIONS(shape=3, device="gpu"), ValueError, "did you mean `cuda`"),
    "a slip": (lambda: POSITIONS(shape=3, device="cdua"), ValueError, "did you mean `cuda`"),
    "an object as device": (lambda: POSITIONS(shape=3, device=object()), TypeError, "`device` is .*not an object"),
    "a bool stream": (lambda: ONE(X, stream=True), TypeError, "`stream` is a CUDA stream or its address, not a bool"),
    "a negative stream": (lambda: ONE(X, stream=-1), ValueError, "`stream` is an address, and -1 is none"),
    "a dtype's slip": (lambda: ONE(X, dtype="flaot32"), TypeError, "'flaot32' .did you mean `float32`"),
    "another byte order": (lambda: ONE(X, dtype=np.dtype(">f4")), TypeError, "other byte order"),
    "a dtype of nothing": (lambda: ONE(X, dtype="blah.int"), TypeError, "no such dtype here: 'blah.int'"),
    "a dtype elsewhere": (lambda: ONE(X, dtype="longdouble"), TypeError, "no such dtype here: 'longdouble'; there are"),
    "a time": (lambda: ew.kernel("x*g")(X, g=np.timedelta64(5)), TypeError, "`g` is neither .*numpy.timedelta64"),
    "a slip of an argument": (lambda: ew.kernel("x*gain")(X, gian=2), TypeError, "`gian` .did you mean `gain`"),
    "a slip of a keyword": (lambda: ONE(X, dtpye="f32"), TypeError, "`dtpye` .did you mean `dtype`"),
    "N for n": (lambda: ew.kernel("i<N/4: x; else 0")(X), TypeError, "`N` is missing .`n` is the number of elements"),
    "idx for i": (lambda: ew.kernel("idx<n: x; else 0")(X), TypeError, "`idx` is missing .`i` is the position"),
    "a NaN bound": (
        lambda: ew.kernel("i<edge: x; i>=edge: 0")(X, edge=float("nan")),
        ValueError,
        "a bound is not a number: `edge` is NaN",
    ),
    "a bound that becomes NaN": (
        lambda: ew.kernel("i<a*b: x; i>=a*b: 0")(X, a=float("inf"), b=0.0),
        ValueError,
        "a bound is not a number; it is made of `a`, `b`",
    ),
    "a failing __dlpack_device__": (
        lambda: ONE(Dlpack(RuntimeError("boom"), None)),
        TypeError,
        "`x` .*`__dlpack_device__` fails: RuntimeError: boom",
    ),
    "a failing __dlpack__": (
        lambda: ONE(Dlpack((1, 0), BufferError("no"))),
        ValueError,
        "`x`: its `__dlpack__` fails: BufferError: no",
    ),
    "no capsule": (lambda: ONE(Dlpack((1, 0), 5)), TypeError, "`x`: `__dlpack__` did not return a DLPack capsule"),
    "no fields": (lambda: ONE(Interface({})), TypeError, "`x` has a broken `__cuda_array_interface__`: KeyError"),
    "no dict": (lambda: ONE(Interface(5)), TypeError, "`x` has a broken `__cuda_array_interface__`"),
    "a failing interface": (lambda: ONE(Interface(RuntimeError("boo"))), TypeError, "`x`: its .* fails: .*boo"),
    "an address beyond memory": (
        lambda: ONE(Interface({"typestr": "<f4", "data": (2**80, False), "shape": (3,)})),
        TypeError,
        "`x` has a broken `__cuda_array_interface__`: ValueError: `data` is an address",
    ),
    "no stage": (ONE.emit, TypeError, "emit.. takes one stage, not 0; there are tokens"),
    "None as stage": (lambda: ONE.emit(None), TypeError, "a stage is a str, not None"),  # type: ignore[arg-type]
    "a stage's slip": (lambda: ONE.emit("cdua"), ValueError, "no such stage: 'cdua' .did you mean `cuda`"),
    "an array as kind": (lambda: ONE.emit("cuda", x=np.ones(3)), TypeError, r"`x` is the kind .*say x='f64\[1\]'"),
    "a kind's slip": (lambda: ONE.emit("cuda", x="flaot32"), ValueError, "`x`: no such kind: .* `float32`"),
    "a rank in superscript": (lambda: ONE.emit("cuda", x="f32[²]"), ValueError, "`x`: no such kind"),
    "an option's slip": (lambda: ONE.emit("cuda", in_palce=True), TypeError, "`in_palce` .did you mean `in_place`"),
    "an int for a flag": (lambda: ONE.emit("cuda", in_place=1), TypeError, "`in_place` is True or False, not 1"),
    "an int for an arch": (lambda: ONE.emit("ptx", arch=90), TypeError, "`arch` is a str such as 'sm_90', not an int"),
    "launch's slip": (lambda: ONE.launch(x=X, out=X, steram=1), TypeError, "`steram` .did you mean `stream`"),
    "a negative address": (
        lambda: ONE.launch(x=-4, out=5, dtype="f32", shape=3),
        ValueError,
        "`address` is an address, and -4 is none",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_it_is_refused_by_name(what: str) -> None:
    call, kind, pattern = WRONG[what]
    with pytest.raises(kind, match=pattern) as caught:
        call()
    assert caught.type is kind
    assert "; in `" in str(caught.value)  # and the rule
    assert "pybind" not in str(caught.value) and "incompatible" not in str(caught.value)


POINTERS: dict[str, tuple[Any, Any, Any, type[Exception]]] = {
    "negative": (-5, "f32", 3, ValueError),
    "a float": (1.5, "f32", 3, TypeError),
    "a bool": (True, "f32", 3, TypeError),
    "text": ("12", "f32", 3, TypeError),
    "beyond memory": (2**70, "f32", 3, ValueError),
    "None": (None, "f32", 3, TypeError),
    "a decimal": (decimal.Decimal("1.5"), "f32", 3, TypeError),
    "an array": (X, "f32", 3, TypeError),
    "a dtype's slip": (12, "flaot32", 3, TypeError),
    "a bool shape": (12, "f32", True, TypeError),
}


@pytest.mark.parametrize("what", POINTERS)
def test_pointers_are_refused_by_name(what: str) -> None:
    address, dtype, shape, kind = POINTERS[what]
    with pytest.raises(kind, match=r"`address`|`shape`|no such dtype here: 'flaot32' \(did you mean `float32`"):
        ew.ptr(address, dtype, shape)


def test_pointers_take_what_stands_for_an_address() -> None:
    class Allocation:
        def __int__(self) -> int:
            return 24

    addresses = [ew.ptr(a, "f32", 3).address for a in (12, np.int64(12), ctypes.c_void_p(12), Allocation())]
    assert addresses == [12, 12, 12, 24]
    with pytest.raises(ValueError, match=r"`strides` .1, 2. needs one entry"):
        ew.ptr(12, "f32", 3, strides=(1, 2))
    with pytest.raises(TypeError, match="`strides` is an int or a sequence of ints"):
        ew.ptr(12, "f32", 3, strides=(1.5,))  # type: ignore[arg-type]


def test_shapes_of_every_kind() -> None:
    torch = pytest.importorskip("torch")
    for shape in (
        [2, 3],
        (2, 3),
        torch.Size([2, 3]),
        np.array([2, 3]),
        (np.int64(2), np.int32(3)),
        (torch.tensor(2), 3),
        range(2, 4),
    ):
        assert POSITIONS(shape=shape).shape == (2, 3), shape
    assert POSITIONS(shape=np.int64(3)).shape == (3,) == POSITIONS(shape=3).shape


def test_dtypes_by_other_names() -> None:
    for name in (np.longlong, np.int64, "torch.int64", "np.int64", "long", int, np.dtype("longlong")):
        assert POSITIONS(shape=3, dtype=name).dtype == np.int64, name


def test_names_of_our_own_parameters_are_free() -> None:
    for name in ("self", "stage", "in_place", "tuple", "kernel", "args", "kwargs", "kind", "kinds", "options", "spec"):
        k = ew.kernel(f"x*{name}")
        assert k(X, **{name: 2}).tolist() == [2.0] * 4, name
        assert k.check(X, **{name: 2}), name
        assert k.emit("cuda", **{name: "int"}) != k.emit("cuda", **{name: "f32"}), name
        result = np.zeros_like(X)
        k.launch(x=X, out=result, device="cpu", **{name: 2})
        assert result.tolist() == [2.0] * 4, name
    assert ew.kernel("x*in_place").emit("cuda", in_place=True) != ew.kernel("x*in_place").emit("cuda")
    assert ONE.emit(stage="cuda") == ONE.emit("cuda")


@pytest.mark.parametrize(("spec", "kind"), [(b"x", "a bytes"), (None, "None"), (5, "an int"), (len, "a builtin")])
def test_only_text_is_a_rule(spec: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"a spec is a str, not {kind}"):
        ew.kernel(spec)


def test_half_a_character_is_refused() -> None:
    with pytest.raises(ValueError, match=r"character 5 is half a surrogate pair \(U\+D800\)"):
        ew.kernel("x + \ud800")
