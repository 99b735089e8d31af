# SPDX-License-Identifier: Apache-2.0
"""Runs a case of the bank by its kind, on NumPy arrays or torch tensors of a device, and compares with the bank's own
reference and tolerance.

It knows kinds and frameworks, and no case by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import elsewise as ew
import numpy as np
import pytest
from bank import CASES
from specs import RULES, WAITING, Accepted, Refused, Rule

SEEDS = range(4)
FRAMEWORKS = ("numpy", "cpu", "cuda")  # NumPy, torch on a CPU, torch on a GPU


class Framework:
    """Carries the bank's arrays over, and results back."""

    def __init__(self, name: str) -> None:
        self.name = name
        if name != "numpy":
            import torch

            self.torch = torch

    def tensor(self, array: np.ndarray, dtype: str | None) -> Any:
        """The same elements at the same strides, where the framework has such strides."""
        if self.name == "numpy":
            if dtype is None:
                return array
            import ml_dtypes

            return array.astype(getattr(ml_dtypes, dtype))
        whole = self.torch.from_numpy(array.copy() if min(array.strides, default=0) < 0 else array)
        if dtype is not None:
            whole = whole.to(getattr(self.torch, dtype))
        # A copy to another device has strides of its own: take the memory that lies under it as it is.
        span = sum((s - 1) * k for s, k in zip(whole.shape, whole.stride())) + 1 if whole.numel() else 0
        memory = whole.as_strided((span,), (1,)).to(self.name)
        return memory.as_strided(whole.shape, whole.stride()) if span else whole.to(self.name)

    def carried(self, inputs: dict[str, Any], carry: dict[str, str]) -> dict[str, Any]:
        return {k: self.tensor(v, carry.get(k)) if isinstance(v, np.ndarray) else v for k, v in inputs.items()}

    def call(self, kernel: ew.Kernel, inputs: dict[str, Any]) -> Any:
        """A rule without tensors makes NumPy's arrays unless a device is named."""
        if self.name != "numpy" and not any(hasattr(v, "dtype") for v in inputs.values()):
            inputs = {**inputs, "device": self.name}
        return kernel(**inputs)

    def array(self, value: Any) -> np.ndarray:
        """A result as an array of its own dtype; bfloat16, which NumPy lacks, as ml_dtypes has it."""
        if self.name == "numpy":
            assert isinstance(value, np.ndarray), type(value)
            return value
        assert value.device.type == self.name, value.device
        if value.dtype == self.torch.bfloat16:
            import ml_dtypes

            return value.detach().cpu().float().numpy().astype(ml_dtypes.bfloat16)
        return value.detach().cpu().resolve_neg().numpy()


def agree(case: dict[str, Any], inputs: dict[str, Any], got: np.ndarray, want: np.ndarray) -> None:
    """Shape and dtype are the reference's, and the elements by the case's tolerance; or those of a result that the
    bank accepts too."""
    carried = case.get("carry", {}).get("out")
    assert str(got.dtype) == (carried or str(want.dtype))
    assert got.shape == want.shape
    if carried:
        got = got.astype(np.float32)
    others = case["accept"](**inputs) if "accept" in case else []
    assert any(close(case, got, one) for one in (want, *others)), f"got\n{got}\nreference\n{want}"


def close(case: dict[str, Any], got: np.ndarray, want: np.ndarray) -> bool:
    floats = want.dtype.kind == "f"
    if case["tol"] == "exact":
        same = np.array_equal(got, want, equal_nan=floats)
    else:
        rtol, atol = case["tol"]
        same = np.allclose(got.astype(np.float64), want.astype(np.float64), rtol, atol, equal_nan=True)
    if case.get("signed_zero"):
        number = ~np.isnan(want)
        same = same and np.array_equal(np.signbit(got)[number], np.signbit(want)[number])
    return bool(same)


