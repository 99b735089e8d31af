# SPDX-License-Identifier: Apache-2.0
"""What skipping loads and segments buys: constant half, causal mask, in-place outer quarters, against copy and torch.

Needs torch and cupy. Usage: python segments.py
"""

import statistics as st

import cupy as cp
import torch

dev = "cuda"


def ev(f, reps=40):
    for _ in range(5):
        f()
    torch.cuda.synchronize()
    ts = []
    for _ in range(reps):
        a = torch.cuda.Event(enable_timing=True)
        b = torch.cuda.Event(enable_timing=True)
        a.record()
        f()
        b.record()
        b.synchronize()
        ts.append(a.elapsed_time(b) * 1e3)
    return st.median(ts)


SRC = r"""
typedef long long L;
extern "C" __global__ void __launch_bounds__(256) half0(float4* __restrict__ o,const float4* __restrict__ x,L n4,L h){
 L j=(L)blockIdx.x*256+threadIdx.x; if(j>=n4)return; float4 v=make_float4(0,0,0,0); if(j*4>=h) v=x[j]; o[j]=v; }
// causal: rows of C floats; a block works inside one row; c>r -> -inf
extern "C" __global__ void __launch_bounds__(256) causal(float4* __restrict__ o,const float4* __restrict__ x,int C4,int tiles){
 L row=blockIdx.x/tiles; int t=blockIdx.x%tiles; int j=t*256+threadIdx.x; if(j>=C4)return; float4 v; const float ni=-__int_as_float(0x7f800000);
 int r=(int)(row%(C4*4)); int c=j*4; L p=row*C4+j;
 if(c>r) v=make_float4(ni,ni,ni,ni); else { v=x[p]; if(c+3>r){float*f=(float*)&v; for(int q=0;q<4;q++) if(c+q>r) f[q]=ni;} }
 o[p]=v; }
extern "C" __global__ void __launch_bounds__(256) inpl(float4* __restrict__ x,L q4,L tail4,L t0){
 L b=blockIdx.x; bool lo=b<t0; L j=(lo?b:b-t0)*256+threadIdx.x; if(j>=q4) return; float s=lo?0.5f:2.f; L p=lo?j:tail4+j; float4 v=x[p]; v.x*=s;v.y*=s;v.z*=s;v.w*=s; x[p]=v; }
"""
m = cp.RawModule(code=SRC)
L = cp.int64
s = (
    cp.cuda.Stream.from_external(torch.cuda.current_stream())
    if hasattr(cp.cuda.Stream, "from_external")
    else cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
)
with s:
    for n in (1 << 28, 1 << 24, 1 << 20):
        x = torch.randn(n, device=dev)
        y = torch.empty_like(x)
        n4 = n // 4
        c = ev(lambda: y.copy_(x))
        z = ev(lambda: y.zero_())
        k = m.get_function("half0")
        h = ev(lambda: k(((n4 + 255) // 256,), (256,), (y.data_ptr(), x.data_ptr(), L(n4), L(n // 2))))
        ref = x.clone()
        ref[: n // 2] = 0
        print(n, "half0 ok", torch.equal(y, ref), f"copy {c:.1f} zero {z:.1f} half0 {h:.1f} = {h / c:.3f} of copy")
        q4 = n // 16
        tail = (n - n // 4) // 4
        t0 = (q4 + 255) // 256
        k2 = m.get_function("inpl")
        w = torch.zeros(n, device=dev)
        a = ev(lambda: k2((2 * t0,), (256,), (w.data_ptr(), L(q4), L(tail), L(t0))))

        def sl():
            w[: n // 4] *= 0.5
            w[n - n // 4 :] *= 2

        b = ev(sl)
        print(f"   in place: one launch {a:.1f}  torch slices {b:.1f}  ratio {a / b:.3f}  of copy {a / c:.3f}")
    for B, C in ((64, 2048), (16, 4096), (4, 8192)):
        x = torch.randn(B, C, C, device=dev)
        y = torch.empty_like(x)
        c = ev(lambda: y.copy_(x))
        k = m.get_function("causal")
        tiles = (C // 4 + 255) // 256
        t = ev(lambda: k((B * C * tiles,), (256,), (y.data_ptr(), x.data_ptr(), cp.int32(C // 4), cp.int32(tiles))))
        mask = torch.ones(C, C, dtype=torch.bool, device=dev).triu(1)
        mf = ev(lambda: x.masked_fill(mask, float("-inf")))
        ok = torch.equal(y, x.masked_fill(mask, float("-inf")))
        yy = torch.empty_like(x)
        comp = torch.compile(
            lambda x: torch.where(
                torch.arange(C, device=dev)[None, :] > torch.arange(C, device=dev)[:, None], float("-inf"), x
            )
        )
        tc = ev(lambda: comp(x))
        print(
            f"causal {B}x{C}x{C} ok {ok} copy {c:.1f} ours {t:.1f} = {t / c:.3f} of copy; masked_fill with ready mask {mf:.1f}; torch.compile {tc:.1f}; triu/tril {ev(lambda: x.tril()):.1f}"
        )
