// SPDX-License-Identifier: Apache-2.0
// The tables behind cuda_types.h. Texts are CUDA C that is also C++, but for the rows that say otherwise.
#include "compiler/emit/cuda_types.h"
#include "compiler/types/text.h"
#include "grammar/builtins.h"
#include <cmath>

namespace elsewise::cuda {

std::string_view stored(DType d) {
  switch (d) {
  case DType::Bool:
  case DType::U8:
    return "u8";
  case DType::I8:
    return "i8";
  case DType::I16:
    return "i16";
  case DType::I32:
    return "int";
  case DType::I64:
  case DType::Index:
    return "i64";
  case DType::U16:
    return "u16";
  case DType::U32:
    return "u32";
  case DType::U64:
    return "u64";
  case DType::F16:
    return "f16";
  case DType::BF16:
    return "bf16";
  case DType::F32:
    return "float";
  case DType::F64:
    return "double";
  }
  return "";
}

std::string_view value(DType d, bool wide) {
  if (d == DType::Bool) return "bool";
  if (d == DType::Index && wide) return "i128";
  return stored(d);
}

static std::string integer_literal(DType d, __int128 v, bool wide, bool exact) {
  const bool is_int = v > -(__int128(1) << 31) && v < (__int128(1) << 31);
  const bool is_i64 = v > -(__int128(1) << 63) && v < (__int128(1) << 63);
  std::string s;
  if (d == DType::U32 || d == DType::U64)
    return std::to_string((unsigned long long)v) + (d == DType::U32 ? "u" : "ull");
  if (is_i64) {
    s = std::to_string((long long)v);
    if (!is_int && d != DType::I32) s += "ll";
    else if (exact && (d == DType::I64 || (d == DType::Index && !wide))) s += "ll";
    if (d == DType::I32 && !is_int) s = "(-2147483647 - 1)"; // C has no literal for the least int
  } else if (v == -(__int128(1) << 63)) s = "(-9223372036854775807ll - 1)";
  else {
    const unsigned __int128 u = (unsigned __int128)v;
    s = "((i128)" + std::to_string((long long)(v >> 64)) + " << 64 | " + std::to_string((unsigned long long)u) + "ull)";
    if (v < 0) s = "(-(i128)1 - " + integer_literal(d, -1 - v, wide, false) + ")";
  }
  if (exact && (d == DType::I8 || d == DType::U8 || d == DType::I16 || d == DType::U16 || (d == DType::Index && wide)))
    s = "(" + std::string(value(d, wide)) + ")" + s;
  return s;
}

static std::string float_literal(DType d, double v) {
  if (std::isnan(v)) return "nan";
  std::string s = shortest_literal(d, std::fabs(v));
  if (std::isfinite(v) && d != DType::F64) s += "f";
  return std::signbit(v) ? "-" + s : s;
}

std::string literal(DType d, const Constant &c, bool wide, bool exact) {
  if (d == DType::Bool) return c.integer ? "true" : "false";
  if (is_half(d))
    return std::string(d == DType::F16 ? "to_f16(" : "to_bf16(") + float_literal(DType::F32, c.real) + ")";
  if (is_float(d)) {
    const bool is_macro = !std::isfinite(c.real); // of type float
    return (d == DType::F64 && exact && is_macro ? "(double)" : "") + float_literal(d, c.real);
  }
  return integer_literal(d, c.integer, wide, exact);
}

static constexpr std::string_view negated =
    "__device__ {T} negate({T} a) {\n  {U} m = 0 - ({U})a;\n  asm(\"\" : \"+{R}\"(m));\n  return ({T})m;\n}";

// clang-format off
// No name in these texts may be a macro of the prelude (inf, nan).
static constexpr Helper helper_rows[] = {
    // Out of NVRTC's sight: of `a < 0 ? -a : a` it makes abs.s64, of which ptxas then takes the sign to be plus, though the
    // least integer has itself for its magnitude. (CUDA 13.0, sm_90: `0 <= abs(v)` held of it.)
    {"negate", "", negated, negated, ""},
    // Of `x < 0.0f ? 1.0f : -0.0f` ptxas makes an instruction that knows 1 and +0 alone, and so of any two constants of
    // these magnitudes. (CUDA 13.0, sm_90.) Where one may be -0, it must not see the constants.
    {"opaque", "__device__ {T} opaque({T} x) {\n  asm(\"\" : \"+{R}\"(x));\n  return x;\n}", "", "",
     "__device__ {T} opaque({T} x) { return x; }"},
    // Markstein's: the reciprocal is rounded once, the remainder is exact, so the corrected quotient is rounded as one
    // of IEEE 754 is, wherever none of them leaves the normal numbers.
    // And of abs.f32 it takes any result, NaN too, to be at least 0. (CUDA 13.0, sm_90: `0 <= abs(x)` held of NaN; of f64
    // it does not.)
    {"magnitude",
R"(__device__ float magnitude(float a) { // fabsf
  int bits = __float_as_int(a);
  asm("and.b32 %0, %0, 0x7fffffff;" : "+r"(bits));
  return __int_as_float(bits);
})", "", "", "__device__ float magnitude(float a) { return fabsf(a); }"},
    {"with_sign",
R"(__device__ float with_sign(float a, float s) { // copysignf
  return __int_as_float(__float_as_int(magnitude(a)) | (__float_as_int(s) & (1 << 31)));
})", "", "", "__device__ float with_sign(float a, float s) { return copysignf(a, s); }"},
    // Minus for with_sign(): the compiler makes a sum of it, which leaves NaN without a sign.
    {"negated",
R"(__device__ float negated(float a) { // of NaN too
  int bits = __float_as_int(a);
  asm("xor.b32 %0, %0, 0x80000000;" : "+r"(bits));
  return __int_as_float(bits);
})", "", "", "__device__ float negated(float a) { return -a; }"},
    {"reciprocal",
R"(__device__ float reciprocal(float b) { // 0 where divide() cannot do with it
  return fabsf(b) >= 0x1p-60f && fabsf(b) <= 0x1p60f ? 1 / b : 0;
})", "", "", ""},
    {"divide",
R"(__device__ float divide(float a, float b, float inverse) { // a whole number by what all share: a / b as IEEE has it
  if (inverse == 0) return a / b;
  const float q = a * inverse;
  return __fmaf_rn(__fmaf_rn(-q, b, a), inverse, q);
})", "", "", ""},
    {"floor_div",
R"(__device__ {T} floor_div({T} a, {T} b) { // as torch.floor_divide
  if (b == 0) return a / b;
  const {T} m = fmod(a, b);
  {T} q = (a - m) / b;
  if (m != 0 && (b < 0) != (m < 0)) q -= 1;
  if (q == 0) return copysign(({T})0, a / b);
  const {T} whole = floor(q);
  return q - whole > ({T})0.5 ? whole + 1 : whole;
})",
R"(__device__ {T} floor_div({T} a, {T} b) { // towards minus infinity; 0 if b is 0
  if (b == 0) return 0;
  if (b == -1) return negate(a);
  const {T} q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
})",
R"(__device__ {T} floor_div({T} a, {T} b) { return b == 0 ? 0 : a / b; })", ""},
    {"floor_mod",
R"(__device__ {T} floor_mod({T} a, {T} b) { // the divisor's sign, as torch.remainder
  const {T} m = fmod(a, b);
  return m != 0 && (b < 0) != (m < 0) ? m + b : m;
})",
R"(__device__ {T} floor_mod({T} a, {T} b) { // the divisor's sign; 0 if b is 0
  if (b == 0 || b == -1) return 0;
  const {T} m = a % b;
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
})",
R"(__device__ {T} floor_mod({T} a, {T} b) { return b == 0 ? 0 : a % b; })", ""},
    {"power", "",
R"(__device__ {T} power({T} a, {T} b) { // wraps; a negative exponent truncates
  if (b < 0) return a == 1 ? 1 : a != -1 ? 0 : b & 1 ? -1 : 1;
  {U} product = 1, factor = a;
  for (; b != 0; b >>= 1, factor *= factor)
    if (b & 1) product *= factor;
  return ({T})product;
})",
R"(__device__ {T} power({T} a, {T} b) { // wraps
  {U} product = 1, factor = a;
  for (; b != 0; b >>= 1, factor *= factor)
    if (b & 1) product *= factor;
  return ({T})product;
})", ""},
    {"shift_left", "",
R"(__device__ {T} shift_left({T} a, {T} b) { return b >= 0 && b < {W} ? ({T})(({U})a << b) : 0; })",
R"(__device__ {T} shift_left({T} a, {T} b) { return b < {W} ? ({T})(({U})a << b) : 0; })", ""},
    {"shift_right", "",
R"(__device__ {T} shift_right({T} a, {T} b) { return b >= 0 && b < {W} ? a >> b : a < 0 ? -1 : 0; })",
R"(__device__ {T} shift_right({T} a, {T} b) { return b < {W} ? a >> b : 0; })", ""},
    // Saturating conversions from floats; NaN is 0. {F}: the float's type.
    {"to_u8", "__device__ u8 to_u8({T} x) { return x >= 255 ? 255 : x > 0 ? (u8)x : 0; }", "", "", ""},
    {"to_i8", "__device__ i8 to_i8({T} x) { return x >= 127 ? 127 : x <= -128 ? -128 : x == x ? (i8)x : 0; }", "", "", ""},
    {"to_i16", "__device__ i16 to_i16({T} x) { return x >= 32767 ? 32767 : x <= -32768 ? -32768 : x == x ? (i16)x : 0; }", "", "", ""},
    {"to_i32",
R"(__device__ int to_i32({T} x) {
  return x >= 0x1p31f ? 0x7fffffff : x <= -0x1p31f ? -0x7fffffff - 1 : x == x ? (int)x : 0;
})", "", "", ""},
    {"to_u16", "__device__ u16 to_u16({T} x) { return x >= 65535 ? 65535 : x > 0 ? (u16)x : 0; }", "", "", ""},
    {"to_u32", "__device__ u32 to_u32({T} x) { return x >= 0x1p32f ? 0xffffffffu : x > 0 ? (u32)x : 0; }", "", "", ""},
    {"to_u64", "__device__ u64 to_u64({T} x) { return x >= 0x1p64f ? 0xffffffffffffffffull : x > 0 ? (u64)x : 0; }", "", "", ""},
    {"to_i64",
R"(__device__ i64 to_i64({T} x) {
  return x >= 0x1p63f ? 0x7fffffffffffffff : x <= -0x1p63f ? -0x7fffffffffffffff - 1 : x == x ? (i64)x : 0;
})", "", "", ""},
    // An index that is compared exactly. It ends where a double does as a host's index.
    {"to_i128",
R"(__device__ i128 to_i128({T} x) {
  const i128 end = (i128)0x7fffffefffffffff << 64 | 0xffffffffffffffff;
  const i128 v = x >= 0x1p127f ? end : x <= -0x1p127f ? -end : x == x ? (i128)x : 0;
  return v > end ? end : v < -end ? -end : v;
})", "", "", ""},
    // Halves: an f16 or bf16 is its bits.
    {"from_f16",
R"(__device__ float from_f16(f16 h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
})", "", "",
R"(__device__ float from_f16(f16 h) {
  const int sign = h >> 15, exponent = h >> 10 & 31, fraction = h & 1023;
  if (exponent == 31) return __int_as_float(sign << 31 | 0x7f800000 | fraction << 13);
  const float x = exponent ? (1024 + fraction) * __int_as_float((exponent + 102) << 23) : fraction * 0x1p-24f;
  return sign ? -x : x;
})"},
    {"to_f16",
R"(__device__ f16 to_f16(float x) {
  f16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
})", "", "",
R"(__device__ f16 to_f16(float x) {
  const int bits = __float_as_int(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7fff;
  if (magnitude >= 0x477ff000) return sign | 0x7c00; // 65520 and more
  if (magnitude < 0x38800000) return sign | int(rintf(__int_as_float(magnitude) * 0x1p24f)); // multiples of 2^-24
  return sign | ((magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13) - (112 << 10);
})"},
    {"from_bf16", "__device__ float from_bf16(bf16 h) { return __int_as_float(h << 16); }", "", "", ""},
    {"to_bf16",
R"(__device__ bf16 to_bf16(float x) {
#if __CUDA_ARCH__ >= 800
  bf16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
#else
  const unsigned bits = __float_as_int(x), is_nan = int(0x7f800000 - (bits & 0x7fffffff)) >> 31; // all ones then
  return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16 & ~is_nan) | (0x7fff & is_nan);
