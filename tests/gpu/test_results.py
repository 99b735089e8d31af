# SPDX-License-Identifier: Apache-2.0
"""Results on a device: layouts, dtypes, every length at every alignment, the hazards of a call. tests/python has the
CPU's twins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest
from elsewise import _call, _elsewise

GUARD = 64
MOST = 4099
MARK = 123.0


def plain_seed(torch: Any, x: Any) -> Any:
    n = x.numel()
    i = torch.arange(n, device=x.device).reshape(x.shape)
    return torch.where(i < n // 4, x * 0.5, torch.where(i >= n - n // 4, x * 2, x))


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda t: t.arange(2400.0, device="cuda").reshape(40, 60),
    "transposed": lambda t: t.arange(2400.0, device="cuda").reshape(40, 60).t(),
    "sliced": lambda t: t.arange(9600.0, device="cuda").reshape(80, 120)[1::2, 3:93],
    "expanded": lambda t: t.arange(60.0, device="cuda").expand(40, 60),
    "permuted": lambda t: t.arange(24000.0, device="cuda").reshape(20, 30, 40).permute(2, 0, 1),
    "channels last": lambda t: t.arange(4800.0, device="cuda").reshape(2, 2, 30, 40).to(memory_format=t.channels_last),
    "offset": lambda t: t.arange(2501.0, device="cuda")[1:],
    "strided": lambda t: t.arange(2501.0, device="cuda")[1::3],
    "empty": lambda t: t.zeros(0, device="cuda"),
    "empty in the middle": lambda t: t.zeros(3, 0, 2, device="cuda"),
    "no axes": lambda t: t.tensor(3.0, device="cuda"),
    "length 1": lambda t: t.arange(6.0, device="cuda").reshape(1, 6, 1),
    "many rows": lambda t: t.arange(300000.0, device="cuda").reshape(100000, 3)[:, :2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(torch: Any, seed: ew.Kernel, layout: str) -> None:
    x = LAYOUTS[layout](torch)
    before = x.clone()
    expected = plain_seed(torch, before)
    calls = _elsewise.path_counts()
    result = seed(x)
    assert _elsewise.path_counts()[0] == calls[0] + 1
    assert torch.equal(result, expected) and torch.equal(x, before)
    assert torch.equal(_call.call(seed, (x,), {}), expected)
    assert result.stride() == (x + 1).stride() and result.device == x.device
    if layout != "expanded":
        out = torch.full_like(x, MARK)
        assert seed(x, out=out) is out and torch.equal(out, expected)
        seed(x, out=x)
        assert torch.equal(x, expected)


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
def test_dtypes(torch: Any, dtype: str) -> None:
    x = torch.randint(0, 2, (10007,), device="cuda").to(getattr(torch, dtype))
    assert torch.equal(ew.kernel("i < 3: x; else x")(x), x)
    if dtype != "bool":
        i = torch.arange(10007, device="cuda")
        bare = dtype in ("uint16", "uint32", "uint64")  # torch adds none of these: the CPU's result is the plain one
        for rule, plain in (
            ("i < 5000: x*0.5; else x", lambda: torch.where(i < 5000, x * 0.5, x)),
            ("i < 5000: x + 3; else x - 1", lambda: torch.where(i < 5000, x + 3, x - 1)),
        ):
            result = ew.kernel(rule)(x)
            want = ew.kernel(rule)(x.cpu()).cuda() if bare else plain()
            assert result.dtype == want.dtype and torch.equal(result, want), rule


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_the_gpu_gives_the_cpus_bits(torch: Any, dtype: str) -> None:
    x = (torch.randn(10007) * 100).to(getattr(torch, dtype))
    rules = (
        "i < n/3: x*0.3 + 1.7; i % 7 == 2: x/3; else x - x*gain",
        "x < 0: sqrt(abs(x)); else floor(x) + round(x/7)",
        "min(x, max(gain, 3)) * (x + 1)",
        "x*(1 - float(i)/n)",
    )
    for rule in rules:
        k = ew.kernel(rule)
        given = {"gain": 0.37} if "gain" in k.arguments else {}
        assert torch.equal(k(x.cuda(), **given).cpu(), k(x, **given)), rule
        assert k.check(x.cuda(), **given), rule


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("offset", range(16))
def test_every_length_at_every_offset(torch: Any, seed: ew.Kernel, offset: int, in_place: bool) -> None:
    """A row of memory for each length, so that all are compared at once, guard zones included."""
    pitch = 4352
    begin = GUARD + offset
    source = torch.randn(pitch, device="cuda")
    memory = source.repeat(MOST + 1, 1) if in_place else torch.full((MOST + 1, pitch), MARK, device="cuda")
    for n in range(MOST + 1):
        out = memory[n, begin : begin + n]
        seed(out if in_place else source[begin : begin + n], out=out)
    i = torch.arange(pitch, device="cuda") - begin
    n = torch.arange(MOST + 1, device="cuda")[:, None]
    inside = (i >= 0) & (i < n)
    value = torch.where(i < n // 4, source * 0.5, torch.where(i >= n - n // 4, source * 2, source))
    expected = torch.where(inside, value, source if in_place else MARK)
    wrong = (memory != expected).nonzero()
    assert not len(wrong), f"n, position: {wrong[:5].tolist()}"


@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "float64"])
def test_other_widths(torch: Any, dtype: str) -> None:
    k = ew.kernel("i<n/4: x+1; i>=n-n/4: x-1; else x")
    source = torch.randint(-50, 50, (6000,), device="cuda").to(getattr(torch, dtype))
    i = torch.arange(6000, device="cuda")
    for a in (0, 1, 2, 3, 5, 8, 15):
        for b in (0, 1, 4, 7):
            for n in (0, 1, 2, 15, 16, 17, 63, 255, 1024, 1025, 4097):
                memory = source.clone()
                k(source[a : a + n], out=memory[GUARD + b : GUARD + b + n])
                part, p = source[a : a + n], i[:n]
                expected = source.clone()
                expected[GUARD + b : GUARD + b + n] = torch.where(
                    p < n // 4, part + 1, torch.where(p >= n - n // 4, part - 1, part)
                )
                assert torch.equal(memory, expected), (dtype, a, b, n)


@pytest.mark.parametrize(
    "pair", [("int8", "float32"), ("float32", "float64"), ("float64", "int8"), ("uint8", "float16")]
)
def test_mixed_widths(torch: Any, pair: tuple[str, str]) -> None:
    x = torch.randint(0, 50, (4099,), device="cuda").to(getattr(torch, pair[0]))
    spelling = {"float32": "f32", "float64": "f64", "int8": "i8", "float16": "f16"}[pair[1]]
    k = ew.kernel(f"i < n/2: {spelling}(x); else {spelling}(x) + 1")
    i = torch.arange(4099, device="cuda")
    for offset in (0, 1, 3):
        for n in (1, 100, 4096):
            part = x[offset : offset + n].to(getattr(torch, pair[1]))
            assert torch.equal(k(x[offset : offset + n]), torch.where(i[:n] < n // 2, part, part + 1))


def test_promotion_and_parameters(torch: Any, seed: ew.Kernel) -> None:
    x = torch.arange(1000, dtype=torch.int32, device="cuda")
    assert torch.equal(seed(x), plain_seed(torch, x)) and seed(x).dtype == torch.float32
    before = x.clone()
    with pytest.raises((TypeError, ValueError), match="out"):
        seed(x, out=x)
    assert torch.equal(x, before)
    k = ew.kernel("i < edge: x*gain; else y")
    x, y = torch.randn(7, 300, device="cuda"), torch.randn(300, device="cuda")
    i = torch.arange(2100, device="cuda").reshape(7, 300)
    for edge in (0, 1, 1000, 2**40, -5):
        assert torch.equal(k(x, edge=edge, gain=0.75, y=y), torch.where(i < edge, x * 0.75, y))


def test_a_cpu_scalar_tensor_goes_with_cuda_data(torch: Any) -> None:
    k = ew.kernel("x * gain")
    x = torch.randn(1000, device="cuda")
    for call in (k, lambda *a, **kw: _call.call(k, a, kw)):
        assert torch.equal(call(x, gain=torch.tensor(2.0)), x * 2)
        assert torch.equal(call(x, gain=torch.tensor(2.0, device="cuda")), x * 2)


def test_data_in_two_places_is_refused(torch: Any) -> None:
    k = ew.kernel("x + y")
    x = torch.zeros(8, device="cuda")
    out = torch.full((8,), 7.0, device="cuda")
    for call in (k, lambda *a, **kw: _call.call(k, a, kw)):
        with pytest.raises(ValueError, match="`y` is on the CPU, but `x` is on cuda:0"):
            call(x, y=torch.zeros(8), out=out)
        with pytest.raises(ValueError, match=r"`y` .a NumPy array. is on the CPU"):
            call(x, y=np.zeros(8, np.float32), out=out)
        with pytest.raises(ValueError, match="`out` is on the CPU"):
            call(x, y=x, out=torch.zeros(8))
    assert out.tolist() == [7.0] * 8
    assert (
        k(x, y=np.array(1.5, np.float32)).tolist() == [1.5] * 8
    )  # a 0-d array on the host goes with CUDA data, as in torch


def test_overlap_and_wrong_outputs_leave_everything_as_it_was(torch: Any, seed: ew.Kernel) -> None:
    base = torch.arange(1000.0, device="cuda")
    before = base.clone()
    for out in (base[1:901], base[:899], base[:900].int(), base[:1].expand(900), base[:900].reshape(30, 30)):
        kept = out.clone()
        with pytest.raises((ValueError, TypeError), match="out"):
            seed(base[:900], out=out)
        assert torch.equal(out, kept)
    assert torch.equal(base, before)


def test_versions_and_grad(torch: Any, seed: ew.Kernel) -> None:
    x = torch.ones(100, device="cuda")
    out = torch.zeros(100, device="cuda")
    seed(x, out=out)
    assert out._version == 1
    leaf = torch.ones(100, device="cuda", requires_grad=True)
    with pytest.raises(ValueError, match="requires grad"):
        seed(leaf)
    y = leaf.exp()
    with torch.no_grad():
        seed(y, out=y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_storage_shrunk_and_copy_on_write(torch: Any, seed: ew.Kernel) -> None:
    x = torch.arange(1000.0, device="cuda")[10:]
    seed(x)
    x.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="resized"):
        seed(x)
    a = torch.arange(1000.0, device="cuda")
    b = torch._lazy_clone(a)
    seed(b, out=b)
    assert torch.equal(a, torch.arange(1000.0, device="cuda")) and torch.equal(b, plain_seed(torch, a))


def test_an_input_freed_after_the_call(torch: Any, seed: ew.Kernel) -> None:
    n = 1 << 20
    expected = plain_seed(torch, torch.arange(float(n), device="cuda"))
    results = []
    for _ in range(20):
        x = torch.arange(float(n), device="cuda")
        results.append(seed(x))
        del x
        torch.full((n,), -1.0, device="cuda")  # takes the freed memory
    assert all(torch.equal(result, expected) for result in results)


def test_generated_results(torch: Any) -> None:
    k = ew.kernel("i < n/2: i; else n - i")
    i = torch.arange(1000, device="cuda")
    assert torch.equal(k(shape=1000, device="cuda"), torch.where(i < 500, i, 1000 - i))
    assert k(shape=(10, 100), device="cuda:0", dtype=torch.float16).dtype == torch.float16
    with pytest.raises((ValueError, RuntimeError), match=r"(?i)device"):
        k(shape=10, device="cuda:63")


def test_large(torch: Any, seed: ew.Kernel) -> None:
    n = (1 << 31) + 12345
    x = torch.ones(n, dtype=torch.int8, device="cuda")
    y = ew.kernel("i >= n - 5: 3; i < 2**31: x; else 2")(x)
    assert y[: 1 << 31].eq(1).all() and y[1 << 31 : -5].eq(2).all() and y[-5:].eq(3).all()


def test_raw_pointers(torch: Any, seed: ew.Kernel) -> None:
    x = torch.randn(1000, device="cuda")
    out = torch.zeros(1000, device="cuda")
    seed.launch(out=ew.ptr(out.data_ptr(), "f32", 1000), x=ew.ptr(x.data_ptr(), "f32", 1000), device=0)
    assert torch.equal(out, plain_seed(torch, x))
    out.zero_()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    seed.launch(out=out.data_ptr(), x=x.data_ptr(), dtype="f32", shape=(1000,), stream=stream)
    stream.synchronize()
    assert torch.equal(out, plain_seed(torch, x))
    host = np.zeros(1000, np.float32)
    with pytest.raises((ValueError, TypeError), match="host"):
        seed.launch(out=ew.ptr(host.ctypes.data, "f32", 1000), x=ew.ptr(x.data_ptr(), "f32", 1000), device=0)
    assert not host.any()


def test_cupy(torch: Any, seed: ew.Kernel) -> None:
    cupy = pytest.importorskip("cupy")
    a = cupy.arange(1000, dtype=cupy.float32)
    expected = plain_seed(torch, torch.arange(1000.0, device="cuda"))
    y = seed(a)
    assert isinstance(y, cupy.ndarray) and torch.equal(torch.as_tensor(y), expected)
    assert torch.equal(
        torch.as_tensor(seed(a.reshape(10, 100).T)).t().reshape(-1).sum(),
        seed(torch.as_tensor(a).view(10, 100).t()).sum(),
    )
    out = torch.zeros(1000, device="cuda")
    assert seed(a, out=out) is out and torch.equal(out, expected)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        b = cupy.zeros(1 << 24, cupy.float32)
        for _ in range(50):
            b += 1
        y = seed(b)
        stream.synchronize()
        assert float(y[1 << 23]) == 50.0
    seed(a, out=a)
    assert torch.equal(torch.as_tensor(a), expected)


def test_a_producer_on_another_stream_is_waited_for(torch: Any, seed: ew.Kernel) -> None:
    cupy = pytest.importorskip("cupy")
    busy = cupy.cuda.Stream(non_blocking=True)
    with busy:
        b = cupy.zeros(1 << 26, cupy.float32)
        for _ in range(50):
            b += 1
        interface = dict(b.__cuda_array_interface__)
        interface["stream"] = busy.ptr

    class Array:
        __cuda_array_interface__ = interface

    out = torch.zeros(1 << 26, device="cuda")
    seed(Array(), out=out)
    assert float(out[1 << 25]) == 50.0


def test_both_paths_agree_on_what_has_no_dimensions(torch: Any) -> None:
    k = ew.kernel("x * gain")
    x = torch.randn(100, device="cuda")
    for gain in (np.array(2.0, np.float32), torch.tensor(2.0), torch.tensor(2, dtype=torch.int64)):
        for args, kwargs in (((x,), {"gain": gain}), ((), {"gain": gain, "x": x}), ((gain,), {"gain": x})):
            results = [k(*args, **kwargs), _call.call(k, args, dict(kwargs))]
            assert all(r.is_cuda and torch.equal(r, x * 2) for r in results), (args, kwargs)
    with pytest.raises(ValueError, match="`out` is on the CPU"):
        k(x[0], gain=2.0, out=torch.zeros(()))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize(
    "rule", ["0 <= abs(v): 1; else 0", "where(0 <= where(v < 0, 0 - v, v), 1, 0)", "where(max(v, -v) < 0, 0, 1)"]
)
def test_the_least_integer_has_no_magnitude(torch: Any, rule: str, dtype: str) -> None:
    v = torch.full((1000,), torch.iinfo(getattr(torch, dtype)).min, dtype=getattr(torch, dtype), device="cuda")
    v[::3] = 5
    assert torch.equal(ew.kernel(rule)(v=v), ew.kernel(rule)(v=v.cpu()).cuda())


def test_a_guard_on_a_magnitude_keeps_reads_in_bounds(torch: Any) -> None:
    v = torch.full((1000,), torch.iinfo(torch.int64).min, device="cuda")
    s = torch.arange(3.0, device="cuda")
    assert torch.equal(
        ew.kernel("0 <= abs(v) < len(s): s[abs(v)]; else 7")(v=v, s=s), torch.full((1000,), 7.0, device="cuda")
    )


NUMBERS = [0.0, -0.0, float("nan"), 1.0, -1.0, float("inf"), -float("inf"), 1e-7, -3.5]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize(
    "rule",
    [
        "-sign(x)",
        "sign(x)*-1.0",
        "where(x<0, 1, -0.0)",
        "where(x<0, -0.0, 1)",
        "where(x<0, -1, -0.0)",
        "-where(x<0, 1.0, 0.0)",
        "-f32(x<0)",
        "f32(x<0)/-2",
        "round(where(x<0, 1.0, -0.25))",
        "x < 0: 1; else -0.0",
        "x < 0: -0.0; else -1",
        "-(x*where(y<0, 1.0, 0.0))",
        "-(where(y<0, 1.0, 0.0)/x)",
        "-(x*sign(y))",
        "-((x*0.5)*(0-where(y<x, -1.0, 0.0)))",
        "f32(where(x<0, f64(1), f64(-1e-60)))",
        "f32(bf16(where(x<0, 1.0, -1e-45)))",
        "copysign(where(x<0, 1, 0), -1)",
        "where(x<0, 1, 0)*where(y<0, -1, 1)",
        "i%2 == 0: -sign(x); else sign(x)",
    ],
)
def test_a_zero_below_zero_beside_one(torch: Any, rule: str, dtype: str) -> None:
    """ptxas chooses between constants of magnitudes 1 and 0 as if no zero had a sign, where it sees them."""
    x = torch.tensor(NUMBERS * 9, dtype=getattr(torch, dtype))
    y = torch.tensor([n for n in NUMBERS for _ in NUMBERS], dtype=x.dtype)
    kernel = ew.kernel(rule)
    given = {"x": x, "y": y}
    given = {name: given[name] for name in kernel.arguments}
    want = kernel(**given)
    got = kernel(**{name: t.cuda() for name, t in given.items()}).cpu()
    number = want == want
    assert torch.equal(number, got == got)
    assert torch.equal(want[number], got[number]) and torch.equal(want[number].signbit(), got[number].signbit())


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize(
    "rule",
    [
        "0 <= abs(x)",
        "abs(x) >= -0.0",
        "-1 < abs(x)",
        "-abs(x) <= 0",
        "abs(x)*0.5 >= 0",
        "abs(x*0.5) >= 0",
        "copysign(x, 1) >= 0",
        "-copysign(x, -1) >= 0",
        "where(x > 1, 2, abs(x)) >= 0",
        "min(abs(x), 5) >= 0",
        "max(abs(x), 5) >= 0",
        "abs(x) >= -abs(x - 1)",
        "abs(x) >= 0: 1; else 2",
        "not (abs(x) >= 0)",
        "abs(x) >= 0 and x < 2",
        "sqrt(x) >= 0",
        "x*x >= 0",
        "exp(x) >= 0",
        "abs(floor(x)) > -1",
    ],
)
def test_a_magnitude_may_be_no_number(torch: Any, rule: str, dtype: str) -> None:
    """ptxas takes the magnitude of a NaN to be at least 0, where it sees a magnitude: in rows, strided, and alone."""
    bits = torch.arange(65536, dtype=torch.int32)
    x = torch.cat([(bits << 16).view(torch.float32), torch.tensor(NUMBERS)]).to(getattr(torch, dtype))
    kernel = ew.kernel(rule)
    want = kernel(x)
    assert torch.equal(kernel(x.cuda()).cpu(), want)
    strided = torch.stack([x, x], 1).cuda()[:, 0]
    assert torch.equal(kernel(strided).cpu(), want)
    rows = torch.stack([x[:65536].reshape(256, 256)] * 3).cuda().permute(2, 1, 0)
    assert torch.equal(kernel(rows).cpu(), kernel(rows.cpu()))


@pytest.mark.parametrize(
    "rule",
    [
        "f64(i*(i*k))",
        "f64(n*(i*k))",
        "i*(i*k)<5: 1; else 2",
        "i*(i*len(lut)) < 7: 1; else 2",
        "lut[i*(i*k)//10000000]",
        "[c]; f64(c*(c*k))",
        "[r, c]; f64(c*(r*(c*k)))",
        "f64(i + (2147480000 + (i + k)))",
    ],
)
def test_whole_numbers_are_worked_in_the_order_of_the_rule(torch: Any, rule: str) -> None:
    """Two positions of 32 bits that a longer number keeps apart come together nowhere."""
    kernel = ew.kernel(rule)
    given: dict[str, Any] = {"k": 1} if "k" in kernel.arguments else {}
    lut = torch.arange(1200.0)
    shape = (300, 400) if "[r" in rule else (100_000,)
    on_cpu = kernel(**given, **({"lut": lut} if "lut" in kernel.arguments else {}), shape=shape, device="cpu")
    got = kernel(**given, **({"lut": lut.cuda()} if "lut" in kernel.arguments else {}), shape=shape, device="cuda")
    assert torch.equal(got.cpu(), torch.as_tensor(on_cpu))


WHOLE_SUMS = (
    "2000000000 + (2000000000 + (x + y))",
    "65536 * (65536 * (x * y))",
    "i64(i) * (100000 * (x*y))",
    "i64(i) + (2147483647 + (x + y))",
    "x * (i % 1000) - (y - (x + 5))",
    "[r, c]; x * (c % 3) + r*(c*(r*c))",
    "u64(i)*100000*u64(x)",
    "let p = i64(i); p % 7 > 3: x*y*p*p; else 0",
)


@pytest.mark.parametrize("rule", WHOLE_SUMS)
@pytest.mark.parametrize("dtype", ["int64", "int32", "int16"])
def test_sums_of_whole_numbers_keep_their_order(torch: Any, rule: str, dtype: str) -> None:
    shape = (300, 400) if rule.startswith("[") else (120_000,)
    torch.manual_seed(3)
    x, y = (torch.randint(-30000, 30000, shape, dtype=getattr(torch, dtype)) for _ in range(2))
    kernel = ew.kernel(rule.replace("2000000000", "20000") if dtype == "int16" else rule)
    names = {"x": x, "y": y} if "y" in kernel.arguments else {"x": x}
    try:
        want = kernel(**names)
    except (OverflowError, ew.SpecError):
        pytest.skip("a literal that this dtype does not hold")
    assert torch.equal(kernel(**{name: t.cuda() for name, t in names.items()}).cpu(), want)


BEYOND = (
    "i*k*0.5 > 0",
    "i + k < where(i%2 == 0, a, 5.0)",
    "i*a < k",
    "i*a == k",
    "i*k < i*a + 1",
    "[r, c]; c <= r and c < k",
    "[r, c]; c*3 < max(r, k)",
    "[r, c]; c*3 == k - r",
    "[r, c]; c*1000 < where(r < 2, a, 5.0)",
)


@pytest.mark.parametrize("rule", BEYOND)
def test_comparisons_beyond_64_bits(torch: Any, rule: str) -> None:
    kernel = ew.kernel(f"{rule}: 1; else 0")
    shape = (4, 5) if rule.startswith("[") else (5,)
    for k in (2**63 - 1, 2**63, 2**64, 2**65 + 1, -(2**63), -(2**64)):
        for a in (1e30, -1e30, float(2**63), 0.25, float("inf"), float("nan")):
            given = {name: value for name, value in (("k", k), ("a", a)) if name in kernel.arguments}
            want = kernel(shape=shape, **given)
            assert kernel(shape=shape, device="cuda", **given).cpu().tolist() == want.tolist(), (k, a)


SIGNED = (
    "copysign(1, z)",
    "copysign(1, -z)",
    "copysign(1, -where(x, z, 0))",
    "x: copysign(0, -where(x, z, 0)); else 0",
    "copysign(1, f64(-z))",
    "copysign(1, -f32(z))",
    "copysign(z, -z)",
    "where(isnan(z), copysign(1.0, z), z*2)",
    "where(isnan(-z), copysign(1.0, -z), -z*2)",
    "let m = where(x, -z, z); where(isnan(m), copysign(1.0, m), m*2)",
)


@pytest.mark.parametrize("rule", SIGNED)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_sign_of_nan_is_that_of_its_bits(torch: Any, rule: str, dtype: str) -> None:
    z = torch.tensor([float("nan"), 1.0, 0.0, float("inf")] * 500, dtype=getattr(torch, dtype))
    z = torch.cat([z, torch.copysign(z, torch.tensor(-1.0))])
    kernel = ew.kernel(rule)
    given = {"z": z, "x": torch.arange(len(z)) % 3 > 0}
    given = {name: t for name, t in given.items() if name in kernel.arguments}
    want, got = kernel(**given), kernel(**{name: t.cuda() for name, t in given.items()}).cpu()
    known = ~want.isnan()
    assert torch.equal(got.isnan(), want.isnan()) and torch.equal(got[known], want[known])
    assert torch.equal(torch.signbit(got[known]), torch.signbit(want[known]))
