# SPDX-License-Identifier: Apache-2.0
# type: ignore
"""lit's configuration: what %ewc and FileCheck mean and which features a test may require. No test here.

`lit tests/lit` uses build/dev; another build is named with --param=build=<folder> or ELSEWISE_BUILD_DIR.
"""

import os
import sys
from pathlib import Path

import lit.formats

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent))
import run as runner  # noqa: E402  (tests/run.py: one look-up of GPU, NVRTC and tools for all suites)

build = Path(lit_config.params.get("build") or runner.BUILD)
filecheck = runner.tool("FileCheck")

config.name = "elsewise"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".ew", ".ir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = str(here)
config.test_exec_root = str(build / "tests/lit")

for name in ("ELSEWISE_CACHE_DIR", "CUDA_HOME", "HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["LD_LIBRARY_PATH"] = runner.with_nvrtc()["LD_LIBRARY_PATH"]
if runner.nvrtc_folders():
    config.available_features.add("nvrtc")
if runner.gpu() is None:
    config.available_features.add("gpu")

# `not` is lit's own: it fails on success and on a crash alike.
config.substitutions.append((r"\bFileCheck\b", f"{filecheck} --enable-var-scope --dump-input-filter=error"))
config.substitutions.append(("%ewc", str(build / "python/elsewise/ewc")))