def reference(of: Callable[..., Any], inputs: dict[str, Any]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(of(**inputs))


def keywords(rule: Rule, inputs: dict[str, Any]) -> Any:
    return rule.call(**inputs) if rule.call else inputs


def case_inputs(case: dict[str, Any], seed: int) -> dict[str, Any]:
    made: dict[str, Any] = case["make"](np.random.default_rng(seed))
    return made


def run_value(case: dict[str, Any], on: Framework, seed: int) -> None:
    """One kernel, called for every set of keywords; the inputs are as they were afterwards."""
    inputs = case_inputs(case, seed)
    rule, carry = RULES[case["id"]], case.get("carry", {})
    want = reference(case["reference"], inputs)
    for spec in (rule.spec, *rule.same):
        kernel = ew.kernel(spec)
        if rule.first:
            on.call(kernel, on.carried(rule.first(**inputs), carry))
        calls = keywords(rule, inputs)
        carried = [on.carried(one, carry) for one in (calls if isinstance(calls, list) else [calls])]
        results = [on.array(on.call(kernel, one)) for one in carried]
        agree(case, inputs, np.stack(results) if isinstance(calls, list) else results[0], want)
        for one, again in zip(carried, calls if isinstance(calls, list) else [calls]):
            for name, value in one.items():
                if isinstance(again[name], np.ndarray):
                    assert np.array_equal(on.array(value), again[name], equal_nan=again[name].dtype.kind == "f"), (
                        f"`{name}` has changed"
                    )


def run_grad(case: dict[str, Any], on: Framework, seed: int) -> None:
    """Autograd's gradients of the inputs in `wrt`, stacked where there are several."""
    inputs = case_inputs(case, seed)
    upstream = on.tensor(inputs["g"], None)
    tensors = {name: on.tensor(value, None) for name, value in inputs.items() if name != "g"}
    for name in case["wrt"]:
        tensors[name].requires_grad_()
    ew.kernel(RULES[case["id"]].spec)(**tensors).backward(upstream)
    gradients = [on.array(tensors[name].grad) for name in case["wrt"]]
    got = gradients[0] if len(gradients) == 1 else np.stack(gradients)
    agree(case, inputs, got, reference(case["reference"], inputs))


def run_forward(case: dict[str, Any], on: Framework, seed: int) -> None:
    inputs = {name: value for name, value in case_inputs(case, seed).items() if name != "g"}
    got = on.array(ew.kernel(RULES[case["id"]].spec)(**on.carried(inputs, {})))
    want = reference(case["forward"], inputs)
    tolerance = (1e-6, 1e-7) if case["tol"] == "exact" else case["tol"]
    agree({**case, "tol": tolerance, "accept": lambda **_: []}, inputs, got, want)


def run_alias(case: dict[str, Any], on: Framework, seed: int) -> None:
    """Overlapping views of one buffer: the reference's buffer, as if all reads had come first; or refused with the
    buffer as it was, and the reference with the inputs cloned, as the message says, or without `out`."""
    base = case_inputs(case, seed)["base"]
    rule = RULES[case["id"]]
    want = reference(case["reference"], {"base": base.copy()})
    kernel = ew.kernel(rule.spec)
    memory = on.tensor(base.copy(), None)
    views = keywords(rule, case["views"](base))
    here = {name: view_of(memory, base, view) for name, view in views.items()}
    try:
        kernel(**here)
    except ValueError as error:
        assert re.search(r"`\w+\.clone\(\)`", str(error)), error
        assert np.array_equal(on.array(memory), base), "refused, but written to"
    else:
        agree(case, {"base": base}, on.array(memory), want)
        return
    apart = {name: view if name == "out" else clone(view) for name, view in here.items()}
    try:
        kernel(**apart)
        agree(case, {"base": base}, on.array(memory), want)
    except ValueError:  # `out` overlaps itself
        assert np.array_equal(on.array(memory), base), "refused, but written to"
        apart.pop("out")
        agree(case, {"base": base}, on.array(kernel(**apart)), want)


def view_of(memory: Any, base: np.ndarray, view: np.ndarray) -> Any:
    """The view of `memory` that `view` is of `base`; both hold their elements in C order."""
    begin = (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // base.itemsize
    strides = [s // base.itemsize for s in view.strides]
    if isinstance(memory, np.ndarray):
        return np.lib.stride_tricks.as_strided(memory.reshape(-1)[begin:], view.shape, view.strides)
    return memory.as_strided(view.shape, strides, begin)


def clone(view: Any) -> Any:
    return view.copy() if isinstance(view, np.ndarray) else view.clone()


def run_message(case: dict[str, Any], on: Framework, seed: int) -> None:
    """The rule's result, then each thing typed in `bad`: its message carries every fact of `say`."""
    run_value(case, on, seed)
    run_bad(case, on, seed)


def run_bad(case: dict[str, Any], on: Framework, seed: int) -> None:
    rule = RULES[case["id"]]
    inputs = case_inputs(case, seed)
    assert len(rule.bad) == len(case["bad"])
    for typed, ours in zip(case["bad"], rule.bad):
        if isinstance(ours, Accepted):
            assert ours.spec == typed["typed"]
            got = on.array(ew.kernel(ours.spec)(**on.carried(keywords(rule, inputs), {})))
            agree(case, inputs, got, reference(ours.result or case["reference"], inputs))
            if ours.instead:
                refused(ours.instead, typed["say"], on, inputs)
        else:
            refused(ours, typed["say"], on, inputs)


def refused(wrong: Refused, facts: list[str], on: Framework, inputs: dict[str, Any]) -> None:
    assert list(wrong.facts) == facts
    with pytest.raises(wrong.error) as raised:
        kernel = ew.kernel(wrong.spec)
        if wrong.call:
            kernel(**on.carried(wrong.call(**inputs), {}))
    said = str(raised.value)
    for fact, words in wrong.facts.items():
        assert re.search(words, said), f"the message does not say `{fact}`:\n{said}"
    if wrong.column:
        assert isinstance(raised.value, SyntaxError) and raised.value.offset == wrong.column, said


def run_big(case: dict[str, Any], on: Framework, seed: int) -> None:
    """More elements than a 32-bit index has, looked at in some places."""
    inputs = case_inputs(case, seed)
    sample = inputs.pop("sample")
    want = reference(case["reference"], {**inputs, "sample": sample})
    needed = inputs["n"] * want.itemsize
    free, _ = on.torch.cuda.mem_get_info()
    if free < needed + (1 << 30):
        pytest.skip(f"needs {needed >> 20} MiB of device memory, {free >> 20} are free")
    got = on.call(ew.kernel(RULES[case["id"]].spec), keywords(RULES[case["id"]], inputs))
    assert got.shape == (inputs["n"],)
    agree(case, inputs, on.array(got[on.tensor(sample, None)]), want)


def run_stream(case: dict[str, Any], on: Framework, seed: int) -> None:
    """In place on a side stream, as often as `steps` says; where the bank tells of two devices, on the second one while
    the first is current, and refused where the tensors of a call are on both."""
    inputs = case_inputs(case, seed)
    want = reference(case["reference"], inputs)
    torch, kernel = on.torch, ew.kernel(RULES[case["id"]].spec)
    steps = inputs.get("steps")
    if steps is None:
        if torch.cuda.device_count() < 2:
            pytest.skip("needs two devices")
        x = on.tensor(inputs["x"], None).to("cuda:1")
        got = kernel(x)
        assert torch.cuda.current_device() == 0 and got.device == x.device
        agree(case, inputs, on.array(got), want)
        for typed, wrong in zip(case["bad"], RULES[case["id"]].bad):
            assert isinstance(wrong, Refused) and wrong.call and list(wrong.facts) == typed["say"]
            apart = {k: on.tensor(v, None).to(f"cuda:{d}") for d, (k, v) in enumerate(wrong.call(**inputs).items())}
            with pytest.raises(wrong.error) as raised:
                ew.kernel(wrong.spec)(**apart)
            assert all(re.search(words, str(raised.value)) for words in wrong.facts.values()), raised.value
        return
    x = on.tensor(inputs["x"], None)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(steps):
            kernel(x, out=x)
        got = x.cpu().numpy()
    agree(case, inputs, got, want)


RUN = {
    "value": run_value,
    "grad": run_grad,
    "alias": run_alias,
    "stream": run_stream,
    "message": run_message,
    "big": run_big,
}
ON = {"value": FRAMEWORKS, "grad": ("cpu", "cuda"), "alias": FRAMEWORKS, "message": FRAMEWORKS}  # others: a GPU
REFUSED = (ew.SpecError, TypeError, ValueError)  # how what is not there yet says so
ONCE = {"big", "stream", "alias"}  # kinds of which one seed is enough


def waiting(case: dict[str, Any]) -> str | None:
    """What the case waits for."""
    return WAITING.get(case["id"]) or WAITING.get("kind:" + case["kind"])


def runs(frameworks: tuple[str, ...]) -> list[Any]:
    """(case, framework, seed), marked where they wait: then they must be refused, and a wrong result still fails."""
    found = []
    for case in CASES:
        for name in ON.get(case["kind"], ("cuda",)):
            for seed in SEEDS if case["kind"] not in ONCE else SEEDS[:1]:
                if name in frameworks:
                    why = waiting(case)
                    marks = [pytest.mark.xfail(strict=True, raises=REFUSED, reason=f"waits for {why}")] if why else []
                    found.append(pytest.param(case, name, seed, id=f"{case['id']}-{name}-{seed}", marks=marks))
    return found


def run(case: dict[str, Any], name: str, seed: int) -> None:
    RUN[case["kind"]](case, Framework(name), seed)
