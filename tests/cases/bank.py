# SPDX-License-Identifier: Apache-2.0
"""Bank of real cases for a small language of piecewise positional elementwise kernels.

NumPy only (works with NumPy 1.24+).  Every case was found in public (issue, pull request or
question page); the wording and the code here are new.

CASES is a list of dicts:
  id         short unique name; its prefix is the category
  category   one of CATEGORIES
  source     where it was seen
  task       one neutral sentence
  make       make(rng) -> dict of inputs (NumPy arrays / Python scalars)
  reference  reference(**inputs) -> the right answer as a NumPy array (dtype matters)
  spec_hint  how it might be said in such a language (free notation, not a fixed grammar), or None
  needs      tags of language features the case calls for (see NEEDS)
  kind       'value' | 'grad' | 'alias' | 'stream' | 'message' | 'big'
  tol        'exact' (equal, NaN equal to NaN) or (rtol, atol)
Optional:
  carry      {input name: 'bfloat16'}: NumPy has no bf16, so the array is float32 holding only
             bf16-representable values; cast it before the run (and 'out': 'bfloat16')
  wrt        (kind 'grad') inputs differentiated; 'g' is the upstream gradient
  forward    (kind 'grad') forward(**inputs without g) -> forward value
  accept     extra right answers: accept(**inputs) -> list of arrays
  views      (kind 'alias') views(base) -> dict of overlapping views; reference gives the final base
  how        how to run it when a plain call is not enough
  bad        (kind 'message') list of dict(typed=..., say=[facts the message must carry])
  signed_zero True: also compare the sign of zeros
  core       True for the most telling cases (start there); the rest widen the same ground
Dtypes follow torch: a Python scalar never widens a tensor of its kind, integer data meeting a
float constant gives float32, `/` on integer data is true division.  For torch, torch.from_numpy
keeps a view's strides (not negative ones); 'how' says where more is needed.
The hints are only hints; `language.md` decides how a rule is written.  Notation in the hints: i, n flat index and element count; [a,b] names axes, capitals are their
sizes; `let v = e;`; `where(c,a,b)`; `/` on index integers is floor unless `real(...)` is said.
"""
import numpy as np
f16, f32, f64 = (np.float16, np.float32, np.float64)
i8, i32, i64, u8, u16 = (np.int8, np.int32, np.int64, np.uint8, np.uint16)
INF, NAN, PI = (np.inf, np.nan, np.pi)
CATEGORIES = ('pos1d', 'posnd', 'gather', 'multi', 'param', 'dtype', 'int', 'layout', 'size', 'nan', 'grad', 'alias', 'stream', 'msg')
NEEDS = {'pieces': 'conditions on the position choosing the expression', 'valuepieces': 'conditions on the element value', 'axes': 'named axes and their sizes', 'anyrank': 'one rule for every rank', 'params': 'runtime scalar parameters (no recompile, exact value)', 'inputs2': 'more than one input tensor', 'broadcast': 'broadcasting of inputs', 'gather': 'indexed read of an auxiliary tensor', 'neighbour': 'indexed read of the main input at another position', 'let': 'named sub-expressions', 'math': 'exp, sin, log, sqrt, pow ...', 'bool': 'and / or / not and compound conditions', 'where': 'inline choice inside an expression', 'minmax': 'min, max, clamp', 'realdiv': 'true division of integers (index ramps)', 'floordiv': 'floor integer division', 'mod': 'Python-like modulo', 'bitops': 'shifts, and, or, xor on integers', 'round': 'a stated rounding rule', 'cast': 'explicit cast or stated output dtype', 'promote': 'torch-like dtype promotion of tensors and Python scalars', 'widemath': 'half types computed in float32, rounded once', 'int64index': '64-bit index arithmetic', 'naninf': 'NaN/inf/-0.0 kept as IEEE and torch have them', 'infconst': 'inf, nan, lowest(dtype) constants', 'isnan': 'isnan / isfinite tests', 'lazy': 'untaken branch neither read nor allowed to poison the result', 'generate': 'result from positions only (no input tensor)', 'outshape': "output shape other than the input's", 'boolout': 'bool output', 'strided': 'any strides, offsets, expanded, negative', 'degenerate': 'empty, 0-d, size-1 sizes', 'segments': 'a stated rule for sizes that do not divide', 'grad': 'backward', 'inplace': 'in-place with a stated aliasing rule', 'stream': "ordering with the caller's stream and device", 'diag': 'a message that names the place and the remedy'}
CASES = []

def case(id, source, task, spec_hint, make, reference, *, needs, kind='value', tol=None, **extra):
    category = id.split('-')[0]
    d = dict(id=id, category=category, source=source, task=task, make=make, reference=reference, spec_hint=spec_hint, needs=tuple(needs.split()), kind=kind, tol=tol or (1e-05, 1e-06))
    d.update(extra)
    CASES.append(d)

def to_bf16(a):
    """Nearest-even rounding of float32 values to bfloat16, kept as float32."""
    a = np.array(a, dtype=f32, ndmin=1)
    shape = np.shape(a)
    bits = a.reshape(-1).view(np.uint32).astype(np.uint64)
    up = bits + 32767 + (bits >> 16 & 1) & 4294901760
    out = np.where(np.isnan(a.reshape(-1)), bits & 4294901760 | 4194304, up).astype(np.uint32)
    return out.view(f32).reshape(shape)
BF16_LOWEST = float(np.array([4286513152], np.uint32).view(f32)[0])

def normal(rng, *shape, dtype=f32):
    return rng.standard_normal(shape).astype(dtype)
case('pos1d-01-tail-table', 'Stack Overflow 28100369 (elementwise product of a short array with the end of a longer one)', 'Multiply only the last m samples by a table of m factors and leave the rest as they are.', 'i >= n-m: x*b[i-(n-m)]; else x', lambda rng: dict(x=np.arange(1.0, 11.0), b=np.linspace(1, 0, 4)), lambda x, b: np.array([x[i] * b[i - (len(x) - len(b))] if i >= len(x) - len(b) else x[i] for i in range(len(x))]), needs='pieces gather inputs2 lazy')

def _fade_gain(n, fi, fo, shape):
    t = np.arange(n, dtype=f64)
    up = np.where(t < fi, t / max(fi - 1, 1), 1.0)
    down = np.where(t >= n - fo, (n - 1 - t) / max(fo - 1, 1), 1.0)
    return shape(up) * shape(down)
case('pos1d-03-fade-halfsine-overlap', 'pytorch/audio #1864 (fade curve built on the wrong device, slow)', 'Apply a half-sine fade in and fade out whose lengths overlap in the middle, both gains multiplying.', '[b,t] let up = ...; let dn = ...; x * (0.5+0.5*sin(pi*up-pi/2)) * (0.5+0.5*sin(pi*dn-pi/2))', lambda rng: dict(x=normal(rng, 4, 800), fi=500, fo=450), lambda x, fi, fo: (x * _fade_gain(x.shape[-1], fi, fo, lambda v: 0.5 - 0.5 * np.cos(PI * v))).astype(f32), needs='pieces axes params let where math realdiv', tol=(2e-05, 2e-06))
case('pos1d-05-signed-bins', 'numpy/numpy #29162 and scipy PR #2471 (which sign the middle bin of an even size gets)', 'Produce, with no input, the signed bin number of each of n FFT bins, the middle bin of an even n being negative.', '2*i < n: i; else i-n   (int64 output)', lambda rng: dict(n=int(rng.integers(7, 11))), lambda n: np.array([i if 2 * i < n else i - n for i in range(n)], i64), needs='pieces generate cast', tol='exact')