#endif
})", "", "",
R"(__device__ bf16 to_bf16(float x) {
  const unsigned bits = __float_as_int(x), is_nan = int(0x7f800000 - (bits & 0x7fffffff)) >> 31;
  return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16 & ~is_nan) | (0x7fff & is_nan);
})"},
    // To float by rounding to odd, from where one more rounding, to a half, gives what a single one would.
    {"to_odd",
R"(__device__ float to_odd(double x) {
  const float toward_zero = __double2float_rz(x);
  return toward_zero == x ? toward_zero : __int_as_float(__float_as_int(toward_zero) | 1);
})", "", "", ""},
    {"local", "", "", "", ""},     // printed by the kernel, whose tile it knows
    {"live_block", "", "", "", ""},
    {"ceil_div", "", "__device__ {T} ceil_div({T} a, {T} b) { return a > 0 ? (a - 1) / b + 1 : 0; }", "", ""},
};
// clang-format on

static std::string spell(std::string_view text, DType d, bool wide) {
  std::string s = replace(std::string(text), "{T}", value(d, wide));
  const bool big = d == DType::Index && wide;
  s = replace(std::move(s), "{U}", big ? "unsigned __int128" : bytes(d) == 8 ? "u64" : "unsigned");
  if (big) s = replace(std::move(s), "  asm(\"\" : \"+{R}\"(m));\n", ""); // no register has 128 bits, nor does abs
  s = replace(std::move(s), "{R}", is_float(d) ? bytes(d) == 8 ? "d" : "f" : bytes(d) == 8 ? "l" : "r");
  return replace(std::move(s), "{W}", std::to_string(big ? 128 : 8 * bytes(d)));
}

