# SPDX-License-Identifier: Apache-2.0
"""torch tensors as arguments, and tensors for results. It never imports torch unless asked to, and refuses what has no
plain memory."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import TYPE_CHECKING, Any

from . import _elsewise
from ._dtypes import SIZES, TORCH_NAMES, find
from ._find_nvrtc import find_nvrtc

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_registered = False
_registering = threading.RLock()  # a finaliser may call a kernel meanwhile


def loaded() -> Any:
    """The module torch if it has been imported, whole; else None."""
    module = sys.modules.get("torch")
    if module is None or not hasattr(module, "Tensor"):
        return None
    if not _registered:
        with _registering:  # of several threads one does it, and the others wait for it
            if not _registered:
                _register(module)
    return module


def installed() -> Any:
    """torch, imported here; None where there is none."""
    try:
        import torch
    except ImportError:
        return None
    return torch


def needed(why: str) -> Any:
    """The module torch, imported now; RuntimeError if it is not installed."""
    torch = installed()
    if torch is None:
        raise RuntimeError(f"{why} needs torch, which is not installed: pip install torch")
    return loaded() or torch


def _register(torch: Any) -> None:
    """Hands the fast path in C what it needs. An older torch has no exchange API; all calls then go through `view`."""
    global _registered
    find_nvrtc()  # now that torch's CUDA is known
    api = exchange_api(torch)
    if api is None:
        _registered = True
        return
    base, internal = torch._C.TensorBase, torch._C
    _elsewise.register_torch(
        {
            "exchange_api": api,
            "Tensor": torch.Tensor,
            "Parameter": torch.nn.Parameter,
            "untyped_storage": base.untyped_storage,
            "storage_offset": base.storage_offset,
            "nbytes": internal.StorageBase.nbytes,
            "is_neg": base.is_neg,
            "requires_grad": base.requires_grad,
            "cdata": base._cdata,
            "samples": _samples(torch),
            "is_grad_enabled": torch.is_grad_enabled,
            "dispatch_depth": internal._len_torch_dispatch_stack,
            "function_depth": internal._len_torch_function_stack,
            "forward_ad": torch.autograd.forward_ad,
            "increment_version": internal._increment_version,
            "empty_strided": torch.empty_strided,
            "get_num_threads": torch.get_num_threads,
            "dtypes": {spelling: getattr(torch, name) for spelling, name in TORCH_NAMES.items()},
            "cpu": torch.device("cpu"),
            "cuda": [torch.device("cuda", ordinal) for ordinal in range(64)],
            "tracing_state": internal._get_tracing_state,
        }
    )
    _registered = True


def _samples(torch: Any) -> list[tuple[Tensor, int]]:
    """Tensors of several kinds, each with its dispatch keys as a number, by which C finds its way in a tensor. None if
    this torch does not tell. The first call's modes are not asked: a tensor here is none of theirs."""
    try:
        keys, f32 = torch._C._dispatch_keys, torch.float32
        alone = torch.utils._python_dispatch._disable_current_modes()
        with torch._C.DisableTorchFunction(), alone, torch.inference_mode(False):
            plain = torch.empty((2, 3), dtype=f32, device="cpu")
            parameter = torch.nn.Parameter(torch.empty((2, 3), dtype=f32, device="cpu"))
            with torch.inference_mode():
                inference = torch.empty(5, dtype=f32, device="cpu")
            kinds = [plain, parameter, torch._neg_view(plain), inference, torch.empty(7, device="meta")]
            samples = [(tensor, int(keys(tensor).raw_repr())) for tensor in kinds]
            return samples if all(0 <= key < 2**64 for _, key in samples) else []
    except Exception:  # whatever a torch that is like none we know raises: it is read by its methods then
        return []


def exchange_api(torch: Any) -> Any:
    """By which C reads and makes tensors; None of an older torch."""
    return getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)


def plain(torch: Any) -> contextlib.AbstractContextManager[Any]:
    """Inside, a tensor's own methods answer, whatever function modes are active. TypeError if the call is being
    traced."""
    internal = torch._C
    if internal._get_tracing_state() is not None:
        raise TypeError("torch.jit.trace cannot see into a kernel: its trace would hold nothing of the call")
    keys = getattr(internal, "_TorchDispatchModeKey", None)
    for key in ("FAKE", "PROXY", "FUNCTIONAL"):
        if keys is not None and internal._get_dispatch_mode(getattr(keys, key)) is not None:
            raise TypeError(f"a kernel works on memory and cannot be called under a {key.lower()} tensor mode")
    return internal.DisableTorchFunction()  # type: ignore[no-any-return]


