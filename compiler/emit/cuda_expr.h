// SPDX-License-Identifier: Apache-2.0
// Pieces and guards as device functions: IR nodes to C expressions, with only the parentheses and locals that they
// need. It places nothing in the kernel's body.
#pragma once
#include "compiler/emit/cuda_index.h"
#include "compiler/emit/cuda_types.h"
#include <map>
#include <memory>

namespace elsewise::cuda {

/// Nodes that device functions are given as they are given elements: what the row worked out, and reads that the call
/// makes. By node, its name. A Read comes as what is in memory, anything else as its value.
using Given = std::map<NodeId, std::string>;

/// Names that the kernel's parameters have in emitted code, and how far its indexes reach.
struct KernelNames {
  std::vector<std::string> args;               // by argument
  std::vector<std::string> uniforms;           // by index into Kernel::uniforms
  std::vector<std::string> axes;               // by index into Kernel::axes: positions, as device functions have them
  std::vector<std::string> tables;             // by argument: its pointer as it is read at indices
  std::vector<std::vector<std::string>> steps; // by argument: the stride of each of its axes; empty: 1
  std::string flat = "i";                      // the row-major position
  std::map<uint32_t, std::string> reciprocals; // by index into Kernel::uniforms, of those that divide whole numbers
  Given given;
  std::shared_ptr<const Reaches> reaches; // of the kernel, worked out once: every copy has the same
  std::set<std::string, std::less<>> taken;

  /// `wish`, or `wish` with underscores appended until nothing else has that name; the name is then taken.
  std::string fresh(std::string wish);
};

/// "x_f32".
std::string typed_name(std::string name, DType);

/// What a device function is given: elements of arguments, tensors read at indices, uniforms, reciprocals of uniforms,
/// given nodes, the flat position, those of axes, the entry in tables; in this order.
struct Reads {
  std::vector<uint32_t> args, tables, uniforms, divisors;
  std::vector<NodeId> given;
  bool position = false;
  std::vector<uint32_t> axes;
  bool entry = false; // which constant of a table
};

/// What the root of a piece (or its guard) reads.
Reads reads(const Kernel &, NodeId root, const Given & = {});

/// Prints `type name(parameters) { return root; }` with `note` as its comment. `as`: the stored type that is returned;
/// Bool for a guard.
void print_function(const Kernel &, const KernelNames &, Helpers &, std::string_view name, std::string_view type,
                    NodeId root, std::string_view note, Lines &);

/// Row-stage nodes as expressions of the kernel's body, where `positions` are the names of axes. Locals that they share
/// come in `locals`, in order, and are taken from `names`.
std::vector<std::string> row_expressions(const Kernel &, KernelNames names, Helpers &,
                                         const std::vector<std::string> &positions, const std::vector<NodeId> &roots,
                                         std::vector<std::string> &locals);

/// The type in which a given node is handed over.
std::string_view given_type(const Kernel &, NodeId);
/// What is in memory where a read reads, or an index, as an expression of the kernel's body; `names` has the positions.
std::string body_expression(const Kernel &, KernelNames, Helpers &, NodeId);

/// A uniform's recipe as text for a comment: "n - n // 4".
std::string describe(const Kernel &, NodeId);

} // namespace elsewise::cuda
