# SPDX-License-Identifier: Apache-2.0
"""torch CPU tensors: every layout, and every state in which a tensor's memory is not what it seems. The right result,
or a clear error with nothing written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest
from elsewise import _torch

from .conftest import seed_of

torch = pytest.importorskip("torch")
_torch.loaded()

Both = Callable[..., Any]

LAYOUTS: dict[str, Callable[[], Any]] = {
    "contiguous": lambda: torch.arange(24.0).reshape(4, 6),
    "transposed": lambda: torch.arange(24.0).reshape(4, 6).t(),
    "sliced": lambda: torch.arange(96.0).reshape(8, 12)[1::2, 3:9],
    "expanded": lambda: torch.arange(6.0).expand(4, 6),
    "permuted": lambda: torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
    "channels last": lambda: torch.arange(48.0).reshape(2, 2, 3, 4).to(memory_format=torch.channels_last),
    "offset": lambda: torch.arange(25.0)[1:],
    "empty": lambda: torch.zeros(0),
    "empty in the middle": lambda: torch.zeros(3, 0, 2),
    "no axes": lambda: torch.tensor(3.0),
    "length 1": lambda: torch.arange(6.0).reshape(1, 6, 1),
    "overlapping": lambda: torch.arange(10.0).unfold(0, 4, 1),
    "parameter": lambda: torch.nn.Parameter(torch.arange(8.0), requires_grad=False),
    "detached": lambda: torch.arange(8.0).requires_grad_().detach(),
    "inference": lambda: inference(),
    "nine axes": lambda: torch.arange(512.0).reshape((2,) * 9).transpose(0, 8),
}


def inference() -> Any:
    with torch.inference_mode():
        return torch.arange(8.0)


def seed_of_tensor(x: Any) -> Any:
    return torch.from_numpy(seed_of(x.detach().contiguous().numpy()))


def plain_seed(x: Any) -> Any:
    """What a torch user would write."""
    i = torch.arange(x.numel()).reshape(x.shape)
    n = x.numel()
    return torch.where(i < n // 4, x * 0.5, torch.where(i >= n - n // 4, x * 2, x))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(both: Both, seed: ew.Kernel, layout: str) -> None:
    x = LAYOUTS[layout]()
    before = x.clone()
    result = both(seed, lambda: x, fast=x.ndim <= 8)
    assert torch.equal(result, seed_of_tensor(x)) and torch.equal(x, before)
    assert torch.equal(result, plain_seed(before)) and result.dtype == plain_seed(before).dtype
    assert type(result) is torch.Tensor and not result.requires_grad


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "permuted", "channels last", "sliced", "expanded"])
def test_the_results_strides_are_torchs(both: Both, layout: str) -> None:
    x = LAYOUTS[layout]()
    assert both(ew.kernel("x + 1"), lambda: x).stride() == (x + 1).stride()


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("expanded", "overlapping")])
def test_in_place_and_out(both: Both, seed: ew.Kernel, layout: str) -> None:
    def in_place() -> tuple[Any, dict[str, Any]]:
        x = LAYOUTS[layout]()
        return (x,), {"out": x}

    expected = seed_of_tensor(LAYOUTS[layout]())
    assert torch.equal(both(seed, in_place), expected)
    assert torch.equal(both(seed, lambda: ((LAYOUTS[layout]().clone(),), {"out": LAYOUTS[layout]()})), expected)


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
    ],
)
def test_dtypes(both: Both, dtype: str) -> None:
    x = torch.tensor([0, 1, 1, 0, 1, 1, 0, 1, 0]).to(getattr(torch, dtype))
    result = both(ew.kernel("i < 3: x; else x"), lambda: x, fast=True)
    assert result.dtype == x.dtype and torch.equal(result, x)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
def test_promotion_is_torchs(both: Both, dtype: str) -> None:
    x = torch.arange(9).to(getattr(torch, dtype))
    i = torch.arange(9)
    assert torch.equal(both(ew.kernel("i < 4: x*0.5; else x"), lambda: x), torch.where(i < 4, x * 0.5, x))
    assert torch.equal(both(ew.kernel("i < 4: x*2; else x"), lambda: x), torch.where(i < 4, x * 2, x))
    assert torch.equal(both(ew.kernel("x*g"), lambda: ((x,), {"g": 0.5})), x * 0.5)
    assert torch.equal(both(ew.kernel("x*y"), lambda: ((x,), {"y": torch.tensor(3)})), x * torch.tensor(3))


def test_i32_gives_f32_and_in_place_is_an_error_that_changes_nothing(both: Both, seed: ew.Kernel) -> None:
    x = torch.arange(8, dtype=torch.int32)
    assert both(seed, lambda: x).dtype == plain_seed(x).dtype == torch.float32
    before = x._version
    with pytest.raises((TypeError, ValueError), match="out"):
        both(seed, lambda: ((x,), {"out": x}))
    assert x.tolist() == list(range(8)) and x._version == before


def test_out_of_another_dtype_converts_where_torch_would(both: Both) -> None:
    k = ew.kernel("x*2")
    x = torch.arange(4.0)
    assert both(k, lambda: ((x,), {"out": torch.zeros(4, dtype=torch.float64)})).tolist() == [0, 2, 4, 6]
    assert both(k, lambda: ((x,), {"out": torch.zeros(4, dtype=torch.float16)})).tolist() == [0, 2, 4, 6]
    assert both(k, lambda: ((x,), {"dtype": torch.float64})).dtype == torch.float64


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: torch.zeros(7), ValueError, "out"),
        (lambda: torch.zeros(1, 8), ValueError, "out"),
        (lambda: torch.zeros(8, dtype=torch.int32), (TypeError, ValueError), "out"),
        (lambda: torch.zeros(8, device="meta"), TypeError, "`out` is on device meta"),
        (lambda: torch.zeros(1).expand(8), ValueError, "out"),
        (lambda: torch.zeros(8, requires_grad=True), ValueError, "`out` requires grad.*no_grad"),
        (lambda: torch.zeros(8, dtype=torch.complex64).conj().imag, ValueError, "resolve_neg"),
    ],
)
def test_what_cannot_be_written(both: Both, seed: ew.Kernel, make: Callable[[], Any], kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        both(seed, lambda: ((torch.ones(8),), {"out": make()}))
    out = make()
    before = out._version
    with pytest.raises(kind):
        seed(torch.ones(8), out=out)
    assert out._version == before and (out.device.type == "meta" or not out.detach().resolve_neg().any())


def fake() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.zeros(8)


class Wrapper(torch.Tensor):
    """A tensor that stands for another, as DTensor does."""

    @staticmethod
    def __new__(cls) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, (8,))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: torch.zeros(8, device="meta"), TypeError, "meta: it has a shape, but no data"),
        (fake, TypeError, "fake tensor: it has a shape, but no data"),
        (Wrapper, TypeError, "a Wrapper, which stands for other tensors"),
        (lambda: torch.zeros(8, requires_grad=True), ValueError, r"requires grad.*x\.detach\(\).*no_grad"),
        (lambda: torch.nn.Parameter(torch.zeros(8)), ValueError, "requires grad"),
        (lambda: torch.zeros(8, requires_grad=True)[2:], ValueError, "requires grad"),
        (lambda: torch.zeros(8, dtype=torch.complex64).conj(), ValueError, r"x\.resolve_conj\(\)"),
        (lambda: torch.zeros(8, dtype=torch.complex64).conj().imag, ValueError, r"x\.resolve_neg\(\)"),
        (lambda: torch.zeros(8, dtype=torch.complex64), TypeError, "complex64"),
        (lambda: torch.zeros(8).to(torch.float8_e4m3fn), TypeError, "float8"),
        (lambda: torch.zeros(8, dtype=torch.complex32), TypeError, "complex32"),
        (lambda: torch.zeros(2, 4).to_sparse(), TypeError, r"sparse.*x\.to_dense\(\)"),
        (lambda: torch.zeros(2, 4).to_sparse_csr(), TypeError, "sparse_csr"),
        (lambda: torch.quantize_per_tensor(torch.zeros(8), 0.1, 0, torch.qint8), TypeError, r"quantised.*dequantize"),
        (lambda: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]), TypeError, "nested"),
        (lambda: torch.nn.parameter.UninitializedParameter(requires_grad=False), (TypeError, ValueError), "`x`"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_read(both: Both, seed: ew.Kernel, make: Callable[[], Any], kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        both(seed, make, fast=False)
    assert "`x`" in str(caught.value)
    out = torch.full((8,), 7.0)
    with pytest.raises(kind):
        seed(make(), out=out)
    assert out.tolist() == [7.0] * 8


def test_a_plain_subclass_is_read(both: Both, seed: ew.Kernel) -> None:
    class Named(torch.Tensor):
        pass

    x = torch.arange(8.0).as_subclass(Named)
    assert torch.equal(both(seed, lambda: x, fast=False), plain_seed(torch.arange(8.0)))


def test_requires_grad_is_fine_without_grad_mode(both: Both, seed: ew.Kernel) -> None:
    x = torch.arange(8.0, requires_grad=True)
    with torch.no_grad():
        result = both(seed, lambda: x, fast=True)
        assert both(seed, lambda: ((x.detach().clone(),), {"out": torch.zeros(8, requires_grad=True)})).requires_grad
    assert torch.equal(result, plain_seed(x.detach())) and not result.requires_grad
    with torch.inference_mode():
        assert torch.equal(both(seed, lambda: x), result)


def test_a_change_in_place_is_seen_by_backward(seed: ew.Kernel) -> None:
    for call in (seed, lambda y, out: slow(seed, y, out)):
        x = torch.arange(8.0, requires_grad=True)
        y = x.exp()  # backward needs y
        with torch.no_grad():
            call(y, out=y)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def slow(k: ew.Kernel, x: Any, out: Any) -> Any:
    from elsewise import _call

    return _call.call(k, (x,), {"out": out})


def test_versions_count_what_is_written(seed: ew.Kernel) -> None:
    for call in (lambda x, out: seed(x, out=out), lambda x, out: slow(seed, x, out)):
        x, out = torch.ones(8), torch.zeros(16)
        view = out[4:12]
        before = out._version
        call(x, view)
        assert out._version == view._version == before + 1 and x._version == 0
        with pytest.raises(ValueError, match="out"):
            call(x, out)
        assert out._version == before + 1
    with torch.inference_mode():
        y = torch.ones(8)
        assert torch.equal(seed(y, out=y), plain_seed(torch.ones(8)))
    y = inference()
    seed(y, out=y)  # an inference tensor has no version to bump


def test_an_input_freed_after_the_call(seed: ew.Kernel) -> None:
    expected = plain_seed(torch.arange(100000.0))
    for _ in range(20):
        result = seed(torch.arange(100000.0))
        torch.full((100000,), -1.0)
        assert torch.equal(result, expected)


@pytest.mark.parametrize("offset", [0, 4])
@pytest.mark.parametrize("bytes_left", [0, 8, 60])
def test_a_storage_shrunk_under_a_tensor(both: Both, seed: ew.Kernel, offset: int, bytes_left: int) -> None:
    x = torch.arange(20.0)[offset:]
    seed(x)  # a plan for this layout exists
    x.untyped_storage().resize_(bytes_left)
    with pytest.raises(ValueError, match=r"`x` reaches .* bytes into its storage, which was resized"):
        both(seed, lambda: x, fast=False)
    with pytest.raises(ValueError, match="`out` reaches"):
        both(seed, lambda: ((torch.ones(20 - offset),), {"out": x}), fast=False)


def test_resize_and_set_between_calls(seed: ew.Kernel) -> None:
    x = torch.arange(16.0)
    seed(x)
    x.resize_(4)
    assert torch.equal(seed(x), plain_seed(torch.arange(4.0)))
    x.resize_(40).copy_(torch.arange(40.0))
    assert torch.equal(seed(x), plain_seed(torch.arange(40.0)))
    x.set_(torch.arange(100.0, 108.0))
    assert torch.equal(seed(x), plain_seed(torch.arange(100.0, 108.0)))
    x.set_(torch.arange(64.0).untyped_storage(), 3, (4, 5), (10, 2))
    assert torch.equal(seed(x), plain_seed(x.clone()))
    x.data = torch.arange(8.0)
    assert torch.equal(seed(x), plain_seed(torch.arange(8.0)))
    x.untyped_storage().resize_(0)
    x.resize_(0)
    assert seed(x).numel() == 0


@pytest.mark.parametrize("path", ["C", "Python"])
def test_writing_a_copy_on_write_tensor_leaves_its_twin(seed: ew.Kernel, path: str) -> None:
    a = torch.arange(8.0)
    b = torch._lazy_clone(a)
    assert torch._C._is_cow_tensor(b)
    call = (lambda x, out: seed(x, out=out)) if path == "C" else (lambda x, out: slow(seed, x, out))
    call(torch.ones(8), b)
    assert torch.equal(a, torch.arange(8.0)) and torch.equal(b, plain_seed(torch.ones(8)))
    c = torch._lazy_clone(a)
    call(c, c)
    assert torch.equal(a, torch.arange(8.0)) and torch.equal(c, plain_seed(torch.arange(8.0)))
    d = torch._lazy_clone(a)
    call(a, a)  # the original is written, its twin is not
    assert torch.equal(d, torch.arange(8.0)) and torch.equal(a, plain_seed(torch.arange(8.0)))


@pytest.mark.parametrize("shift", [1, -1, 3])
def test_a_shifted_overlap_is_refused(both: Both, seed: ew.Kernel, shift: int) -> None:
    base = torch.arange(32.0)
    with pytest.raises(ValueError, match="overlap"):
        both(seed, lambda: ((base[4:20],), {"out": base[4 + shift : 20 + shift]}))
    assert torch.equal(base, torch.arange(32.0)) and base._version == 0


def test_overlap_with_any_argument_counts(both: Both) -> None:
    base = torch.arange(32.0)
    with pytest.raises(ValueError, match="overlap"):
        both(ew.kernel("x + y"), lambda: ((torch.zeros(16),), {"y": base[1:17], "out": base[:16]}))
    assert torch.equal(base, torch.arange(32.0))


def test_the_identical_view_is_allowed(both: Both, seed: ew.Kernel) -> None:
    def make() -> tuple[Any, dict[str, Any]]:
        base = torch.arange(32.0)
        return (base[4:20],), {"out": base[4:20]}

    assert torch.equal(both(seed, make, fast=True), plain_seed(torch.arange(4.0, 20.0)))


def test_numpy_beside_torch(both: Both) -> None:
    k = ew.kernel("x + y")
    result = both(k, lambda: ((torch.ones(4),), {"y": np.arange(4, dtype=np.float32)}))
    assert torch.equal(result, torch.arange(1.0, 5.0))
    result = both(k, lambda: ((np.ones(4, np.float32),), {"y": torch.arange(4.0)}))
    assert torch.equal(result, torch.arange(1.0, 5.0))
    out = np.zeros(4, np.float32)
    assert k(torch.ones(4), y=torch.arange(4.0), out=out) is out and out.tolist() == [1, 2, 3, 4]
    target = torch.zeros(4)
    assert k(np.ones(4, np.float32), y=np.arange(4, dtype=np.float32), out=target) is target
    assert target.tolist() == [1, 2, 3, 4] and target._version == 1


def test_results_without_tensors() -> None:
    k = ew.kernel("i")
    assert isinstance(k(shape=3), np.ndarray)
    assert isinstance(k(shape=3, dtype="f32"), np.ndarray)
    assert isinstance(k(shape=3, dtype=torch.float32), torch.Tensor)
    assert isinstance(k(shape=3, device="cpu"), torch.Tensor)
    assert isinstance(k(shape=torch.Size([3]), device=torch.device("cpu")), torch.Tensor)
    assert k(shape=(2, 3), device="cpu").dtype == torch.int64


def test_a_bf16_result_in_numpy_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(TypeError, match="ml_dtypes"):
        ew.kernel("x")(np.ones(4, np.float32), dtype="bf16")


def test_under_transforms_and_modes(both: Both, seed: ew.Kernel) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    x = torch.arange(8.0)
    with pytest.raises(TypeError, match="vmap"):
        torch.vmap(lambda row: seed(row))(torch.ones(3, 8))
    with pytest.raises(TypeError, match=r"torch\.func"):
        torch.func.grad(lambda v: seed(v).sum())(x)
    with FakeTensorMode(), pytest.raises(TypeError, match="fake tensor mode"):
        seed(x)
    torch.set_default_device("cpu")  # a function mode that is always active
    try:
        assert torch.equal(both(seed, lambda: x, fast=False), plain_seed(x))
    finally:
        torch.set_default_device(None)

    class Counting(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    with Counting():
        assert torch.equal(both(seed, lambda: x, fast=False), seed_of_tensor(x))
    with pytest.raises(TypeError, match="cannot see into a kernel"):
        torch.func.functionalize(lambda v: seed(v))(x)


def test_under_torch_compile_the_call_breaks_the_graph(seed: ew.Kernel) -> None:
    function = torch.compile(lambda x: seed(x + 1) * 2, backend="eager")
    assert torch.equal(function(torch.arange(8.0)), plain_seed(torch.arange(8.0) + 1) * 2)


def test_threads_of_torch_are_respected(seed: ew.Kernel) -> None:
    x = torch.arange(1_000_000.0)
    expected = plain_seed(x)
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            assert torch.equal(seed(x), expected)
    finally:
        torch.set_num_threads(threads)


def test_default_dtype_does_not_matter(both: Both) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert both(ew.kernel("x*0.5"), lambda: torch.arange(4, dtype=torch.int32)).dtype == torch.float32
        assert (
            both(ew.kernel("x*g"), lambda: ((torch.ones(4, dtype=torch.float32),), {"g": 2.0})).dtype == torch.float32
        )
    finally:
        torch.set_default_dtype(torch.float32)
