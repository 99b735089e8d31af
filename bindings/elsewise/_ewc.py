# SPDX-License-Identifier: Apache-2.0
"""The console script `ewc`: becomes the program that lies beside this file. It reads no argument itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    program = Path(__file__).with_name("ewc")
    os.execv(program, ["ewc", *sys.argv[1:]])