def _tukey(x, alpha):
    n = x.size
    w = int(np.floor(alpha * (n - 1) / 2))
    d = np.minimum(np.arange(n), n - 1 - np.arange(n))
    g = np.where(d <= w, 0.5 - 0.5 * np.cos(2 * PI * d / (alpha * (n - 1))), 1.0)
    return x * g
case('pos1d-07-tukey-taper', 'IMSY-DKFZ/simpa #199 (taper not symmetric about zero)', 'Taper both ends of a trace with a cosine lobe over a given fraction and keep the middle at gain 1.', 'let d = min(i, n-1-i); d <= floor(alpha*(n-1)/2): x*(0.5-0.5*cos(2*pi*d/(alpha*(n-1)))); else x', lambda rng: dict(x=normal(rng, 101, dtype=f64), alpha=0.3), _tukey, needs='pieces params let minmax math realdiv', tol=(1e-12, 1e-12))
case('posnd-01-zero-border', 'Stack Overflow 62588018 (set the boundary of a matrix to zero)', 'Zero a frame of width w around an image that is not square.', '[y,x] y<w || y>=H-w || x<w || x>=W-w: 0; else v', lambda rng: dict(v=normal(rng, 7, 10), w=2), lambda v, w: np.array([[0 if y < w or y >= v.shape[0] - w or x < w or (x >= v.shape[1] - w) else v[y, x] for x in range(v.shape[1])] for y in range(v.shape[0])], f32), needs='pieces axes params bool', tol='exact')

def _inner_fades(x, ov):
    C, T = x.shape
    c, t = np.meshgrid(np.arange(C), np.arange(T), indexing='ij')
    g = np.where((c > 0) & (t < ov), (t + 1.0) / (ov + 1), 1.0)
    g *= np.where((c < C - 1) & (t >= T - ov), (T - t) / (ov + 1.0), 1.0)
    return (x * g).astype(f32)
case('posnd-03-fade-inner-joins', 'WaveRNN #111 and pytorch/audio PR #2769 (outer ends must not fade)', 'Fade the overlap at the joins of stacked chunks, but not the start of the first nor the end of the last chunk.', '[c,t] let a = where(c>0 && t<ov, real(t+1)/(ov+1), 1); let b = where(c<C-1 && t>=T-ov, real(T-t)/(ov+1), 1); x*a*b', lambda rng: dict(x=normal(rng, 3, 40), ov=8), _inner_fades, needs='pieces axes params let where bool realdiv')

def _window(s, w):
    B, Q, K = s.shape
    q = np.arange(Q)[:, None] + (K - Q)
    k = np.arange(K)[None, :]
    return np.where((k <= q) & (q - k < w), s, f32(-INF))
case('posnd-05-sliding-window-offset', 'ml-explore/mlx-lm PR #390 and huggingface/transformers PR #41228 (window one too wide; more keys than queries)', 'Keep for each query the newest w keys, itself counted, when the queries are the last rows of a longer key axis.', '[b,q,k] let p = q + (K-Q); k<=p && p-k<w: s; else -inf', lambda rng: dict(s=normal(rng, 2, 4, 11), w=5), _window, needs='pieces axes params let bool infconst', tol='exact')

def _bayer(raw, gr, gg, gb):
    y, x = np.indices(raw.shape)
    g = np.where((y % 2 == 0) & (x % 2 == 0), gr, np.where((y % 2 == 1) & (x % 2 == 1), gb, gg))
    return np.clip(np.rint(raw.astype(f64) * g), 0, 65535).astype(u16)
case('posnd-07-mosaic-gains', 'rawpy #46 and opencv/opencv #19629 (which 2x2 cell names the pattern)', 'Scale a 16-bit sensor mosaic by one of three gains chosen by row and column parity, rounded and saturated.', '[y,x] let g = where(y%2==0 && x%2==0, gr, where(y%2==1 && x%2==1, gb, gg)); u16(clamp(round(v*g), 0, 65535))', lambda rng: dict(raw=rng.integers(0, 65536, (6, 8)).astype(u16), gr=1.9, gg=1.0, gb=1.55), _bayer, needs='pieces axes params let where mod bool cast round minmax', tol='exact')

def _sponge(u, left, right, bottom, a):
    Z, X = u.shape
    z, x = np.indices(u.shape)

    def side(d, L):
        return np.where(d < L, np.exp(-(a * (L - d)) ** 2), 1.0)
    return (u * side(x, left) * side(X - 1 - x, right) * side(Z - 1 - z, bottom)).astype(f32)
case('posnd-09-sponge-per-side', 'HPCSys-Lab/simwave #68 and GEOS-DEV/GEOS PR #3224 (absorbing layer, top left free)', 'Damp a wave field near the left, right and bottom edges with a width of its own for each, and not at the top.', '[z,x] let l = where(x<left, exp(-sq(a*(left-x))), 1); let r = ...; let b = ...; u*l*r*b', lambda rng: dict(u=normal(rng, 20, 30), left=5, right=8, bottom=4, a=0.1), _sponge, needs='pieces axes params let where math')

def _qkv_seg(w, nq, nk, sq, sk, sv):
    r = np.arange(w.shape[0])[:, None]
    return (w * np.where(r < nq, sq, np.where(r < nq + nk, sk, sv))).astype(f32)
case('posnd-11-three-row-segments', 'thinking-machines-lab/tinker-cookbook PR #527 (fused rows Q, K, V of unequal counts)', 'Scale the three row segments of a fused weight, of unequal sizes, by three factors.', '[r,c] r<nq: w*sq; r<nq+nk: w*sk; else w*sv', lambda rng: dict(w=normal(rng, 32, 6), nq=8, nk=8, sq=0.25, sk=1.0, sv=-3.0), _qkv_seg, needs='pieces axes params')
case('posnd-13-frozen-rows', 'LlamaFactory PR #10563 and huggingface/accelerate #2202 (train only the new rows)', 'Clear the gradient of the first r0 rows, also where it is NaN or inf, and pass the other rows through.', '[r,c] r < r0: 0; else g', lambda rng: dict(g=np.where(rng.random((30, 8)) < 0.1, NAN, normal(rng, 30, 8)).astype(f32), r0=26), lambda g, r0: np.vstack([np.zeros((r0, g.shape[1]), f32), g[r0:]]), needs='pieces axes params lazy naninf', tol='exact')

def _mm_mask(lo, hi, Q, K, off, w):
    B = len(lo)
    b = np.arange(B)[:, None, None]
    p = np.arange(Q)[None, :, None] + off
    k = np.arange(K)[None, None, :]
    causal = (k <= p) & (p - k < w)
    image = (p >= lo[b]) & (p < hi[b]) & (k >= lo[b]) & (k < hi[b])
    return causal | image
