# SPDX-License-Identifier: Apache-2.0
"""Facts about this process and machine: counters, caches, drivers. It changes nothing but the cache that it is told to
clear."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import NamedTuple

from . import _elsewise


class CacheInfo(NamedTuple):
    """What was compiled and reused so far in this process.

    compiles: runs of NVRTC (`nvrtc`) and of ORC (`orc`) together. hits: calls that found code (`variant_hits`) or a
    whole plan
    (`plan_hits`). launches: CUDA kernels launched.
    """

    compiles: int
    hits: int
    nvrtc: int
    orc: int
    variants: int
    plans: int
    variant_hits: int
    plan_hits: int
    launches: int


def cache_info() -> CacheInfo:
    """Counters of the kernel cache. Changing `n`, a scalar or strides of one kind must leave `compiles` as it is."""
    c = _elsewise.counters()
    return CacheInfo(compiles=c["nvrtc"] + c["orc"], hits=c["variant_hits"] + c["plan_hits"], **c)


def clear_cache() -> None:
    """Drops all compiled code and plans that no call is using."""
    _elsewise.clear_cache()


def doctor() -> bool:
    """Prints what a call would find here, one fact a line, and how to mend what is missing. True if nothing is."""
    facts = [
        ("python", f"{platform.python_version()} ({sys.executable})", ""),
        *((name, _version(name), "") for name in ("numpy", "torch")),
        *_elsewise.environment(),
    ]
    width = max(len(name) for name, _, _ in facts)
    for name, value, remedy in facts:
        print(f"{name:<{width}}  {value}")
        if remedy:
            print(f"{'':<{width}}  -> " + remedy.replace("\n", f"\n{'':<{width}}   "))
    return not any(remedy for _, _, remedy in facts)


def find_nvrtc() -> None:
    """Tells the run time of the folders where pip put NVRTC: newest CUDA first, but that of torch's CUDA before all."""
    from importlib.util import find_spec

    spec = find_spec("nvidia")
    roots = [] if spec is None else list(spec.submodule_search_locations or [])
    found = sorted({str(f.parent) for root in roots for f in Path(root).glob("*/lib/libnvrtc.so*")}, reverse=True)
    torch = sys.modules.get("torch")
    cuda = getattr(getattr(torch, "version", None), "cuda", None)  # "13.0": its wheels use cu13
    major = str(cuda).split(".")[0]
    own = (f"cu{major}", "cuda_nvrtc" if major in ("11", "12") else "")
    _elsewise.set_nvrtc_paths(sorted(found, key=lambda folder: Path(folder).parent.name not in own))


find_nvrtc()


def _version(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
