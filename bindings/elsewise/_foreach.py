# SPDX-License-Identifier: Apache-2.0
"""`k.foreach(xs)`: one rule over a list of tensors, in one launch where that can be. The lists are bound to arguments
here; the calls are read in C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _call, _elsewise, _interface, _options, _torch

if TYPE_CHECKING:
    from ._elsewise import Kernel


_OF_ONE_CALL = {  # options of a call that a list has not, and what there is instead
    "dtype": "each result has the dtype that its own tensors give: give `out=`, tensors of the dtype that you want",
    "shape": "each call has the shape of its own tensors; call the rule with `shape=` for each",
    "device": "each call runs where its own tensors are",
    **dict.fromkeys(("domain", "offset"), "each tensor is a domain of its own; call the rule with `{name}=` for each"),
}


def foreach(self: Kernel, /, *args: Any, out: Any = None, stream: Any = None, **kwargs: Any) -> list[Any]:
    """Calls the kernel on each tensor of a list, as `[k(x) for x in xs]` does, all of them at once.

    xs and, by name, further arguments: a list (a tuple, torch's ParameterList) of tensors or arrays, one a call, or a
    single value that every call gets; all lists are as long. `i`, `n`, axes and lengths are each tensor's own, and so
    are shape, dtype and device of each result, for which there are no options here.
    out: a list of what to write to, `xs` itself for working in place; None makes new ones. stream: a CUDA stream
    instead of torch's current one.

    On CUDA, tensors whose elements lie one after another share a launch, up to some hundreds of them; a list in which
    one tensor is written that another call reads is worked in its order. Every call is checked before any is started:
    where one is refused, with its place in the list, counted from 0, nothing was written.

    Returns the list of results. Raises what calls raise; ValueError for lists of different lengths, tensors on
    different devices, or a stream where no call runs on CUDA.

        >>> ew.kernel("i < 2: 0; else x").foreach([np.ones(3), np.ones(4, np.float32)])
        [array([0., 0., 1.]), array([0., 0., 1., 1.], dtype=float32)]
    """
    try:
        if stream is None:
            results = _elsewise.foreach_at_once(self, args, out, kwargs)
            if results is not NotImplemented:
                return results  # type: ignore[no-any-return]
        return _foreach(self, args, out, stream, kwargs)
    except (TypeError, ValueError, OverflowError) as error:
        _call.name_rule(self, error)
        raise


def _foreach(self: Kernel, args: tuple[Any, ...], out: Any, stream: Any, kwargs: dict[str, Any]) -> list[Any]:
    for name, instead in _OF_ONE_CALL.items():
        if kwargs.pop(name, None) is not None:
            raise TypeError(f"foreach() takes no `{name}=`: {instead.format(name=name)}")
    values = _call.assign(self, args, kwargs, ("out", "stream"))
    torch = _torch.loaded()
    lists = {name: made for name, value in values.items() if (made := _list(value, torch)) is not None}
    for name, value in values.items():
        if name not in lists and (cure := _as_list(name, value)):
            raise TypeError(f"`{name}` is {_options.kind_of(value)}, and foreach() takes lists: pass {cure}")
    if not lists:
        raise TypeError(f"foreach() takes a list of tensors for some argument; {_call._listing(self.arguments)}")
    lengths = {name: len(value) for name, value in lists.items()}
    outs = None if out is None else _list(out, torch)
    if outs is not None:
        lengths["out"] = len(outs)
    elif out is not None:
        cure = _as_list("out", out)
        raise TypeError(
            f"`out` is a list, one tensor a call, not {_options.kind_of(out)}" + (f": pass {cure}" if cure else "")
        )
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"`{name}` has {length}" for name, length in lengths.items())
        raise ValueError(f"the lists are not of one length: {found}")
    given = tuple(lists.get(name, value) for name, value in values.items())
    on = _options.stream(stream)
    if torch is None:
        return _placed(self, given, outs, on)
    if out is None and _torch.exchange_api(torch) is None and _tensors(given, torch):
        raise TypeError(f"foreach() makes no tensors of torch {torch.__version__} (2.10 can): give `out=`")
    results = outs or []
    with _torch.plain(torch):
        try:
            results = _placed(self, given, outs, on)
        finally:  # a launch may fail after others have begun
            if on is not None:
                for tensor in _tensors((results, *given), torch):
                    if tensor.is_cuda:
                        _call.record(torch, on, tensor)
    return results


def _tensors(values: tuple[Any, ...], torch: Any) -> list[Any]:
    """Those among the values, and among the elements of those that are lists."""
    every = (element for value in values for element in (value if isinstance(value, list) else [value]))
    return [value for value in every if isinstance(value, torch.Tensor)]


def _list(value: Any, torch: Any) -> list[Any] | None:
    """What is one value a call, as a list of its own; None for a value that every call gets."""
    kinds = (list, tuple) if torch is None else (list, tuple, torch.nn.ParameterList)
    return list(value) if isinstance(value, kinds) else None


def _as_list(name: str, value: Any) -> str:
    """How to make a list of what yields values one by one and is no array; "" for anything else."""
    if isinstance(value, (str, bytes, np.ndarray, np.generic)) or not hasattr(type(value), "__iter__"):
        return ""
    if hasattr(value, "dtype") or _interface.known(value):
        return ""
    return f"list({name}.values())" if isinstance(value, dict) else f"list({name})"


class _Unread(Exception):
    """What read() raised, with what it read."""

    def __init__(self, name: str, value: Any, error: Exception) -> None:
        self.name, self.value, self.error = name, value, error


def _placed(self: Kernel, given: tuple[Any, ...], outs: list[Any] | None, on: int | None) -> list[Any]:
    """The calls; what is refused in one of them says in which."""
    try:
        return _elsewise.foreach(self, given, outs, on)
    except _Unread as unread:
        of = outs if unread.name == "out" else given[self.arguments.index(unread.name)]
        error = unread.error
        for place, value in enumerate(of if isinstance(of, list) else ()):
            if value is unread.value:  # lists are read from their beginning, so it is the first
                error.args = (f"in call {place} of the list: {error}",)
                break
        raise error from None


def written(outs: list[Any]) -> None:
    """Tells autograd, for C, of what was written that it cannot tell itself."""
    torch = _torch.loaded()
    if torch is not None:
        _torch.written(torch, *[tensor for tensor in outs if isinstance(tensor, torch.Tensor)])


def read(name: str, value: Any, writable: bool) -> _elsewise.View | bool | int | float:
    """One argument of one call, for C: a view of its memory, or a number."""
    try:
        return _read(name, value, writable)
    except (TypeError, ValueError, OverflowError) as error:
        raise _Unread(name, value, error) from None


def _read(name: str, value: Any, writable: bool) -> _elsewise.View | bool | int | float:
    operand = _call.read(name, value, _torch.loaded(), writable)
    if operand is not None:
        if writable and not operand.library:
            raise TypeError(f"`out` is a list of arrays or tensors, not of {_options.kind_of(value)}")
        return operand.value
    raise TypeError(f"foreach() takes torch tensors and NumPy arrays, and `{name}` is {_options.kind_of(value)}")
