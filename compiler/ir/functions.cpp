// SPDX-License-Identifier: Apache-2.0
// Opens SLEEF by path and looks the rows' functions up in it. It never takes a symbol from anything else in the
// process: other libraries carry a SLEEF of their own, of another version.
#include "compiler/ir/functions.h"
#include "compiler/check/composite.h"
#include "compiler/ir/arithmetic.h"
#include <algorithm>
#include <array>
#include <dlfcn.h>

namespace elsewise::functions {
namespace {

#ifndef ELSEWISE_SLEEF
#define ELSEWISE_SLEEF "libsleef.so.3"
#endif

struct Library {
  std::string why;
  Addresses all;

  Library() {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
      why = "this CPU has no AVX2 and FMA (x86-64-v3), which these functions need";
      return;
    }
#else
    why = "these functions need an x86-64-v3 CPU";
    return;
#endif
    void *handle = open();
    if (!handle) return;
    for (const Builtin &row : builtins()) {
      if (row.cpu.empty()) continue;
      for (const DType d : {DType::F32, DType::F64})
        for (unsigned lanes = 1; lanes <= (d == DType::F32 ? 16 : 8); lanes *= 2) {
          if (d == DType::F32 && lanes == 2) continue;
          const std::string name = symbol(row.cpu, d, lanes);
          void *address = dlsym(handle, name.c_str());
          if (!address) {
            why = "the SLEEF library that was found has no `" + name + "`";
            return;
          }
          all[name] = address;
        }
    }
  }

  // The copy beside this library first, as a wheel has it; then where the build found it.
  void *open() {
    Dl_info self;
    if (dladdr(reinterpret_cast<void *>(&symbol), &self) && self.dli_fname) {
      std::string path = self.dli_fname;
      const size_t slash = path.rfind('/');
      path = (slash == std::string::npos ? "./" : path.substr(0, slash + 1)) + "libsleef.so.3";
      if (void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    }
    if (void *handle = dlopen(ELSEWISE_SLEEF, RTLD_NOW | RTLD_LOCAL)) return handle;
    const char *message = dlerror();
    why = std::string("the SLEEF library cannot be opened: ") + (message ? message : ELSEWISE_SLEEF);
    return nullptr;
  }
};

const Library &library() {
  static const Library it;
  return it;
}

/// The bare function, without the row's body.
double bare(const Builtin &row, DType d, const double *v) {
  const auto found = library().all.find(symbol(row.cpu, d, 1));
  if (found == library().all.end()) return round_to(d, row.real(v));
  const bool two = row.max_arguments == 2;
  if (d == DType::F32) {
    if (two) return reinterpret_cast<float (*)(float, float)>(found->second)(float(v[0]), float(v[1]));
    return reinterpret_cast<float (*)(float)>(found->second)(float(v[0]));
  }
  if (two) return reinterpret_cast<double (*)(double, double)>(found->second)(v[0], v[1]);
  return reinterpret_cast<double (*)(double)>(found->second)(v[0]);
}

/// The row's body for a CPU, read once: a call may work it for a uniform.
const Composite &cpu_body(const Builtin &row, DType d) {
  using Bodies = std::array<Composite, 2>; // f32, f64
  static const std::vector<Bodies> all = [] {
    std::vector<Bodies> made(builtins().size());
    for (size_t r = 0; r < made.size(); ++r)
      for (size_t k = 0; k < 2; ++k)
        if (const std::string_view text = builtins()[r].cpu_body[k]; !text.empty())
          made[r][k] = composite(builtins()[r], text);
    return made;
  }();
  return all[size_t(&row - builtins().data())][d == DType::F64];
}

/// A body of plain float arithmetic at one point, each step rounded to the type.
struct Walk {
  const Composite &body;
  const Builtin &row;
  DType d;
  const double *v;

  double at(ExprId e) const {
    const Expr &x = body.ast[e];
    const auto child = [&](uint32_t k) { return at(body.ast.child(e, k)); };
    switch (x.kind) {
    case ExprKind::Literal: {
      const Literal &l = body.ast.literal(e);
      return round_to(d, l.kind == LiteralKind::Float ? l.real : double(l.integer));
    }
    case ExprKind::Name:
      return v[body.parameter(e)];
    case ExprKind::Unary:
      return -child(0);
    case ExprKind::Binary: {
      const double a = child(0), b = child(1);
      switch (x.op) {
      case Operator::Gt:
        return a > b;
      case Operator::Add:
        return round_to(d, a + b);
      case Operator::Sub:
        return round_to(d, a - b);
      case Operator::Mul:
        return round_to(d, a * b);
      default:
        return round_to(d, a / b);
      }
    }
    default:
      break;
    }
    const Builtin &called = builtins()[body.names.of[e].index];
    if (called.rule == Rule::Select) return child(0) != 0 ? child(1) : child(2);
    double operands[3] = {};
    for (uint32_t k = 0; k < std::min<uint32_t>(x.count, 3); ++k) operands[k] = child(k);
    return &called == &row ? bare(row, d, operands) : evaluate(called, d, operands);
  }
};

} // namespace

std::string symbol(std::string_view cpu, DType d, unsigned lanes) {
  const size_t cut = cpu.find('_');
  const unsigned width = lanes * unsigned(bytes(d));
  return "Sleef_finz_" + std::string(cpu.substr(0, cut)) + (d == DType::F32 ? "f" : "d") + std::to_string(lanes) +
         std::string(cpu.substr(cut)) +
         (lanes == 1    ? "purecfma"
          : width == 16 ? "avx2128"
          : width == 32 ? "avx2"
                        : "avx512f");
}

const std::string &unavailable() { return library().why; }
const Addresses &addresses() { return library().all; }

double evaluate(const Builtin &row, DType d, const double *v) {
  if (row.cpu.empty()) return round_to(d, row.real(v));
  const std::string_view text = row.cpu_body[d == DType::F64];
  if (text.empty() || !unavailable().empty()) return bare(row, d, v);
  const Composite &body = cpu_body(row, d);
  return Walk{body, row, d, v}.at(body.body);
}

} // namespace elsewise::functions
