# SPDX-License-Identifier: Apache-2.0
"""Values of keywords that are the same in every call: shapes, devices, streams, flags. What is not meant literally is
refused, with the keyword's name; nothing is guessed."""

from __future__ import annotations

import difflib
import numbers
import operator
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

_LONGEST = (1 << 63) - 1
_DEVICES = 1 << 31


def nearest(word: str, known: Iterable[str]) -> str:
    """` (did you mean `k`?)` for the nearest of some known words, by case and then by letters; empty if none is."""
    known = list(known)
    near = [k for k in known if k.lower() == word.lower()] or difflib.get_close_matches(word, known, 1, 0.6)
    return f" (did you mean `{near[0]}`?)" if near else ""


def kind_of(value: Any) -> str:
    """`a numpy.ndarray`, `an int`: what a value is, for people."""
    if value is None:
        return "None"
    kind = value if isinstance(value, type) else type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, type):
        return f"the type {name}"
    return f"{'an' if name[:1] in tuple('aeiou') else 'a'} {name}"


def whole(name: str, value: Any) -> int:
    """An int, or what Python takes for one; never a bool or a time."""
    if not isinstance(value, (bool, np.bool_, np.timedelta64)) and _is_number(value):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f"`{name}` is an int, not {_shown(value)}")


def lengths(name: str, shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of lengths; an int is a shape of one axis."""
    result = integers(name, shape)
    for length in result:
        if length < 0:
            raise ValueError(f"`{name}` holds a negative length: {result}")
        if length > _LONGEST:
            raise ValueError(f"`{name}` holds the length {length}, which needs more than 64 bits")
    return result


def steps(name: str, strides: Any, rank: int) -> tuple[int, ...]:
    """Strides in elements, one for each of `rank` axes."""
    result = integers(name, strides)
    if len(result) != rank:
        raise ValueError(f"`{name}` {result} needs one entry for each of the {rank} axes of `shape`")
    for stride in result:
        if abs(stride) > _LONGEST:
            raise ValueError(f"`{name}` holds {stride}, which needs more than 64 bits")
    return result


def window(domain: Any, offset: Any) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """`domain=` and `offset=` as the run time takes them: the whole's shape, and where the window begins in it."""
    if domain is None:
        if offset is not None:
            raise TypeError("`offset=` says where a window begins in its domain: give the whole's shape as `domain=`")
        return None, None
    begin = None if offset is None else integers("offset", offset)
    for entry in begin or ():
        if abs(entry) > _LONGEST:
            raise ValueError(f"`offset` holds {entry}, which needs more than 64 bits")
    whole_shape = lengths("domain", domain)
    if begin is not None and len(begin) != len(whole_shape):
        raise ValueError(f"`offset` {begin} needs one entry for each of the {len(whole_shape)} axes of `domain`")
    return whole_shape, begin


def integers(name: str, value: Any) -> tuple[int, ...]:
    """An int or a sequence of ints (a tuple, a list, a torch.Size, a NumPy array) as a tuple."""
    try:
        if isinstance(value, np.ndarray) and value.ndim <= 1 and value.dtype.kind in "iu":
            return tuple(int(entry) for entry in value.reshape(-1))
        if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
            return tuple(whole(name, entry) for entry in value)
        return (whole(name, value),)
    except TypeError:
        pass
    raise TypeError(f"`{name}` is an int or a sequence of ints, not {_shown(value)}") from None


def flag(name: str, value: Any) -> bool:
    """A bool and nothing that is merely true."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise TypeError(f"`{name}` is True or False, not {_shown(value)}")


def device(value: Any, torch: Any) -> int | None:
    """The CUDA device that `device=` asks for, -1 for the CPU, None for nothing."""
    if value is None:
        return None
    forms = "'cpu', 'cuda', 'cuda:<number>' or a CUDA device's number"
    if isinstance(value, str) or (torch is not None and isinstance(value, torch.device)) or _is_device(value):
        text = str(value)
        if text in ("cpu", "cpu:0"):
            return -1
        if text == "cuda":
            return int(torch.cuda.current_device()) if torch is not None and torch.cuda.is_available() else 0
        number = re.fullmatch("cuda:([0-9]+)", text)
        if number and int(number[1]) < _DEVICES:
            return int(number[1])
        if number:
            raise ValueError(f"`device` {text!r}: no computer has so many devices")
        meant = "cuda" if text.lower() in ("gpu", "nvidia", "cuda:") else ""
        hint = f" (did you mean `{meant}`?)" if meant else nearest(text, ("cpu", "cuda", "cuda:0", "cuda:1"))
        raise ValueError(f"`device` is {forms}, not {text!r}{hint}")
    if isinstance(value, (bool, np.bool_)) or not _is_number(value):
        raise TypeError(f"`device` is {forms}, not {_shown(value)}")
    ordinal = whole("device", value)
    if ordinal < 0:
        raise ValueError(f"`device` is {forms}, not {ordinal}; the CPU is 'cpu'")
    if ordinal >= _DEVICES:
        raise ValueError(f"`device` {ordinal}: no computer has so many devices")
    return ordinal


def stream(value: Any) -> int | None:
    """The address of a CUDA stream: of torch, CuPy, PyCUDA, anything with `__cuda_stream__`, or an int."""
    if value is None:
        return None
    found = value
    try:
        if hasattr(value, "__cuda_stream__"):
            found = value.__cuda_stream__()[1]
        else:
            for attribute in ("cuda_stream", "ptr", "handle"):  # torch, CuPy, PyCUDA
                if hasattr(value, attribute):
                    found = getattr(value, attribute) or 0
                    break
        address = whole("stream", found)
    except (TypeError, ValueError, LookupError):
        raise TypeError(f"`stream` is a CUDA stream or its address, not {kind_of(value)}") from None
    return within("stream", address)


def within(name: str, value: int) -> int:
    """An address; ValueError for what no memory has."""
    if not 0 <= value < 1 << 64:
        raise ValueError(f"`{name}` is an address, and {value} is none")
    return value


def address(value: Any) -> int:
    """An int, or an object of another library that stands for an address (`int()` of it); never a float or text."""
    if hasattr(value, "value") and type(value).__module__ == "ctypes":
        value = value.value or 0  # c_void_p(0).value is None
    if isinstance(value, (int, np.integer)):
        return within("address", whole("address", value))
    if isinstance(value, (str, bytes, numbers.Number, np.generic, np.ndarray)) or not hasattr(type(value), "__int__"):
        raise TypeError(f"`address` is an int or an object that stands for an address, not {_shown(value)}")
    return within("address", int(value))


def _is_number(value: Any) -> bool:
    return hasattr(type(value), "__index__")


def _is_device(value: Any) -> bool:
    """Another library's device object, such as JAX's, whose text is `cuda:0`."""
    return type(value).__name__ in ("Device", "device") and not _is_number(value)


def _shown(value: Any) -> str:
    """The value itself if it is short, else what it is."""
    plain = isinstance(value, (bool, int, float, str, bytes, list, tuple, set, dict, np.generic))
    text = repr(value) if plain else ""
    return text if text and len(text) < 60 else kind_of(value)
