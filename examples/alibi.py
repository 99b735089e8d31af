# SPDX-License-Identifier: Apache-2.0
"""Add ALiBi's bias to attention scores, and mask the future, in one pass: a slope a head, `2**(-8*(h+1)/heads)`,
times the distance. No bias or mask tensor is made.

Runs alone, on a GPU if torch has one, and checks its result against NumPy.
"""

from __future__ import annotations

import elsewise as ew
import numpy as np

bias = ew.kernel("""
[b, h, q, k]
k > q:  -inf
else    x - slope*float(q - k)
""")
batch, heads, length = 2, 8, 48

scores = np.random.default_rng(0).standard_normal((batch, heads, length, length), np.float32)
slopes = (2.0 ** (-8 * np.arange(1, heads + 1) / heads)).astype(np.float32)
slope = slopes.reshape(heads, 1, 1)  # broadcasts over batch, q and k
q, k = np.mgrid[0:length, 0:length]
expected = np.where(k > q, np.float32(-np.inf), scores - slope * (q - k).astype(np.float32))

biased = bias(scores, slope=slope)
assert np.array_equal(biased, expected)
print(f"slopes {slopes[0]:g} … {slopes[-1]:g}")
print(f"NumPy: head 0 takes {scores[0, 0, 9, 1] - biased[0, 0, 9, 1]:.3f} off at a distance of 8")

try:
    import torch
except ImportError:
    print("torch is not installed: the rest is left out")
else:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    t = torch.from_numpy(scores).to(device)
    s = torch.from_numpy(slope).to(device)
    assert torch.equal(bias(t, slope=s).cpu(), torch.from_numpy(expected))
    halves = bias(t.bfloat16(), slope=s.bfloat16())  # worked in float32, rounded once
    wide = t.bfloat16().float() - s.bfloat16().float() * torch.from_numpy(q - k).to(device)
    wide = wide.masked_fill(torch.from_numpy(k > q).to(device), float("-inf"))
    assert torch.equal(halves, wide.bfloat16())
    print(f"torch on {device}: {halves.dtype} is float32's result, rounded once")
