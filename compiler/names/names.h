// SPDX-License-Identifier: Apache-2.0
// Name resolution: which thing each name of a spec stands for. It decides no types and looks at no arguments.
#pragma once
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/parse/ast.h"

namespace elsewise {

enum class Binding : uint8_t { None, Position, Length, Argument, Builtin };

struct Resolved {
  Binding binding = Binding::None;
  uint32_t index =
      0; // Position, Length: axis (flat_axis now); Argument: index into arguments; Builtin: row of the builtin table
};

inline constexpr uint32_t flat_axis = 255; // the row-major index over the whole domain

struct Names {
  std::vector<Resolved> of;           // parallel to Ast::exprs; filled for Name and Call
  std::vector<std::string> arguments; // in order of first use
};

/// Reports unknown functions, wrong argument counts, reserved names (out shape dtype device domain offset stream arch
/// path). Unknown value names are arguments.
Names resolve(const Ast &, Sink &);

} // namespace elsewise
