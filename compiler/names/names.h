// SPDX-License-Identifier: Apache-2.0
// Name resolution: which thing each name of a spec stands for. It decides no types and looks at no arguments.
#pragma once
#include "compiler/diagnostics/diagnostic.h"
#include "compiler/parse/ast.h"

namespace elsewise {

enum class Binding : uint8_t {
  None,
  Position,       // index: axis, an index into Ast::header.axes, or flat_axis
  Length,         // index: likewise; `n`, `len(t)`
  Argument,       // index: into Names::arguments
  ArgumentLength, // index: into Names::arguments; dim: which of its axes, negative from the right. `len(s)`, `len(s,
                  // d)`
  Border,         // `border()`: over every axis of the domain; with operands, over those positions alone
  Builtin,        // index: row of the builtin table
};

struct Resolved {
  Binding binding = Binding::None;
  uint32_t index = 0;
  int32_t dim = 0;
};

inline constexpr uint32_t flat_axis = 255; // the row-major index over the whole domain

struct Names {
  std::vector<Resolved> of;           // parallel to Ast::exprs; filled for Name and Call
  std::vector<std::string> arguments; // in order of first use
  bool needs_rank = false; // `border()` over axes that no header counts: the signature must tell the domain's rank
};

/// Reports unknown functions, wrong argument counts, reserved names (out shape dtype device domain offset stream arch
/// path). Unknown value names are arguments.
Names resolve(const Ast &, Sink &);

} // namespace elsewise
