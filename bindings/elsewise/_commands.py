# SPDX-License-Identifier: Apache-2.0
"""`python -m elsewise explain` and `bench`: a rule on arguments that are described, not given. Tensors hold random
numbers where anything is run, else there is no memory behind them; nothing is read from a file."""

from __future__ import annotations

import argparse
import math
import re
import sys
from typing import Any

import numpy as np

from . import _dtypes, _elsewise, _options, _torch
from ._errors import SpecError
from ._kernel import Kernel, kernel
from ._machine import NO_CUDA, has_cuda
from ._pointer import contiguous

KIND = "a dtype with a shape (`x=f32:1000000`, `x=f16:64x1024`) or a number (`gain=0.5`, `edge=3`, `on=true`)"
ALIGNED = 512  # bytes, as allocators align
ADDRESSES = 1 << 63


def run(options: argparse.Namespace) -> int:
    """The exit status: 1 for what the rule or the call refuses, 2 for an argument that says nothing."""
    try:
        made = kernel(options.rule)
    except (SpecError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    try:
        values, keywords = _arguments(made, options)
    except (TypeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    try:
        if options.command == "explain":
            print(made.explain(**values, **keywords, **({"exact": True} if options.exact else {})))
            return 0
        result = made.bench(**values, **keywords, repeats=options.repeats, **({"cold": True} if options.cold else {}))
        print(result)
        if options.plot:
            result.plot(options.plot)
            print(f"drawn into {options.plot}")
        return 0
    except (
        SpecError,
        TypeError,
        ValueError,
        LookupError,
        ArithmeticError,
        RuntimeError,
        MemoryError,
        ImportError,
    ) as error:
        print(error, file=sys.stderr)
        return 1


def _arguments(made: Kernel, options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    torch = _torch.installed()
    device = options.device
    if device is None:
        device = "cuda" if has_cuda(torch) else "cpu"
    ordinal = _ordinal(device, torch)
    given: dict[str, str] = {}
    for text in options.arg:
        name, equals, kind = text.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"--arg {text!r} is no NAME=KIND; a kind is {KIND}")
        if name not in made.arguments:
            near = _options.nearest(name, made.arguments)
            there = ", ".join(made.arguments) or "none"
            raise ValueError(f"the rule has no argument `{name}`{near}; its arguments: {there}")
        given[name] = kind
    missing = [name for name in made.arguments if name not in given]
    if missing:
        raise ValueError(f"say what `{missing[0]}` is: --arg {missing[0]}=…: {KIND}")
    runs = options.command == "bench" or options.exact
    make = _Made(torch, device) if runs else _Described(ordinal)
    values = {name: _value(name, given[name], make) for name in made.arguments}
    keywords: dict[str, Any] = {}
    if options.out is not None:
        if not hasattr(values.get(options.out), "shape"):
            raise ValueError(f"--out {options.out}: no argument of that name is a tensor")
        keywords["out"] = values[options.out]
    if options.shape is not None:
        keywords["shape"] = _lengths("--shape", options.shape)
    if options.dtype is not None:
        keywords["dtype"] = _dtypes.spelling(options.dtype)
    if not any(hasattr(value, "shape") for value in values.values()):
        keywords["device"] = device if torch is not None else None
    return values, keywords


def _ordinal(device: str, torch: Any) -> int:
    """The CUDA device asked for, -1 for the CPU. ValueError where there is none."""
    ordinal = _options.device(device, torch)
    assert ordinal is not None
    if ordinal < 0:
        return ordinal
    if torch is None:
        raise ValueError("tensors on a GPU are made by torch, which is not installed: pip install torch")
    if not has_cuda(torch):
        raise ValueError(NO_CUDA)
    if ordinal >= torch.cuda.device_count():
        raise ValueError(f"there is no cuda:{ordinal}: torch sees {torch.cuda.device_count()}, counted from cuda:0")
    return ordinal


def _lengths(name: str, text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+([x,]\d+)*", text):
        raise ValueError(f"{name} {text!r} is no shape, such as 1000000 or 64x1024")
    return tuple(int(length) for length in re.split("[x,]", text))


def _value(name: str, kind: str, make: _Made | _Described) -> Any:
    dtype, colon, shape = kind.partition(":")
    if not colon:
        return _number(name, kind)
    spelling = _dtypes.spelling(dtype)
    lengths = _options.lengths(name, _lengths(f"--arg {name}", shape) if shape else ())
    size = math.prod(lengths) * _dtypes.SIZES[spelling]
    try:
        return make(spelling, lengths, size)
    except (RuntimeError, MemoryError):
        raise ValueError(f"--arg {name}={kind}: there is no memory for its {size:,} bytes") from None


class _Described:
    """Tensors that lie one behind the other in no memory, for what looks at nothing in them."""

    def __init__(self, ordinal: int) -> None:
        self.ordinal, self.end = ordinal, ALIGNED

    def __call__(self, spelling: str, lengths: tuple[int, ...], size: int) -> Any:
        begin = self.end
        self.end += -(-size // ALIGNED) * ALIGNED
        if self.end >= ADDRESSES:
            raise MemoryError
        return _elsewise.View(begin, spelling, lengths, contiguous(lengths), self.ordinal)


class _Made:
    """Tensors of random numbers; NumPy's where torch is not installed."""

    def __init__(self, torch: Any, device: str) -> None:
        self.torch, self.device, self.random = torch, device, np.random.default_rng(0)

    def __call__(self, spelling: str, lengths: tuple[int, ...], size: int) -> Any:
        if self.torch is not None:
            return _of_torch(self.torch, spelling, lengths, self.device)
        if spelling == "bool":
            return self.random.random(lengths) < 0.5
        if spelling[0] in "iu":
            return self.random.integers(0, 100, lengths).astype(_dtypes.TORCH_NAMES[spelling])
        return self.random.standard_normal(lengths).astype(_dtypes.TORCH_NAMES[spelling])


def _of_torch(torch: Any, spelling: str, lengths: tuple[int, ...], device: str) -> Any:
    dtype = getattr(torch, _dtypes.TORCH_NAMES[spelling])
    torch.manual_seed(0)
    if spelling == "bool":
        return torch.rand(lengths, device=device) < 0.5
    if spelling[0] in "iu":
        return torch.randint(0, 100, lengths, device=device).to(dtype)
    return torch.randn(lengths, device=device).to(dtype)


def _number(name: str, text: str) -> bool | int | float:
    if text in ("true", "false", "True", "False"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise ValueError(f"--arg {name}={text}: a kind is {KIND}")
