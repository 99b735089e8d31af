# SPDX-License-Identifier: Apache-2.0
"""`k.check(...)`: a rule's result beside the same rule in plain torch, which the compiler writes from the spec and this
only executes."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _call, _dtypes, _elsewise, _numpy, _options, _torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._elsewise import Kernel

_BITS = {"f16": "int16", "bf16": "int16", "f32": "int32", "f64": "int64"}


@dataclass(frozen=True)
class Check:
    """A comparison with plain torch.

    ok: dtype, shape and every element agree (NaN with NaN, +0 with -0), floats within `allowed_ulp`.
    allowed_ulp: how far a float may be from torch's by the bounds that `functions` of the rule state; 0 where none
    does.
    max_abs, max_ulp: the largest difference, absolute and in units in the last place (for integers and bools the
    absolute one).
    first_bad: row-major position of the first element that differs, or None. actual, expected: both results, as torch
    tensors.
    """

    ok: bool
    max_abs: float
    max_ulp: int
    first_bad: int | None
    expected: Any
    actual: Any
    allowed_ulp: int = 0
    functions: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        if self.ok:
            within = f", max_ulp={self.max_ulp} of {self._allowed()}" if self.max_ulp else ""
            return f"Check(ok, {self.actual.numel()} elements{within})"
        if self.first_bad is None:
            actual, expected = (f"{t.dtype}{list(t.shape)}" for t in (self.actual, self.expected))
            return f"Check(FAILED: {actual} where torch gives {expected})"
        k, beyond = self.first_bad, f" beyond {self._allowed()}" if self.allowed_ulp else ""
        at = f"at {k}: {self.actual.flatten()[k].item()!r} where torch gives {self.expected.flatten()[k].item()!r}"
        return f"Check(FAILED {at}; max_abs={self.max_abs:g}, max_ulp={self.max_ulp}{beyond})"

    def _allowed(self) -> str:
        return f"the {self.allowed_ulp} that {' '.join(self.functions)} may differ by"


def check(self: Kernel, /, *args: Any, **kwargs: Any) -> Check:
    """Runs the rule, and the same rule in plain torch, and compares: see :class:`Check`. Takes what a call takes,
    `out=` aside.

    NumPy arrays go to torch by `torch.from_numpy`. Raises as a call does, RuntimeError if torch is not installed.
    """
    torch = _torch.needed("check()")
    if kwargs.get("out") is not None:
        raise TypeError("check() takes no `out=`: it compares new results")
    actual = self(*args, **kwargs)
    options = {name: kwargs.pop(name, None) for name in _call.OPTIONS}
    values = _call.assign(self, args, kwargs)
    result = to_torch(torch, actual)
    return compare(torch, result, plain(self, torch, values, options, result)(), *_elsewise.allowance(self))


def plain(self: Kernel, torch: Any, values: dict[str, Any], options: dict[str, Any], like: Any) -> Callable[[], Any]:
    """The same rule in plain torch on these arguments, ready to be run; `like` has its shape and device."""
    given = {name: to_torch(torch, value) for name, value in values.items()}
    kinds = {name: _kind(torch, value) for name, value in given.items()}
    asked = None if options["dtype"] is None else _dtypes.spelling(options["dtype"])
    window = options["domain"] is not None
    source = _elsewise.emit(self, "torch", kinds, dtype=asked, rank=like.ndim, window=window)
    domain, offset = _options.window(options["domain"], options["offset"])
    function = rule(str(source))
    return lambda: function(given, like, {"domain": domain, "offset": offset})


@functools.lru_cache(64)
def rule(source: str) -> Callable[..., Any]:
    """The function `rule` of emitted source, called with the arguments that it names."""
    import inspect

    names: dict[str, Any] = {}
    exec(compile(source, "<emit('torch')>", "exec"), names)
    function = names["rule"]
    wanted = list(inspect.signature(function).parameters)

    def call(given: dict[str, Any], like: Any, window: dict[str, Any] | None = None) -> Any:
        extra = {"shape": tuple(like.shape), "device": like.device, **(window or {})}
        return function(**{name: given[name] if name in given else extra[name] for name in wanted})

    return call


def to_torch(torch: Any, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.name == "bfloat16":
            return torch.from_numpy(np.ascontiguousarray(value).view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(np.array(value))  # a copy: torch knows no negative strides and no read-only memory
    if isinstance(value, np.generic):
        scalar = _numpy.scalar(value)
        return value if scalar is None else scalar
    if isinstance(value, (bool, int, float, torch.Tensor)):
        return value
    return torch.from_dlpack(value) if hasattr(value, "__dlpack__") else torch.as_tensor(value)


def _kind(torch: Any, value: Any) -> str:
    if issubclass(type(value), torch.Tensor):
        return _dtypes.spelling(value.dtype) + ("[0]" if value.ndim == 0 else f"[{value.ndim}]")
    return "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "float"


def compare(torch: Any, actual: Any, expected: Any, allowed_ulp: int = 0, functions: Sequence[str] = ()) -> Check:
    """Compares two tensors element by element; floats may be `allowed_ulp` apart, as `functions` say."""
    allowed = (allowed_ulp, tuple(functions))
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return Check(False, float("inf"), (1 << 63) - 1, None, expected, actual, *allowed)
    same = actual == expected
    spelling = _dtypes.spelling(actual.dtype)
    if spelling in _BITS:
        same = same | (actual.isnan() & expected.isnan())
    bad = (~same).flatten()
    if not bool(bad.any()):
        return Check(True, 0.0, 0, None, expected, actual, *allowed)
    places = bad.nonzero().flatten().tolist()
    a, b = actual.flatten()[bad], expected.flatten()[bad]
    if spelling in _BITS:
        gaps = (a.double() - b.double()).abs()
        max_abs = float(torch.where(gaps.isnan(), float("inf"), gaps).max())
        steps = [abs(x - y) for x, y in zip(_steps(torch, a, spelling), _steps(torch, b, spelling))]
        steps = [(1 << 63) - 1 if nan else step for nan, step in zip((a.isnan() | b.isnan()).tolist(), steps)]
        first = next((place for place, step in zip(places, steps) if step > allowed_ulp), None)
        return Check(first is None, max_abs, max(steps), first, expected, actual, *allowed)
    gap = max(abs(int(x) - int(y)) for x, y in zip(a.tolist(), b.tolist()))
    return Check(False, float(gap), gap, places[0], expected, actual, *allowed)


def _steps(torch: Any, values: Any, spelling: str) -> list[int]:
    """Each float as its place among all floats of its dtype, both zeros at 0."""
    bits = values.contiguous().view(getattr(torch, _BITS[spelling])).tolist()
    least = -(1 << (8 * _dtypes.SIZES[spelling] - 1))
    return [b if b >= 0 else least - b for b in bits]
