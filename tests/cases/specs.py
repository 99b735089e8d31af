# SPDX-License-Identifier: Apache-2.0
"""The tasks of the bank as specs: one rule for each, how the bank's inputs become the call's keywords, and what a
message says.

It holds no input, no result and no tolerance: those are the bank's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import elsewise as ew
import numpy as np


@dataclass(frozen=True)
class Refused:
    """What is typed and wrong, and for each fact that the bank asks its message to carry, a pattern of our words."""

    spec: str
    facts: dict[str, str]
    error: type[Exception] = ew.SpecError
    call: Callable[..., Any] | None = None  # the call that is wrong, made of the bank's inputs; None: kernel() refuses
    column: int = 0  # where the caret stands, if that is one of the facts


@dataclass(frozen=True)
class Accepted:
    """What is typed and right here: `result` of the bank's inputs, None for the case's own. `instead` is what ours
    refuses with the facts of the bank, such as a function that has the other one of two names."""

    spec: str
    result: Callable[..., Any] | None = None
    instead: Refused | None = None


@dataclass(frozen=True)
class Rule:
    spec: str
    # The bank's inputs as the keywords of the call; a list: one kernel is called for each, and the results are stacked.
    call: Callable[..., Any] | None = None
    first: Callable[..., Any] | None = None  # a call of the same kernel made before, of which nothing is asked
    same: tuple[str, ...] = ()  # other ways to write the rule, with the same result
    bad: tuple[Refused | Accepted, ...] = ()  # parallel to the bank's `bad`


RULES: dict[str, Rule] = {
    # Positions along one axis
    "pos1d-01-tail-table": Rule("""
let m = len(b)
i >= n-m: x*b[i-(n-m)]
else      x
"""),
    "pos1d-03-fade-halfsine-overlap": Rule("""
[b, t]
let up = ramp(t, 0, max(fi-1, 1))
let down = ramp(len(t)-1-t, 0, max(fo-1, 1))
x * (0.5 - 0.5*cos(pi*up)) * (0.5 - 0.5*cos(pi*down))
"""),
    "pos1d-05-signed-bins": Rule("2*i < n: i; else i - n", call=lambda n: {"shape": n}),
    "pos1d-07-tukey-taper": Rule("""
border() <= floor(alpha*(n-1)/2): x * (0.5 - 0.5*cos(2*pi*border()/(alpha*(n-1))))
else                              x
"""),
    # Several axes
    "posnd-01-zero-border": Rule("border() < w: 0; else v"),
    "posnd-03-fade-inner-joins": Rule("""
[c, t]
let rise = where(c > 0, ramp(t+1, 0, ov+1), 1)
let fall = where(c < len(c)-1, ramp(len(t)-t, 0, ov+1), 1)
x*rise*fall
"""),
    "posnd-05-sliding-window-offset": Rule("""
[b, q, k]
let p = q + len(k) - len(q)    # the queries are the last rows
p-w < k <= p: s
else          -inf
"""),
    "posnd-07-mosaic-gains": Rule("""
[y, x]
let red = y%2 == 0 and x%2 == 0
let blue = y%2 == 1 and x%2 == 1
u16(round(f64(raw)*where(red, gr, where(blue, gb, gg))))    # a cast saturates
"""),
    "posnd-09-sponge-per-side": Rule("""
[z, x]
let l = max(left-x, 0)
let r = max(right-(len(x)-1-x), 0)
let b = max(bottom-(len(z)-1-z), 0)
u*exp(-a**2*(l**2+r**2+b**2))
"""),
    "posnd-11-three-row-segments": Rule("""
[r, c]
r < nq:    w*sq
r < nq+nk: w*sk
else       w*sv
"""),
    "posnd-13-frozen-rows": Rule("[r, ..]; r < r0: 0; else g"),
    "posnd-15-window-or-image": Rule(
        """
