# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: the two paths of a call, and the first rule of the README in plain
NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest
from elsewise import _call, _elsewise, _torch

SEED = "i<n/4: x*0.5; i>=n-n/4: x*2; else x"


def python(*arguments: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
    """This interpreter in a process of its own."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=300,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def seed_of(x: np.ndarray) -> np.ndarray:
    """What SEED means, for floats."""
    flat = np.array(x).reshape(-1)
    n = flat.size
    flat[: n // 4] *= flat.dtype.type(0.5)
    flat[n - n // 4 :] *= flat.dtype.type(2)
    return flat.reshape(x.shape)


def outcome(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any]:
    """What a call does, comparable between paths: its result, or its error in full."""
    try:
        return "result", call(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.strides == b.strides and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if hasattr(a, "stride"):
        return a.dtype == b.dtype and a.stride() == b.stride() and bool(((a == b) | (a != a) & (b != b)).all())
    return bool(a == b)


@pytest.fixture
def both() -> Callable[..., Any]:
    """both(k, make): makes the arguments anew and calls once from C and once through Python. The two must do the same:
    the result is
    returned, the error raised."""

    def run(k: ew.Kernel, make: Callable[[], Any], *, fast: bool | None = None) -> Any:
        results = []
        for path in ("C", "Python"):
            made = make()
            args, kwargs = made if isinstance(made, tuple) else ((made,), {})
            args = args if isinstance(args, tuple) else (args,)
            before = _elsewise.path_counts()
            if path == "C":
                results.append(outcome(k, args, kwargs))
                if fast is not None:
                    stayed = _elsewise.path_counts()[0] > before[0]
                    assert stayed == fast, "stayed in C" if stayed else "left for Python"
            else:
                results.append(outcome(_call.call, (k, args, dict(kwargs)), {}))
        (how, value), (other_how, other) = results
        assert how == other_how and same(value, other), (
            f"from C: {how} {value!r}; through Python: {other_how} {other!r}"
        )
        if how != "result":
            made = make()
            args, kwargs = made if isinstance(made, tuple) else ((made,), {})
            k(*(args if isinstance(args, tuple) else (args,)), **kwargs)
        return value

    return run


@pytest.fixture(scope="session")
def seed() -> ew.Kernel:
    return ew.kernel(SEED)


@pytest.fixture(scope="session")
def torch() -> Any:
    torch = pytest.importorskip("torch")
    _torch.loaded()
    return torch
