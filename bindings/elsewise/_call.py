# SPDX-License-Identifier: Apache-2.0
"""The slow path of a call: the same decisions as the fast one in C, for everything that one does not understand at
once, with full messages.
It checks what only Python can see (names, frameworks, tensors without memory); shapes, dtypes and overlap are the run
time's."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _dtypes, _elsewise, _interface, _numpy, _options, _torch
from ._pointer import Pointer

OPTIONS = ("out", "shape", "dtype", "device", "domain", "offset", "stream")
NAMED = {  # what rules of other languages call it, and what it is here
    "n": "`n` is the number of elements",
    "i": "`i` is the position",
    "inf": "infinity is `inf`",
    "nan": "not a number is `nan`",
    "pi": "pi is `pi`",
    "true": "truth is `true`",
    "false": "falsehood is `false`",
    "infinity": "infinity is `inf`",
    "none": "there is no None in a rule",
    **dict.fromkeys(("numel", "size", "length", "count", "num"), "`n` is the number of elements"),
    **dict.fromkeys(("idx", "index", "pos", "position", "j", "k"), "`i` is the position"),
}


class Operand(NamedTuple):
    """An argument read: a view or a Python number, and the library it is of ("" for a number)."""

    value: _elsewise.View | bool | int | float
    library: str
    keep: Any  # what must stay alive until the launch

    @property
    def view(self) -> _elsewise.View:
        assert isinstance(self.value, _elsewise.View)
        return self.value


def call(kernel: _elsewise.Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """k(*args, **kwargs)."""
    with naming(kernel):
        return _call_by_name(kernel, args, kwargs)


@contextlib.contextmanager
def naming(kernel: _elsewise.Kernel) -> Iterator[None]:
    """Adds the rule to what a call is told, as the run time does."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        name_rule(kernel, error)
        raise


def name_rule(kernel: _elsewise.Kernel, error: Exception) -> None:
    """The same of an error that is there."""
    text = error.args[0] if type(error) in (TypeError, ValueError, OverflowError) and error.args else None
    if isinstance(text, str) and "; in `" not in text:
        rule = " ".join(kernel.spec.split())
        error.args = (f"{text}; in `{rule if len(rule) <= 60 else rule[:60] + ' …'}`",)


