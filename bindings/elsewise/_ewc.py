# SPDX-License-Identifier: Apache-2.0
"""The console script `ewc`: becomes the program that lies beside the extension module. It reads no argument itself."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from ._nvrtc import pip_folders


def main() -> None:
    # Not beside this file: in an editable install the built files lie elsewhere than the sources.
    spec = importlib.util.find_spec("elsewise._elsewise")
    if spec is None or spec.origin is None:
        sys.exit("ewc: the compiled part of elsewise is missing; reinstall the package")
    program = Path(spec.origin).with_name("ewc")
    folders = pip_folders()
    if folders:  # which the program cannot know; what the user names comes first
        os.environ.setdefault("ELSEWISE_NVRTC", folders[0])
    os.execv(program, ["ewc", *sys.argv[1:]])
