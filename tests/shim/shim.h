// SPDX-License-Identifier: Apache-2.0
// Emitted CUDA C on the CPU: many kernels in one C++ program, compiled, loaded, and run block by block with the
// launcher's own geometry. It checks no result.
#pragma once
#include "compiler/ir/abi.h"
#include "runtime/cuda/geometry.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace elsewise::test {

/// One C++ program of all the kernels, with a table of them. Compile with -I for tests/shim.
std::string shim_program(const std::vector<std::string> &cuda_texts);

class ShimBatch {
public:
  /// Compiles and loads; null and `error` (compiler's output and the program's path) on failure. `flags` go to the
  /// compiler after the standing ones.
  static std::unique_ptr<ShimBatch> build(const std::vector<std::string> &cuda_texts, std::string &error,
                                          const std::string &flags = "");
  ~ShimBatch();
  size_t size() const { return size_; }
  /// Runs every thread of every block in turn, with pointers to slots in the order of slots(kernel, Backend::Cuda).
  void launch(size_t kernel, const Geometry &, const void *const *slots) const;

private:
  ShimBatch() = default;
  void *library_ = nullptr;
  size_t size_ = 0;
  void (*launch_)(int, unsigned, unsigned, unsigned, const void *const *) = nullptr;
};

/// What a launch takes: slots of eight bytes, the live ranges and the table of segments where the kernel has them, and
/// the geometry, all filled as the launcher does.
struct CudaCall {
  std::vector<SlotInfo> infos;
  Geometry geometry;
  std::vector<Slot> slots;
  LiveRanges live{};
  std::vector<uint8_t> table;                 // of segments
  std::vector<const void *> pointers() const; // to the slots, to `live`, or to the table
};
/// An output and an input that lie alike: rows `pitch` elements apart, elements of a row `inner` apart.
struct Alike {
  void *out;
  const void *in;
  int64_t rows, extent, pitch, inner;
  /// What that decides of a launch's slots; the others are 0.
  Slot slot(const SlotInfo &) const;
};

/// `value` gives the slot of everything but Shift, Blocks, Live, Segments and inverses; those come from the launcher's
/// geometry and from bounds, for which it is asked as if they were passed.
CudaCall cuda_call(const Kernel &, const std::function<Slot(const SlotInfo &)> &value);

} // namespace elsewise::test