case('posnd-15-window-or-image', 'vllm-project/vllm PR #47332 (window term lost; query position taken relative to the chunk)', "Build a bool mask: causal inside a window, or both positions inside the row's image span, queries offset by a parameter.", '[b,q,k] let p = q+off; (k<=p && p-k<w) || (p>=lo[b] && p<hi[b] && k>=lo[b] && k<hi[b])', lambda rng: dict(lo=np.array([3, 0], i64), hi=np.array([9, 2], i64), Q=6, K=14, off=5, w=4), _mm_mask, needs='pieces axes params let bool boolout gather generate broadcast', tol='exact')
case('gather-01-add-reversed', "chainer/chainer #1031 (the manual's own example failed: 'n' undefined)", 'Add to each element the element of a second array counted from the end.', 'x + y[n-1-i]', lambda rng: dict(x=np.arange(5, dtype=f32), y=normal(rng, 5)), lambda x, y: x + y[::-1], needs='gather inputs2', tol='exact')
case('gather-03-periodic-laplacian', 'numba/numba #3485 and #9536 (wrap-around border asked for)', 'Five-point Laplacian on a torus: neighbours past an edge are taken from the other side.', '[y,x] u[(y-1)%H,x]+u[(y+1)%H,x]+u[y,(x-1)%W]+u[y,(x+1)%W]-4*u[y,x]', lambda rng: dict(u=normal(rng, 5, 7, dtype=f64)), lambda u: np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u, needs='axes neighbour mod', tol=(1e-12, 1e-12))

def _rope(x, base):
    B, H, T, D = x.shape
    h = D // 2
    t = np.arange(T)[:, None]
    j = np.arange(D)[None, :] % h
    a = t / base ** (j / h)
    rot = np.concatenate([-x[..., h:], x[..., :h]], -1)
    return (x * np.cos(a) + rot * np.sin(a)).astype(f32)
case('gather-05-rotate-halves', 'zai-org/ChatGLM-6B #838 (half-split against interleaved rotary pairs)', 'Rotate vectors by position with the pair partner half the width away: minus for the first half, plus for the second.', '[b,h,t,d] let m = D/2; let a = t/pow(base, real(d%m)/m); d<m: x*cos(a)-x[b,h,t,d+m]*sin(a); else x*cos(a)+x[b,h,t,d-m]*sin(a)', lambda rng: dict(x=normal(rng, 2, 2, 9, 8), base=10000.0), _rope, needs='pieces axes params neighbour let math mod realdiv', tol=(2e-05, 2e-06))

def _reflect(x, left, right):
    n = x.size
    out = []
    for i in range(-left, n + right):
        if n == 1:
            out.append(x[0])
        else:
            k = i % (2 * n - 2)
            out.append(x[k if k < n else 2 * n - 2 - k])
    return np.array(out, x.dtype)
case('gather-07-reflect-any-length', 'pytorch/pytorch #61149, #52205 and tensorflow/tensorflow #62585 (padding longer than the input)', 'Reflect-pad a line by more than its length, bouncing as often as needed, also when it has one sample.', 'let p = 2*n-2; let k = (i-left) % max(p,1); k<n: x[k]; else x[p-k]   (output length n+left+right)', lambda rng: dict(x=normal(rng, *[(1,), (4,)][int(rng.integers(2))]), left=7, right=5), _reflect, needs='pieces neighbour params let mod outshape minmax degenerate', tol='exact')

