# SPDX-License-Identifier: Apache-2.0
"""Counters of this process, its cache, and the door to the doctor. It changes nothing but the cache that it is told to
clear, and tells the run time where NVRTC may be."""

from __future__ import annotations

from typing import NamedTuple

from . import _elsewise
from ._find_nvrtc import find_nvrtc


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
    """Counters of the kernel cache. Another `n`, scalar or strides of the same kind must leave `compiles` as it is."""
    c = _elsewise.counters()
    return CacheInfo(compiles=c["nvrtc"] + c["orc"], hits=c["variant_hits"] + c["plan_hits"], **c)


def clear_cache() -> None:
    """Drops all compiled code and plans that no call is using."""
    _elsewise.clear_cache()


def doctor() -> bool:
    """Prints what a call would find on this machine, one fact a line, and the command that brings what is missing.

    A tiny rule is compiled and run on the CPU, and on the first GPU if there is one; torch is imported if it is there.
    Nothing is installed or changed. Returns True if everything works that this machine has; raises nothing.
    """
    from ._doctor import report

    return report()


find_nvrtc()
