# SPDX-License-Identifier: Apache-2.0
"""Lets the tests beside it import `pages`. It holds no test."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
