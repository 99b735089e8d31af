# SPDX-License-Identifier: Apache-2.0
"""Head, body and tail of a tensor each have a rule of their own: scale the first 128 elements, cap the last `m`, scale
the rest otherwise.

Runs alone, on a GPU if torch has one, and checks its result against slices.
"""

from __future__ import annotations

import elsewise as ew
import numpy as np

rule = ew.kernel("i < 128: x*a; i >= n-m: min(x, c); else x*b")
a, b, c, m = 0.25, 1.5, 0.75, 1000  # parameters: a new value compiles nothing

x = np.linspace(-2, 2, 100_000, dtype=np.float32)
expected = x * np.float32(b)
expected[-m:] = np.minimum(x[-m:], np.float32(c))
expected[:128] = x[:128] * np.float32(a)  # the first piece whose guard holds wins, so the head is written last

y = rule(x, a=a, b=b, c=c, m=m)
assert np.array_equal(y, expected)
print(f"head {y[:2]}, body {y[128:130]}, tail {y[-2:]}")

short = rule(x[:100], a=a, b=b, c=c, m=m)  # shorter than the head: all of it is head
assert np.array_equal(short, x[:100] * np.float32(a))
print(f"of 100 elements, {int((short == x[:100] * np.float32(a)).sum())} are head")

try:
    import torch
except ImportError:
    print("torch is not installed: the rest is left out")
else:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    t = torch.from_numpy(x).to(device)
    z = rule(t, a=a, b=b, c=c, m=m)
    assert torch.equal(z.cpu(), torch.from_numpy(expected))
    print(f"torch on {device}: the same {z.numel():,} elements")
