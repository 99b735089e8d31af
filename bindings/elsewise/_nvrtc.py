# SPDX-License-Identifier: Apache-2.0
"""Where pip put NVRTC, the library that compiles CUDA C. It imports nothing of this package, so that any script can
load it, and opens no library."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def pip_folders(cuda: str | None = None) -> list[str]:
    """The folders of this interpreter's packages that hold an NVRTC, newest CUDA first; that of `cuda` ("13.0",
    torch's) before all."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):  # something that is no package goes by this name
        spec = None
    roots = [Path(root) for root in (spec.submodule_search_locations or [])] if spec else []
    folders = {library.parent for root in roots for library in root.glob("*/lib/libnvrtc.so*")}
    major = (cuda or "").split(".")[0]
    own = (f"cu{major}", "cuda_nvrtc" if major in ("11", "12") else "")  # how wheels of this CUDA name their folder

    def order(folder: Path) -> tuple[bool, int, str]:
        package = folder.parent.name
        number = package[2:] if package.startswith("cu") and package[2:].isdigit() else "12"
        return package in own, int(number), str(folder)

    return [str(folder) for folder in sorted(folders, key=order, reverse=True)]
