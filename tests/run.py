# SPDX-License-Identifier: Apache-2.0
"""Runs every suite that can run here and ends with one line, `N passed, N failed, N skipped`. It holds no test itself.

With CI=true only tests/gpu may skip: elsewhere a skip means that something the project installs itself is missing,
which is a failure.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("ELSEWISE_BUILD_DIR", "build/dev"))
BUILD = BUILD if BUILD.is_absolute() else ROOT / BUILD
CI = os.environ.get("CI", "").lower() in ("1", "true")
FUZZ = os.environ.get("ELSEWISE_FUZZ", "").split()  # its options, such as --programs=100000
TIMEOUT = 20 * 60
UNIT = ROOT / "tests/unit"
ON_DEVICE = "CudaDevice*"  # unit tests that need a GPU; without one they count among the GPU suite's skips


@dataclass
class Count:
    """The result of a suite; `notes` are lines for a person."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list[str] = field(default_factory=list)


def run(command: list[str | Path], env: dict[str, str] | None = None) -> int:
    """Runs a suite's command with its output shown; a suite that hangs fails."""
    try:
        return subprocess.run(
            command, cwd=ROOT, timeout=TIMEOUT, stdin=subprocess.DEVNULL, env=env, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        print(f"stopped after {TIMEOUT} s: {command[0]}", flush=True)
        return 124


def believe(count: Count, code: int) -> Count:
    """A command that failed without naming a failed test, or that ran none, has failed all the same."""
    if code != 0 and count.failed == 0:
        count.failed = 1
        count.notes.append(f"exit status {code}")
    if count.passed + count.failed + count.skipped == 0:
        count.failed = 1
        count.notes.append("no test ran")
    return count


def tool(name: str) -> Path | None:
    """A program of the environment that runs this script, else of PATH."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    return Path(found) if found else None


def gpu() -> str | None:
    """None if there is a CUDA device, else why not."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no CUDA driver (libcuda.so.1)"
    devices = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(devices)) != 0 or devices.value == 0:
        return "no CUDA device"
    return None


def environment() -> Count:
    """What requirements-test.txt brings is there, so that no suite skips for want of it."""
    parts = {
        "torch": importlib.util.find_spec("torch") is not None,
        "NVRTC (nvidia-cuda-nvrtc)": bool(nvrtc_folders()),
        "FileCheck (llvm-testing-tools)": tool("FileCheck") is not None,
        "lit": tool("lit") is not None,
    }
    missing = [name for name, there in parts.items() if not there]
    count = Count(passed=len(parts) - len(missing), notes=[f"missing: {name}" for name in missing])
    count.failed, count.skipped = (len(missing), 0) if CI else (0, len(missing))
    return count


