// SPDX-License-Identifier: Apache-2.0
// Arrays in memory and calls of the facade on them, as tests write them. It expects nothing by itself.
#pragma once
#include "runtime/elsewise.h"
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

namespace elsewise::tests {

template <class T> constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::F32;
  else if constexpr (std::is_same_v<T, double>) return DType::F64;
  else if constexpr (std::is_same_v<T, int64_t>) return DType::I64;
  else if constexpr (std::is_same_v<T, int32_t>) return DType::I32;
  else if constexpr (std::is_same_v<T, uint8_t>) return DType::U8;
  else return DType::I8;
}

/// Memory, and one view of it.
template <class T> struct Array {
  std::vector<T> memory;
  std::vector<int64_t> shape, stride;
  int64_t offset = 0;

  /// Row-major, filled with 0, 1, 2, …
  explicit Array(std::vector<int64_t> lengths) : shape(std::move(lengths)), stride(shape.size()) {
    int64_t count = 1;
    for (size_t d = shape.size(); d-- > 0;) stride[d] = count, count *= shape[d];
    memory.resize(size_t(count));
    std::iota(memory.begin(), memory.end(), T(0));
  }
  /// Another view of memory that begins as `of` does.
  Array(std::vector<T> memory, std::vector<int64_t> shape, std::vector<int64_t> stride, int64_t offset = 0)
      : memory(std::move(memory)), shape(std::move(shape)), stride(std::move(stride)), offset(offset) {}

  api::Arg arg() {
    return {.kind = ArgKind::Tensor,
            .dtype = dtype_of<T>(),
            .rank = int32_t(shape.size()),
            .shape = shape.data(),
            .stride = stride.data(),
            .data = memory.data() + offset};
  }
  /// Elements in logical order.
  std::vector<T> elements() const {
    std::vector<T> result;
    int64_t count = 1;
    for (int64_t l : shape) count *= l;
    for (int64_t e = 0; e < count; ++e) {
      int64_t rest = e, at = offset;
      for (size_t d = shape.size(); d-- > 0;) at += rest % shape[d] * stride[d], rest /= shape[d];
      result.push_back(memory[size_t(at)]);
    }
    return result;
  }
};

inline api::Arg number(__int128 v) { return {.kind = ArgKind::Int, .integer = v}; }
inline api::Arg number(int v) { return number(__int128(v)); }
inline api::Arg number(double v) { return {.kind = ArgKind::Float, .real = v}; }
inline api::Arg number(bool v) { return {.kind = ArgKind::Bool, .integer = v}; }

inline api::SpecRef compile(std::string_view text) {
  auto result = api::compile(text, "<test>");
  EXPECT_TRUE(result) << result.message;
  return result.value;
}

/// Arguments by name, in the order of the spec's.
inline std::vector<api::Arg> arguments(const api::Spec &spec, const std::map<std::string, api::Arg> &given) {
  std::vector<api::Arg> args;
  for (const std::string &name : api::arguments(spec)) args.push_back(given.count(name) ? given.at(name) : api::Arg{});
  return args;
}

/// plan() and run() of a rule into `out`; the first fault.
inline api::Result<bool> run(const api::SpecRef &spec, const std::map<std::string, api::Arg> &given, api::Arg out,
                             api::Call call = {}) {
  const auto args = arguments(*spec, given);
  call.args = args, call.out = &out;
  auto plan = api::plan(spec, call);
  if (!plan) return {false, plan.fault, plan.message, plan.diagnostics};
  EXPECT_TRUE(api::matches(*plan.value, call));
  return api::run(*plan.value, call);
}

} // namespace elsewise::tests
