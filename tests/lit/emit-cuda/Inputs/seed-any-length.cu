// i<n/4: x*0.5; i>=n-n/4: x*2; else x
// x f32 -> f32; out distinct; one row; 4 positions a thread
typedef long long i64;
struct alignas(16) f32x4 {
  float at[4];
};
__device__ int local(i64 p) { return p < 0 ? 0 : p < 1024 ? (int)p : 1024; }
__device__ float piece1(float x) { return x * 0.5f; } // 1:1 i<n/4: x*0.5
__device__ float piece2(float x) { return x * 2.0f; } // 1:15 i>=n-n/4: x*2
__device__ float piece3(float x) { return x; }        // 1:30 else x

extern "C" __global__ void __launch_bounds__(256)
    elsewise(float *__restrict__ out, const float *__restrict__ x, i64 extent, i64 end1, i64 begin2, int shift) {
  const i64 first = blockIdx.x * 1024ll - shift; // the block's first position; `out` is 16-byte aligned there
  out += first, x += first;
  const int lo = local(-first), hi = local(extent - first);
  const int e1 = local(end1 - first), b2 = local(begin2 - first);
  const int c = threadIdx.x * 4, z = c + 4; // this thread: [c, z) from `first`
  const f32x4 *xs = (const f32x4 *)x + threadIdx.x;
  f32x4 v, *outs = (f32x4 *)out + threadIdx.x;
  const bool inside = lo <= c && z <= hi;
  if (inside) v = *xs;
  const bool all1 = z <= e1, all2 = b2 <= c;
  const int may = (c < e1) | (b2 < z && !all1) << 1 | (!all1 && !all2) << 2; // pieces that can match in [c, z)
  switch (inside ? may : 0) {
  case 1: // piece 1 alone
    for (int k = 0; k < 4; ++k) v.at[k] = piece1(v.at[k]);
    *outs = v;
    break;
  case 2: // piece 2 alone
    for (int k = 0; k < 4; ++k) v.at[k] = piece2(v.at[k]);
    *outs = v;
    break;
  case 4: // piece 3 alone: moved as bits
    *outs = v;
    break;
  default: // several pieces, or an end of the row: the first that matches
    for (int p = c < lo ? lo : c; p < z && p < hi; ++p)
      if (p < e1) out[p] = piece1(x[p]);
      else if (p >= b2) out[p] = piece2(x[p]);
      else out[p] = piece3(x[p]);
  }
}
