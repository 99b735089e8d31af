# SPDX-License-Identifier: Apache-2.0
"""`k.foreach(xs)`: one rule over a list of tensors, in one launch where that can be. The lists are bound to arguments
here; the calls are read in C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _call, _elsewise, _options, _torch

if TYPE_CHECKING:
    from ._elsewise import Kernel


def foreach(self: Kernel, /, *args: Any, out: Any = None, stream: Any = None, **kwargs: Any) -> list[Any]:
    """Calls the kernel on each tensor of a list, as `[k(x) for x in xs]` does, all of them at once.

    xs and, by name, further arguments: a list (or tuple) of tensors or arrays, one a call, or a single value that every
    call gets; all lists are as long. `i`, `n`, axes and lengths are each tensor's own.
    out: a list of what to write to, `xs` itself for working in place; None makes new ones. stream: a CUDA stream
    instead of torch's current one.

    On CUDA, tensors whose elements lie one after another share a launch, up to some hundreds of them; a list in which
    one tensor is written that another call reads is worked in its order. Every call is checked before any is started:
    where one is refused, with the place of its tensor in the list, nothing was written.

    Returns the list of results. Raises what calls raise; ValueError for lists of different lengths or tensors on
    different devices.

        >>> ew.kernel("i<n/4: x*0.5; else x").foreach(parameters, out=parameters)
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
    values = _call.assign(self, args, kwargs)
    lists = {name: list(value) for name, value in values.items() if isinstance(value, (list, tuple))}
    if not lists:
        raise TypeError(f"foreach() takes a list of tensors for some argument; {_call._listing(self.arguments)}")
    lengths = {name: len(value) for name, value in lists.items()}
    if out is not None:
        if not isinstance(out, (list, tuple)):
            raise TypeError(f"`out` is a list, one tensor a call, not {_options.kind_of(out)}")
        lengths["out"] = len(out)
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"`{name}` has {length}" for name, length in lengths.items())
        raise ValueError(f"the lists are not of one length: {found}")
    given = tuple(lists.get(name, value) for name, value in values.items())
    outs = None if out is None else list(out)
    on = _options.stream(stream)
    torch = _torch.loaded()
    if torch is None:
        return _elsewise.foreach(self, given, outs, on)
    if out is None and _torch.exchange_api(torch) is None:
        every = (value for name, given_ in values.items() for value in lists.get(name, [given_]))
        if any(isinstance(value, torch.Tensor) for value in every):
            raise TypeError(f"foreach() makes no tensors of torch {torch.__version__} (2.10 can): give `out=`")
    with _torch.plain(torch):
        results = _elsewise.foreach(self, given, outs, on)
        if on is not None:
            for tensor in [*results, *(value for each in lists.values() for value in each)]:
                if isinstance(tensor, torch.Tensor) and tensor.is_cuda:
                    _call.record(torch, on, tensor)
    return results


def written(outs: list[Any]) -> None:
    """Tells autograd, for C, of what was written that it cannot tell itself."""
    torch = _torch.loaded()
    if torch is not None:
        _torch.written(torch, *[tensor for tensor in outs if isinstance(tensor, torch.Tensor)])


def read(name: str, value: Any, writable: bool) -> _elsewise.View | bool | int | float:
    """One argument of one call, for C: a view of its memory, or a number."""
    operand = _call.read(name, value, _torch.loaded(), writable)
    if operand is not None:
        if writable and not operand.library:
            raise TypeError(f"`out` is a list of arrays or tensors, not of {_options.kind_of(value)}")
        return operand.value
    raise TypeError(f"foreach() takes torch tensors and NumPy arrays, and `{name}` is {_options.kind_of(value)}")