static std::string_view text_for(const Helper &h, DType d) {
  if (is_float(d)) return h.floats;
  return dclass(d) == DClass::UInt || d == DType::Bool ? h.unsigned_integers : h.signed_integers;
}

void Helpers::use(std::string_view name, DType d) {
  for (const Helper &h : helper_rows)
    if (h.name == name) {
      const std::string_view text = text_for(h, d);
      if (!text.empty()) use_text(text, d);
    }
}

void Helpers::use_text(std::string_view text, DType d) {
  std::string spelt = spell(text, d, wide_);
  if (!seen_.insert(spelt).second) return;
  need(text, d);
  texts_.push_back(std::move(spelt));
}

// Helpers that a helper's own text calls come before it.
void Helpers::need(std::string_view text, DType d) {
  for (const Helper &h : helper_rows)
    if (mentions(text, h.name)) use(h.name, d);
}

void Helpers::print(Lines &out) const {
  for (const std::string &text : texts_) {
    size_t at = 0;
    while (at <= text.size()) {
      const size_t end = std::min(text.find('\n', at), text.size());
      out.add(0, text.substr(at, end - at));
      at = end + 1;
    }
  }
}

struct Prelude {
  std::string_view word, text, comment;
};
static constexpr Prelude preludes[] = {
    {"i64", "typedef long long i64;", ""},
    {"u64", "typedef unsigned long long u64;", ""},
    {"i128", "typedef __int128 i128;", ""},
    {"u8", "typedef unsigned char u8;", ""},
    {"u16", "typedef unsigned short u16;", ""},
    {"u32", "typedef unsigned u32;", ""},
    {"i8", "typedef signed char i8;", ""},
    {"i16", "typedef short i16;", ""},
    {"f16", "typedef unsigned short f16;", "its bits"},
    {"bf16", "typedef unsigned short bf16;", "its bits"},
    {"inf", "#define inf __int_as_float(0x7f800000)", ""},
    {"nan", "#define nan __int_as_float(0x7fc00000)", ""},
};

