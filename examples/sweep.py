# SPDX-License-Identifier: Apache-2.0
"""Change a parameter a thousand times, and the length as often: a rule is compiled once for its dtypes, which the
counters prove.

Runs alone, on a GPU if torch has one, and checks every result against slices.
"""

from __future__ import annotations

import time

import elsewise as ew
import numpy as np

rule = ew.kernel("i < edge: x*gain; else x")
x = np.linspace(-1, 1, 5000, dtype=np.float32)

try:
    import torch
except ImportError:
    torch = None
device = "cuda" if torch is not None and torch.cuda.is_available() else "cpu"
data = x if torch is None else torch.from_numpy(x).to(device)

rule(data, gain=1.0, edge=0)  # compiles
before = ew.cache_info()
seconds = 0.0
for step in range(1000):
    gain, edge, n = step / 500, step, 4000 + step
    start = time.perf_counter()
    y = rule(data[:n], gain=gain, edge=edge)
    seconds += time.perf_counter() - start
    expected = x[:n].copy()
    expected[:edge] *= np.float32(gain)
    assert np.array_equal(y if torch is None else y.cpu().numpy(), expected)
after = ew.cache_info()

assert after.compiles == before.compiles, "a parameter or a length was compiled in"
where = "NumPy" if torch is None else f"torch on {device}"
print(f"{where}: 1000 gains, edges and lengths, {after.compiles - before.compiles} compilations")
print(f"{seconds * 1e3:.1f} us a call")
