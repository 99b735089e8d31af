# SPDX-License-Identifier: Apache-2.0
"""Peers on the rule `i<n/4: x*0.5; i>=n-n/4: x*2; else x`, side by side in one run on a GPU: device time (events,
median), launch overhead, cold time. Needs torch, triton, cupy, cuda-bindings and nvcc; quote ratios of one run only.

Usage: python peers.py
"""

import ctypes
import os
import statistics as st
import subprocess
import sys
import tempfile
import time

import cupy as cp
import torch
import triton
import triton.language as tl

dev = "cuda"


def bench(f, n=50, warm=5, flush=None):
    for _ in range(warm):
        f()
    torch.cuda.synchronize()
    ts = []
    for _ in range(n):
        if flush is not None:
            flush.zero_()
        a = torch.cuda.Event(enable_timing=True)
        b = torch.cuda.Event(enable_timing=True)
        a.record()
        f()
        b.record()
        b.synchronize()
        ts.append(a.elapsed_time(b) * 1e3)
    return st.median(ts)


def host_us(f, n=2000):
    for _ in range(50):
        f()
    torch.cuda.synchronize()
    best = 1e9
    for _ in range(5):
        t = time.perf_counter()
        for _ in range(n // 5):
            f()
        best = min(best, (time.perf_counter() - t) / (n // 5) * 1e6)
        torch.cuda.synchronize()
    return best


def eager(x):
    n = x.numel()
    i = torch.arange(n, device=x.device)
    return torch.where(i < n // 4, x * 0.5, torch.where(i >= n - n // 4, x * 2.0, x))


def slices(x):
    n = x.numel()
    y = x.clone()
    y[: n // 4] *= 0.5
    y[n - n // 4 :] *= 2.0
    return y


def slices_(x):
    n = x.numel()
    x[: n // 4] *= 0.5
    x[n - n // 4 :] *= 2.0
    return x


@triton.jit
def seg_triton(o, x, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m)
    q = n // 4
    v = tl.where(i < q, v * 0.5, tl.where(i >= n - q, v * 2.0, v))
    tl.store(o + i, v, mask=m)


def run_triton(x, y, B=1024):
    n = x.numel()
    seg_triton[((n + B - 1) // B,)](y, x, n, B=B)


cp_elem = cp.ElementwiseKernel("T x, int64 n", "T y", "y = i < n/4 ? x*(T)0.5 : (i >= n-n/4 ? x*(T)2 : x)", "seg")
RAW = r"""extern "C" __global__ void segment_scale(float*out,const float*in,int n){int i=blockIdx.x*blockDim.x+threadIdx.x;
 if(i<n){float v=in[i]; if(i<n/4) out[i]=v*0.5f; else if(i>=n-n/4) out[i]=v*2.0f; else out[i]=v;}}"""
raw = cp.RawKernel(RAW, "segment_scale")


def run_raw(x, y):
    n = x.numel()
    raw(((n + 255) // 256,), (256,), (y.data_ptr(), x.data_ptr(), cp.int32(n)))


# prototype of the limit: 16-byte lanes, U per thread, segment bounds as arguments
PROTO = r"""
template<int U> __device__ void body(float4* __restrict__ o,const float4* __restrict__ x,long long n4,long long a,long long b,long long n){
 long long base=(long long)blockIdx.x*(256*U)+threadIdx.x; float4 v[U];
 if(base+256*(U-1)<n4){
 #pragma unroll
 for(int k=0;k<U;k++) v[k]=__ldcs(x+base+256*k);
 #pragma unroll
 for(int k=0;k<U;k++){long long i=(base+256*k)*4; float*f=(float*)&v[k];
  if(i+4<=a){for(int j=0;j<4;j++)f[j]*=0.5f;} else if(i>=b){for(int j=0;j<4;j++)f[j]*=2.f;}
  else for(int j=0;j<4;j++){long long e=i+j; f[j]= e<a?f[j]*0.5f:(e>=b?f[j]*2.f:f[j]);}
  __stcs(o+base+256*k,v[k]);}
 }}
extern "C" __global__ void p1(float4*o,const float4*x,long long n4,long long a,long long b,long long n){body<1>(o,x,n4,a,b,n);}
extern "C" __global__ void p2(float4*o,const float4*x,long long n4,long long a,long long b,long long n){body<2>(o,x,n4,a,b,n);}
extern "C" __global__ void p4(float4*o,const float4*x,long long n4,long long a,long long b,long long n){body<4>(o,x,n4,a,b,n);}
extern "C" __global__ void p8(float4*o,const float4*x,long long n4,long long a,long long b,long long n){body<8>(o,x,n4,a,b,n);}
"""
pm = cp.RawModule(code=PROTO)
protos = {u: pm.get_function(f"p{u}") for u in (1, 2, 4, 8)}


def run_proto(x, y, u):
    n = x.numel()
    n4 = n // 4
    protos[u](
        (n4 // (256 * u),),
        (256,),
        (y.data_ptr(), x.data_ptr(), cp.int64(n4), cp.int64(n // 4), cp.int64(n - n // 4), cp.int64(n)),
    )


CUB = r"""
#include <cub/device/device_transform.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <cuda/std/tuple>
struct F{ long long a,b; __device__ float operator()(float v,long long i)const{return i<a?v*0.5f:(i>=b?v*2.f:v);} };
extern "C" int run(float*o,const float*x,long long n,cudaStream_t s){
  return cub::DeviceTransform::Transform(cuda::std::make_tuple(x,thrust::counting_iterator<long long>(0)),o,n,F{n/4,n-n/4},s);}
extern "C" int runi(float*o,const float*x,int n,cudaStream_t s){
  return cub::DeviceTransform::Transform(cuda::std::make_tuple(x,thrust::counting_iterator<int>(0)),o,n,F{n/4,n-n/4},s);}
"""
TMP = tempfile.mkdtemp()
open(f"{TMP}/cubt.cu", "w").write(CUB)
r = subprocess.run(
    f"nvcc -O3 -std=c++17 -arch=sm_90 -shared -Xcompiler -fPIC -o {TMP}/cubt.so {TMP}/cubt.cu",
    shell=True,
    capture_output=True,
    text=True,
)
print("cub build", r.returncode, r.stderr[-600:])
cub = None
if r.returncode == 0:
    cub = ctypes.CDLL(f"{TMP}/cubt.so")
    for f in (cub.run, cub.runi):
        f.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_void_p]
    cub.runi.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]


def run_cub(x, y, f="run"):
    getattr(cub, f)(y.data_ptr(), x.data_ptr(), x.numel(), torch.cuda.current_stream().cuda_stream)


comp = torch.compile(eager, dynamic=True)
comp_static = torch.compile(eager, dynamic=False)
comp_out = torch.compile(lambda x, y: y.copy_(eager(x)), dynamic=False)
comp_in = torch.compile(lambda x: x.copy_(eager(x)), dynamic=False)


def table(n, reps):
    x = torch.randn(n, device=dev)
    y = torch.empty_like(x)
    ref = eager(x)
    xi = torch.zeros(n, device=dev)  # xi: in-place work, kept apart so x is never changed
    fl = torch.empty(256 << 20, dtype=torch.uint8, device=dev) if n <= (1 << 22) else None
    gb = 2 * 4 * n / 1e9
    rows = {
        "copy y.copy_(x) [limit]": lambda: y.copy_(x),
        "torch.mul(x,.5,out=y)": lambda: torch.mul(x, 0.5, out=y),
        "torch eager where+arange": lambda: eager(x),
        "torch clone+slices": lambda: slices(x),
        "torch slices in place": lambda: slices_(xi),
        "torch.compile static": lambda: comp_static(x),
        "torch.compile dynamic": lambda: comp(x),
        "torch.compile in place": lambda: comp_in(xi),
        "triton by hand": lambda: run_triton(x, y),
        "triton B=4096": lambda: run_triton(x, y, 4096),
        "cupy ElementwiseKernel": lambda: cp_elem(cp.from_dlpack(x), n, cp.from_dlpack(y)),
        "cupy RawKernel": lambda: run_raw(x, y),
        "proto u1": lambda: run_proto(x, y, 1),
        "proto u2": lambda: run_proto(x, y, 2),
        "proto u4": lambda: run_proto(x, y, 4),
        "proto u8": lambda: run_proto(x, y, 8),
    }
    if cub:
        rows["cub DeviceTransform i64"] = lambda: run_cub(x, y)
        rows["cub DeviceTransform i32"] = lambda: run_cub(x, y, "runi")
    print(f"\nn={n}  floor {gb:.3f} GB")
    for k, f in rows.items():
        try:
            y.fill_(float("nan"))
            r = f()
            r = r if torch.is_tensor(r) and "copy" not in k and "mul" not in k else y
            ok = "" if ("copy y" in k or "mul" in k or "in place" in k) else str(bool(torch.equal(r, ref)))
            with cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
                t = bench(f, reps, flush=fl)
                h = host_us(f) if n <= (1 << 22) else float("nan")
            print(f"{k:28s} {t:9.1f} us  {gb / t * 1e3:7.2f} TB/s  host {h:6.2f} us  {ok}")
        except Exception as e:
            print(k, "FAILED", repr(e)[:200])


def cold():
    print("\ncold: source -> first result, seconds, fresh process and empty caches")
    progs = {
        "cupy RawKernel": "import torch,cupy as cp;x=torch.randn(1<<20,device='cuda');y=torch.empty_like(x);cp.arange(3).sum();torch.cuda.synchronize();t=time.perf_counter();k=cp.RawKernel(RAW,'segment_scale');k((4096,),(256,),(y.data_ptr(),x.data_ptr(),cp.int32(1<<20)));torch.cuda.synchronize()",
        "cupy ElementwiseKernel": "import torch,cupy as cp;x=torch.randn(1<<20,device='cuda');a=cp.from_dlpack(x);torch.cuda.synchronize();t=time.perf_counter();k=cp.ElementwiseKernel('T x, int64 n','T y','y = i < n/4 ? x*(T)0.5 : (i >= n-n/4 ? x*(T)2 : x)','seg');b=k(a,1<<20);torch.cuda.synchronize()",
        "torch.compile": "import torch;x=torch.randn(1<<20,device='cuda');torch.cuda.synchronize();t=time.perf_counter();f=torch.compile(eager);f(x);torch.cuda.synchronize()",
        "jiterator (no position)": "import torch;x=torch.randn(1<<20,device='cuda');torch.cuda.synchronize();t=time.perf_counter();f=torch.cuda.jiterator._create_jit_fn('template <typename T> T f(T x){return x*T(0.5);}');f(x);torch.cuda.synchronize()",
    }
    for k, p in progs.items():
        code = (
            "import time\nRAW="
            + repr(RAW)
            + "\ndef eager(x):\n    import torch\n    n=x.numel();i=torch.arange(n,device=x.device)\n    return torch.where(i<n//4,x*0.5,torch.where(i>=n-n//4,x*2.0,x))\n"
            + p
            + "\nprint(time.perf_counter()-t)"
        )
        env = dict(
            os.environ,
            CUPY_CACHE_DIR=f"{TMP}/cc{time.time()}",
            TORCHINDUCTOR_CACHE_DIR=f"{TMP}/ti{time.time()}",
            TRITON_CACHE_DIR=f"{TMP}/tr{time.time()}",
            PYTORCH_KERNEL_CACHE_PATH=f"{TMP}/pk",
            CUDA_CACHE_DISABLE="1",
        )
        open(f"{TMP}/c.py", "w").write(code)
        for rep in range(2):
            r = subprocess.run([sys.executable, f"{TMP}/c.py"], env=env, capture_output=True, text=True)
            print(f"{k:28s} {'cold' if rep == 0 else 'disk-warm'} {r.stdout.strip()} {r.stderr.strip()[-200:]}")
        env.clear()


def nvrtc():
    from cuda.bindings import driver as D
    from cuda.bindings import nvrtc as N

    def ck(r):
        assert int(r[0]) == 0, r
        return r[1] if len(r) > 1 else None

    def comp(src, opts):
        t = time.perf_counter()
        p = ck(N.nvrtcCreateProgram(src.encode(), b"k.cu", 0, [], []))
        r = N.nvrtcCompileProgram(p, len(opts), [o.encode() for o in opts])
        if int(r[0]):
            s = ck(N.nvrtcGetProgramLogSize(p))
            b = b" " * s
            N.nvrtcGetProgramLog(p, b)
            print(b.decode()[:400])
            return None, 0
        s = ck(N.nvrtcGetCUBINSize(p))
        b = bytearray(s)
        b = b" " * s
        ck(N.nvrtcGetCUBIN(p, b))
        dt = time.perf_counter() - t
        return b, dt

    print("\nnvrtc", ck((lambda r: (r[0], (r[1], r[2])))(N.nvrtcVersion())))
    inc = "--include-path=" + os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")
    for name, src, opts in [
        ("naive, no headers", RAW, ["--gpu-architecture=sm_90"]),
        ("naive again", RAW, ["--gpu-architecture=sm_90"]),
        ("minimal split-compile", RAW, ["--gpu-architecture=sm_90", "--minimal"]),
        ("proto", PROTO, ["--gpu-architecture=sm_90"]),
        ("with cuda_fp16.h", "#include <cuda_fp16.h>\n" + RAW, ["--gpu-architecture=sm_90", inc]),
        ("with fp16+bf16", "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n" + RAW, ["--gpu-architecture=sm_90", inc]),
    ]:
        cub_, dt = comp(src, opts)
        if cub_:
            t = time.perf_counter()
            m = ck(D.cuModuleLoadData(cub_))
            ck(D.cuModuleGetFunction(m, b"segment_scale" if "proto" not in name else b"p4"))
            lt = time.perf_counter() - t
            print(f"{name:24s} nvrtc {dt * 1e3:7.1f} ms  cubin {len(cub_)} B  load {lt * 1e3:6.2f} ms")


print(torch.__version__, triton.__version__, cp.__version__, torch.cuda.get_device_name())
torch.zeros(1, device=dev)
nvrtc()
table(1 << 28, 30)
table(1 << 24, 50)
table(1_000_000, 200)
table(4096, 200)
cold()
x = torch.zeros(4, device=dev)
print(
    "exchange api",
    hasattr(torch.Tensor, "__dlpack_c_exchange_api__"),
    getattr(torch.Tensor, "__dlpack_c_exchange_api__", None),
)
