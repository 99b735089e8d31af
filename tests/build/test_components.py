# SPDX-License-Identifier: Apache-2.0
"""The dependency rule, `grammar <- compiler <- runtime <- bindings`, as the compiler enforces it, and what libelsewise
shows. Nothing here runs a rule.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ELSEWISE_BUILD_DIR", ROOT / "build/dev"))
BUILD = BUILD if BUILD.is_absolute() else ROOT / BUILD
COMMANDS = {Path(entry["file"]): entry for entry in json.loads((BUILD / "compile_commands.json").read_text())}
LIBRARY = BUILD / "python/elsewise/libelsewise.so"


def accepts(source: str, include: str, tmp_path: Path) -> bool:
    """Whether `#include <include>` compiles with the options of `source`."""
    entry = COMMANDS[ROOT / source]
    options = shlex.split(entry["command"])
    probe = tmp_path / "probe.cpp"
    probe.write_text(f"#include {include}\n")
    at = options.index("-o")
    del options[at : at + 2]
    options = [o for o in options if o not in ("-c", "-MD") and not o.endswith(("ccache", source))]
    for flag in ("-MT", "-MF"):
        if flag in options:
            at = options.index(flag)
            del options[at : at + 2]
    done = subprocess.run(
        [*options, "-fsyntax-only", "-w", str(probe)],
        cwd=entry["directory"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        assert "No such file or directory" in done.stderr, done.stderr
    return done.returncode == 0


COMPILER = "compiler/source/source.cpp"
RUNTIME = "runtime/cuda/geometry.cpp"
BINDINGS = "bindings/module.cpp"


@pytest.mark.parametrize(
    ("source", "include"),
    [
        (COMPILER, '"grammar/builtins.h"'),
        (COMPILER, '"compiler/ir/ir.h"'),
        (COMPILER, '"llvm/ADT/SmallVector.h"'),
        (COMPILER, '"llvm/Support/raw_ostream.h"'),
        (COMPILER, '"llvm/Analysis/ConstraintSystem.h"'),
        (RUNTIME, '"compiler/ir/ir.h"'),
        (RUNTIME, '"runtime/elsewise.h"'),
        (BINDINGS, '"runtime/elsewise.h"'),
    ],
)
def test_right_include_compiles(source: str, include: str, tmp_path: Path) -> None:
    assert accepts(source, include, tmp_path)


@pytest.mark.parametrize(
    ("source", "include"),
    [
        (COMPILER, '"runtime/elsewise.h"'),
        (COMPILER, '"llvm/IR/Module.h"'),
        (COMPILER, "<cuda.h>"),
        (COMPILER, "<nvrtc.h>"),
        (COMPILER, "<Python.h>"),
        (COMPILER, "<pybind11/pybind11.h>"),
        (COMPILER, "<dlpack/dlpack.h>"),
        (RUNTIME, '"llvm/IR/Module.h"'),
        (RUNTIME, "<cuda.h>"),
        (RUNTIME, "<nvrtc.h>"),
        (RUNTIME, "<Python.h>"),
        (RUNTIME, '"tests/fuzz/oracle.h"'),
        (BINDINGS, '"compiler/ir/ir.h"'),
        (BINDINGS, '"runtime/cpu/jit.h"'),
        (BINDINGS, '"llvm/ADT/SmallVector.h"'),
    ],
)
def test_wrong_include_does_not_compile(source: str, include: str, tmp_path: Path) -> None:
    assert not accepts(source, include, tmp_path)


def sources(*suffixes: str) -> list[Path]:
    folders = ("grammar", "compiler", "runtime", "bindings", "tests")
    return sorted(f for folder in folders for f in (ROOT / folder).rglob("*") if f.suffix in suffixes)


def test_no_include_climbs_out_of_its_component() -> None:
    climbing = [f for f in sources(".cpp", ".h", ".def") if re.search(r'#\s*include\s*"\.', f.read_text())]
    assert not climbing


def test_every_source_is_built() -> None:
    assert not [f for f in sources(".cpp") if f not in COMMANDS]


def test_only_code_generation_sees_llvm_ir() -> None:
    seen = {
        str(f.relative_to(ROOT))
        for f, entry in COMMANDS.items()
        if "mlc_llvm_static/static/include" in entry["command"]
    }
    allowed = ("compiler/emit/llvm", "runtime/cpu/", "tests/")
    assert not [f for f in seen if not f.startswith(allowed)]


def test_every_file_names_its_licence() -> None:
    bare = [
        f
        for f in sources(".cpp", ".h", ".def", ".py")
        if "SPDX-License-Identifier: Apache-2.0" not in f.read_text()[:200]
    ]
    assert not bare


def test_library_exports_the_facade_only() -> None:
    names = subprocess.run(["nm", "-DC", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    exported = [line.split(maxsplit=2)[2] for line in names.splitlines()]
    assert "ew_main" in exported
    assert [name for name in exported if "elsewise::api::" in name]
    assert not [name for name in exported if name != "ew_main" and "elsewise::api::" not in name]


def test_library_needs_the_system_only() -> None:
    needed = re.findall(
        r"NEEDED.*\[(.*?)\.so",
        subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout,
    )
    assert not set(needed) - {
        "libc",
        "libdl",
        "libgcc_s",
        "libm",
        "libpthread",
        "librt",
        "libstdc++",
        "libz",
        "ld-linux-x86-64",
    }
