# SPDX-License-Identifier: Apache-2.0
"""`kernel()` and the parts of a Kernel that may be slow. The type itself and its calls are in C; nothing here parses a
spec."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _call, _dtypes, _elsewise, _errors, _foreach, _interface, _numpy, _options, _torch
from ._bench import Bench, bench
from ._check import Check, check
from ._elsewise import Kernel
from ._explain import Explanation, explain
from ._pointer import Pointer, ptr

_elsewise.register_package(_call.call, _errors.fault, _numpy.allocate, _foreach.read, _foreach.written)
_elsewise.register_numpy(
    np.ndarray,
    np.empty,
    {spelling: np.dtype(name) for spelling, name in _dtypes.TORCH_NAMES.items() if spelling != "bf16"},
)


def kernel(spec: str) -> Kernel:
    """Compiles a rule about positions into a callable.

    spec: pieces `guard: value` separated by `;` or new lines, ended by `else value`; or one bare value. `i` is an
    element's row-major position, `n` the number of elements, unless axes of the rule's header are called so; `x` is the
    main input; other names are further tensors or scalar parameters.

    Returns a :class:`Kernel`. What can be checked without arguments is checked here; code is made at the first call
    with new dtypes.

    Raises SpecError (a SyntaxError) that shows every error with its place; warns with SpecWarning, e.g. of a piece that
    is never reached.
    """
    _refuse_no_text(spec)
    made, found = _elsewise.compile(spec, "<spec>")
    for fields in found:
        warnings.warn(_errors.Diagnostic.of(fields).rendered.rstrip("\n"), _errors.SpecWarning, stacklevel=2)
    return made


def _refuse_no_text(spec: Any) -> None:
    if not isinstance(spec, str):
        raise TypeError(f"a spec is a str, not {_options.kind_of(spec)}")
    try:
        spec.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the spec's character {error.start + 1} is half a surrogate pair (U+{ord(spec[error.start]):04X})"
        ) from None


def format(spec: str) -> str:
    """The same rule in the style of the language: blanks by precedence, `and or not`, one piece a line if it has
    several lines.

    spec: as for :func:`kernel`; it need not be right beyond its syntax. Its comments, parentheses and the line ends in
    its pieces stay.

        >>> ew.format("i<n/4 : x * .5 ;i>=n - n/4&&keep: x ;else:0")
        'i < n/4: x*.5; i >= n-n/4 and keep: x; else 0'

    Returns a str that means the same and that format() leaves as it is. Raises SpecError for what does not parse.
    """
    _refuse_no_text(spec)
    return _elsewise.format(spec)


STAGES = ("tokens", "ast", "ir", "cuda", "ptx", "cubin", "llvm", "asm", "torch")
EMIT_OPTIONS = ("arch", "in_place", "window", "dtype")
_KIND = re.compile(r"([A-Za-z0-9_.]+)(\[[0-9]{1,3}\])?")


def emit(self: Kernel, /, *stages: str, **options: Any) -> str | bytes:
    """The text of a stage of compilation, for contiguous arguments.

    stage: 'tokens' 'ast' 'ir' 'cuda' 'ptx' 'cubin' 'llvm' 'asm' 'torch'. arch: 'sm_90' …; by default the present
    device's.
    in_place: as if `out` were the first tensor argument. window: for a part of a domain, as `domain=` asks for.
    dtype: what `dtype=` or `out` would ask for.
    kinds: by argument, a dtype in any spelling for a tensor ('f32'; 'f32[0]' for one without dimensions; 'bool[1]' for
    a bool tensor)
    or 'int', 'float', 'bool' for a parameter. An argument left out is an f32 tensor.

    Returns a str; for 'cubin' bytes. Raises TypeError for unknown arguments, ValueError for an unknown stage, SpecError
    where the kinds
    don't fit the rule, RuntimeError if 'ptx' or 'cubin' find no NVRTC.
    """
    with _call.naming(self):
        return _emit(self, stages, options)


def _declared(
    self: Kernel,
    stage: str,
    /,
    *,
    arch: Any = None,
    in_place: bool = False,
    window: bool = False,
    dtype: Any = None,
    **kinds: Any,
) -> Any:
    """How `emit` is declared to people: an argument of a rule may have the name of its parameters, so it has none."""


emit.__dict__["__signature__"] = inspect.signature(_declared)


def _emit(self: Kernel, stages: tuple[Any, ...], options: dict[str, Any]) -> str | bytes:
    kinds = dict(options)
    if not stages and "stage" in kinds and "stage" not in self.arguments:
        stages = (kinds.pop("stage"),)
    if len(stages) != 1:
        raise TypeError(f"emit() takes one stage, not {len(stages)}; there are {' '.join(STAGES)}")
    stage = stages[0]
    if not isinstance(stage, str):
        raise TypeError(f"a stage is a str, not {_options.kind_of(stage)}; there are {' '.join(STAGES)}")
    if stage not in STAGES:
        raise ValueError(f"no such stage: {stage!r}{_options.nearest(stage, STAGES)}; there are {' '.join(STAGES)}")

    def flag(name: str) -> bool:
        # A rule may have an argument of that name, whose kind is never a bool, as the option always is.
        as_argument = name in self.arguments and not isinstance(kinds.get(name), bool)
        return False if as_argument else _options.flag(name, kinds.pop(name, False))

    in_place, window = flag("in_place"), flag("window")
    arch, dtype = kinds.pop("arch", None), kinds.pop("dtype", None)
    if arch is not None and not isinstance(arch, str):
        raise TypeError(f"`arch` is a str such as 'sm_90', not {_options.kind_of(arch)}")
    _call.refuse_unknown(self, kinds, EMIT_OPTIONS)
    spelled = {name: _kind(name, kind) for name, kind in kinds.items()}
    asked = None if dtype is None else _dtypes.spelling(dtype)
    return _elsewise.emit(self, stage, spelled, arch or "", in_place, asked, window=window)


def _kind(name: str, kind: Any) -> str:
    if any(kind is python for python in (int, float, bool)):
        return str(kind.__name__)
    if isinstance(kind, str):
        if kind in ("int", "float", "bool"):
            return kind
        parts = _KIND.fullmatch(kind)
        found = _dtypes.find(parts[1]) if parts else None
        if parts and found is not None:
            return found + (parts[2] or "")
        near = _options.nearest(kind.partition("[")[0], [*_dtypes.TORCH_NAMES, *_dtypes.TORCH_NAMES.values()])
        raise ValueError(f"`{name}`: no such kind: {kind!r}{near}; there are int float {' '.join(_dtypes.TORCH_NAMES)}")
    found = _dtypes.find(kind)
    if found is None:
        of = _dtypes.find(getattr(kind, "dtype", None))
        cure = f"; for this one say {name}={f'{of}[{kind.ndim}]'!r}" if of and hasattr(kind, "ndim") else ""
        raise TypeError(
            f"`{name}` is the kind of an argument, such as 'f32' or 'int', not {_options.kind_of(kind)}{cure}"
        )
    return "bool[1]" if found == "bool" else found


def launch(
    self: Kernel,
    /,
    *,
    out: Any,
    stream: Any = None,
    device: Any = None,
    dtype: Any = None,
    shape: Any = None,
    domain: Any = None,
    offset: Any = None,
    **args: Any,
) -> None:
    """Runs on raw addresses, as other CUDA libraries have them; nothing is allocated and nobody's bookkeeping is told.

    out, and by name each argument: `ew.ptr(address, dtype, shape, strides=None)`, an array or tensor, or a number for a
    parameter.
    A bare int for `out` and `x` is an address of the dtype and shape that `dtype=` and `shape=` give.
    domain, offset: as in a call, of what the pointers hold a part of.
    stream: a CUstream's address or a stream object; None or 0 is the default stream. device: an ordinal, 'cuda:1' or
    'cpu'; None is CUDA
    device 0, unless an array or tensor says otherwise.

    Asynchronous on CUDA: the memory must stay valid until the stream is done with it. Raises as calls do, with nothing
    written.
    """
    with _call.naming(self):
        _launch(self, out, stream, device, dtype, shape, _options.window(domain, offset), args)


def _launch(
    self: Kernel,
    out: Any,
    stream: Any,
    device: Any,
    dtype: Any,
    shape: Any,
    window: tuple[Any, Any],
    args: dict[str, Any],
) -> None:
    if (dtype is None) != (shape is None):
        raise TypeError("bare addresses need both `dtype=` and `shape=`")

    def pointer(name: str, value: Any) -> Any:
        bare = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))
        if bare and name in ("out", "x"):
            if dtype is None:
                raise TypeError(f"`{name}` is a bare address, which needs `dtype=` and `shape=`; or use ew.ptr")
            return ptr(value, dtype, _options.lengths("shape", shape))
        return value

    values = {name: pointer(name, value) for name, value in _call.assign(self, (), args).items()}
    target = pointer("out", out)
    torch = _torch.loaded()
    ordinal = _options.device(device, torch)
    if ordinal is None:
        given = [v for v in (target, *values.values()) if not isinstance(v, Pointer)]
        places = [v.device if isinstance(v, _elsewise.View) else _place(v, torch) for v in given]
        ordinal = next((place for place in places if place is not None), 0)
    where = _options.stream(stream) or 0

    def view(name: str, value: Any) -> Any:
        if isinstance(value, Pointer):
            return _elsewise.View(value.address, value.dtype, value.shape, value.strides, ordinal)
        operand = _call.read(name, value, torch, name == "out")
        return operand.value if operand is not None else _interface.view(name, value, name == "out", where)

    args_ = [view(name, value) for name, value in values.items()]
    to = view("out", target)
    if not isinstance(to, _elsewise.View):
        raise TypeError("`out` is an address, array or tensor, not a number")
    plan = _elsewise.plan(self, args_, to, None, None, ordinal, *window)
    _elsewise.run(plan, args_, to, None, None, ordinal, where, False, True, *window)


def _place(value: Any, torch: Any) -> int | None:
    """Where an array or tensor is, as far as it says so itself."""
    try:
        return _options.device(getattr(value, "device", None), torch)
    except (TypeError, ValueError):
        return None


def _signature(self: Kernel) -> inspect.Signature:
    keyword = inspect.Parameter.KEYWORD_ONLY
    names = list(self.arguments)
    first = "x" if "x" in names else names[0] if len(names) == 1 else None
    parameters = [inspect.Parameter(first, inspect.Parameter.POSITIONAL_OR_KEYWORD)] if first else []
    parameters += [inspect.Parameter(name, keyword) for name in names if name != first]
    parameters += [inspect.Parameter(name, keyword, default=None) for name in _call.OPTIONS]
    return inspect.Signature(parameters)


def _repr(self: Kernel) -> str:
    return f"elsewise.kernel({self.spec!r})"


def _reduce(self: Kernel) -> tuple[Any, ...]:
    return _rebuild, (self.spec,)


def _rebuild(spec: str) -> Kernel:
    return _elsewise.compile(spec, "<spec>")[0]


def _attach(members: Sequence[tuple[str, Any]]) -> None:
    for name, member in members:
        setattr(Kernel, name, member)


_attach(
    [
        ("emit", emit),
        ("launch", launch),
        ("check", check),
        ("foreach", _foreach.foreach),
        ("explain", explain),
        ("bench", bench),
        ("__signature__", property(_signature)),
        ("__repr__", _repr),
        ("__reduce__", _reduce),
        (
            "__doc__",
            """A compiled rule:
    `k(x, *, out=None, shape=None, dtype=None, device=None, domain=None, offset=None, stream=None, **args)`.

    The one positional argument is `x` if the rule has it, else the only name that the keywords leave. Tensors: torch
    (CPU, CUDA), NumPy,
    or anything with `__dlpack__` or `__cuda_array_interface__`, of any strides; they broadcast. Parameters: Python or
    NumPy numbers.

    out: where to write; has the domain's shape; may be the identical view of an input. shape: the domain, if not the
    tensors' broadcast.
    domain, offset: computes a window: a part of a domain of the shape `domain` that begins at `offset` (zeros by
    default), with the bits that
    the whole would have there; tensors are the window's part, and `i`, `n`, axes and lengths are the domain's.
    dtype: the result's, where torch's `out=` would convert: 'f32', 'float32', np.float32 or torch.float32. A str means
    what torch means by it, so 'float' is f32 and 'int' i32, and the number in a short one is bits ('i8' is torch.int8);
    Python's float is f64 and its int i64.
    device: for rules without tensors. stream: a CUDA stream
    instead of torch's
    current one.

    Returns `out`, else a new tensor: torch's if any argument is (or `device=`, a torch dtype ask for it), else a NumPy
    array.
    On CUDA it returns at once, like a torch operator, and like one it counts on tensors being used on the stream they
    were made on.

    Raises SpecError where the rule does not fit the dtypes, TypeError for names, dtypes and objects without memory,
    ValueError for shapes, windows, devices, overlap and tensors that require grad, IndexError for a read out of bounds,
    OverflowError for numbers that don't fit, ZeroDivisionError for a whole number divided by zero, RuntimeError if a
    driver or NVRTC is missing. Then nothing was written.
    """,
        ),
    ]
)
__all__ = ["Bench", "Check", "Explanation", "Kernel", "kernel"]
