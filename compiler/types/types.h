// SPDX-License-Identifier: Apache-2.0
// Dtypes, kinds, stages and signatures: the vocabulary that typing, IR, emitters and the run time share. No rule of
// promotion stands here.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace elsewise {

enum class DType : uint8_t {
#define DTYPE(Name, spelling, bytes, class, torch) Name,
#include "grammar/dtypes.def"
  Index, // exact integer: positions, lengths, literals, integer parameters and their arithmetic. Never stored; 64 bits
         // on a device, 128 on the host
};
inline constexpr int dtype_count = int(DType::Index);

enum class DClass : uint8_t { Bool, Int, UInt, Float };
const char *spelling(DType);   // "f32"; "index"
const char *torch_name(DType); // "float32"
int bytes(DType);              // Index: 8
DClass dclass(DType);          // Index: Int
inline bool is_float(DType d) { return dclass(d) == DClass::Float; }
inline bool is_integer(DType d) { return dclass(d) == DClass::Int || dclass(d) == DClass::UInt; } // Index too, Bool not
/// Least and greatest value of an integer dtype or Bool; Index has the limits of i64.
__int128 least(DType);
__int128 greatest(DType);
inline bool is_half(DType d) { return d == DType::F16 || d == DType::BF16; }
inline DType opmath(DType d) { return is_half(d) ? DType::F32 : d; } // the type that arithmetic on `d` is worked in
std::optional<DType> parse_dtype(std::string_view); // also torch's and NumPy's names: "float32", "half"

/// The kind of a value. Index: exact integer. WeakFloat: a float that no tensor has entered. Data: a tensor has
/// entered, or a cast named a dtype. Extreme: `lowest` and `highest` alone, which take the stored dtype.
enum class Kind : uint8_t { Unknown, Index, WeakFloat, Bool, Data, Extreme };

/// The earliest place where a value can be computed: once a call on the host, once a row, or for every element.
enum class Stage : uint8_t { Host, Row, Element };

/// Axes that no header names: the row-major index over the whole domain, and none at all.
inline constexpr uint32_t flat_axis = 255;
/// Of Op::Origin: the calls of a list.
inline constexpr uint32_t list_axis = 253;
inline constexpr uint8_t no_axis = 254;

/// torch's three classes of promotion: a Python scalar, a 0-d tensor, a tensor with dimensions.
enum class Category : uint8_t { Scalar, ZeroDim, Dim };

/// The type of one expression in one use. dtype: Index kind -> Index; WeakFloat -> F64 inside a comparison, the working
/// float as a value; Bool -> Bool; Data -> the nominal dtype (f16 stays f16 though it is worked in f32).
struct Type {
  Kind kind = Kind::Unknown;
  DType dtype = DType::Index;
  Stage stage = Stage::Element;
  Category category = Category::Dim;
  bool operator==(const Type &) const = default;
};

/// What is known of an argument: nothing, a tensor's dtype, or the kind of a parameter.
enum class ArgKind : uint8_t { Unknown, Tensor, Int, Float, Bool };
struct ArgType {
  ArgKind kind = ArgKind::Unknown;
  DType dtype = DType::F32; // Tensor only
  bool zero_dim = false;    // Tensor only
  int8_t rank = -1;         // Tensor that the rule reads at indices: how many axes it has; else -1
  bool operator==(const ArgType &) const = default;
};

/// What decides promotion: one entry an argument in the order of Names::arguments, and the dtype that `dtype=` or `out`
/// asks for.
struct Signature {
  std::vector<ArgType> args;
  std::optional<DType> out;
  int rank = -1;       // of the domain; only where Names::needs_rank, else always -1
  bool of_call = true; // false: only the text is known, and no kind, and not whether there will be a `dtype=`
  bool operator==(const Signature &) const = default;
};

} // namespace elsewise
