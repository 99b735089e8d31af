# SPDX-License-Identifier: Apache-2.0
"""Halve the first quarter of a tensor, double the last, leave the rest: on NumPy, on torch, in place, on a GPU if there
is one.

Runs alone and checks its own results; it times nothing (`python -m elsewise demo` does).
"""

from __future__ import annotations

import elsewise as ew
import numpy as np

rule = ew.kernel("i<n/4: x*0.5; i>=n-n/4: x*2; else x")  # i: position, n: number of elements
n = 1_000_000
q = n // 4

x = np.linspace(-1, 1, n, dtype=np.float32)
expected = x.copy()
expected[:q] *= np.float32(0.5)
expected[n - q :] *= np.float32(2)

y = rule(x)
assert np.array_equal(y, expected)
rule(x, out=x)  # in place: only the outer quarters are touched
assert np.array_equal(x, expected)
print(f"NumPy: {y[0]:.6f} … {y[n // 2]:.6f} … {y[-1]:.6f}")

try:
    import torch
except ImportError:
    print("torch is not installed: the rest is left out")
else:
    for device in ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]:
        t = torch.linspace(-1, 1, n, device=device)
        i = torch.arange(n, device=device)
        plain = torch.where(i < q, t * 0.5, torch.where(i >= n - q, t * 2, t))
        z = rule(t)
        assert torch.equal(z, plain) and z.device == t.device
        columns = t.view(1000, 1000).t()  # positions are logical: strides never show
        assert torch.equal(rule(columns), rule(columns.contiguous()))
        rule(t, out=t)
        assert torch.equal(t, plain)
        print(f"torch on {device}: {z[0]:.6f} … {z[n // 2]:.6f} … {z[-1]:.6f}")
