#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests/gpu, and tests/python beside it, on a machine that has a GPU, torch and pytest but no build tools: from a wheel of this project.
#   tests/gpu/run.sh <wheel> [log]
# The log begins with date, GPU, driver and versions. The wheel is unpacked into a folder of its own; nothing is installed.
set -uo pipefail
cd "$(dirname "$0")/../.."
wheel=${1:?usage: tests/gpu/run.sh <wheel> [log]}
log=${2:-tests/gpu/log.txt}
python=${PYTHON:-python3}
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
"$python" -m pip install --quiet --no-index --no-deps --no-compile --target "$site" "$wheel" || exit 1
export PYTHONPATH=$site PYTHONUNBUFFERED=1 ELSEWISE_CACHE_DIR=$site/cache
{
  date --utc +'%Y-%m-%d %H:%M UTC'
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || echo 'no nvidia-smi'
  "$python" - <<'PY'
import platform

import elsewise
import numpy
import pytest
import torch

print(f"python {platform.python_version()}, torch {torch.__version__} (CUDA {torch.version.cuda}), numpy {numpy.__version__}")
print(f"pytest {pytest.__version__}, elsewise {elsewise.__version__}, {platform.machine()}, {platform.release()}")
PY
  "$python" -m elsewise doctor
  "$python" -m elsewise demo
  status=0
  "$python" -m pytest tests/gpu -q -p no:cacheprovider || status=$?
  if [ -z "${GPU_ONLY:-}" ]; then
    "$python" -m pytest tests/python -q -p no:cacheprovider -k 'not type_checker and not catalogue and not grammar' || status=$?
  fi
  echo "exit status $status"
  exit $status
} 2>&1 | tee "$log"
