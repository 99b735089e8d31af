# SPDX-License-Identifier: Apache-2.0
"""`python -m elsewise doctor` with everything there and with each part missing: what it says is so, and its exit status
follows from it."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import elsewise as ew
import numpy
import pytest
from elsewise import _doctor, _find_nvrtc, _nvrtc

from .conftest import python

PACKAGE = Path(ew._elsewise.__file__).parent


def doctor(*options: str, code: int, **env: str) -> str:
    done = python(*options, "-m", "elsewise", "doctor", code=code, **env)
    assert not done.stderr, done.stderr
    return done.stdout


def only(tmp_path: Path, *packages: str) -> str:
    """A path with this package, NVRTC and those packages alone, for an interpreter with -S."""
    (tmp_path / "elsewise").symlink_to(PACKAGE)
    nvidia = importlib.util.find_spec("nvidia")
    if nvidia is not None and nvidia.submodule_search_locations:
        (tmp_path / "nvidia").symlink_to(next(iter(nvidia.submodule_search_locations)))
    for package in packages:
        found = Path(sys.modules[package].__file__ or "").parent
        for folder in (found, found.with_name(f"{package}.libs")):
            if folder.exists():
                (tmp_path / folder.name).symlink_to(folder)
    return str(tmp_path)


def fact(text: str, name: str) -> str:
    found = re.search(rf"^{re.escape(name)}  +(.*)$", text, re.MULTILINE)
    assert found, f"no `{name}` in\n{text}"
    return found.group(1)


def test_everything_here() -> None:
    text = doctor(code=0)
    assert fact(text, "elsewise") == ew.__version__
    assert fact(text, "python").startswith(sys.version.split()[0])
    assert "threads; " in fact(text, "processor")
    assert re.search(r"compiled in \d+\.\d ms, 4096 elements right in \d+ us$", fact(text, "rule on CPU"))
    assert fact(text, "numpy") == numpy.__version__
    assert text.rstrip().endswith("everything that this machine has works")


def test_what_torch_is_like() -> None:
    torch = pytest.importorskip("torch")
    shown = fact(doctor(code=0), "torch")
    assert shown.startswith(torch.__version__)
    assert ("without CUDA" in shown) == (torch.version.cuda is None)
    assert ("read in C" in shown) == hasattr(torch.Tensor, "__dlpack_c_exchange_api__")


@pytest.mark.parametrize(("gpu", "remedy"), [(False, ""), (True, "pip install --force-reinstall torch")])
def test_a_torch_without_cuda_beside_a_gpu(monkeypatch: pytest.MonkeyPatch, gpu: bool, remedy: str) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.version, "cuda", None)
    found = _doctor._torch_fact(torch, gpu)
    assert remedy in found.remedy and bool(found.remedy) == gpu and not found.bad


def test_without_torch(tmp_path: Path) -> None:
    text = doctor("-S", code=0, PYTHONPATH=only(tmp_path, "numpy"))
    assert fact(text, "torch").startswith("not installed") and fact(text, "numpy") == numpy.__version__


def test_without_numpy(tmp_path: Path) -> None:
    text = doctor("-S", code=1, PYTHONPATH=only(tmp_path))
    assert "cannot be imported" in fact(text, "numpy") and "-> pip install numpy\n" in text
    assert "elements right" in fact(text, "rule on CPU")
    assert text.rstrip().endswith("1 to mend: see the lines after ->")


def test_a_rule_without_numpy_says_what_is_missing(tmp_path: Path) -> None:
    code = "import elsewise as ew\ntry: ew.kernel\nexcept ImportError as e: print(e)\nprint(hasattr(ew, 'nothing'))"
    done = python("-S", "-c", code, PYTHONPATH=only(tmp_path))
    assert done.stdout == "elsewise needs NumPy: pip install numpy\nFalse\n", done.stderr


def test_a_broken_torch_is_to_mend(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libtorch_cpu.so: cannot open shared object file')")
    path = os.pathsep.join([str(tmp_path), str(PACKAGE.parent), *sys.path])
    text = doctor(code=1, PYTHONPATH=path)
    assert "libtorch_cpu.so" in fact(text, "torch") and "-> pip install --force-reinstall torch" in text


def test_every_nvrtc_is_shown_and_the_one_taken() -> None:
    folders = _nvrtc.pip_folders()
    if not folders:
        pytest.skip("pip brought no NVRTC")
    text = doctor(code=0)
    version, path = fact(text, "nvrtc").split(", ", 1)
    assert path.startswith(folders[0]) and re.fullmatch(r"\d+\.\d+", version)
    assert re.search(rf"^ +found: {re.escape(version)}, {re.escape(path)}\S* \(pip\)$", text, re.MULTILINE)
    assert re.search(r"PTX for sm_80 in \d+\.\d ms$", fact(text, "rule by NVRTC"))


def test_an_nvrtc_that_is_none(tmp_path: Path) -> None:
    if not _nvrtc.pip_folders():
        pytest.skip("pip brought no NVRTC")
    (tmp_path / "libnvrtc.so.13").write_bytes(b"not a library")
    text = doctor(code=0, ELSEWISE_NVRTC=str(tmp_path))  # the next one is taken
    assert re.search(rf"found: .*{re.escape(str(tmp_path))}.* \(ELSEWISE_NVRTC\)$", text, re.MULTILINE)
    assert not fact(text, "nvrtc").endswith(str(tmp_path))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (subprocess.TimeoutExpired("python", 60), "does not open within a minute"),
        (OSError(12, "Cannot allocate memory"), "cannot be tried: [Errno 12] Cannot allocate memory"),
    ],
)
def test_an_nvrtc_that_cannot_be_tried(monkeypatch: pytest.MonkeyPatch, error: Exception, said: str) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(_doctor.subprocess, "run", fails)
    assert _doctor._version_of("libnvrtc.so.13") == ("", said)


@pytest.mark.parametrize(
    ("driver", "command"),
    [
        (None, "pip install nvidia-cuda-nvrtc"),
        (13, "pip install 'nvidia-cuda-nvrtc==13.*'"),
        (12, "pip install nvidia-cuda-nvrtc-cu12"),
    ],
)
def test_no_nvrtc_matters_only_with_a_driver(monkeypatch: pytest.MonkeyPatch, driver: int | None, command: str) -> None:
    monkeypatch.setattr(_doctor._elsewise, "environment", lambda: [("nvrtc", "none", "looked in: nowhere")])
    (found,) = _doctor._nvrtc(driver)
    assert found.bad == (driver is not None) and _doctor._install(driver) == command
    assert found.remedy.startswith(command if driver else "")


def test_an_nvrtc_newer_than_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    if not _nvrtc.pip_folders():
        pytest.skip("pip brought no NVRTC")
    facts = list(_doctor._nvrtc(11))
    assert any("newer than the driver's 11" in f.value and "nvidia-cuda-nvrtc-cu11" in f.remedy for f in facts)


def test_a_gpu_without_a_driver_is_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [("cuda driver", "none", "libcuda.so.1 was not found"), ("nvrtc", "none", "")]
    monkeypatch.setattr(_doctor._elsewise, "environment", lambda: facts)
    for there in (True, False):
        monkeypatch.setattr(_doctor, "_nvidia_in_machine", lambda there=there: there)
        driver = next(iter(_doctor._gpu()))
        assert driver.bad == there and ("libcuda" in driver.remedy) == there


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_doctor, "_on_cpu", lambda call: ([0.0] * _doctor.ELEMENTS, 1e-6))
    fact = list(_doctor._package())[-1]
    assert fact.bad and "wrong result" in fact.value and fact.remedy


def test_the_function_gives_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert ew.doctor() is True
    assert "everything that this machine has works" in capsys.readouterr().out


def test_pip_folders_come_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cuda_nvrtc", "cu13", "cu14", "cublas"):
        (tmp_path / "nvidia" / name / "lib").mkdir(parents=True)
        if name != "cublas":
            (tmp_path / "nvidia" / name / "lib" / "libnvrtc.so.1").touch()
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path / "nvidia")]})
    monkeypatch.setattr(_nvrtc.importlib.util, "find_spec", lambda name: spec if name == "nvidia" else None)
    names = lambda cuda: [Path(folder).parent.name for folder in _nvrtc.pip_folders(cuda)]  # noqa: E731
    assert names(None) == ["cu14", "cu13", "cuda_nvrtc"]
    assert names("13.0") == ["cu13", "cu14", "cuda_nvrtc"]
    assert names("12.8") == ["cuda_nvrtc", "cu14", "cu13"]
    _find_nvrtc.find_nvrtc()
    assert [str(tmp_path / "nvidia/cu14/lib/libnvrtc.so.1")] == [
        path for by, path in ew._elsewise.nvrtc_places() if by == "pip"
    ][:1]
    monkeypatch.undo()
    _find_nvrtc.find_nvrtc()


class FakeDriver:
    """The part of libcuda that the doctor uses, on host memory. `fails` names a function that fails."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.calls: list[str] = []
        self.memory: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        def function(*arguments: Any) -> int:
            self.calls.append(name)
            if name == self.fails:
                return 700
            if name == "cuMemAlloc_v2":
                block = (ctypes.c_char * arguments[1].value)()
                self.memory[ctypes.addressof(block)] = block
                arguments[0]._obj.value = ctypes.addressof(block)
            elif name == "cuMemcpyHtoD_v2":
                ctypes.memmove(arguments[0].value, arguments[1], arguments[2].value)
            elif name == "cuMemcpyDtoH_v2":
                ctypes.memmove(arguments[0], arguments[1].value, arguments[2].value)
            elif name == "cuMemFree_v2":
                del self.memory[arguments[0].value]
            return 0

        return function


@pytest.mark.parametrize("fails", ["", "cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuCtxSynchronize", "cuMemcpyDtoH_v2"])
def test_what_is_taken_of_the_driver_is_given_back(monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    driver = FakeDriver(fails)
    monkeypatch.setattr(_doctor.ctypes, "CDLL", lambda name: driver)
    fact = _doctor._tried("rule on GPU", "see above", lambda: _doctor._try_rule(_doctor._on_gpu, -1))
    assert fact.bad == bool(fails) and (f"{fails} failed with CUDA error 700" if fails else "right in") in fact.value
    assert not driver.memory
    assert driver.calls.count("cuCtxPushCurrent_v2") == driver.calls.count("cuCtxPopCurrent_v2") == 1
    assert driver.calls.count("cuDevicePrimaryCtxRelease_v2") == 1
