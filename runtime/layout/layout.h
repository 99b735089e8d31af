// SPDX-License-Identifier: Apache-2.0
// From shapes and strides to the loop that is run: rows x inner axis in the output's memory order, and the Form that
// decides code. It reads no element.
#pragma once
#include "compiler/ir/abi.h"
#include "runtime/layout/domain.h"

namespace elsewise {

/// How one operand is walked.
struct Walk {
  Dims rows;         // elements a step of each row axis, axis 0 the fastest
  int64_t inner = 0; // elements a step of the inner axis
};

/// The domain as rows x inner axis.
struct Loop {
  Dims lengths;            // of the row axes, axis 0 the fastest
  int64_t rows = 1;        // their product
  int64_t extent = 1;      // positions along the inner axis
  Dims pitches;            // what a step of each row axis adds to the flat position
  int64_t inner_pitch = 1; // the same for the inner axis
  Dims row_dims;           // by row axis: the axis of the domain whose position it is; -1: positions are not used
  int64_t inner_dim = -1;  // the same for the inner axis
  Walk out;
  llvm::SmallVector<Walk, 4> inputs;
};

/// Positions that a kernel uses.
struct Positions {
  bool flat = false;
  llvm::SmallVector<bool, 8> dims = {}; // by axis of the domain; may be shorter
};

/// Orders axes by the output's memory, drops those of length 1, merges neighbours that every operand (and, if it is
/// used, the flat position) walks as one and of which neither's own position is used. Strides are over the domain.
/// `domain` holds no 0. `whole`: what it is a window of, which decides what a step adds to the flat position; empty:
/// it is the whole itself.
Loop make_loop(DimsRef domain, DimsRef out, std::span<const Dims> inputs, const Positions &, DimsRef whole = {});

/// Flat positions from the loop's first to its last, both included; of a loop made for one whose positions are used.
int64_t flat_span(const Loop &);

/// A division by a number known at the launch, as a product: n / divisor is the high half of n * multiplier, both of
/// `bits` bits, shifted right by `shift`, for every n of `bits` - 1 bits. By 1, the whole product goes right by one bit
/// less than its half (`shift` -1).
struct Inverse {
  uint64_t multiplier;
  int shift;
};
/// `divisor`: from 1 to 2^(bits - 1). `bits`: 32 or 64.
Inverse inverse(int64_t divisor, int bits);

/// What a launch is given in a slot that the loop alone decides: counts, lengths, pitches and strides; nullopt for
/// every other.
std::optional<int64_t> loop_slot(const Loop &, const SlotInfo &);

/// One elementwise operand of a loop.
struct Operand {
  DType dtype = DType::F32;
  bool read = false;     // elementwise; else it is Absent
  bool zero_dim = false; // a 0-d tensor repeats its element whatever the lengths
};

/// Positions a GPU thread takes: 16 bytes of output, at most 32 of the widest contiguous input.
uint8_t vector_width(DType out, const Loop &, std::span<const Operand> inputs);
/// True if an input is contiguous along the inner axis and starts each row at the same place modulo V as the output, as
/// far as strides say.
bool rows_congruent(const Loop &, size_t input, uint8_t vector);

enum class Machine : uint8_t { Cpu, Cuda };

/// Rows up to so many positions run in the flat form where `out` is dense, the shorter ones where a piece leaves memory
/// alone that others touch: only in the row form do whole vectors of it do so.
inline constexpr int64_t longest_flat_row = 1024, longest_flat_row_of_skipping = 256;
/// Below so many elements along either axis a tile is mostly empty.
inline constexpr int64_t least_tiled = 16;
/// Where forms begin and end. Tests move the borders, so that small tensors reach them.
struct FormLimits {
  int64_t longest_flat = longest_flat_row;     // positions of a row in the flat form; 0: none
  int64_t least_tiled = elsewise::least_tiled; // elements along both axes of a tile
};
/// Makes the row axis along which most bytes of inputs that are strided along the inner axis run row axis 0, if there
/// is one as long as tiles ask for. Row axes may stand in any order; only Form::tile gives the first a meaning.
void bring_tiled_axis(Loop &, std::span<const Operand> inputs, const FormLimits & = {});
/// The Form for a machine: access classes as if all were aligned (`Vector` for every contiguous input that
/// rows_congruent()), nothing the same view, no window. `flat`: the flat position is used. `axes`: of the kernel, by
/// the domain's axis that each is. A GPU has tiles where `out` runs along the inner axis, an input along row axis 0,
/// and both axes are long enough; else short rows are flat.
Form make_form(const Loop &, DType out, std::span<const Operand> inputs, bool flat, Machine, DimsRef axes = {},
               const FormLimits & = {});

} // namespace elsewise
