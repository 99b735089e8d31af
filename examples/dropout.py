# SPDX-License-Identifier: Apache-2.0
"""Dropout in one pass, without a mask in memory: the backward pass works the same noise out again from the seed.

Runs alone, on a GPU if torch has one, and checks that every device drops the same elements.
"""

from __future__ import annotations

import elsewise as ew
import numpy as np

p, step = 0.1, 12  # the stream is the step, so that each step drops others
dropout = ew.kernel("rand(seed, step) < p: 0; else x/(1-p)")

x = np.linspace(1, 2, 1_000_000, dtype=np.float32)
y = dropout(x, p=p, seed=2, step=step)
kept = y != 0
assert np.array_equal(y[kept], (x / np.float32(1 - p))[kept])
assert abs(kept.mean() - (1 - p)) < 0.002
print(f"{kept.mean():.3f} are kept; the mean is {y.mean() / x.mean():.3f} of what it was")

again = dropout(np.ones_like(x), p=p, seed=2, step=step)  # of the gradient: the same elements
other = dropout(x, p=p, seed=2, step=step + 1)
assert np.array_equal(again != 0, kept)
both = (kept & (other != 0)).mean()
assert abs(both - (1 - p) ** 2) < 0.002
print(f"the next step keeps others: {both:.3f} are kept in both")

try:
    import torch
except ImportError:
    print("torch is not installed: the rest is left out")
else:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    z = dropout(torch.from_numpy(x).to(device).bfloat16(), p=p, seed=2, step=step)
    assert z.dtype == torch.bfloat16 and np.array_equal((z != 0).cpu().numpy(), kept)
    print(f"torch on {device}: the same elements, in {z.dtype}")
