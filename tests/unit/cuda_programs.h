// SPDX-License-Identifier: Apache-2.0
// Random scheduled kernels with buffers to run them on. What they must give comes from the IR's own arithmetic, element
// by element; no front end and no pass takes part.
#pragma once
#include "compiler/ir/arithmetic.h"
#include "tests/shim/shim.h"
#include "tests/unit/cpu_kernels.h"
#include <map>
#include <random>
#include <span>

namespace elsewise::test {

struct Tensor {
  std::vector<uint8_t> storage;
  int64_t offset = 0; // bytes to element (0, 0)
  int64_t inner = 1, row = 0;
  uint8_t *at(DType d, int64_t r, int64_t c) { return storage.data() + offset + (r * row + c * inner) * bytes(d); }
};

/// The same kernel and the same buffers for the same seed.
class RandomKernel {
public:
  explicit RandomKernel(uint64_t seed) : random_(seed), maker_(types(), DType::F32) {
    maker_.kernel.outputs = {result_};
    make();
  }

  const std::string &wrong() const { return wrong_; } // the verifier's complaint
  const Kernel &kernel() const { return maker_.kernel; }
  /// Runs it in the shim; what differs from what it must give, or nothing.
  std::string run(const ShimBatch &batch, size_t index);
  /// The same with any launcher. `buffers` are the host memory that the slots point into; the launcher leaves in them
  /// what the kernel wrote.
  using Launch = std::function<std::string(const CudaCall &, const std::vector<std::span<uint8_t>> &buffers)>;
  std::string run(const Launch &);

  /// True if some index left 64 bits: the host refuses such a call, so nothing was compared.
  bool refused() const { return overflow_; }
  int64_t positions() const { return rows_ * extent_; }

private:
  uint64_t below(uint64_t n) { return random_() % n; }
  std::vector<DType> types();
  void make();
  NodeId value(DType, int depth);
  NodeId boolean(int depth);
  NodeId index(int depth);
  NodeId leaf(DType);
  NodeId parameter(DType);
  Constant evaluate(NodeId, int64_t r, int64_t c);

  std::mt19937_64 random_;
  DType result_ = DType::F32;
  Maker maker_;
  int64_t rows_ = 1, extent_ = 0, inner_pitch_ = 1, row_pitch_ = 0;
  std::map<NodeId, Constant> host_;
  std::vector<Tensor> tensors_;
  Tensor out_;
  bool overflow_ = false;
  std::string wrong_;
};

} // namespace elsewise::test
