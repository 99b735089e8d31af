// SPDX-License-Identifier: Apache-2.0
// One random program through the front end and the oracle, ready to be compared with what a backend gave. It runs no
// backend itself.
#pragma once
#include "compiler/parse/ast.h"
#include "runtime/elsewise.h"
#include "tests/fuzz/generate.h"
#include "tests/fuzz/oracle.h"
#include <map>
#include <optional>
#include <string>

namespace elsewise::fuzz {

constexpr int64_t zone = 64; // bytes of guard zone on each side of `out`

/// A program that the compiler took, its types, its `out`, and what the oracle says of every element.
struct Case {
  Program program;
  Ast ast;
  Names names;
  Signature signature;
  Typed typed;
  std::vector<const Input *> arguments; // in the order of Names::arguments
  std::vector<int64_t> domain;          // of the tensors that the text names, or `shape=`
  bool shape_given = false;
  bool window = false;                // the arguments are parts of a greater domain
  std::vector<int64_t> whole, offset; // its shape, and where the parts begin in it
  int same_view = -1;                 // the argument whose identical view `out` is
  std::vector<int64_t> out_stride;
  std::vector<uint8_t> out_buffer;  // with a guard zone on each side, filled with a pattern
  int64_t out_offset = 0;           // bytes from the buffer's start to element 0
  std::vector<uint8_t> expected;    // elements in row-major order
  Outcome outcome = Outcome::Value; // the fault that some element must raise
  int64_t fault_position = -1;
  bool data_decides =
      false;            // what varies chooses what is evaluated somewhere, which the host does not follow for divisors
  bool inexact = false; // a function of it is promised within some ULP alone, so that processors differ
  bool reads = false, checked = false, unguarded = false; // at indices; of which the call looks at some; proved without
                                                          // the guards of pieces
};

/// nullopt: refused by the compiler (counted by its first code in `refused`), or it names what the program lacks.
std::optional<Case> prepare(Program, std::map<std::string, int> &refused);

/// The first difference between `out` (a copy of out_buffer after a run) and what it must be, in words; empty if there
/// is none. Not a NaN equals another NaN by bits but as a class; bytes outside the elements must be as they were.
std::string difference(const Case &, const std::vector<uint8_t> &out);

/// Whole description of a case, enough to run it again.
std::string describe(const Case &);

/// What the programs contained, by name: operators, builtins, dtypes, … for the printed coverage.
struct Seen {
  std::map<std::string, int> operators, builtins, dtypes, nodes, passes, layouts;
};
void note(const Case &, Seen &);
/// What a good slice must contain and this one did not.
std::vector<std::string> unseen(const Seen &);

} // namespace elsewise::fuzz
