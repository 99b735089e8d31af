# SPDX-License-Identifier: Apache-2.0
"""Mask attention scores causally, with a window of `w` past positions, for every batch and head: what is masked is
never read.

Runs alone, on a GPU if torch has one, and checks its result against NumPy and, where torch is there, against its
softmax.
"""

from __future__ import annotations

import elsewise as ew
import numpy as np

mask = ew.kernel("[.., q, k]; k > q or k <= q - w: -inf; else x")  # `..`: the axes left unnamed
batch, heads, length, w = 2, 3, 64, 16

scores = np.random.default_rng(0).standard_normal((batch, heads, length, length), np.float32)
q, k = np.mgrid[0:length, 0:length]
allowed = (k <= q) & (k > q - w)
expected = np.where(allowed, scores, np.float32(-np.inf))

masked = mask(scores, w=w)
assert np.array_equal(masked, expected)
print(f"NumPy: {int(np.isfinite(masked[0, 0]).sum())} of {length * length} positions of a head are seen")
print(f"row 3 sees {[int(p) for p in np.flatnonzero(np.isfinite(masked[0, 0, 3]))]}")

try:
    import torch
except ImportError:
    print("torch is not installed: the rest is left out")
else:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    t = torch.from_numpy(scores).to(device)
    plain = t.masked_fill(~torch.from_numpy(allowed).to(device), float("-inf"))
    mask(t, w=w, out=t)  # in place
    assert torch.equal(t, plain)
    weights = t.softmax(-1)
    assert torch.equal(weights.cpu() > 0, torch.from_numpy(allowed).expand(weights.shape))
    print(f"torch on {device}: rows of weights sum to {weights.sum(-1).min():.4f} … {weights.sum(-1).max():.4f}")
