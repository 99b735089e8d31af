// SPDX-License-Identifier: Apache-2.0
// C++ that says what a primitive of builtins.def means, on exact doubles and integers. No backend uses it.
#pragma once
#include <cmath>
#include <limits>

namespace elsewise::reference {

inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

inline double least(const double *v) {
  if (v[0] != v[0] || v[1] != v[1]) return not_a_number;
  return v[0] < v[1] || (v[0] == v[1] && std::signbit(v[0])) ? v[0] : v[1];
}
inline double greatest(const double *v) {
  if (v[0] != v[0] || v[1] != v[1]) return not_a_number;
  return v[0] > v[1] || (v[0] == v[1] && !std::signbit(v[0])) ? v[0] : v[1];
}
inline double magnitude(const double *v) { return std::fabs(v[0]); }
inline double root(const double *v) { return std::sqrt(v[0]); } // correctly rounded, and then once more to float
inline double down(const double *v) { return std::floor(v[0]); }
inline double up(const double *v) { return std::ceil(v[0]); }
inline double nearest(const double *v) { return std::nearbyint(v[0]); } // in the default mode: half to even
inline double toward_zero(const double *v) { return std::trunc(v[0]); }
inline double rest(const double *v) { return std::fmod(v[0], v[1]); }
inline double with_sign(const double *v) { return std::copysign(v[0], v[1]); }
inline double no_number(const double *v) { return v[0] != v[0]; }
inline double infinite(const double *v) { return std::isinf(v[0]); }
inline double finite(const double *v) { return std::isfinite(v[0]); }

inline __int128 least_integer(const __int128 *v) { return v[0] < v[1] ? v[0] : v[1]; }
inline __int128 greatest_integer(const __int128 *v) { return v[0] > v[1] ? v[0] : v[1]; }
inline __int128 magnitude_integer(const __int128 *v) { return v[0] < 0 ? -v[0] : v[0]; }
inline __int128 ones(const __int128 *v) { return __builtin_popcountll((unsigned long long)v[0]); } // see apply()

// A function of the C library with one or two operands.
template <double (*f)(double)> double of(const double *v) { return f(v[0]); }
template <double (*f)(double, double)> double of(const double *v) { return f(v[0], v[1]); }

} // namespace elsewise::reference
