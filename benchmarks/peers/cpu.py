# SPDX-License-Identifier: Apache-2.0
"""CPU peers on the rule `i<n/4: x*0.5; i>=n-n/4: x*2; else x` (float32), medians, all in one run.

Ratios against torch's copy_ of the same size; run: python cpu.py [threads]
"""

import statistics as st
import sys
import time

import numba as nb
import numexpr as ne
import numpy as np
import torch

T = int(sys.argv[1]) if len(sys.argv) > 1 else torch.get_num_threads()
torch.set_num_threads(T)
nb.set_num_threads(T)
ne.set_num_threads(T)


def med(f, reps):
    f()
    f()
    out = []
    for _ in range(reps):
        t = time.perf_counter()
        f()
        out.append(time.perf_counter() - t)
    return st.median(out)


@nb.njit(parallel=True, fastmath=False)
def numba_rule(x, y):
    n = x.size
    for i in nb.prange(n):
        y[i] = x[i] * np.float32(0.5) if i < n // 4 else (x[i] * np.float32(2) if i >= n - n // 4 else x[i])


def eager(x):
    i, n = torch.arange(x.numel()), x.numel()
    return torch.where(i < n // 4, x * 0.5, torch.where(i >= n - n // 4, x * 2, x))


compiled = torch.compile(eager, dynamic=False)
for n, reps in ((1 << 26, 15), (1 << 22, 40), (1 << 18, 200)):
    x, y = torch.randn(n), torch.empty(n)
    xn, yn = x.numpy(), y.numpy()
    want = eager(x)
    i = np.arange(n)

    def slices():
        y.copy_(x)
        y[: n // 4] *= 0.5
        y[n - n // 4 :] *= 2

    def inplace():
        y[: n // 4] *= 0.5
        y[n - n // 4 :] *= 2

    a, b = n // 4, n - n // 4
    jobs = {
        "torch copy_": lambda: y.copy_(x),
        "torch mul(out=)": lambda: torch.mul(x, 0.5, out=y),
        "copy + 2 slices": slices,
        "2 slices in place": inplace,
        "numba prange": lambda: numba_rule(xn, yn),
        "numexpr (index array ready)": lambda: ne.evaluate(
            "where(i<a, x*h, where(i>=b, x*d, x))",
            {"i": i, "x": xn, "a": a, "b": b, "h": np.float32(0.5), "d": np.float32(2)},
            out=yn,
        ),
        "torch eager where": lambda: eager(x),
        "torch.compile": lambda: compiled(x),
    }
    numba_rule(xn, yn)
    assert torch.equal(y, want)
    assert torch.equal(compiled(x), want)
    base = med(jobs["torch copy_"], reps)
    for name, f in jobs.items():
        t = med(f, reps)
        print(f"n=2^{n.bit_length() - 1:<3} T={T} {name:30} {t * 1e3:9.3f} ms  {t / base:6.2f} x copy")