def _call_by_name(kernel: _elsewise.Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    values, options, torch = by_name(kernel, args, kwargs)
    with _torch.plain_if(torch):
        return _call(kernel, values, options, torch)


def by_name(
    kernel: _elsewise.Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """A call's arguments, its options, and torch if any of it needs that; takes the options out of `kwargs`."""
    options = {name: kwargs.pop(name, None) for name in OPTIONS}
    values = assign(kernel, args, kwargs)
    torch = _torch.loaded()
    if torch is None and options["device"] is not None and options["out"] is None and _only_numbers(values):
        torch = _torch.needed(f"device={options['device']!r}")
    return values, options, torch


def assign(
    kernel: _elsewise.Kernel, args: tuple[Any, ...], kwargs: dict[str, Any], options: Sequence[str] = OPTIONS
) -> dict[str, Any]:
    """Values by argument name, in the order of `kernel.arguments`. TypeError for missing, unknown and misspelt names,
    which may be meant for one of the options."""
    names = kernel.arguments
    refuse_unknown(kernel, kwargs, options)
    values = dict(kwargs)
    if args:
        free = [name for name in names if name not in kwargs]
        if len(args) > 1 or not names:
            most = "one" if names else "no"
            raise TypeError(
                f"the rule takes {most} positional argument, not {len(args)}; {_listing(names)}{_by_name(kernel)}"
            )
        if "x" in names:
            if "x" in kwargs:
                raise TypeError(f"`x` was given twice: by position and by name; {_listing(names)}")
            values["x"] = args[0]
        elif len(free) == 1:
            values[free[0]] = args[0]
        else:
            which = f"any of {_list(free)}" if free else "nothing: all are given by name"
            raise TypeError(f"the positional argument could be {which}; {_listing(names)}")
    missing = [name for name in names if values.get(name) is None]
    if missing:
        hints = [f" ({NAMED[name.lower()]})" for name in missing if name.lower() in NAMED][:1]
        raise TypeError(
            f"{_list(missing)} {'is' if len(missing) == 1 else 'are'} missing{''.join(hints)}; {_listing(names)}"
        )
    return {name: values[name] for name in names}


def _by_name(kernel: _elsewise.Kernel) -> str:
    """What to do with positional arguments that are too many."""
    names = kernel.arguments
    if not names:
        what = _taken(kernel.spec, "x")
        return f": `x` is {what}" if what else ""
    main = "x" if "x" in names else names[0]
    others = [name for name in names if name != main]
    if not others:
        return "; what to write to is `out=`"
    return f"; give the others by name, as in `k({main}, {others[0]}={others[0]})`"


def refuse_unknown(kernel: _elsewise.Kernel, given: Iterable[str], options: Sequence[str]) -> None:
    """TypeError for a keyword that is neither an argument of the rule nor one of the options."""
    names = kernel.arguments
    for name in given:
        if name not in names:
            if what := _taken(kernel.spec, name):
                raise TypeError(f"`{name}` is no argument, it is {what}; {_listing(names)}")
            near = _options.nearest(name, [*names, *options])
            raise TypeError(f"the rule has no argument `{name}`{near}; {_listing(names)}")


def _taken(spec: str, name: str) -> str:
    """What a name that is no argument stands for in every rule, or in this one's header; "" if for nothing."""
    header = re.match(r"(?:\s|;|#[^\n]*)*\[([^\]]*)\]", spec)
    if header and name in re.findall(r"\w+", header[1]):
        return "an axis of the rule's header; another name for one of the two tells them apart"
    return {"i": "the position of the element", "n": "the number of elements: give `shape=`"}.get(name, "")


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _listing(names: Sequence[str]) -> str:
    return f"the arguments are {_list(names)}" if names else "the rule has no arguments"


def _only_numbers(values: dict[str, Any]) -> bool:
    return all(isinstance(value, (bool, int, float, np.generic)) for value in values.values())


class Prepared(NamedTuple):
    """A call read: what the run time takes, and what its end needs."""

    operands: dict[str, Operand]
    target: Operand | None
    shape: tuple[int, ...] | None
    dtype: str | None
    ordinal: int | None  # the device asked for
    window: tuple[tuple[int, ...] | None, tuple[int, ...] | None]
    on: int  # the device, as far as arguments tell
    stream: int | None  # asked for
    use: int  # the stream

    @property
    def args(self) -> list[Any]:
        return [o.value for o in self.operands.values()]

    @property
    def options(self) -> tuple[Any, Any, Any, Any, Any, Any]:
        """What plan() and explain() take behind the arguments."""
        return (None if self.target is None else self.target.view, self.shape, self.dtype, self.ordinal, *self.window)


def prepare(values: dict[str, Any], options: dict[str, Any], torch: Any) -> Prepared:
    """Reads a call's arguments and options; refuses what Python alone can see to be wrong."""
    out = options["out"]
    stream = _options.stream(options["stream"])
    # Other libraries' arrays are ordered on the stream of use, so torch's and CuPy's operands come first and say which
    # that is.
    operands: dict[str, Operand] = {}
    for name, value in values.items():
        operand = read(name, value, torch)
        if operand is not None:
            operands[name] = operand
    target = None if out is None else read("out", out, torch, writable=True)
    if target is not None and not target.library:
        raise TypeError(f"`out` is an array or tensor, not {_options.kind_of(out)}")
    ordinal = _options.device(options["device"], torch)
    given = {**operands, **({} if target is None else {"out": target})}
    on = next(
        (o.value.device for o in given.values() if isinstance(o.value, _elsewise.View) and o.value.device >= 0), -1
    )
    on = max(on, -1 if ordinal is None else ordinal)
    unread = len(operands) < len(values) or (out is not None and target is None)
    use = stream if stream is not None else _current_stream(on, values, out, torch) if on >= 0 or unread else 0
    for name, value in values.items():
        if name not in operands:
            operands[name] = Operand(_interface.view(name, value, False, use), _library(value), value)
    if out is not None and target is None:
        target = Operand(_interface.view("out", out, True, use), _library(out), out)
    operands = {name: operands[name] for name in values}

    _refuse_other_devices(operands, target, ordinal)
    views = [(name, o.value) for name, o in operands.items() if isinstance(o.value, _elsewise.View)]
    if target is not None:
        views.append(("out", target.view))
    on = max((v.device for _, v in views), default=-1 if ordinal is None else ordinal)
    if stream is not None and on < 0:
        raise ValueError("`stream=` is for CUDA, and this call runs on the CPU")

    shape = None if options["shape"] is None else _options.lengths("shape", options["shape"])
    window = _options.window(options["domain"], options["offset"])
    dtype = None if options["dtype"] is None else _dtypes.spelling(options["dtype"])
    return Prepared(operands, target, shape, dtype, ordinal, window, on, stream, use)


def _call(kernel: _elsewise.Kernel, values: dict[str, Any], options: dict[str, Any], torch: Any) -> Any:
    call = prepare(values, options, torch)
    library = _result_library(call.operands, options, call.on)
    plan = _elsewise.plan(kernel, call.args, *call.options)
    target = call.target
    if target is None:
        result = _allocate(plan, library, torch)
        target = read("out", result, torch, writable=True)
        if target is None:
            target = Operand(_interface.view("out", result, True, call.use), library, result)
        call = call._replace(target=target)
        if target.view.data % 16:
            plan = _elsewise.plan(kernel, call.args, *call.options)
    has_torch = torch is not None and any(o.library == "torch" for o in (*call.operands.values(), target))
    stream = call.use if call.on >= 0 else 0
    _, shape, dtype, ordinal, *window = call.options
    _elsewise.run(plan, call.args, target.view, shape, dtype, ordinal, stream, has_torch, False, *window)
    if has_torch:
        if call.stream is not None:
            for operand in (*call.operands.values(), target):
                if operand.library == "torch" and operand.keep.is_cuda:
                    record(torch, call.stream, operand.keep)
        if options["out"] is not None and target.library == "torch":
            _torch.written(torch, options["out"])
    return target.keep


def read(name: str, value: Any, torch: Any, writable: bool = False) -> Operand | None:
    """A number, NumPy array, torch tensor or raw pointer; None for another library's array, TypeError for anything
    else."""
    if isinstance(value, (bool, int, float)):
        exact = bool if isinstance(value, bool) else int if isinstance(value, int) else float
        number: bool | int | float = exact(value)
        if exact is int and not -(1 << 127) <= number < 1 << 127:
            raise OverflowError(f"`{name}` is an int beyond 128 bits")
        return Operand(number, "", value)
    if issubclass(type(value), np.ndarray):  # isinstance() believes what an object says of itself, as proxies do
        return Operand(_numpy.view(name, value, writable), "numpy", value)
    if torch is not None and issubclass(type(value), torch.Tensor):
        return Operand(_torch.view(torch, name, value, writable), "torch", value)
    if isinstance(value, _elsewise.View):
        return Operand(value, "pointer", value)
    if isinstance(value, np.generic):
        scalar = _numpy.scalar(value)
        if scalar is not None:
            return Operand(scalar, "", value)
    if isinstance(value, Pointer):
        raise TypeError(f"`{name}` is a raw pointer: use launch()")
    if _interface.is_traced(value):
        raise TypeError(
            f"`{name}` is a tracer of JAX, which has no data (under jax.jit, jax.grad, jax.vmap): call the kernel "
            "outside, or by jax.pure_callback"
        )
    if not isinstance(value, np.generic) and value.__class__ is type(value) and _interface.known(value):
        return None
    raise TypeError(
        f"`{name}` is neither a tensor, an array nor a number, but {_options.kind_of(value)}{_as_array(name, value)}"
    )


def _as_array(name: str, value: Any) -> str:
    """How to make an array of what can be one; "" for anything else."""
    if isinstance(value, (list, tuple)):
        return f": pass numpy.asarray({name}) or torch.as_tensor({name})"
    if hasattr(type(value), "to_numpy"):  # of pandas, polars
        return f": pass {name}.to_numpy()"
    return f": pass numpy.asarray({name})" if hasattr(type(value), "__array__") else ""


def _library(value: Any) -> str:
    return type(value).__module__.split(".")[0]


def _current_stream(ordinal: int, values: dict[str, Any], out: Any, torch: Any) -> int:
    everything = [*values.values(), out]
    if (
        ordinal >= 0
        and torch is not None
        and (any(isinstance(v, torch.Tensor) for v in everything) or not any(_library(v) == "cupy" for v in everything))
    ):
        return _torch.stream(torch, ordinal)
    if any(_library(v) == "cupy" for v in everything):
        import cupy  # type: ignore[import-not-found,unused-ignore]

        return int(cupy.cuda.get_current_stream().ptr)
    return 0


def _refuse_other_devices(operands: dict[str, Operand], target: Operand | None, ordinal: int | None) -> None:
    """Refuses data on several devices; only a CPU tensor or array without dimensions may go with CUDA data."""
    given = {**operands, **({} if target is None else {"out": target})}
    places = {name: o.value.device for name, o in given.items() if isinstance(o.value, _elsewise.View)}
    main = max(places.values(), default=-1)
    for name, operand in operands.items():
        if main >= 0 and places.get(name) == -1 and operand.view.shape == ():
            del places[name]
    if ordinal is not None:
        wrong = [name for name, place in places.items() if place != ordinal]
        if wrong:
            raise ValueError(
                f"`device=` asks for {_place(ordinal)}, but {_list(wrong)} {_are(wrong)} on {_place(places[wrong[0]])}"
            )
    for name, place in places.items():
        if place != main:
            numpy = " (a NumPy array)" if given[name].library == "numpy" else ""
            other = next(n for n, p in places.items() if p == main)
            raise ValueError(
                f"`{name}`{numpy} is on {_place(place)}, but `{other}` is on {_place(main)}: bring them to one device"
            )


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _place(ordinal: int) -> str:
    return "the CPU" if ordinal < 0 else f"cuda:{ordinal}"


def _result_library(operands: dict[str, Operand], options: dict[str, Any], on: int) -> str:
    libraries = [o.library for o in operands.values() if o.library]
    if "torch" in libraries:
        return "torch"
    if on >= 0 and libraries:
        return libraries[0]
    if not libraries and (options["device"] is not None or _dtypes.of_torch(options["dtype"])):
        return "torch"
    return "numpy"


def _allocate(plan: _elsewise.Plan, library: str, torch: Any) -> Any:
    if library == "torch":
        return _torch.allocate(torch, plan)
    if library == "numpy":
        return _numpy.allocate(plan.shape, plan.strides, plan.dtype)
    if library == "cupy":
        import cupy  # type: ignore[import-not-found,unused-ignore]

        dtype = _numpy.dtype_of(plan.dtype)
        with cupy.cuda.Device(plan.device):
            return cupy.ndarray(plan.shape, dtype, strides=[stride * dtype.itemsize for stride in plan.strides])
    raise TypeError(f"the result would have to be an array of {library}, which cannot be made from here: give `out=`")


def record(torch: Any, stream: int, tensor: Any) -> None:
    """A stream that is not torch's current one: its allocator has to hear of that, or it might reuse memory too
    early."""
    ordinal = tensor.device.index
    if stream != _torch.stream(torch, ordinal):
        tensor.record_stream(torch.cuda.ExternalStream(stream, device=ordinal))
