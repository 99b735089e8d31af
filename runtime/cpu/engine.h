// SPDX-License-Identifier: Apache-2.0
// Objects to running code, through ORC. It knows the few symbols that generated code may call and refuses every other.
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <memory>
#include <mutex>
#include <string>

namespace elsewise {

/// Code in memory; freed with this object, which takes compile_mutex() for that.
class LinkedCode {
public:
  virtual ~LinkedCode() = default;
  void *entry = nullptr;
};

/// Held while LLVM works on CPU code, and across fork(), so that a child never inherits it locked or its data half
/// changed.
std::mutex &compile_mutex();

/// Links an ELF object and looks `entry` up. Under compile_mutex().
std::unique_ptr<LinkedCode> link_object(llvm::ArrayRef<char> object, llvm::StringRef entry, std::string &error);

} // namespace elsewise
