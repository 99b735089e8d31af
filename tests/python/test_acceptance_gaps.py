# SPDX-License-Identifier: Apache-2.0
"""What no other test shows: guards that overlap at every length, carets behind letters beyond ASCII, one variant a
kind, straight bodies without any comparison, the sum of `make test`. Where a GPU is, the same on it; nothing skips."""

from __future__ import annotations

import ast
import ctypes
import importlib.util
import os
import re
import sys
import warnings
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any

import elsewise as ew
import numpy as np
import pytest

from .conftest import SEED, python

ROOT = Path(__file__).resolve().parents[2]
MOST, GUARD, MARK = 4099, 64, 123
OVERLAPPING = "i<a: x*0.5; i>=b: x*2; else -x"  # a > b for even n: both guards hold in [b, a)


def devices() -> list[str]:
    """The CPU, and a GPU where torch has one."""
    if importlib.util.find_spec("torch") is None:
        return ["cpu"]
    import torch

    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


# --- results ---------------------------------------------------------------------------------------------------------


def bounds(n: int) -> tuple[int, int]:
    return (2 * n // 3, n // 3) if n % 2 == 0 else (n // 3, 2 * n // 3)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("offset", range(16))
def test_overlapping_guards_at_every_length(offset: int, in_place: bool) -> None:
    """The first guard wins, at every length and offset, and the guard zones stay."""
    k = ew.kernel(OVERLAPPING)
    source = np.random.default_rng(offset).standard_normal(MOST + 2 * GUARD + 16).astype(np.float32)
    first, second, third = source * np.float32(0.5), source * np.float32(2), -source
    fresh = source if in_place else np.full_like(source, MARK)
    memory = fresh.copy()
    begin = GUARD + offset
    for n in range(MOST + 1):
        a, b = bounds(n)
        out = memory[begin : begin + n]
        k(out if in_place else source[begin : begin + n], a=a, b=b, out=out)
        late = max(a, b)
        assert np.array_equal(out[:a], first[begin : begin + a]), (n, "first")
        assert np.array_equal(out[a:late], third[begin + a : begin + late]), (n, "else")
        assert np.array_equal(out[late:], second[begin + late : begin + n]), (n, "second")
        out[:] = fresh[begin : begin + n]
        around = slice(begin - GUARD, begin + n + GUARD)
        assert np.array_equal(memory[around], fresh[around]), (n, "written outside")


if "cuda" in devices():  # not a test that skips: only tests/gpu may

    @pytest.mark.parametrize("offset", range(16))
    def test_overlapping_guards_at_every_length_on_a_gpu(torch: Any, offset: int) -> None:
        k = ew.kernel(OVERLAPPING)
        pitch, begin = 4352, GUARD + offset
        source = torch.randn(pitch, device="cuda")
        memory = torch.full((MOST + 1, pitch), float(MARK), device="cuda")
        for n in range(MOST + 1):
            a, b = bounds(n)
            k(source[begin : begin + n], a=a, b=b, out=memory[n, begin : begin + n])
        i = torch.arange(pitch, device="cuda") - begin
        n = torch.arange(MOST + 1, device="cuda")[:, None]
        a, b = (torch.tensor([bounds(v)[which] for v in range(MOST + 1)], device="cuda")[:, None] for which in (0, 1))
        value = torch.where(i < a, source * 0.5, torch.where(i >= b, source * 2, -source))
        assert torch.equal(memory, torch.where((i >= 0) & (i < n), value, float(MARK)))


@pytest.mark.parametrize("device", devices())
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32"])
def test_a_million_elements_give_what_torch_where_gives(torch: Any, seed: ew.Kernel, dtype: str, device: str) -> None:
    n = 1_000_000
    base = (torch.randn(n + 16, device=device) * 50).to(getattr(torch, dtype))
    i = torch.arange(n, device=device)
    for offset in (0, 1, 3, 8):
        x = base[offset : offset + n]
        expected = torch.where(i < n // 4, x * 0.5, torch.where(i >= n - n // 4, x * 2, x))
        y = seed(x)
        assert y.dtype == expected.dtype and torch.equal(y, expected)
        if expected.dtype == x.dtype:
            copy = base.clone()
            inside = copy[offset : offset + n]
            assert seed(inside, out=inside) is inside and torch.equal(inside, expected)
            assert torch.equal(copy[:offset], base[:offset]) and torch.equal(copy[offset + n :], base[offset + n :])
    if device == "cuda":
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            y = seed(base[:n])
        stream.synchronize()
        assert torch.equal(
            y, torch.where(i < n // 4, base[:n] * 0.5, torch.where(i >= n - n // 4, base[:n] * 2, base[:n]))
        )


@pytest.mark.parametrize("device", devices())
def test_states_of_tensors_on_every_device(torch: Any, seed: ew.Kernel, device: str) -> None:
    complex_ones = torch.zeros(8, dtype=torch.complex64, device=device)
    out = torch.full((8,), 7.0, device=device)
    for bad, kind, message in (
        (complex_ones.conj(), ValueError, "resolve_conj"),
        (complex_ones.conj().imag, ValueError, "resolve_neg"),
        (torch.zeros(8, device=device, requires_grad=True), ValueError, r"detach\(\)"),
        (torch.zeros(8, device="meta"), TypeError, "meta"),
    ):
        with pytest.raises(kind, match=message):
            seed(bad, out=out)
    assert out.tolist() == [7.0] * 8 and out._version == 0
    x = torch.arange(16.0, device=device)
    seed(x)
    x.resize_(4)
    assert seed(x).tolist() == [0, 1, 2, 6]
    x.set_(torch.arange(100.0, 108.0, device=device))
    assert seed(x).tolist() == [50, 50.5, 102, 103, 104, 105, 212, 214]


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_a_kind_and_a_class_of_layout_add_one_variant_each() -> None:
    k = ew.kernel("i < e: x*g; else x  # test_acceptance_gaps")
    x, grid = np.ones(4099, np.float32), np.ones((100, 100), np.float32)

    def compiled(array: np.ndarray, e: Any, g: Any) -> int:
        before = ew.cache_info().compiles
        k(array, e=e, g=g)
        return ew.cache_info().compiles - before

    assert compiled(x, 3, 2.0) == 1
    assert compiled(x, 3, 2) == 1  # `g` is an int
    assert compiled(x, 3.0, 2.0) == 1  # `e` is a float
    assert [compiled(x, 5, 4), compiled(x, 2.5, 9.5), compiled(x[:100], 3, 2.0), compiled(x, 2**100, 2.0)] == [0] * 4
    assert compiled(grid[:, :50], 3, 2.0) == 1  # rows
    assert [compiled(grid[:, :33], 3, 2.0), compiled(grid[:7, 4:90], -1, 0.0)] == [0, 0]
    assert compiled(x[::2], 3, 2.0) == 1  # strided
    assert [compiled(x[::3], 3, 2.0), compiled(x[::-1], 3, 2.0)] == [0, 0]


@pytest.mark.parametrize("device", devices())
def test_plans_hold_no_tensor_on_any_device(torch: Any, seed: ew.Kernel, device: str) -> None:
    x, out = torch.zeros(64, device=device), torch.zeros(64, device=device)
    storages = [weakref.ref(t.untyped_storage()) for t in (x, out)]
    result = seed(x)
    for _ in range(3):
        seed(x, out=out)
    refs = [weakref.ref(t) for t in (x, out, result)] + storages
    del x, out, result
    assert [ref() for ref in refs] == [None] * 5


# --- messages --------------------------------------------------------------------------------------------------------

# A spec, then for each message: what stands above its carets, a part of its text, the spec that its first cure makes.
Expected = tuple[str, str, str | None]
FOREIGN = {"é": ("é", "letter `é`", None), "π": ("π", "is written `pi`", "pi")}
BEHIND: list[tuple[str, list[Expected]]] = [
    ("i<4: clipp(x, 0, 1); else x", [("clipp", "unknown function `clipp`", "i<4: clip(x, 0, 1); else x")]),
    ("i<4: x*(i/n); else x", [("/", "`i/n` divides whole numbers", "i<4: x*(float(i)/n); else x")]),
    ("i<4: x*2; 0", [("0", "`0` has no guard", "i<4: x*2; else 0")]),
    ("i<4: min(x,); else x", [(")", "an argument is missing", None)]),
    ("i<4: clip(x, 0); else x", [("clip(x, 0)", "takes 3 arguments, not 2", None)]),
    ("i<4: clipp(x, 0, 1); else sqroot(x)", [("clipp", "unknown", ""), ("sqroot", "unknown", "")]),
    ("i<4: x +; else sqroot(x)", [("+", "has no value on its right", None), ("sqroot", "unknown function", "")]),
]


def shown(error: ew.SpecError) -> list[tuple[str, str, Any]]:
    """For each diagnostic: what stands above its carets as printed, counted in characters; its message; itself."""
    found = []
    for d in error.diagnostics:
        lines = d.rendered.splitlines()
        at = next(k for k, line in enumerate(lines) if re.fullmatch(r" *\^~*", line))
        found.append((lines[at - 1][lines[at].index("^") : len(lines[at])], d.message, d))
    return found


@pytest.mark.parametrize("letter", ["", "é", "π"])
@pytest.mark.parametrize(("spec", "expected"), BEHIND, ids=[spec for spec, _ in BEHIND])
def test_carets_and_cures_behind_other_letters(spec: str, expected: list[Expected], letter: str) -> None:
    before = f"i<2: {letter}; " if letter else ""
    with pytest.raises(ew.SpecError) as caught:
        ew.kernel(before + spec)
    found = shown(caught.value)
    wanted = ([FOREIGN[letter]] if letter else []) + expected
    assert len(found) == len(wanted), str(caught.value)
    for (above, message, diagnostic), (under, part, cure) in zip(found, wanted):
        assert above == under and re.search(part, message), diagnostic.rendered
        if cure is None or under == letter:
            continue
        assert diagnostic.fixits, diagnostic.rendered
        mended = diagnostic.fixits[0].apply(caught.value.spec)
        if cure:
            assert mended == before + cure
        assert under not in ("clipp", "sqroot") or under not in mended


def test_a_missing_else_names_the_positions_left_and_is_mended() -> None:
    for comment in ("", "# é\n", "# π und ü\n"):
        spec = comment + "i<n/4: x*0.5; i>=n-n/4: x*2"
        with pytest.raises(ew.SpecError) as caught:
            ew.kernel(spec)
        ((above, message, diagnostic),) = shown(caught.value)
        assert above == "i>=n-n/4: x*2" and "`i in [n/4, n-n/4)`" in message
        assert diagnostic.line == 1 + spec.count("\n")
        mended = diagnostic.fixits[0].apply(spec)
        assert mended == spec + "; else x"
        ew.kernel(mended)


def test_an_unreachable_piece_is_pointed_at() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ew.kernel("i<10: x  # é\ni<5: 1\nelse 0")
    (warning,) = caught
    assert re.search(r"2:1: .*`i<5: 1` is never reached.*\ni<5: 1\n\^~{5}\Z", str(warning.message).rstrip())


def test_without_a_driver_the_message_says_where_it_was_looked_for() -> None:
    code = """
import numpy as np, elsewise as ew
k, x, out = ew.kernel('x*2'), np.ones(4, np.float32), np.full(4, 7, np.float32)
assert k(x).tolist() == [2.0] * 4 and '__global__' in k.emit('cuda')
given = {'out': ew.ptr(out.ctypes.data, 'f32', 4), 'x': ew.ptr(x.ctypes.data, 'f32', 4)}
try: k.launch(**given, device=0)
except RuntimeError as error: print(error)
assert out.tolist() == [7.0] * 4
k.launch(**given, device='cpu')
assert out.tolist() == [2.0] * 4
"""
    done = python("-c", code, CUDA_VISIBLE_DEVICES="")
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        for part in ("libcuda.so.1 was not found", "install NVIDIA's driver", "Looked for:", "/usr/lib64/libcuda.so.1"):
            assert part in done.stdout
    else:
        assert "CUDA_VISIBLE_DEVICES" in done.stdout


# --- PTX -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
@pytest.mark.parametrize(
    ("rule", "dtype"),
    [
        *((SEED, d) for d in ("f32", "f64", "f16", "bf16")),
        *(("i<n/4: x*3; i>=n-n/4: x*2; else x", d) for d in ("i64", "i32", "i16", "i8", "u8")),
    ],
)
def test_a_kernel_loads_a_vector_once_and_no_straight_body_compares(rule: str, dtype: str, arch: str) -> None:
    """Every piece reads `x`: its vector is loaded once, ahead of the mask, and from a body's label to its store there
    is neither a comparison nor a load."""
    ptx = ew.kernel(rule).emit("ptx", arch=arch, x=dtype)
    assert isinstance(ptx, str)
    lines = [line.strip() for line in ptx[ptx.index(".entry") :].splitlines()]
    stores = [k for k, line in enumerate(lines) if re.match(r"st\.global\.v(4\.[a-z]32|2\.[a-z]64)\s", line)]
    assert len(stores) == 3, ptx
    for store in stores:
        begin = next(k for k in range(store, -1, -1) if re.match(r"\$L\w+:|(@!?%p\d+\s+)?bra", lines[k]))
        assert not [line for line in lines[begin + 1 : store] if line.startswith(("setp", "ld.global"))]
    vector = r"ld\.global(\.nc)?\.v(4\.[a-z]32|2\.[a-z]64)\s"
    assert len([line for line in lines[: stores[-1]] if re.match(vector, line)]) == 1, ptx


# --- the house -------------------------------------------------------------------------------------------------------


@pytest.fixture
def runner() -> ModuleType:
    """tests/run.py as a module of its own, so that what a test changes in it stays here."""
    spec = importlib.util.spec_from_file_location("elsewise_test_runner", ROOT / "tests/run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("ci", "suites", "line", "code"),
    [
        (False, {"unit": (5, 0, 0), "lit": (7, 0, 2), "gpu": (0, 0, 9)}, "12 passed, 0 failed, 11 skipped", 0),
        (True, {"unit": (5, 0, 0), "lit": (7, 0, 2), "gpu": (0, 0, 9)}, "12 passed, 2 failed, 9 skipped", 1),
        (True, {"unit": (5, 0, 0), "gpu": (0, 0, 9)}, "5 passed, 0 failed, 9 skipped", 0),
        (False, {"unit": (5, 1, 0), "gpu": (3, 0, 0)}, "8 passed, 1 failed, 0 skipped", 1),
        (False, {"gpu": (0, 0, 9)}, "0 passed, 0 failed, 9 skipped", 1),
    ],
)
def test_make_test_sums_all_suites(
    runner: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ci: bool,
    suites: dict[str, tuple[int, int, int]],
    line: str,
    code: int,
) -> None:
    for name in ("ELSEWISE_BUILD_DIR", "PYTHONPATH", "ELSEWISE_CACHE_DIR"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # main() sets them; they are as before afterwards
    monkeypatch.setattr(runner, "CI", ci)
    monkeypatch.setattr(
        runner, "SUITES", {name: lambda counts=counts: runner.Count(*counts) for name, counts in suites.items()}
    )
    assert runner.main([]) == code
    assert capsys.readouterr().out.splitlines()[-1] == line


@pytest.mark.parametrize("ci", [False, True])
@pytest.mark.parametrize("missing", ["torch", "NVRTC", "FileCheck", "lit"])
def test_a_missing_part_fails_in_ci(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch, missing: str, ci: bool
) -> None:
    monkeypatch.setattr(runner, "CI", ci)
    monkeypatch.setattr(runner, "nvrtc_folders", lambda: [] if missing == "NVRTC" else [ROOT])
    monkeypatch.setattr(runner, "tool", lambda name: None if name == missing else ROOT)
    found = None if missing == "torch" else True
    monkeypatch.setattr(runner.importlib.util, "find_spec", lambda name: found)
    count = runner.environment()
    assert (count.passed, count.failed, count.skipped) == ((3, 1, 0) if ci else (3, 0, 1))
    assert any(missing in note for note in count.notes)


def test_a_suite_that_dies_or_runs_nothing_has_failed(runner: ModuleType) -> None:
    assert runner.believe(runner.Count(passed=3), -11).failed == 1
    assert runner.believe(runner.Count(), 0).failed == 1
    assert runner.believe(runner.Count(passed=3), 0).failed == 0


def test_the_stub_declares_the_members_of_every_class() -> None:
    tree = ast.parse((Path(ew.__file__).parent / "_elsewise.pyi").read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    assert {c.name for c in classes} == {n for n, v in vars(ew._elsewise).items() if isinstance(v, type)}
    for c in classes:
        declared = {node.name for node in c.body if isinstance(node, ast.FunctionDef) and node.name[0] != "_"}
        assert declared == {name for name in vars(getattr(ew._elsewise, c.name)) if name[0] != "_"}, c.name


def test_a_builtins_name_stands_in_its_row_only() -> None:
    """As a literal of its own; the name of a node of the IR, or of a symbol of the C library, is none."""
    rows = set(re.findall(r'\{\.name = "(\w+)"', (ROOT / "grammar/builtins.def").read_text())) - {"int", "float"}
    assert {"min", "clip", "isnan"} < rows
    allowed = {(name, "compiler/ir/node.cpp") for name in ("where", "len", "pow")}
    allowed |= {("fmod", "runtime/cpu/engine.cpp")}
    found = set()
    for folder in ("grammar", "compiler", "runtime", "bindings"):
        for file in (ROOT / folder).rglob("*"):
            name = str(file.relative_to(ROOT))
            if file.suffix in (".cpp", ".h", ".def", ".py") and name != "grammar/builtins.def":
                literals = set(re.findall(r'"(\w+)"', file.read_text()))
                found |= {(row, name) for row in rows & literals}
    assert found == allowed


# --- what only looks like a tensor, or carries more than data ---------------------------------------------------------


def test_an_object_that_claims_to_be_a_tensor_is_refused() -> None:
    from unittest.mock import Mock

    import torch

    for claimed in (torch.Tensor, np.ndarray):
        with pytest.raises(TypeError, match="`x` is neither a tensor, an array nor a number"):
            ew.kernel("x*2")(Mock(spec=claimed))


def test_a_tangent_is_refused_and_nothing_written() -> None:
    import torch
    from torch.autograd import forward_ad

    k = ew.kernel("x*2")
    x = torch.ones(3)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(3), torch.ones(3))
        with pytest.raises(ValueError, match="`x` carries a tangent of forward-mode differentiation"):
            k(dual)
        with pytest.raises(ValueError, match="`out` carries a tangent"):
            k(x * 5, out=dual)
        assert forward_ad.unpack_dual(dual).primal.tolist() == [1.0] * 3
        assert k(x).tolist() == [2.0] * 3  # no tangent, no complaint


@pytest.mark.parametrize(
    ("rule", "mended"),
    [
        ("x>0&x<1: x; else 0", "x>0 and x<1: x; else 0"),
        ("x>0 | x<1: x; else 0", "x>0 or x<1: x; else 0"),
        ("i&n==0: 1; else 0", "i and n==0: 1; else 0"),
    ],
)
def test_words_in_the_place_of_signs_stand_apart(rule: str, mended: str) -> None:
    with pytest.raises(ew.SpecError) as caught:
        ew.kernel(rule)
    assert mended in str(caught.value)
