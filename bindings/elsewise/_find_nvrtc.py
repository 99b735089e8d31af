# SPDX-License-Identifier: Apache-2.0
"""The way from what pip installed to the run time: where NVRTC is. It opens no library and imports no torch."""

from __future__ import annotations

import sys

from . import _elsewise
from ._nvrtc import pip_folders


def find_nvrtc() -> None:
    """Tells the run time of the folders where pip put NVRTC: that of torch's CUDA first, if torch is loaded."""
    torch = sys.modules.get("torch")
    cuda = getattr(getattr(torch, "version", None), "cuda", None)
    _elsewise.set_nvrtc_paths(pip_folders(cuda))
