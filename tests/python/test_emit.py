# SPDX-License-Identifier: Apache-2.0
"""Looking inside a kernel: every stage as text, and the comparison with plain torch."""

from __future__ import annotations

from typing import Any

import elsewise as ew
import numpy as np
import pytest

from .conftest import SEED


def test_stages(seed: ew.Kernel) -> None:
    for stage in ("tokens", "ast", "ir", "cuda", "llvm", "asm", "torch"):
        text = seed.emit(stage, x="f32")
        assert isinstance(text, str) and len(text) > 20, stage
    assert "__global__" in seed.emit("cuda", x="f32")
    assert "define" in seed.emit("llvm", x="f32")
    assert "def rule(" in seed.emit("torch", x="f32")


def test_kinds_decide_the_code(seed: ew.Kernel) -> None:
    assert "double" in seed.emit("cuda", x="f64")
    assert seed.emit("cuda") == seed.emit("cuda", x=np.float32) == seed.emit("cuda", x="float32")
    assert seed.emit("cuda", in_place=True) != seed.emit("cuda")
    assert "double" in seed.emit("cuda", x="f32", dtype="f64")
    k = ew.kernel("x * gain")
    assert k.emit("cuda", gain="float") == k.emit("cuda", gain=float)
    assert k.emit("cuda", gain="f32") != k.emit("cuda", gain="float")
    assert k.emit("cuda", gain="bool[1]") != k.emit("cuda", gain="bool")
    assert k.emit("cuda", gain=np.bool_) == k.emit("cuda", gain="bool[1]")


def test_wrong_requests_are_explained(seed: ew.Kernel) -> None:
    with pytest.raises(ValueError, match=r"no such stage: 'cuad' .did you mean `cuda`.*tokens ast"):
        seed.emit("cuad")
    with pytest.raises(TypeError, match=r"no argument `X` .did you mean `x`"):
        seed.emit("cuda", X="f32")
    with pytest.raises(ValueError, match="`x`: no such kind: 'f3'"):
        seed.emit("cuda", x="f3")
    with pytest.raises((ew.SpecError, TypeError)):
        ew.kernel("x & 3").emit("cuda", x="f32")


def test_ptx_and_cubin_come_from_nvrtc_without_a_device(seed: ew.Kernel) -> None:
    facts = {name: (value, remedy) for name, value, remedy in ew._elsewise.environment()}
    if any("nvrtc" in name.lower() and remedy for name, (_, remedy) in facts.items()):
        pytest.skip(f"no NVRTC: {facts}")
    assert ".visible .entry elsewise" in seed.emit("ptx", x="f32", arch="sm_90")
    cubin = seed.emit("cubin", x="f32", arch="sm_90")
    assert isinstance(cubin, bytes) and cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "uint8"])
def test_check_agrees(torch: Any, seed: ew.Kernel, dtype: str) -> None:
    x = torch.arange(-50, 50).to(getattr(torch, dtype))
    check = seed.check(x)
    assert check and check.ok and check.max_ulp == 0 and check.first_bad is None, check
    assert torch.equal(check.actual, seed(x)) and torch.equal(check.expected, check.actual)
    assert repr(check) == "Check(ok, 100 elements)"


def test_check_takes_what_a_call_takes(torch: Any) -> None:
    k = ew.kernel("i < edge: x*gain; x > cap: cap; else y")
    a, b = np.linspace(-3, 3, 60, dtype=np.float32).reshape(6, 10), np.arange(10, dtype=np.float32)
    assert k.check(a, edge=7, gain=0.3, cap=1, y=b)
    assert k.check(a.T, edge=7, gain=0.3, cap=1, y=b[:6])
    assert k.check(torch.from_numpy(a), edge=7.5, gain=2, cap=True, y=torch.tensor(2.0))
    assert ew.kernel("i*2").check(shape=(3, 4))
    assert ew.kernel("x").check(a, dtype="f64").actual.dtype == torch.float64
    with pytest.raises(TypeError, match="out="):
        k.check(a, edge=7, gain=0.3, cap=1, y=b, out=a)
    with pytest.raises(TypeError, match="missing"):
        k.check(a)


def test_a_difference_is_located(torch: Any) -> None:
    from elsewise._check import compare

    a = torch.tensor([[1.0, 2.0], [float("nan"), 0.0]])
    b = a.clone()
    assert compare(torch, a, b).ok
    b[1, 1] = -0.0
    assert compare(torch, a, b).ok
    b[0, 1] = torch.nextafter(torch.tensor(2.0), torch.tensor(3.0))
    bad = compare(torch, a, b)
    assert not bad and (bad.first_bad, bad.max_ulp) == (1, 1) and 0 < bad.max_abs < 1e-6
    assert "at 1: 2.0 where torch gives 2.000000238418579;" in repr(bad)
    b[1, 0] = 1.0
    assert compare(torch, a, b).max_ulp == 2**63 - 1
    assert not compare(torch, a, a.double()) and "float64" in repr(compare(torch, a, a.double()))
    ints = compare(torch, torch.tensor([1, 5]), torch.tensor([1, 9]))
    assert (ints.first_bad, ints.max_abs) == (1, 4.0)
    signs = compare(torch, torch.tensor([-1e-45]), torch.tensor([1e-45]))
    assert signs.max_ulp == 2


def test_functions_may_differ_by_what_they_state(torch: Any) -> None:
    """`tanh` is within 2 units of the exact value here and in torch, so within 4 of each other."""
    x = torch.linspace(-4, 4, 100_001)
    check = ew.kernel("tanh(x)").check(x)
    assert check.ok and check.first_bad is None and 1 <= check.max_ulp <= check.allowed_ulp == 4, check
    assert repr(check) == f"Check(ok, 100001 elements, max_ulp={check.max_ulp} of the 4 that tanh may differ by)"
    assert check.functions == ("tanh",)
    exact = ew.kernel("tanh(x) > 0.5: x*3; else sqrt(x*x)").check(x)
    assert exact.ok and exact.allowed_ulp == 0 and exact.functions == (), "a guard gives no value"
    assert ew.kernel("tanh(x)*2 + exp(x)").check(x).functions == ("tanh", "exp")


def test_beyond_what_they_state_is_a_difference(torch: Any) -> None:
    from elsewise._check import compare

    a = torch.tensor([1.0, 2.0, 3.0])
    b = a.clone()
    for _ in range(4):
        b[1] = torch.nextafter(b[1], torch.tensor(9.0))
    assert compare(torch, a, b, 4, ["tanh"]).ok and compare(torch, a, b, 4, ["tanh"]).max_ulp == 4
    assert not compare(torch, a, b, 3, ["tanh"])
    b[2] = 4.0
    bad = compare(torch, a, b, 4, ["tanh"])
    assert bad.first_bad == 2 and "beyond the 4 that tanh may differ by" in repr(bad)
    b[0] = float("nan")
    assert compare(torch, a, b, 4, ["tanh"]).first_bad == 0
    ints = compare(torch, torch.tensor([1, 5]), torch.tensor([1, 6]), 4, ["tanh"])
    assert ints.first_bad == 1, "whole numbers are compared exactly"


def test_check_without_torch_says_so() -> None:
    import subprocess
    import sys

    code = f"""
import sys
sys.modules['torch'] = None
import elsewise as ew, numpy as np
try: ew.kernel({SEED!r}).check(np.zeros(4, np.float32))
except RuntimeError as error: assert 'pip install torch' in str(error), error
else: raise AssertionError
try: ew.kernel('i')(shape=3, device='cpu')
except RuntimeError as error: assert 'pip install torch' in str(error), error
else: raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)
