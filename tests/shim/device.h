// SPDX-License-Identifier: Apache-2.0
// The words of CUDA C that emitted kernels use, as C++ for the CPU. Included by generated programs only; it launches
// nothing.
#pragma once
#include <cmath>
#include <cstdlib>
#include <type_traits>
#include <utility>

struct uint3 {
  unsigned x, y, z;
};
inline thread_local uint3 blockIdx, threadIdx, blockDim;
#define __global__ static
#define __device__ static inline
#define __launch_bounds__(n)
#define __restrict__ __restrict

using std::ceil, std::copysign, std::fabs, std::floor, std::fmod, std::isnan, std::rint, std::signbit, std::sqrt;

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