def _nibbles(packed, scale, g):
    out = []
    for i in range(2 * packed.size):
        v = int(packed[i // 2]) >> 4 * (i % 2) & 15
        out.append(((v ^ 8) - 8) * float(scale[i // g]))
    return np.array(out, f32)
case('gather-09-signed-nibbles', 'gittensor-ai-lab/sparkinfer PR #761 and onnxruntime/onnxruntime-qnn PR #728 (sign lost or borrowed)', 'Unpack two signed 4-bit values per byte, low half first, and scale them per group; output twice as long.', 'let v = (p[i/2] >> (4*(i%2))) & 15; f32((v ^ 8) - 8) * s[i/g]', lambda rng: dict(packed=rng.integers(0, 256, 24).astype(u8), scale=(rng.random(3) + 0.1).astype(f32), g=16), _nibbles, needs='gather neighbour let bitops floordiv mod cast outshape params inputs2')

def _pick(lp, lab, bad):
    return np.array([bad if l < 0 or l >= lp.shape[1] else lp[i, l] for i, l in enumerate(lab)], f32)
case('gather-11-label-out-of-range', 'allenai/open-instruct PR #1817 (padding label silently read entry 0)', "Pick the log-probability of each row's label, giving a sentinel where the label lies outside the table.", 'lab[i]>=0 && lab[i]<V: lp[i,lab[i]]; else bad', lambda rng: dict(lp=normal(rng, 6, 4), lab=np.array([0, 3, -100, 2, 4, 1], i64), bad=-1000000000.0), _pick, needs='pieces gather bool lazy outshape params inputs2', tol='exact')

def _xfade(a, c, ov):
    ov = min(ov, len(a), len(c))
    out = c.astype(f64).copy()
    for i in range(ov):
        t = i / max(ov - 1, 1)
        out[i] = c[i] * np.sin(t * PI / 2) ** 2 + a[len(a) - ov + i] * np.cos(t * PI / 2) ** 2
    return out.astype(f32)
case('multi-01-crossfade-clipped', 'seed-vc #46 (overlap longer than a chunk raised a shape error)', 'Blend the end of one chunk into the start of the next with squared sine weights, the overlap clipped to both lengths.', 'let o = min(ov,n,m); i<o: c*sq(sin(w)) + a[m-o+i]*sq(cos(w)); else c   where w = real(i)/max(o-1,1)*pi/2', lambda rng: dict(a=normal(rng, 6), c=normal(rng, 10), ov=8), _xfade, needs='pieces params gather inputs2 let minmax math realdiv lazy', tol=(1e-05, 1e-06))

def _cutmix(a, b, y0, x0, h, w):
    out = a.copy()
    out[:, :, y0:y0 + h, x0:x0 + w] = b[:, :, y0:y0 + h, x0:x0 + w]
    return out
case('multi-03-box-paste', 'mosaicml/composer PR #3932 and tensorflow/models PR #11271 (height and width swapped)', 'Take a box of rows and columns from the second image batch and everything else from the first, sides unequal.', '[b,c,y,x] y>=y0 && y<y0+h && x>=x0 && x<x0+w: v; else u', lambda rng: dict(a=normal(rng, 2, 3, 6, 11), b=normal(rng, 2, 3, 6, 11), y0=1, x0=4, h=3, w=5), _cutmix, needs='pieces axes params bool inputs2', tol='exact')
case('multi-05-noise-by-step', 'jolibrain/joliGEN PR #527 (per-sample coefficient had the wrong rank)', "Mix images with noise using square roots of a table read at each sample's own step number.", '[b,c,y,x] let g = tab[step[b]]; sqrt(g)*v + sqrt(1-g)*e', lambda rng: dict(v=normal(rng, 2, 3, 4, 5), e=normal(rng, 2, 3, 4, 5), step=np.array([7, 2], i64), tab=np.linspace(0.99, 0.01, 10).astype(f32)), lambda v, e, step, tab: (np.sqrt(tab[step])[:, None, None, None] * v + np.sqrt(1 - tab[step])[:, None, None, None] * e).astype(f32), needs='axes gather inputs2 broadcast let math')

def _timestamps(x, last, prev, ts0, eot):
    v = np.arange(x.shape[1])[None, :]
    kill = np.where(last[:, None] & prev[:, None], v >= ts0, np.where(last[:, None], v < eot, np.zeros_like(v, bool)))
    return np.where(kill, f32(-INF), x)
case('multi-07-timestamp-pairing', 'vllm-project/vllm #55281 and huggingface/transformers PR #25642 (speech timestamps must come in pairs)', 'By two flags per row, hide all timestamp ids, or all text ids, or nothing.', '[b,v] last[b] && prev[b]: where(v>=ts0, -inf, x); last[b]: where(v<eot, -inf, x); else x', lambda rng: dict(x=normal(rng, 4, 12), last=np.array([True, True, False, False]), prev=np.array([True, False, True, False]), ts0=8, eot=5), _timestamps, needs='pieces axes params gather bool infconst where inputs2 broadcast', tol='exact')

def _prefix(s, pre):
    B, Q, K = s.shape
    q = np.arange(Q)[None, :, None]
    k = np.arange(K)[None, None, :]
    return np.where((k <= q) | (k < pre[:, None, None]), s, f32(-INF))
case('multi-09-prefix-then-causal', 'bigscience-workshop/Megatron-DeepSpeed PR #167 (prefix boundary off by one)', 'Let all queries see the first pre[b] keys and otherwise only earlier keys, pre differing per sample.', '[b,q,k] k<=q || k<pre[b]: s; else -inf', lambda rng: dict(s=normal(rng, 3, 5, 5), pre=np.array([0, 3, 5], i64)), _prefix, needs='pieces axes gather bool infconst inputs2 broadcast', tol='exact')
case('param-01-stale-scalar', "pytorch/pytorch #117496 and #197889 (compiled function kept the first scalar's value)", 'Add two tensors and a scalar; three calls with three scalar values must give three results.', 'a + b + t   (t a runtime parameter; call with t = 8, 4, 2)', lambda rng: dict(a=np.ones((3, 3), f32), b=np.ones((3, 3), f32), ts=[8.0, 4.0, 2.0]), lambda a, b, ts: np.stack([a + b + f32(t) for t in ts]), needs='params inputs2', tol='exact', how='one compiled object called once per value of ts; stack')
case('param-03-value-one', 'triton-lang/triton #2939 (the same kernel failed when the integer argument was 1)', 'Multiply int64 values by an integer parameter that is 42 in one call and 1, 0 and a large value in others.', 'x * int64(k)', lambda rng: dict(x=np.arange(1, 6, dtype=i64), ks=[42, 1, 0, 3000000000]), lambda x, ks: np.stack([x * i64(k) for k in ks]), needs='params cast int64index', tol='exact', how='one compiled object called once per value of ks; stack')

def _wsd(warm, stable, decay, n):
    out = []
    for i in range(n):
        s = i + 1
        if s < warm:
            out.append(s / warm)
        elif s <= warm + stable:
            out.append(1.0)
        else:
            out.append(1.0 - (s - warm - stable) / (decay + 1))
    return np.array(out, f64)
case('param-05-warmup-stable-decay', 'pytorch/torchtitan PR #1010 and #1261 (division by zero with no decay; wasted first step)', 'Give a learning-rate factor per step: linear rise, flat part, linear fall, any of the three possibly empty.', 'let s = i+1; s<warm: real(s)/warm; s<=warm+stable: 1; else 1-real(s-warm-stable)/(decay+1)', lambda rng: [dict(warm=4, stable=2, decay=4, n=10), dict(warm=0, stable=6, decay=0, n=6), dict(warm=3, stable=0, decay=5, n=8)][int(rng.integers(3))], _wsd, needs='pieces params let realdiv generate lazy', tol=(1e-12, 1e-12))
case('param-07-python-float', 'cupy/cupy #6940 and #8485 (Python float in a float32 slot gave zeros or garbage)', 'Scale a float32 array by a Python float passed at run time.', 'x * m', lambda rng: dict(x=rng.random(5).astype(f32), m=5.0), lambda x, m: x * f32(m), needs='params promote', tol='exact')

def _feather(v, y0, x0, H, W, ov):
    h, w = v.shape
    y = np.arange(h)[:, None]
    x = np.arange(w)[None, :]

    def ramp(d, on):
        return np.where(on & (d < ov), (d + 0.5) / ov, 1.0)
    g = ramp(y, y0 > 0) * ramp(h - 1 - y, y0 + h < H) * ramp(x, x0 > 0) * ramp(w - 1 - x, x0 + w < W)
    return (v * g).astype(f32)
case('param-09-tile-feather', "SceneWorks/SceneWorks PR #945 and was-node-suite-comfyui #80 (dark frame at the picture's own edge)", 'Weight a tile down towards its sides over ov pixels, but not at a side that lies on the edge of the whole picture.', '[y,x] let t = where(y0>0 && y<ov, (y+0.5)/ov, 1); ... v*t*b*l*r', lambda rng: dict(v=normal(rng, 9, 12), y0=0, x0=10, H=30, W=22, ov=4), _feather, needs='pieces axes params let where bool realdiv')
case('dtype-01-double-into-float-kernel', 'numba/numba #7478 (a float64 array read as float32 gave zeros, silently)', 'Apply 2x+1 to a float64 array: the result is float64 or the call is refused, never reinterpreted bytes.', '2*x + 1', lambda rng: dict(x=np.array([1.0, 2.0, 3.0, 1 / 3])), lambda x: 2 * x + 1, needs='promote', tol=(1e-15, 0), how='also: compile once for float32, then pass float64')
case('dtype-03-constant-keeps-float32', 'pandas-dev/pandas #12388 and pythran #2090 (float constants turned float32 into float64)', 'Mix float32 data with decimal constants and powers and still get float32.', 'i < n/2: 0.5*x; else x**3 / 2.0', lambda rng: dict(x=normal(rng, 10)), lambda x: np.where(np.arange(10) < 5, x * f32(0.5), x * x * x / f32(2)).astype(f32), needs='pieces promote math')
case('dtype-05-int-and-float-branches', 'pytorch/pytorch #51431 and #9190 (1.0 in one branch, 0 in the other)', 'Give 1.0 where the value exceeds 1 and the integer literal 0 elsewhere: the result is float32.', 'x > 1: 1.0; else 0', lambda rng: dict(x=normal(rng, 20) * 2), lambda x: np.where(x > 1, f32(1), f32(0)), needs='valuepieces promote', tol='exact')
case('dtype-07-zero-dim-operand', 'pytorch/pytorch #58736 and #9515 (0-d tensors do not raise the width inside a kind)', 'Add a float32 0-d tensor to a float16 vector and get float16; add it to an int32 vector and get float32.', 'x + s', lambda rng: [dict(x=np.array([1.0, 2.5, -3.0], f16), s=np.array(0.25, f32)), dict(x=np.array([1, 2, -3], i32), s=np.array(0.25, f32))][int(rng.integers(2))], lambda x, s: (x.astype(f32) + s).astype(f16 if x.dtype == f16 else f32), needs='inputs2 broadcast promote degenerate widemath', tol='exact')
case('dtype-09-half-sentinel', 'ahrefs/ocannl #548 and huggingface/transformers PR #17306 (-1e9 does not fit; lowest plus a score overflows)', 'Mask float16 scores with a finite lowest value put in place of the score, not added to it.', '[q,k] k>q: lowest; else s', lambda rng: dict(s=(normal(rng, 6, 6) * 30).astype(f16)), lambda s: np.where(np.triu(np.ones((6, 6), bool), 1), f16(-65504), s), needs='pieces axes infconst', tol='exact')
case('dtype-11-half-epsilon', 'pytorch/pytorch #32137 and pyg-team/pytorch_geometric PR #2106 (1e-12 is zero in float16)', 'Divide float16 values by the larger of a float16 norm and 1e-12, without making NaN from 0/0.', '[r,c] x / max(nm[r], 1e-12)   (computed in float32, rounded once)', lambda rng: dict(x=np.array([[0, 0, 0], [3, 0, 4]], f16), nm=np.array([0, 5], f16)), lambda x, nm: (x.astype(f32) / np.maximum(nm.astype(f32), f32(1e-12))[:, None]).astype(f16), needs='axes gather minmax widemath promote inputs2', tol='exact')
case('dtype-13-clip-then-bytes', 'Physical-Intelligence/openpi PR #994 and Tencent/tgfx PR #1138 (values outside 0..1 wrapped)', 'Turn float pixels into bytes: limit to 0..1, scale by 255, round half to even, store as uint8.', 'u8(round(clamp(x,0,1)*255))', lambda rng: dict(x=np.concatenate([normal(rng, 20), np.array([-0.5, 1.5, 0.5, 1.0, 0.0], f32)])), lambda x: np.rint(np.clip(x, 0, 1).astype(f32) * f32(255)).astype(u8), needs='minmax round cast', tol='exact')
case('dtype-15-byte-difference', 'dwave-examples/image-segmentation #10 (0 - 255 came out as 1)', 'Absolute difference of two uint8 images without wrap-around, as uint8.', 'u8(abs(i16(a)-i16(b)))', lambda rng: dict(a=np.array([255, 0, 10, 200], u8), b=np.array([0, 255, 12, 100], u8)), lambda a, b: np.abs(a.astype(i32) - b.astype(i32)).astype(u8), needs='cast math inputs2', tol='exact')
case('dtype-17-nan-to-integer', 'pytorch/pytorch #180159, #140347, numpy/numpy #19881 and ml-explore/mlx #2015 (NaN, inf, negatives to integer)', 'Convert float32 to uint8 with a stated result everywhere: NaN to 0, the rest truncated and saturated.', 'isnan(x): 0; else u8(clamp(trunc(x), 0, 255))', lambda rng: dict(x=np.array([NAN, INF, -INF, -2.0, -0.7, 300.5, 254.9, 3.0], f32)), lambda x: np.where(np.isnan(x), 0, np.clip(np.trunc(np.nan_to_num(x, nan=0)), 0, 255)).astype(u8), needs='valuepieces isnan minmax round cast naninf', tol='exact')
case('dtype-19-ramp-exact', 'pytorch/pytorch #4419 (element 4095 of a float32 ramp came out 8189.9995)', 'Generate start + (stop-start)*i/(n-1) in float32, exact whenever the true value is a float32 integer.', 'a + (b-a)*real(i)/(n-1)', lambda rng: dict(a=0.0, b=8198.0, n=4100), lambda a, b, n: (a + (b - a) * np.arange(n, dtype=f64) / (n - 1)).astype(f32), needs='params generate realdiv', tol='exact')
case('dtype-21-log-sigmoid-bf16', 'tenstorrent/tt-metal #55457 (diverged for large positive bf16)', 'log(sigmoid(x)) in bf16 over the whole range, written with pieces that cannot overflow.', 'x >= 0: -log1p(exp(-x)); else x - log1p(exp(x))', lambda rng: dict(x=to_bf16([-300, -20, -1, -0.0, 0, 0.5, 3, 20, 172, 3e+38])), lambda x: to_bf16(np.where(x >= 0, -np.log1p(np.exp(-np.abs(x.astype(f64)))), x.astype(f64) - np.log1p(np.exp(-np.abs(x.astype(f64)))))), needs='valuepieces math widemath lazy', tol=(0.01, 1e-06), carry={'x': 'bfloat16', 'out': 'bfloat16'})
case('int-01-floor-division', 'triton-lang/triton #619 and #955 (quotient cut towards zero)', 'Divide integers by -2 and by 2 rounding down, by halves of the array.', 'i < n/2: x // -2; else x // 2', lambda rng: dict(x=np.arange(-8, 9, dtype=i64)), lambda x: np.where(np.arange(17) < 8, np.floor_divide(x, -2), np.floor_divide(x, 2)), needs='pieces floordiv', tol='exact')
case('int-03-modulo-by-zero', 'pydata/numexpr #107 and flagos-ai/FlagGems PR #204 (integer modulo by 0 killed the process)', 'Integer remainder by a tensor that holds zeros: 0 where the divisor is 0, no trap.', 'd == 0: 0; else x % d', lambda rng: dict(x=np.arange(-5, 5, dtype=i64), d=np.array([0, 1, 2, 3, 0, -3, -2, 5, 0, 7], i64)), lambda x, d: np.where(d == 0, 0, np.mod(x, np.where(d == 0, 1, d))), needs='valuepieces inputs2 mod lazy', tol='exact', how='also `x % d` alone must not kill the process')
case('int-05-true-division', 'pydata/numexpr #22 and #58 (a/5 on integers gave zeros)', 'Divide int32 data by 5 with a true quotient for the first half and a floor quotient for the rest.', 'i < n/2: x / 5; else x // 5   (`/` on data is true division although on indexes it is not)', lambda rng: dict(x=np.array([1, 2, 3, 4, 9, -9, 11, -1], i32)), lambda x: np.where(np.arange(8) < 4, x / 5, np.floor_divide(x, 5)).astype(f32), needs='pieces realdiv floordiv promote')
case('int-07-abs-of-minimum', 'pytorch/pytorch #49224 and numpy/numpy #14984 (abs(-128) in int8)', 'abs on int8: the minimum stays -128 as in torch and NumPy, and nothing traps.', 'abs(x)', lambda rng: dict(x=np.array([-128, -127, -1, 0, 127], i8)), lambda x: np.where(x == -128, i8(-128), np.abs(x)), needs='math promote', tol='exact')
case('int-09-integer-ramp-full-range', 'pytorch/pytorch #40118 (stop - start overflowed int32)', 'Ten int32 values evenly from -2147483647 to 2147483647, truncated towards zero after exact division.', 'i32(trunc(f64(a) + (f64(b)-f64(a))*i/(n-1)))   (intermediates wider than the output)', lambda rng: dict(a=-2147483647, b=2147483647, n=10), lambda a, b, n: np.array([int((a * (n - 1) + (b - a) * i) / (n - 1)) for i in range(n)], i32), needs='params generate cast round realdiv', tol='exact')
case('int-11-huge-diagonal', 'pytorch/pytorch PR #153240 (row plus diagonal overflowed int64)', 'Upper triangle from a diagonal given by any int64, including the largest and smallest.', '[b,r,c] c - r >= d: x; else 0', lambda rng: dict(x=np.ones((2, 5, 5), f32), d=[2 ** 63 - 1, -2 ** 63, 1][int(rng.integers(3))]), lambda x, d: np.array([[[x[b, r, c] if c - r >= d else 0 for c in range(5)] for r in range(5)] for b in range(2)], f32), needs='pieces axes params int64index', tol='exact')
case('layout-01-column-slices', 'Theano/libgpuarray #541 (garbage when every operand is a column slice)', 'a*x + b*y where x and y are every other column of larger arrays.', 'a*x + b*y', lambda rng: dict(x=np.arange(12, dtype=f64).reshape(3, 4)[:, ::2], y=np.ones((3, 4))[:, ::2], a=1.1, b=3), lambda x, y, a, b: a * x + b * y, needs='strided params inputs2', tol=(1e-14, 0))
case('layout-03-corner-view', 'inducer/pycuda #38 (view of a corner lost its strides)', 'A rule by flat position on the top-left corner of a matrix: positions count inside the view.', 'i < 5: x; else -x', lambda rng: dict(x=normal(rng, 5, 10)[:3, :5]), lambda x: np.where(np.arange(15).reshape(3, 5) < 5, x, -x), needs='pieces strided', tol='exact')
case('layout-05-channels-moved', "fused-ssim PR #44 (output made with the input's strides was left mostly unwritten)", 'A per-channel rule on an image stored channel-last but viewed channel-first; every output element is written.', '[b,c,y,x] c==0: v*0.3; c==1: v*0.6; else v*0.1', lambda rng: dict(v=normal(rng, 2, 5, 7, 3).transpose(0, 3, 1, 2)), lambda v: (v * np.array([0.3, 0.6, 0.1], f32)[None, :, None, None]).astype(f32), needs='pieces axes strided')
case('layout-07-flipped', 'pytorch/pytorch #92680 and imgaug #630 (negative strides refused)', 'A positional rule on a flipped NumPy image (negative strides).', '[y,x] y < H/2: v+1; else v', lambda rng: dict(v=normal(rng, 6, 4)[::-1, ::-1]), lambda v: np.where(np.arange(6)[:, None] < 3, v + f32(1), v), needs='pieces axes strided diag', tol='exact')
case('layout-09-index-is-logical', 'pytorch/pytorch #130243 (result followed the memory order of a transposed input)', 'On a transposed matrix the flat index counts in logical row order, not in memory order.', 'x + i', lambda rng: dict(x=normal(rng, 3, 4, dtype=f64).T), lambda x: x + np.arange(12).reshape(4, 3), needs='strided', tol=(1e-14, 0))
case('size-01-empty', 'flagos-ai/FlagGems #5298, tile-ai/tilelang #1072 and pytorch/pytorch #72900 (grid of 0 refused)', 'A positional rule on an array with no elements, of shape (0,) or (0,5) or (3,0), gives an array of that shape.', 'i < n/4: x*0.5; i >= n-n/4: x*2; else x', lambda rng: dict(x=np.zeros([(0,), (0, 5), (3, 0)][int(rng.integers(3))], f32)), lambda x: np.zeros(x.shape, f32), needs='pieces degenerate', tol='exact')
case('size-03-shape-kept', 'numba/numba #6967 (a scalar came back as a one-element array)', 'cos on inputs of shape (), (1,) and (1,1) keeps the shape.', 'cos(x)', lambda rng: dict(x=np.full([(), (1,), (1, 1)][int(rng.integers(3))], 1.2)), lambda x: np.cos(x) + np.zeros(x.shape), needs='math degenerate', tol=(1e-14, 0))

def _asplit(x, k):
    out = x.copy()
    for s, part in enumerate(np.array_split(np.arange(x.size), k)):
        out[part] += s
    return out
case('size-05-even-parts', 'pytorch/pytorch #11029 and torch/torch7 #617 (always k parts, sizes differing by at most one)', 'Add to each element the number of its part when n elements are split into exactly k parts, longer parts first.', 'let q = n/k; let r = n%k; let big = r*(q+1); i<big: x + i/(q+1); else x + r + (i-big)/max(q,1)', lambda rng: [dict(x=np.zeros(224, i64), k=20), dict(x=np.zeros(5, i64), k=10)][int(rng.integers(2))], _asplit, needs='pieces params let floordiv mod segments minmax', tol='exact')
case('size-07-past-2-31-doubles', 'inducer/pycuda PR #383 for #375 (hung or wrong past 2**31 elements)', 'Write the index into a float64 array of 2**31 elements; check it at sampled positions.', 'i', lambda rng: dict(n=2 ** 31 + 1, sample=np.array([0, 1, 2 ** 30, 2 ** 31 - 1, 2 ** 31], i64)), lambda n, sample: sample.astype(f64), needs='generate int64index cast', kind='big', tol='exact', how='allocate n elements on the device (16 GiB), run, compare out[sample]; skip where memory is short')
case('size-09-half-tensor-3e9', 'triton-lang/triton #1058 and cupy/cupy #7539 (3.27e9 float16 elements failed)', 'Fill 3,270,680,000 float16 elements with +1 for even and -1 for odd index.', 'i%2==0: 1; else -1', lambda rng: dict(n=3270680000, sample=np.array([0, 1, 2 ** 31, 2 ** 31 + 1, 3270679999], i64)), lambda n, sample: np.where(sample % 2 == 0, f16(1), f16(-1)), needs='pieces generate mod int64index cast', kind='big', tol='exact', how='6.5 GB on the device; compare out[sample]')
case('size-11-window-of-one', "librosa/librosa PR #413 discussion of scipy's windows (length 0 and 1 are special)", 'Multiply by the symmetric Hann window, which for a single sample is 1 and not 0/0.', 'n == 1: x; else x*(0.5-0.5*cos(2*pi*real(i)/(n-1)))', lambda rng: dict(x=normal(rng, int(rng.integers(1, 3)) * 3 - 2, dtype=f64)), lambda x: x * (np.ones(1) if x.size == 1 else 0.5 - 0.5 * np.cos(2 * PI * np.arange(x.size) / (x.size - 1))), needs='pieces math realdiv degenerate lazy', tol=(1e-13, 1e-13))
_special = np.array([NAN, -INF, -2.0, -0.0, 0.0, 0.5, 1.0, 7.0, INF], f32)
case('nan-01-clamp-keeps-nan', 'pytorch/pytorch #15338, tile-ai/tilelang #3024 and tracel-ai/burn #5659 (NaN became a bound on the GPU)', 'clamp(x,0,1) keeps NaN.', 'clamp(x, 0, 1)', lambda rng: dict(x=np.array([NAN, -1.0, 0.5, 2.0, INF, -INF], f32)), lambda x: np.where(np.isnan(x), x, np.minimum(np.maximum(x, f32(0)), f32(1))), needs='minmax naninf', tol='exact')
case('nan-03-max-with-zero', 'pytorch/pytorch #7999, apache/mxnet #11115 and FluxML/NNlib.jl #509 (NaN cut to 0, hiding bugs)', 'max(x,0) keeps NaN in float16, on CPU and GPU alike.', 'max(x, 0)', lambda rng: dict(x=_special.astype(f16)), lambda x: np.where(np.isnan(x), x, np.maximum(x, f16(0))), needs='minmax naninf', tol='exact')
case('nan-05-negative-zero', 'pytorch/pytorch #114569 (-0.0 through clamp differed between devices)', 'A positional copy keeps the sign of zero in the untouched part and negation gives -0.0 in the other.', 'i < 2: x; else -x', lambda rng: dict(x=np.array([-0.0, 0.0, 0.0, -0.0], f32)), lambda x: np.array([-0.0, 0.0, -0.0, 0.0], f32), needs='pieces naninf', tol='exact', signed_zero=True)

def _xlogy(x, y):
    out = np.zeros(x.shape, f32)
    for i in range(x.size):
        if np.isnan(x[i]):
            out[i] = NAN
        elif x[i] != 0:
            out[i] = NAN if np.isnan(y[i]) or y[i] < 0 else -INF * np.sign(x[i]) if y[i] == 0 else x[i] * np.log(y[i])
    return out
case('nan-07-x-log-y', 'tenstorrent/tt-metal #55320 and pytorch/pytorch #179784 (0*log(0) must be 0, NaN in x must stay)', 'x*log(y) that is 0 wherever x is 0, whatever y is, and NaN where x is NaN.', 'x == 0: 0; else x*log(y)', lambda rng: dict(x=np.array([0, 0, 0, 0, 2, 2, NAN, -1], f32), y=np.array([0, -1, NAN, INF, 3, -1, 1, 0], f32)), _xlogy, needs='valuepieces math lazy naninf inputs2')
case('nan-09-replace-in-band', 'mantidproject/mantid #16948 (masked bins kept their NaN)', 'Replace NaN by 0 in a range of bins and leave NaN elsewhere.', 'i>=a && i<b && isnan(x): 0; else x', lambda rng: dict(x=np.where(np.arange(12) % 3 == 0, NAN, normal(rng, 12)).astype(f32), a=3, b=9), lambda x, a, b: np.where((np.arange(12) >= a) & (np.arange(12) < b) & np.isnan(x), f32(0), x), needs='pieces params bool isnan naninf', tol='exact')
case('grad-01-log-not-taken', 'pytorch/pytorch #108618, #36923 and #52248 (inf in the branch not taken gave NaN)', 'Gradient of `x>2: log2(x); else 2x` at 0, 2 and 3.', 'x > 2: log2(x); else 2*x', lambda rng: dict(x=np.array([0.0, 2.0, 3.0], f32), g=np.array([1.0, 2.0, 3.0], f32)), lambda x, g: np.array([2 * g[0], 2 * g[1], g[2] / (3 * np.log(2))], f32), needs='valuepieces math grad lazy', kind='grad', wrt=('x',), forward=lambda x: np.array([0, 4, np.log2(3)], f32))
case('grad-03-overflow-and-nan-input', 'pytorch/pytorch #156212 (exp overflow and a NaN input in the branch not taken)', 'Gradient of `x<=10: exp(x); else 1` at 1, NaN and 1e10: zero where the constant was taken.', 'x <= 10: exp(x); else 1', lambda rng: dict(x=np.array([1.0, NAN, 10000000000.0], f32), g=np.ones(3, f32)), lambda x, g: np.array([np.e, 0, 0], f32), needs='valuepieces math grad lazy naninf', kind='grad', wrt=('x',), forward=lambda x: np.array([np.e, 1, 1], f32))
case('grad-05-clamp-at-bound', 'pytorch/pytorch #7002, #184574 and PR #185927 (1 or 0 at the bound: opinions changed)', 'Gradient of clamp(x,0,1) outside, at and inside the bounds; state one choice and keep to it.', 'clamp(x, 0, 1)', lambda rng: dict(x=np.array([-1, 0, 0.5, 1, 2], f32), g=np.ones(5, f32)), lambda x, g: np.array([0, 1, 1, 1, 0], f32), needs='minmax grad', kind='grad', wrt=('x',), tol='exact', forward=lambda x: np.array([0, 0, 0.5, 1, 1], f32), accept=lambda x, g: [np.array([0, 0, 1, 0, 0], f32)])
case('grad-07-floored-radius', 'ml-explore/mlx #3668 and pytorch/pytorch #2421 (NaN at the origin through max(sqrt(.), eps))', 'Gradient of max(sqrt(x*x+y*y), eps) at the origin is 0 and elsewhere the unit vector.', 'max(sqrt(x*x+y*y), 1e-10)', lambda rng: dict(x=np.array([0, 3, -1], f32), y=np.array([0, 4, 0], f32), g=np.ones(3, f32)), lambda x, y, g: np.array([[0, 0.6, -1], [0, 0.8, 0]], f32), needs='minmax math grad lazy inputs2', kind='grad', wrt=('x', 'y'), forward=lambda x, y: np.array([1e-10, 5, 1], f32), how='reference stacks the gradients of x and y')
case('grad-09-sinc-at-zero', 'jax-ml/jax PR #1722 (gradient of sin(x)/x at 0)', 'Gradient of `x==0: 1; else sin(x)/x` is 0 at 0.', 'x == 0: 1; else sin(x)/x', lambda rng: dict(x=np.array([0, 0.5, -2.0]), g=np.ones(3)), lambda x, g: np.array([0.0] + [(v * np.cos(v) - np.sin(v)) / v ** 2 for v in x[1:]]), needs='valuepieces math grad lazy', kind='grad', wrt=('x',), tol=(1e-12, 1e-12), forward=lambda x: np.array([1.0] + [np.sin(v) / v for v in x[1:]]))
case('alias-01-difference-in-place', 'pytorch/pytorch #950 (1 1 1 1 4 instead of all ones)', 'Subtract from each element its left neighbour, writing into the same buffer: as if all reads came first, or refused.', 'out = a - b with out and a = base[1:], b = base[:-1]', lambda rng: dict(base=np.arange(1, 6, dtype=f32)), lambda base: np.concatenate([base[:1], np.diff(base)]), needs='inplace inputs2 diag', kind='alias', tol='exact', views=lambda base: dict(out=base[1:], a=base[1:], b=base[:-1]))
case('alias-03-expanded-output', 'pytorch/pytorch #4664, #17935 and #1424 (1 became 21; cos applied three times)', 'Add 1 in place to a (4,5) expansion of one element: refuse with the reason; out of place it is all 2.', 'x + 1 with out = x', lambda rng: dict(base=np.ones((1, 1), f32)), lambda base: np.full((4, 5), 2, f32), needs='inplace strided diag', kind='alias', tol='exact', views=lambda base: dict(out=np.lib.stride_tricks.as_strided(base, (4, 5), (0, 0))), how='in place: must raise and leave base unchanged; the reference is the out-of-place result', bad=[dict(typed='f(x, out=x) with x expanded', say=['several output elements share memory', 'clone or contiguous'])])
case('alias-05-shift-rows', 'pytorch/pytorch #197829 (right for a small shape, wrong for a large one)', 'Move every row down by one in the same buffer.', '[r,c] r>0: x[r-1,c]; else x[r,c] with out = x', lambda rng: dict(base=rng.random((1024, 64)).astype(f32)), lambda base: np.vstack([base[:1], base[:-1]]), needs='pieces axes inplace neighbour diag', kind='alias', tol='exact', views=lambda base: dict(out=base, x=base))
case('stream-01-side-stream-chain', 'pytorch/pytorch #2702 (results changed when a side stream was current)', 'Five in-place steps x = x/2 + 1 issued on a side stream, then read: same as on the default stream.', 'x*0.5 + 1 with out = x', lambda rng: dict(x=normal(rng, 4096), steps=5), lambda x, steps: ((x.astype(f64) - 2) * 0.5 ** steps + 2).astype(f32), needs='stream inplace', kind='stream', how='with torch.cuda.stream(s): run steps times; then .cpu() on s')
case('stream-03-other-device', "linkedin/Liger-Kernel #1303, triton-lang/triton #2441 and #5205 (launched on the current, not the tensor's, device)", 'The tensor lives on device 1 while device 0 is current: run on device 1, or say so plainly.', 'x*2 + 1', lambda rng: dict(x=normal(rng, 64)), lambda x: x * f32(2) + f32(1), needs='stream diag', kind='stream', how='needs two devices; mixed devices must be refused by name', bad=[dict(typed='x on cuda:0, y on cuda:1', say=['both devices named', 'which argument is where'])])
case('msg-01-and-dropped', 'pydata/numexpr #24 (`and` silently used only its right side)', 'Both conditions must hold; `and` is either accepted with that meaning or refused with the right operator named.', 'a==1 && b>2: 1; else 0', lambda rng: dict(a=np.array([1, 2, 1, 2, 1], i32), b=np.array([1, 2, 3, 4, 1], i32)), lambda a, b: ((a == 1) & (b > 2)).astype(i64), needs='valuepieces bool inputs2 diag', kind='message', tol='exact', bad=[dict(typed='a==1 and b>2: 1; else 0', say=['and', '&&']), dict(typed='a==1 & b>2: 1; else 0', say=['& binds before == in C and Python', '&&'])])
case('msg-03-caret-power', 'expression-eval #69 and YAFS PR #52 (`^` read as xor, wrong numbers without a word)', '10 + 2 to the power k; a caret on floating data is refused and pow or ** is named.', '10 + 2.0**k', lambda rng: dict(k=np.array([1, 2, 3], f32)), lambda k: (10 + np.exp2(k)).astype(f32), needs='math diag', kind='message', bad=[dict(typed='10 + 2.0^k', say=['^', '** or pow', 'column of the caret'])])
case('msg-05-words-as-operators', 'pydata/numexpr #321 (`what is that` evaluated to False)', 'Unknown words stop the compile with the list of known names, and near names are offered.', 'i < n/2: x; else 0', lambda rng: dict(x=normal(rng, 6)), lambda x: np.where(np.arange(6) < 3, x, f32(0)), needs='pieces diag', kind='message', tol='exact', bad=[dict(typed='x is y', say=['is', 'not an operator']), dict(typed='i < N/2: x; else 0', say=['N', 'did you mean n']), dict(typed='i < n/2: clip(x,0,1); else 0', say=['clip', 'clamp'])])
case('msg-07-silent-outer-product', 'pytorch/pytorch #16045, #19699 and PR #18349 ((N,1) with (N,) became (N,N) without a word)', "Squared difference of (N,1) and (N,): the rule for the result's shape is stated; a warning or refusal names both shapes.", 'sq(p - t)   (broadcasts to (N,N) like torch)', lambda rng: dict(p=normal(rng, 4, 1), t=normal(rng, 4)), lambda p, t: ((p - t[None, :]) ** 2).astype(f32), needs='inputs2 broadcast diag', kind='message', bad=[dict(typed='shapes (3,) and (4,)', say=['3', '4', 'which inputs', 'which axis'])])
case('msg-09-nothing-to-compile-from', 'triton-lang/triton #1445 and #1346 (SyntaxError out of generated code)', 'A rule that uses no input at all fills an array of the asked shape; no error text comes from generated code.', '3', lambda rng: dict(shape=(2, 3)), lambda shape: np.full(shape, 3, i64), needs='generate diag', kind='message', tol='exact', how='shape and dtype are given at the call', bad=[dict(typed='', say=['empty rule', 'expected an expression'])])
CORE = set('alias-01 alias-03 dtype-01 dtype-03 dtype-07 dtype-09 dtype-17 gather-01 gather-05 gather-09 grad-01 grad-05 int-01 int-05 int-11 layout-01 layout-07 layout-09 msg-01 msg-05 multi-05 multi-07 nan-01 param-01 param-03 param-05 pos1d-01 pos1d-05 posnd-03 posnd-05 posnd-15 size-01 size-05 stream-03'.split())
for _c in CASES:
    _c['core'] = '-'.join(_c['id'].split('-')[:2]) in CORE

def check(seeds=range(6)):
    ids = [c['id'] for c in CASES]
    assert len(set(ids)) == len(ids)
    for c in CASES:
        assert c['category'] in CATEGORIES, c['id']
        assert all((t in NEEDS for t in c['needs'])), (c['id'], [t for t in c['needs'] if t not in NEEDS])
        for s in seeds:
            a = c['make'](np.random.default_rng(s))
            b = c['make'](np.random.default_rng(s))
            assert set(a) == set(b)
            with np.errstate(all='ignore'):
                r1 = c['reference'](**a)
                r2 = c['reference'](**b)
            assert isinstance(r1, np.ndarray), (c['id'], type(r1))
            assert r1.dtype != object and r1.dtype == r2.dtype, c['id']
            assert np.array_equal(r1, r2, equal_nan=r1.dtype.kind == 'f'), c['id']
            fresh = c['make'](np.random.default_rng(s))
            for k, v in a.items():
                if isinstance(v, np.ndarray):
                    assert np.array_equal(v, fresh[k], equal_nan=v.dtype.kind == 'f'), (c['id'], 'input changed', k)
            if c['kind'] == 'grad':
                with np.errstate(all='ignore'):
                    fw = c['forward'](**{k: v for k, v in a.items() if k != 'g'})
                assert isinstance(fw, np.ndarray), c['id']
                assert all((w in a for w in c['wrt'])), c['id']
            if c['kind'] == 'alias':
                v = c['views'](a['base'])
                assert 'out' in v and all((np.shares_memory(x, a['base']) for x in v.values())), c['id']
            if 'accept' in c:
                assert all((isinstance(x, np.ndarray) for x in c['accept'](**a)))
    assert CORE <= {'-'.join(c['id'].split('-')[:2]) for c in CASES}
    assert {c['category'] for c in CASES} == set(CATEGORIES)
    return len(CASES)
if __name__ == '__main__':
    print(check(), 'cases passed their self-check')
