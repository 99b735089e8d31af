// SPDX-License-Identifier: Apache-2.0
// A program's call as the facade takes it. It borrows the case and the output's memory.
#pragma once
#include "runtime/elsewise.h"
#include "runtime/layout/layout.h"
#include "tests/fuzz/differential.h"

namespace elsewise::fuzz {

/// Tensors are small and rows short: each form has its turn, by the program, since its plans are kept.
inline FormLimits limits_of(const Case &c) {
  FormLimits limits;
  if (c.program.seed / 2 % 2) limits.longest_flat = 0;
  if (c.program.seed % 3) limits.least_tiled = 2;
  return limits;
}

class CallOf {
public:
  CallOf(const Case &c, std::vector<uint8_t> &out, api::Device device) {
    for (size_t a = 0; a < c.arguments.size(); ++a) {
      const Input &in = *c.arguments[a];
      api::Arg &arg = args_.emplace_back();
      arg.kind = in.type.kind, arg.dtype = in.type.dtype, arg.device = device;
      arg.rank = int(in.shape.size()), arg.shape = in.shape.data(), arg.stride = in.stride.data();
      arg.data = int(a) == c.same_view ? out.data() + c.out_offset : const_cast<uint8_t *>(in.data());
      arg.integer = in.integer, arg.real = in.real;
    }
    out_.kind = ArgKind::Tensor, out_.dtype = c.typed.result, out_.device = device, out_.rank = int(c.domain.size());
    out_.shape = c.domain.data(), out_.stride = c.out_stride.data(), out_.data = out.data() + c.out_offset;
    call.args = args_, call.out = &out_;
    call.has_domain = c.shape_given, call.domain = c.domain;
    call.has_window = c.window, call.whole = c.whole, call.offset = c.offset;
  }
  CallOf(const CallOf &) = delete;
  /// Copies of the operands elsewhere: `at` is where element 0 of argument `a` stands.
  void move(size_t a, void *at) { args_[a].data = at; }
  void move_out(void *at) { out_.data = at; }
  api::Call call;

private:
  std::vector<api::Arg> args_;
  api::Arg out_;
};

} // namespace elsewise::fuzz
