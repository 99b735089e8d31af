# SPDX-License-Identifier: Apache-2.0
"""`python -m elsewise explain` and `bench`: a rule on arguments that are described, not given. Tensors hold random
numbers; nothing is read from a file."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

import numpy as np

from . import _dtypes, _options
from ._errors import SpecError
from ._kernel import Kernel, kernel

KIND = "a dtype with a shape (`x=f32:1000000`, `x=f16:64x1024`) or a number (`gain=0.5`, `edge=3`, `on=true`)"


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
    except (SpecError, TypeError, ValueError, IndexError, ArithmeticError, RuntimeError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1


def _arguments(made: Kernel, options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    torch = _torch()
    device = options.device
    if device is None:
        device = "cuda" if torch is not None and torch.cuda.is_available() else "cpu"
    if device != "cpu" and torch is None:
        raise ValueError("tensors on a GPU are made by torch, which is not installed: pip install torch")
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
    random = np.random.default_rng(0)
    values = {name: _value(name, given[name], random, torch, device) for name in made.arguments}
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


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


def _lengths(name: str, text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+([x,]\d+)*", text):
        raise ValueError(f"{name} {text!r} is no shape, such as 1000000 or 64x1024")
    return tuple(int(length) for length in re.split("[x,]", text))


def _value(name: str, kind: str, random: np.random.Generator, torch: Any, device: str) -> Any:
    dtype, colon, shape = kind.partition(":")
    if not colon:
        return _number(name, kind)
    spelling = _dtypes.spelling(dtype)
    lengths = _lengths(f"--arg {name}", shape) if shape else ()
    if torch is not None:
        return _of_torch(torch, spelling, lengths, device)
    if spelling == "bool":
        return random.random(lengths) < 0.5
    if spelling[0] in "iu":
        return random.integers(0, 100, lengths).astype(_dtypes.TORCH_NAMES[spelling])
    return random.standard_normal(lengths).astype(_dtypes.TORCH_NAMES[spelling])


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