[b, q, k]
let p = q + off
p-w < k <= p or lo[b] <= p < hi[b] and lo[b] <= k < hi[b]
""",
        call=lambda lo, hi, Q, K, off, w: {"lo": lo, "hi": hi, "off": off, "w": w, "shape": (len(lo), Q, K)},
    ),
    # Indexed reads
    "gather-01-add-reversed": Rule("x + y[n-1-i]"),
    "gather-03-periodic-laplacian": Rule("""
[y, x]
let up = u[wrap(y-1, len(y)), x]
let down = u[wrap(y+1, len(y)), x]
let left = u[.., wrap(x-1, len(x))]
let right = u[.., wrap(x+1, len(x))]
up + down + left + right - 4*u
"""),
    "gather-05-rotate-halves": Rule("""
[.., t, d]
let m = len(d) // 2
let a = t/base**(float(d%m)/m)
d < m: x*cos(a) - x[.., d+m]*sin(a)
else   x*cos(a) + x[.., d-m]*sin(a)
"""),
    "gather-07-reflect-any-length": Rule(
        "x[reflect(i-left, len(x))]", call=lambda x, left, right: {"x": x, "left": left, "shape": len(x) + left + right}
    ),
    "gather-09-signed-nibbles": Rule(
        """
let v = (packed[i/2] >> 4*(i%2)) & 15
((v ^ 8)-8) * scale[i/g]
""",
        call=lambda packed, scale, g: {"packed": packed, "scale": scale, "g": g, "shape": 2 * len(packed)},
    ),
    "gather-11-label-out-of-range": Rule("""
0 <= lab < len(lp, 1): lp[i, lab]
else                   bad
"""),
    # Several inputs
    "multi-01-crossfade-clipped": Rule("""
let o = min(ov, len(a), len(c))
let w = ramp(i, 0, max(o-1, 1))*pi/2
i < o: c*sin(w)**2 + a[len(a)-o+i]*cos(w)**2
else   c
"""),
    "multi-03-box-paste": Rule("""
[.., y, x]
y0 <= y < y0+h and x0 <= x < x0+w: b
else                               a
"""),
    "multi-05-noise-by-step": Rule("""
[b, ..]
let g = tab[clip(step[b], 0, len(tab)-1)]
sqrt(g)*v + sqrt(1-g)*e
"""),
    "multi-07-timestamp-pairing": Rule("""
[b, v]
last[b] and prev[b]: where(v >= ts0, -inf, x)
last[b]:             where(v < eot, -inf, x)
else                 x
"""),
    "multi-09-prefix-then-causal": Rule("[b, q, k]; k <= q or k < pre[b]: s; else -inf"),
    # Parameters
    "param-01-stale-scalar": Rule("a + b + t", call=lambda a, b, ts: [{"a": a, "b": b, "t": t} for t in ts]),
    "param-03-value-one": Rule("x*k", call=lambda x, ks: [{"x": x, "k": k} for k in ks]),
    "param-05-warmup-stable-decay": Rule(
        """
let s = i + 1
s < warm:         float(s)/warm
s <= warm+stable: 1
else              1 - float(s-warm-stable)/(decay+1)
""",
        call=lambda warm, stable, decay, n: {
            "warm": warm,
            "stable": stable,
            "decay": decay,
            "shape": n,
            "dtype": "f64",
        },
    ),
    "param-07-python-float": Rule("x*m"),
    "param-09-tile-feather": Rule("""