void print_prelude(Lines &out, std::string_view text) {
  for (const Prelude &p : preludes)
    if (mentions(text, p.word)) out.add(0, std::string(p.text), std::string(p.comment));
}

// Names that `text` calls: a parameter of the same name would hide the function.
static void calls_of(std::string_view text, std::set<std::string, std::less<>> &out) {
  std::string word;
  for (char c : text) {
    if (c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) word += c;
    else {
      if (c == '(' && !word.empty()) out.insert(word);
      word.clear();
    }
  }
}

const std::set<std::string, std::less<>> &helper_words() {
  static const std::set<std::string, std::less<>> words = [] {
    std::set<std::string, std::less<>> out;
    for (const Helper &h : helper_rows) {
      out.emplace(h.name);
      for (std::string_view text : {h.floats, h.signed_integers, h.unsigned_integers, h.host}) calls_of(text, out);
    }
    for (const Prelude &p : preludes) out.insert(std::string(p.word));
    for (const Builtin &row : builtins()) {
      for (std::string_view text : row.cuda) calls_of(text, out);
      calls_of(row.cuda_helper, out), calls_of(row.cuda_helper_int, out);
    }
    return out;
  }();
  return words;
}

std::string for_host(std::string text) {
  for (const Helper &h : helper_rows)
    for (const DType d : {DType::F32, DType::F64})
      if (!h.host.empty()) text = replace(std::move(text), spell(h.floats, d, false), spell(h.host, d, false));
  return text;
}

} // namespace elsewise::cuda
