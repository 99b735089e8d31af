# SPDX-License-Identifier: Apache-2.0
"""What the computer is called, for the heads of tables, and which device commands run on. It measures nothing."""

from __future__ import annotations

import platform
from typing import Any

NO_CUDA = "no CUDA device that torch can use: see python -m elsewise doctor"


def has_cuda(torch: Any) -> bool:
    return torch is not None and bool(torch.cuda.is_available())


def processor() -> str:
    """The CPU's name, as Linux tells it."""
    try:
        with open("/proc/cpuinfo") as cpuinfo:
            for line in cpuinfo:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def described(torch: Any, device: str) -> str:
    """`cpu` or `cuda:0` with what it is."""
    if device.startswith("cuda"):
        return f"{device} ({torch.cuda.get_device_name(device)})"
    threads = torch.get_num_threads()
    return f"{device} ({processor()}, {threads} thread{'s' if threads != 1 else ''})"
