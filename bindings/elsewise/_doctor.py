# SPDX-License-Identifier: Apache-2.0
"""`doctor`: what a call would find on this machine, tried out, and the command that brings what is missing. It needs
neither NumPy nor torch nor a GPU, installs nothing, and says nothing that it has not looked at."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _elsewise
from ._find_nvrtc import find_nvrtc

RULE = "i < n/2: x*2; else x"
ELEMENTS = 4096

# Opens a library and asks for its version: in a process of its own, since a broken one may do anything, and since one
# that is loaded is what the next to ask for its name gets.
VERSION = """
import ctypes, sys
major, minor = ctypes.c_int(), ctypes.c_int()
try:
    failed = ctypes.CDLL(sys.argv[1]).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    print("", f"nvrtcVersion gives {failed}") if failed else print(f"{major.value}.{minor.value}")
except (OSError, AttributeError) as error:
    print("", error)
"""


@dataclass(frozen=True)
class Fact:
    """One line of the report. remedy: how to mend it, or ""; bad: a call that this machine should run would fail."""

    name: str
    value: str
    remedy: str = ""
    bad: bool = False


def report() -> bool:
    """See :func:`elsewise.doctor`."""
    width, bad = 15, 0
    for group in (_package, _arrays, _gpu, _cache):
        for fact in group():
            print(f"{fact.name:<{width}}{fact.value}")
            if fact.remedy:
                print(f"{'':<{width}}-> " + fact.remedy.replace("\n", f"\n{'':<{width}}   "))
            bad += fact.bad
            sys.stdout.flush()
        print()
    print("everything that this machine has works" if not bad else f"{bad} to mend: see the lines after ->")
    return not bad


def _package() -> Iterator[Fact]:
    facts = {name: value for name, value, _ in _elsewise.environment()}
    yield Fact("elsewise", facts.get("elsewise", "?"))
    yield Fact("python", f"{platform.python_version()} ({sys.executable})")
    yield Fact("platform", f"{platform.system()} {platform.release()} {platform.machine()}, {' '.join(_libc())}")
    yield Fact("processor", f"{facts.get('cpu', '?')}; {facts.get('cpu features', '?')}")
    yield Fact("compiler", f"LLVM {facts.get('llvm', '?')}, in this process")
    yield _tried("rule on CPU", "please report it, with this page", lambda: _try_rule(_on_cpu, -1))


def _libc() -> tuple[str, str]:
    return platform.libc_ver() if platform.libc_ver()[0] else ("libc", "unknown")


def _arrays() -> Iterator[Fact]:
    try:
        import numpy
    except ImportError as error:
        yield Fact("numpy", f"cannot be imported: {error}", "pip install numpy", bad=True)
    else:
        yield Fact("numpy", numpy.__version__)
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            yield Fact("torch", f"cannot be imported: {error}", "pip install --force-reinstall torch", bad=True)
        else:
            yield Fact("torch", "not installed; NumPy arrays and raw pointers need none")
    except Exception as error:  # whatever a broken installation raises
        yield Fact("torch", f"cannot be imported: {error}", "pip install --force-reinstall torch", bad=True)
    else:
        yield _torch_fact(torch, _elsewise.cuda_available()[0])
    for library, packages in {"cupy": ("cupy", "cupy-cuda13x", "cupy-cuda12x"), "jax": ("jax",)}.items():
        found = next(filter(None, map(_version, packages)), None)
        if found:
            yield Fact(library, found)


def _torch_fact(torch: Any, gpu: bool) -> Fact:
    cuda, remedy = torch.version.cuda, ""
    if hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        how = "its tensors are read in C"
    else:
        how = "its tensors are read in Python, some microseconds a call: it has no DLPack exchange API"
        remedy = "pip install --upgrade torch"
    if gpu and cuda is None:
        remedy = "its tensors cannot be on the GPU; PyPI's torch for Linux can: pip install --force-reinstall torch"
    elif gpu and not torch.cuda.is_available():
        remedy = "torch itself cannot use the GPU: python -c 'import torch; torch.zeros(1, device=\"cuda\")' says why"
    return Fact("torch", f"{torch.__version__}, {f'CUDA {cuda}' if cuda else 'without CUDA'}; {how}", remedy)


def _version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _gpu() -> Iterator[Fact]:
    find_nvrtc()  # now that torch, if there is one, is imported
    facts = _elsewise.environment()
    driver, why = next((value, remedy) for name, value, remedy in facts if name == "cuda driver")
    devices = [Fact(name, value) for name, value, _ in facts if name.startswith("cuda:")]
    if devices:
        yield Fact("driver", driver)
        yield from devices
    elif _nvidia_in_machine():
        yield Fact("driver", "none that works, though an NVIDIA GPU is there", why, bad=True)
    else:
        yield Fact("driver", "none, and no NVIDIA GPU in this machine: rules run on the CPU")
    supported = re.search(r"\((\d+)\.\d+\)$", driver) if devices else None
    yield from _nvrtc(int(supported.group(1)) if supported else None)
    if devices:
        yield _tried("rule on GPU", "see the lines above", lambda: _try_rule(_on_gpu, 0))


def _nvidia_in_machine() -> bool:
    """True if a display controller of NVIDIA is on the PCI bus, whether or not a driver is there."""

    def read(path: Path) -> str:
        try:
            return path.read_text().strip()
        except OSError:
            return ""

    devices = Path("/sys/bus/pci/devices").glob("*")
    return any(read(d / "vendor") == "0x10de" and read(d / "class").startswith("0x03") for d in devices)


def _nvrtc(driver: int | None) -> Iterator[Fact]:
    """Every NVRTC there is, and the one that is taken. driver: the CUDA major that the driver supports, if it has a
    device."""
    install = _install(driver)
    facts = {name: (value, why) for name, value, why in _elsewise.environment()}
    taken, why = facts["nvrtc"]  # opens it
    if why:
        needed = f"{install}\n({why})"
        yield (
            Fact("nvrtc", "none", needed, bad=True)
            if driver
            else Fact("nvrtc", "none; only a GPU, and `emit` of ptx and cubin, need one")
        )
        return
    path, _, version = taken.rpartition(" ")
    version = version.strip("()")
    yield Fact("nvrtc", f"{version}, {path}")
    shown: set[str] = set()
    for named_by, place in _elsewise.nvrtc_places():
        real = os.path.realpath(place) if os.sep in place else place
        if real in shown:
            continue
        shown.add(real)
        found, error = _version_of(place)
        if found or os.sep in place:  # names for the loader are guesses
            yield Fact("", f"found: {found or error}, {place} ({named_by})")
    yield Fact("", "taken: the first of ELSEWISE_NVRTC, pip (CUDA as torch's, else the newest), toolkits, the system")
    major = int(version.split(".")[0])
    if driver is not None and major > driver:
        yield Fact("", f"its CUDA {major} is newer than the driver's {driver}", f"update the driver, or {install}")
    yield _tried("rule by NVRTC", "pip install --force-reinstall nvidia-cuda-nvrtc", _try_nvrtc)


def _install(driver: int | None) -> str:
    if driver in (11, 12):
        return f"pip install nvidia-cuda-nvrtc-cu{driver}"
    return "pip install nvidia-cuda-nvrtc" if driver is None else f"pip install 'nvidia-cuda-nvrtc=={driver}.*'"


def _version_of(library: str) -> tuple[str, str]:
    """Its version, and else what went wrong."""
    child = [sys.executable, "-I", "-S", "-c", VERSION, library]
    try:
        done = subprocess.run(child, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return "", "does not open within a minute"
    except OSError as error:  # no memory or process left, or an interpreter that is not there
        return "", f"cannot be tried: {error}"
    version, _, wrong = done.stdout.rstrip("\n").partition(" ")
    return (version, wrong) if done.stdout else ("", "ends the process that opens it")


def _cache() -> Iterator[Fact]:
    yield Fact("cache", "in memory: each process compiles a rule once for each combination of dtypes; none on disk yet")


def _tried(name: str, remedy: str, attempt: Callable[[], str]) -> Fact:
    try:
        return Fact(name, attempt())
    except Exception as error:  # whatever goes wrong is what is to be shown
        return Fact(name, f"failed: {error}", remedy, bad=True)


def _try_nvrtc() -> str:
    rule, _ = _elsewise.compile(f"{RULE}  # {time.monotonic_ns()}", "<doctor>")
    start = time.perf_counter()
    ptx = _elsewise.emit(rule, "ptx", {"x": "f32"}, "sm_80")
    if ".visible .entry elsewise" not in str(ptx):
        raise RuntimeError("the PTX holds no kernel")
    return f"`{RULE}`: PTX for sm_80 in {(time.perf_counter() - start) * 1e3:.1f} ms"


def _try_rule(run: Callable[[Callable[..., None]], tuple[list[float], float]], ordinal: int) -> str:
    """Compiles RULE, runs it where `run` puts its data, and compares; what is said is what was measured."""
    text = f"{RULE}  # {time.monotonic_ns()}"  # never compiled before
    made = 0.0

    def call(x: int, out: int) -> None:
        nonlocal made
        start = time.perf_counter()
        rule, _ = _elsewise.compile(text, "<doctor>")
        x_view, out_view = (_elsewise.View(p, "f32", [ELEMENTS], [1], ordinal) for p in (x, out))
        plan = _elsewise.plan(rule, [x_view], out_view)
        made = made or time.perf_counter() - start
        _elsewise.run(plan, [x_view], out_view)

    result, seconds = run(call)
    if result != [2.0 * k if k < ELEMENTS // 2 else float(k) for k in range(ELEMENTS)]:
        raise RuntimeError(f"`{RULE}` gave a wrong result")
    return f"`{RULE}`: compiled in {made * 1e3:.1f} ms, {ELEMENTS} elements right in {seconds * 1e6:.0f} us"


def _on_cpu(call: Callable[..., None]) -> tuple[list[float], float]:
    x, out = (ctypes.c_float * ELEMENTS)(*range(ELEMENTS)), (ctypes.c_float * ELEMENTS)()
    call(ctypes.addressof(x), ctypes.addressof(out))
    start = time.perf_counter()
    call(ctypes.addressof(x), ctypes.addressof(out))
    return list(out), time.perf_counter() - start


def _on_gpu(call: Callable[..., None]) -> tuple[list[float], float]:
    """In device memory of its own, in the primary context of device 0, as every library shares it."""
    driver = ctypes.CDLL("libcuda.so.1")

    def cuda(name: str, *arguments: Any) -> None:
        if status := getattr(driver, name)(*arguments):
            raise RuntimeError(f"{name} failed with CUDA error {status}")

    host = (ctypes.c_float * ELEMENTS)(*range(ELEMENTS))
    size = ctypes.c_size_t(ctypes.sizeof(host))
    device, context, x, out = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()
    cuda("cuInit", 0)
    cuda("cuDeviceGet", ctypes.byref(device), 0)
    cuda("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    cuda("cuCtxPushCurrent_v2", context)
    try:
        cuda("cuMemAlloc_v2", ctypes.byref(x), size)
        cuda("cuMemAlloc_v2", ctypes.byref(out), size)
        cuda("cuMemcpyHtoD_v2", x, host, size)
        call(x.value, out.value)
        cuda("cuCtxSynchronize")
        start = time.perf_counter()
        call(x.value, out.value)
        cuda("cuCtxSynchronize")
        seconds = time.perf_counter() - start
        cuda("cuMemcpyDtoH_v2", host, out, size)
    finally:
        for memory in filter(None, (x.value, out.value)):
            driver.cuMemFree_v2(ctypes.c_uint64(memory))
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        driver.cuDevicePrimaryCtxRelease_v2(device)
    return list(host), seconds
