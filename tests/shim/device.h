// SPDX-License-Identifier: Apache-2.0
// The words of CUDA C that emitted kernels use, as C++ for the CPU. Included by generated programs only; it launches
// nothing.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

struct uint3 {
  unsigned x, y, z;
};
inline thread_local uint3 blockIdx, threadIdx, blockDim;
#define __global__ static
#define __device__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define asm(...) // what it hides from NVRTC, g++ may see
#define __constant__ static const
#define __restrict__ __restrict
// One thread after another: every thread of a block runs up to the barrier, then every one runs all of it. What stands
// before a barrier only fills shared memory, so that running it again changes nothing.
inline thread_local int shim_pass, shim_waiting;
#define __shared__ static thread_local
#define __syncthreads()                                                                                                \
  if (shim_pass == 0) {                                                                                                \
    ++shim_waiting;                                                                                                    \
    return;                                                                                                            \
  }

using std::ceil, std::copysign, std::fabs, std::floor, std::fmod, std::isfinite, std::isinf, std::isnan, std::rint,
    std::signbit, std::sqrt, std::trunc;

// The device's transcendental functions are those that the program which loads this has for their names, so that it can
// say the same bits. C++ has the names too: SHIM_FUNCTIONS makes these the ones that a kernel's namespace sees.
// clang-format off
extern "C" {
const void *(*shim_find)(const char *name) = nullptr;
double (*shim_function)(const void *found, bool is_double, double, double) = nullptr;
}
namespace device {
#define ONE(name)                                                                                                      \
  inline double call_##name(bool is_double, double x, double y) {                                                      \
    static const void *const found = shim_find(#name);                                                                 \
    return shim_function(found, is_double, x, y);                                                                      \
  }
#define FLOATS(name)                                                                                                   \
  ONE(name) inline float name##f(float x) { return float(call_##name(false, x, 0)); }                                  \
  inline double name(double x) { return call_##name(true, x, 0); }
#define PAIRS(name)                                                                                                    \
  ONE(name) inline float name##f(float x, float y) { return float(call_##name(false, x, y)); }                         \
  inline double name(double x, double y) { return call_##name(true, x, y); }
FLOATS(exp)
FLOATS(exp2)
FLOATS(expm1) FLOATS(log) FLOATS(log2) FLOATS(log10) FLOATS(log1p) FLOATS(sin) FLOATS(cos) FLOATS(tan) FLOATS(asin)
    FLOATS(acos) FLOATS(atan) FLOATS(sinh) FLOATS(cosh) FLOATS(tanh) FLOATS(asinh) FLOATS(acosh) FLOATS(atanh)
        FLOATS(erf) FLOATS(erfc) PAIRS(pow) PAIRS(atan2) PAIRS(hypot)
#undef ONE
#undef FLOATS
#undef PAIRS
} // namespace device
#define SHIM_FUNCTIONS                                                                                                 \
  using device::exp, device::expf, device::exp2, device::exp2f, device::expm1, device::expm1f, device::log,            \
      device::logf, device::log2, device::log2f, device::log10, device::log10f, device::log1p, device::log1pf,         \
      device::sin, device::sinf, device::cos, device::cosf, device::tan, device::tanf, device::asin, device::asinf,    \
      device::acos, device::acosf, device::atan, device::atanf, device::sinh, device::sinhf, device::cosh,             \
      device::coshf, device::tanh, device::tanhf, device::asinh, device::asinhf, device::acosh, device::acoshf,        \
      device::atanh, device::atanhf, device::erf, device::erff, device::erfc, device::erfcf, device::pow,              \
      device::powf, device::atan2, device::atan2f, device::hypot, device::hypotf;
// clang-format on

inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned((unsigned long long)x * y >> 32); }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
inline float __fmaf_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }

inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline float __double2float_rz(double x) {
  const float f = float(x); // to nearest; one step back if that went away from zero
  if (std::isinf(f) && !std::isinf(x)) return std::copysign(3.40282347e38f, f);
  return std::fabs(double(f)) > std::fabs(x) ? std::nextafter(f, 0.0f) : f;
}

// A kernel's parameters from pointers to its slots, as cuLaunchKernel takes them.
template <class... T, std::size_t... I>
void call_with(void (*kernel)(T...), const void *const *slots, std::index_sequence<I...>) {
  kernel(*static_cast<const std::remove_const_t<T> *>(slots[I])...);
}
template <class... T> void call_with(void (*kernel)(T...), const void *const *slots) {
  call_with(kernel, slots, std::index_sequence_for<T...>());
}