def plain_if(torch: Any) -> contextlib.AbstractContextManager[Any]:
    """`plain`, where torch is there."""
    return contextlib.nullcontext() if torch is None else plain(torch)


def view(torch: Any, name: str, tensor: Tensor, writable: bool) -> _elsewise.View:
    """The memory of a tensor. TypeError for what has none of its own, ValueError for what must be resolved first."""
    kind = type(tensor)
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        raise TypeError(
            f"`{name}` is a tensor of torch.vmap, torch.func.grad or the like, which cannot see into a kernel"
        )
    if kind not in (torch.Tensor, torch.nn.Parameter):
        if kind.__name__ == "FakeTensor":
            raise TypeError(f"`{name}` is a fake tensor: it has a shape, but no data")
        if kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            raise TypeError(
                f"`{name}` is a {kind.__name__}, which stands for other tensors: pass the plain tensor in it"
            )
    if torch.nn.parameter.is_lazy(tensor):
        raise TypeError(f"`{name}` is an uninitialised parameter: it has neither shape nor data yet")
    if tensor.layout is not torch.strided:
        raise TypeError(f"`{name}` has layout {tensor.layout}, not memory with strides: pass {name}.to_dense()")
    if tensor.is_nested:
        raise TypeError(f"`{name}` is a nested tensor: pass its values, or {name}.to_padded_tensor(padding)")
    if tensor.is_quantized:
        raise TypeError(f"`{name}` is quantised ({tensor.dtype}): pass {name}.dequantize() or {name}.int_repr()")
    if tensor.device.type not in ("cpu", "cuda"):
        meta = ": it has a shape, but no data" if tensor.device.type == "meta" else "; kernels run on cpu and cuda"
        raise TypeError(f"`{name}` is on device {tensor.device}{meta}")
    if tensor.is_conj():
        raise ValueError(f"`{name}` is a view that is conjugated lazily: pass {name}.resolve_conj()")
    if tensor.is_neg():
        raise ValueError(f"`{name}` is a view that is negated lazily: pass {name}.resolve_neg()")
    dtype = find(tensor.dtype)
    if dtype is None:
        raise TypeError(f"`{name}` has dtype {tensor.dtype}; the dtypes are {' '.join(TORCH_NAMES.values())}")
    if tensor.requires_grad and torch.is_grad_enabled():
        how = "call under torch.no_grad()" if writable else f"pass {name}.detach() or call under torch.no_grad()"
        raise ValueError(f"`{name}` requires grad, and kernels have no gradient yet: {how}")
    forward = torch.autograd.forward_ad
    if forward._current_level >= 0 and forward.unpack_dual(tensor).tangent is not None:
        raise ValueError(
            f"`{name}` carries a tangent of forward-mode differentiation, and kernels have none yet: "
            f"pass torch.autograd.forward_ad.unpack_dual({name}).primal"
        )
    shape, strides = tuple(tensor.shape), tensor.stride()
    data = 0
    if tensor.numel():
        end = tensor.storage_offset() + sum((n - 1) * s for n, s in zip(shape, strides)) + 1
        size = tensor.untyped_storage().nbytes()
        if end * SIZES[dtype] > size:
            raise ValueError(
                f"`{name}` reaches {end * SIZES[dtype]} bytes into its storage, which was resized to {size}"
            )
        data = tensor.data_ptr()  # also gives a copy-on-write tensor memory of its own
        if not data:
            raise TypeError(f"`{name}` has a shape, but no data (a tensor of a tracer?)")
    return _elsewise.View(data, dtype, shape, strides, tensor.device.index if tensor.device.type == "cuda" else -1)


def device(torch: Any, ordinal: int) -> torch.device:
    return torch.device("cuda", ordinal) if ordinal >= 0 else torch.device("cpu")  # type: ignore[no-any-return]


def allocate(torch: Any, plan: _elsewise.Plan) -> Tensor:
    dtype = getattr(torch, TORCH_NAMES[plan.dtype])
    return torch.empty_strided(plan.shape, plan.strides, dtype=dtype, device=device(torch, plan.device))  # type: ignore[no-any-return]


def stream(torch: Any, ordinal: int) -> int:
    """torch's current stream for a device."""
    if not torch.cuda.is_initialized():  # by torch: then nobody has chosen a stream
        return 0
    return int(torch.cuda.current_stream(ordinal).cuda_stream)


def written(torch: Any, *tensors: Tensor) -> None:
    """Tells autograd that the tensors' data changed. (An inference tensor has no version, and none is bumped.)"""
    torch._C._increment_version(tensors)