[y, x]
let top = where(y0 > 0, ramp(y+0.5, 0, ov), 1)
let bottom = where(y0+len(y) < H, ramp(len(y)-y-0.5, 0, ov), 1)
let left = where(x0 > 0, ramp(x+0.5, 0, ov), 1)
let right = where(x0+len(x) < W, ramp(len(x)-x-0.5, 0, ov), 1)
v*top*bottom*left*right
"""),
    # Dtypes
    "dtype-01-double-into-float-kernel": Rule("2*x + 1", first=lambda x: {"x": x.astype(np.float32)}),
    "dtype-03-constant-keeps-float32": Rule("i < n/2: 0.5*x; else x**3/2.0"),
    "dtype-05-int-and-float-branches": Rule("x > 1: 1.0; else 0"),
    "dtype-07-zero-dim-operand": Rule("x + s"),
    "dtype-09-half-sentinel": Rule("[q, k]; k > q: lowest; else s"),
    "dtype-11-half-epsilon": Rule("[r, c]; x/max(nm[r], 1e-12)"),
    "dtype-13-clip-then-bytes": Rule("u8(round(clip(x, 0, 1)*255))"),
    "dtype-15-byte-difference": Rule("u8(abs(i16(a)-i16(b)))"),
    "dtype-17-nan-to-integer": Rule("u8(x)", same=("isnan(x): u8(0); else u8(clip(trunc(x), 0, 255))",)),
    "dtype-19-ramp-exact": Rule("f32(a + (b-a)*f64(i)/(n-1))", call=lambda a, b, n: {"a": a, "b": b, "shape": n}),
    "dtype-21-log-sigmoid-bf16": Rule("x >= 0: -log1p(exp(-x)); else x - log1p(exp(x))"),
    # Integers
    "int-01-floor-division": Rule("i < n/2: x // -2; else x // 2"),
    "int-03-modulo-by-zero": Rule("x % d", same=("d == 0: 0; else x % d",)),
    "int-05-true-division": Rule("i < n/2: x/5; else x // 5"),
    "int-07-abs-of-minimum": Rule("abs(x)"),
    "int-09-integer-ramp-full-range": Rule(
        "i32(a + (b-a)*f64(i)/(n-1))", call=lambda a, b, n: {"a": a, "b": b, "shape": n}
    ),
    "int-11-huge-diagonal": Rule("[b, r, c]; c-r >= d: x; else 0"),
    # Layouts
    "layout-01-column-slices": Rule("a*x + b*y"),
    "layout-03-corner-view": Rule("i < 5: x; else -x"),
    "layout-05-channels-moved": Rule("[b, c, ..]; c == 0: v*0.3; c == 1: v*0.6; else v*0.1"),
    "layout-07-flipped": Rule("[y, x]; y < len(y)/2: v + 1; else v"),
    "layout-09-index-is-logical": Rule("x + i"),
    # Sizes
    "size-01-empty": Rule("i < n/4: x*0.5; i >= n-n/4: x*2; else x"),
    "size-03-shape-kept": Rule("cos(x)"),
    "size-05-even-parts": Rule("""