def nvrtc_folders() -> list[str]:
    """Where pip put NVRTC, as the package finds it; its file is loaded alone, for it may not be built yet."""
    spec = importlib.util.spec_from_file_location("_nvrtc", ROOT / "bindings/elsewise/_nvrtc.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folders: list[str] = module.pip_folders()
    return folders


def with_nvrtc() -> dict[str, str]:
    """The environment in which programs that are not Python find pip's NVRTC."""
    folders = [*nvrtc_folders(), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(folders)}


def unit() -> Count:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "unit.json"
        chosen = "--gtest_filter=" + ("*" if gpu() is None else f"-{ON_DEVICE}")
        command = [BUILD / "tests/ew_tests", "--gtest_brief=1", chosen, f"--gtest_output=json:{report}"]
        code = run(command, with_nvrtc())
        result = json.loads(report.read_text()) if report.exists() else {}
    cases = [case for suite in result.get("testsuites", []) for case in suite["testsuite"]]
    failed = sum("failures" in case for case in cases)
    skipped = sum(case["result"] in ("SKIPPED", "SUPPRESSED") for case in cases)
    return believe(Count(len(cases) - failed - skipped, failed, skipped), code)


def lit() -> Count:
    program = tool("lit")
    if program is None or tool("FileCheck") is None:
        return Count(skipped=1, notes=["needs lit and FileCheck"])
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "lit.json"
        code = run(
            [program, "-s", "--order=lexical", f"--param=build={BUILD}", f"--output={report}", "tests/lit", "-vv"]
        )
        result = json.loads(report.read_text()) if report.exists() else {}
    codes = [test["code"] for test in result.get("tests", [])]
    good = sum(c in ("PASS", "XFAIL", "FLAKYPASS") for c in codes)
    skipped = [test["name"] for test in result.get("tests", []) if test["code"] in ("UNSUPPORTED", "SKIPPED")]
    count = Count(good, len(codes) - good - len(skipped), len(skipped), [f"skipped: {name}" for name in skipped])
    return believe(count, code)


def pytest(folder: str, *options: str) -> Count:
    if not list((ROOT / folder).rglob("test_*.py")):
        return Count(failed=1, notes=[f"no test in {folder}"])
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "pytest.xml"
        code = run([sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *options, folder])
        suite = ElementTree.parse(report).getroot().find("testsuite") if report.exists() else None
    if suite is None:
        return believe(Count(), code)
    tests, bad, skipped = (int(suite.get(key, "0")) for key in ("tests", "failures", "skipped"))
    errors = int(suite.get("errors", "0"))
    waiting = len(suite.findall("testcase/skipped[@type='pytest.xfail']"))  # must fail today, and did
    notes = [f"{waiting} waiting"] if waiting else []
    return believe(Count(tests - bad - errors - skipped, bad + errors, skipped - waiting, notes), code)


def fuzz() -> Count:
    """A slice of the differential fuzzer; it ends with its own `N passed, N failed` line."""
    command = [str(BUILD / "tests/ew_tests"), "fuzz", *FUZZ]
    try:
        done = subprocess.run(
            command, cwd=ROOT, timeout=TIMEOUT, stdout=subprocess.PIPE, text=True, env=with_nvrtc(), check=False
        )
    except subprocess.TimeoutExpired:
        return Count(failed=1, notes=[f"stopped after {TIMEOUT} s"])
    last = re.search(r"^(\d+) passed, (\d+) failed, (\d+) skipped\n\Z", done.stdout, re.MULTILINE)
    print(done.stdout[: last.start() if last else None], end="", flush=True)  # the one such line is this script's
    passed, failed, skipped = (int(n) for n in last.groups()) if last else (0, 0, 0)
    return believe(Count(passed, failed, skipped), done.returncode)


def on_gpu() -> Count:
    why = gpu()
    if why is None:
        return pytest("tests/gpu")
    tests = sum(
        len(re.findall(r"^\s*def test_", f.read_text(), re.MULTILINE)) for f in (ROOT / "tests/gpu").rglob("test_*.py")
    )
    tests += sum(len(re.findall(r"^TEST\w*\(CudaDevice", f.read_text(), re.MULTILINE)) for f in UNIT.glob("*.cpp"))
    return Count(skipped=tests, notes=[f"skipped: {why}"])


SUITES: dict[str, Callable[[], Count]] = {
    "environment": environment,
    "build": lambda: pytest("tests/build"),
    "unit": unit,
    "lit": lit,
    "python": lambda: pytest("tests/python", "-n2"),
    "cases": lambda: pytest("tests/cases", "-n2"),
    "docs": lambda: pytest("tests/docs"),
    "fuzz": fuzz,
    "gpu": on_gpu,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        print(f"no suite `{unknown[0]}`; there are: {' '.join(SUITES)}")
        return 2
    os.environ["ELSEWISE_BUILD_DIR"] = str(BUILD)
    os.environ["PYTHONPATH"] = str(BUILD / "python")
    results: dict[str, Count] = {}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["ELSEWISE_CACHE_DIR"] = cache  # the tests neither see nor leave anything in the user's cache
        for name in names or SUITES:
            print(f"--- {name}", flush=True)
            start = time.monotonic()
            count = SUITES[name]()
            if CI and name != "gpu" and count.skipped:
                count.notes.append(f"{count.skipped} skipped, which CI counts as failed")
                count.failed, count.skipped = count.failed + count.skipped, 0
            count.notes.append(f"{time.monotonic() - start:.0f} s")
            results[name] = count
    print("---")
    for name, c in results.items():
        print(f"{name:12}{c.passed:7} passed {c.failed:5} failed {c.skipped:5} skipped   {'; '.join(c.notes)}")
    passed, failed, skipped = (
        sum(getattr(c, key) for c in results.values()) for key in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
