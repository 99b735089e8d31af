// SPDX-License-Identifier: Apache-2.0
// The emitted CUDA C of random programs, planned as for a GPU: run on the CPU behind the shim, and compiled by NVRTC.
// It owns the programs until their batch has run.
#pragma once
#include "tests/fuzz/differential.h"
#include "tests/shim/shim.h"
#include <memory>
#include <vector>

namespace elsewise::fuzz {

class ShimBackend {
public:
  /// Takes the first `programs` it is given, compiles the first `nvrtc` of them for sm_90 and the first `archs` for
  /// every architecture.
  ShimBackend(int programs, int nvrtc, int archs);
  ~ShimBackend();
  void add(Case &&, Seen &);
  void finish(); // runs what is left

  int ran() const { return ran_; }
  int compiled() const { return compiled_; }
  int everywhere() const { return everywhere_; }
  int failed() const { return failed_; }
  int skipped() const { return skipped_; }

private:
  struct Pending;
  void flush();
  void compile(const std::string &text, const Kernel &, const Case &);
  void complain(const std::string &what, const Case &);

  int programs_, nvrtc_, archs_;
  int taken_ = 0, ran_ = 0, compiled_ = 0, everywhere_ = 0, failed_ = 0, skipped_ = 0;
  std::vector<std::unique_ptr<Pending>> pending_;
};

} // namespace elsewise::fuzz