let q = n // k    # the length of a short part
let r = n % k    # how many parts are longer by one
let long = r * (q+1)
i < long: x + i//(q+1)
else      x + r + (i-long)//max(q, 1)
"""),
    "size-07-past-2-31-doubles": Rule("i", call=lambda n: {"shape": n, "dtype": "f64"}),
    "size-09-half-tensor-3e9": Rule("i%2 == 0: 1; else -1", call=lambda n: {"shape": n, "dtype": "f16"}),
    "size-11-window-of-one": Rule("n == 1: x; else x * (0.5 - 0.5*cos(2*pi*i/(n-1)))"),
    # NaN, infinities, signed zeros
    "nan-01-clamp-keeps-nan": Rule("clip(x, 0, 1)"),
    "nan-03-max-with-zero": Rule("max(x, 0)"),
    "nan-05-negative-zero": Rule("i < 2: x; else -x"),
    "nan-07-x-log-y": Rule("x == 0: 0; else x*log(y)"),
    "nan-09-replace-in-band": Rule("a <= i < b and isnan(x): 0; else x"),
    # Gradients
    "grad-01-log-not-taken": Rule("x > 2: log2(x); else 2*x"),
    "grad-03-overflow-and-nan-input": Rule("x <= 10: exp(x); else 1"),
    "grad-05-clamp-at-bound": Rule("clip(x, 0, 1)"),
    "grad-07-floored-radius": Rule("max(sqrt(x*x + y*y), 1e-10)"),
    "grad-09-sinc-at-zero": Rule("x == 0: 1; else sin(x)/x"),
    # Overlaps
    "alias-01-difference-in-place": Rule("a - b"),
    "alias-03-expanded-output": Rule(
        "x + 1",
        call=lambda out: {"x": out, "out": out},
        bad=(
            Refused(
                "x + 1",
                {
                    "several output elements share memory": r"`out` holds some elements more than once",
                    "clone or contiguous": r"`out\.clone\(\)`",
                },
                error=ValueError,
                call=lambda base: {
                    "x": np.broadcast_to(base, (4, 5)),
                    "out": np.lib.stride_tricks.as_strided(base, (4, 5), (0, 0)),
                },
            ),
        ),
    ),
    "alias-05-shift-rows": Rule("[r, c]; r > 0: x[r-1, c]; else x"),
    # Streams and devices
    "stream-01-side-stream-chain": Rule("x*0.5 + 1"),
    "stream-03-other-device": Rule(
        "x*2 + 1",
        bad=(
            Refused(
                "x*2 + y",
                {
                    "both devices named": r"cuda:0.*cuda:1|cuda:1.*cuda:0",
                    "which argument is where": r"`x`.*`y`|`y`.*`x`",
                },
                error=ValueError,
                call=lambda x: {"x": x, "y": x},
            ),
        ),
    ),
    # Messages
    "msg-01-and-dropped": Rule(
        "a == 1 and b > 2: 1; else 0",
        bad=(
            Accepted("a==1 and b>2: 1; else 0"),
            Refused(
                "a==1 & b>2: 1; else 0",
                {
                    "& binds before == in C and Python": r"`&` binds tighter than the comparison",
                    "&&": r"`a==1 and b>2: 1; else 0`",
                },
            ),
        ),
    ),
    "msg-03-caret-power": Rule(
        "10 + 2.0**k",
        bad=(
            Refused(
                "10 + 2.0^k",
                {
                    "^": r"`\^` works on the bits",
                    "** or pow": r"power: `10 \+ 2\.0\*\*k`",
                    "column of the caret": r":1:9: ",
                },
                column=9,
            ),
        ),
    ),
    "msg-05-words-as-operators": Rule(
        "i < n/2: x; else 0",
        bad=(
            Refused("x is y", {"is": r"`is`", "not an operator": r"is not an operator"}),
            Refused(
                "i < N/2: x; else 0",
                {"N": r"`N` is missing", "did you mean n": r"`n` is the number of elements"},
                error=TypeError,
                call=lambda x: {"x": x},
            ),
            Accepted(
                "i < n/2: clip(x,0,1); else 0",
                result=lambda x: np.where(np.arange(6) < 3, np.clip(x, 0, 1), np.float32(0)),
                instead=Refused(
                    "i < n/2: clamp(x,0,1); else 0",
                    {"clip": r"did you mean `clip`", "clamp": r"unknown function `clamp`"},
                ),
            ),
        ),
    ),
    "msg-07-silent-outer-product": Rule(
        "(p-t)**2",
        bad=(
            Refused(
                "(p-t)**2",
                {"3": r"\(3,\)", "4": r"\(4,\)", "which inputs": r"`p` has .* and `t`", "which axis": r"on axis -1"},
                error=ValueError,
                call=lambda p, t: {"p": p[:3, 0], "t": t},
            ),
        ),
    ),
    "msg-09-nothing-to-compile-from": Rule(
        "3", bad=(Refused("", {"empty rule": r"empty rule", "expected an expression": r"expected an expression"}),)
    ),
}

# What cases wait for: by case, or by `kind:` for all of a kind. A case that passes while it stands here fails.
WAITING: dict[str, str] = {
    "kind:grad": "gradients",
}
