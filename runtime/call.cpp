// SPDX-License-Identifier: Apache-2.0
// What a call asks for: kinds, devices, the domain, and whether `out` suits it. It compiles nothing and looks at no
// pointer but those of 0-d host tensors.
#include "compiler/ir/axes.h"
#include "runtime/spec.h"
#include <algorithm>
#include <cstring>

namespace elsewise::api {

void append_tensor(const Arg &a, PlanKey &key) {
  key.push_back(int64_t(a.kind) | int64_t(a.dtype) << 8 | int64_t(a.device.kind) << 16 | int64_t(a.rank) << 24 |
                int64_t(a.device.ordinal) << 32);
  key.append(a.shape, a.shape + a.rank);
  key.append(a.stride, a.stride + a.rank);
}

void append_arguments(const Call &call, PlanKey &key) {
  for (const Arg &a : call.args) {
    if (a.kind == ArgKind::Tensor) append_tensor(a, key);
    else key.push_back(int64_t(a.kind));
  }
  key.push_back(int64_t(call.has_domain) | int64_t(call.has_device) << 1 | int64_t(call.has_window) << 2 |
                int64_t(call.device.kind) << 8 | int64_t(call.domain.size()) << 16 |
                int64_t(call.has_device ? call.device.ordinal : 0) << 32);
  if (call.has_domain) key.append(call.domain.begin(), call.domain.end());
  if (!call.has_window) return;
  key.push_back(int64_t(call.whole.size()));
  key.append(call.whole.begin(), call.whole.end());
}

std::optional<DType> asked_dtype(const Call &call) {
  if (call.has_dtype) return call.dtype;
  if (call.out) return call.out->dtype;
  return std::nullopt;
}

std::string show_shape(DimsRef shape) {
  std::string s = "(";
  for (size_t d = 0; d < shape.size(); ++d) s += (d ? ", " : "") + std::to_string(shape[d]);
  return s + (shape.size() == 1 ? ",)" : ")");
}

std::string show_device(Device d) { return d.kind == DeviceKind::Cpu ? "cpu" : "cuda:" + std::to_string(d.ordinal); }

static double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double v;
  if (exponent == 31) v = mantissa ? __builtin_nan("") : __builtin_inf();
  else v = exponent ? __builtin_ldexp(1024 + mantissa, exponent - 25) : __builtin_ldexp(mantissa, -24);
  return bits >> 15 ? -v : v;
}

HostValue host_value_of(const Arg &a) {
  HostValue v{};
  auto read = [&]<class T>(T value) {
    std::memcpy(&value, a.data, sizeof value);
    return value;
  };
  switch (a.kind) {
  case ArgKind::Float:
    v.real = a.real;
    return v;
  case ArgKind::Int:
  case ArgKind::Bool:
    v.integer = a.integer;
    return v;
  case ArgKind::Unknown:
    return v;
  case ArgKind::Tensor:
    break;
  }
  switch (a.dtype) {
  case DType::Bool:
    v.integer = read(uint8_t()) != 0;
    break;
  case DType::U8:
    v.integer = read(uint8_t());
    break;
  case DType::I8:
    v.integer = read(int8_t());
    break;
  case DType::I16:
    v.integer = read(int16_t());
    break;
  case DType::I32:
    v.integer = read(int32_t());
    break;
  case DType::I64:
    v.integer = read(int64_t());
    break;
  case DType::U16:
    v.integer = read(uint16_t());
    break;
  case DType::U32:
    v.integer = read(uint32_t());
    break;
  case DType::U64:
    v.integer = read(uint64_t());
    break;
  case DType::F16:
    v.real = half_value(read(uint16_t()));
    break;
  case DType::BF16: {
    const uint32_t bits = uint32_t(read(uint16_t())) << 16;
    float f;
    std::memcpy(&f, &bits, sizeof f);
    v.real = f;
    break;
  }
  case DType::F32:
    v.real = read(float());
    break;
  case DType::F64:
    v.real = read(double());
    break;
  case DType::Index:
    break;
  }
  return v;
}

std::string wrong_rank(const Header &header, size_t rank) {
  const size_t named = header.axes.size();
  if (!header.present || (header.dots < 0 ? rank == named : rank >= named)) return "";
  std::string names;
  for (size_t a = 0; a <= named; ++a) {
    if (header.dots >= 0 && a == size_t(header.dots)) names += (names.empty() ? "" : ", ") + std::string("..");
    if (a < named) names += (names.empty() ? "" : ", ") + header.axes[a];
  }
  return "the rule names " + std::to_string(named) + (named == 1 ? " axis" : " axes") + " [" + names +
         "], the domain has " + std::to_string(rank) +
         (rank > named && named > 0 ? " (`..` takes the axes without a name: `[.., " + names + "]`)" : "");
}

std::string lacks_axes(const Spec &spec, const Signature &signature, size_t rank) {
  for (ExprId e = 0; e < spec.ast.exprs.size(); ++e) {
    if (spec.ast[e].kind != ExprKind::Read || spec.ast[e].dots < 0 || spec.names.of[e].binding != Binding::Argument)
      continue;
    const int axes = signature.args[spec.names.of[e].index].rank;
    if (!own_axes_have_places(spec.ast[e], axes, int(rank)))
      return "`" + spec.names.arguments[spec.names.of[e].index] + "` has " + std::to_string(axes) +
             " axes and the domain " + std::to_string(rank) +
             ", so `..` in its index stands for axes without a position";
  }
  return "";
}

namespace {

std::string quoted(const std::string &name) { return "`" + name + "`"; }

template <class F> std::string list(const std::vector<std::string> &names, F include) {
  std::string s;
  for (size_t a = 0; a < names.size(); ++a)
    if (include(a)) s += (s.empty() ? "" : ", ") + quoted(names[a]);
  return s;
}

Result<Request> refuse(const Spec &spec, Fault f, std::string message) {
  return fault<Request>(f, std::move(message), spec);
}

// Every argument there, each of a kind that has a place.
std::string missing_arguments(const Spec &spec, const Call &call) {
  const auto &names = spec.names.arguments;
  auto missing = [&](size_t a) { return a >= call.args.size() || call.args[a].kind == ArgKind::Unknown; };
  const std::string absent = list(names, missing);
  if (absent.empty()) return "";
  const bool one = absent.find(',') == std::string::npos;
  std::string text = (one ? "missing argument " : "missing arguments ") + absent;
  for (size_t a = 0; a < names.size(); ++a)
    if (missing(a)) // the rule's own names, which need no argument
      if (const std::string near = did_you_mean(names[a], {"i", "n"}); !near.empty())
        text += "; did you mean `" + near + "`" + (names[a] == near ? "" : " for " + quoted(names[a])) + ", " +
                (near == "n" ? "the number of elements" : "the position") + "?";
  const std::string given = list(names, [&](size_t a) { return !missing(a); });
  return text + (given.empty() ? "" : "; given: " + given);
}

bool zero_dim(const Arg &a) { return a.kind == ArgKind::Tensor && a.rank == 0; }

Result<Request> choose_device(const Spec &spec, const Call &call, Request request) {
  const auto &names = spec.names.arguments;
  const Arg *decides = nullptr;
  std::string decider;
  auto consider = [&](auto &&eligible) {
    for (size_t a = 0; a < call.args.size() && !decides; ++a)
      if (call.args[a].kind == ArgKind::Tensor && eligible(call.args[a]))
        decides = &call.args[a], decider = quoted(names[a]);
  };
  if (!call.has_device) {
    consider([](const Arg &a) { return a.rank > 0; });
    consider([](const Arg &a) { return a.device.kind == DeviceKind::Cuda; });
    if (!decides && call.out) decides = call.out, decider = "`out`";
    consider([](const Arg &) { return true; });
  }
  if (call.has_device) request.device = call.device, decider = "`device=`";
  else if (decides) request.device = decides->device;

  request.host_scalar.assign(call.args.size(), false);
  for (size_t a = 0; a < call.args.size(); ++a) {
    const Arg &arg = call.args[a];
    if (arg.kind != ArgKind::Tensor || arg.device == request.device) continue;
    if (zero_dim(arg) && arg.device.kind == DeviceKind::Cpu) request.host_scalar[a] = true;
    else
      return refuse(spec, Fault::Value,
                    quoted(names[a]) + " is on " + show_device(arg.device) + ", " + decider + " on " +
                        show_device(request.device) + "; move one: `" + names[a] + ".to(\"" +
                        show_device(request.device) + "\")`");
  }
  if (call.out && call.out->device != request.device)
    return refuse(spec, Fault::Value,
                  "`out` is on " + show_device(call.out->device) + ", " + decider + " on " +
                      show_device(request.device));
  Result<Request> result;
  result.value = std::move(request);
  return result;
}

// An argument that `len` asks for an axis which it lacks; empty: there is none.
std::string missing_axis(const Spec &spec, const Call &call) {
  for (const Resolved &r : spec.names.of) {
    if (r.binding != Binding::ArgumentLength) continue;
    const Arg &arg = call.args[r.index];
    const std::string &name = spec.names.arguments[r.index];
    if (arg.kind != ArgKind::Tensor) return "`len(" + name + ")` needs a tensor, and `" + name + "` is a number";
    const int64_t dim = from_left(r.dim, size_t(arg.rank));
    if (dim < 0 || dim >= arg.rank)
      return "`len(" + name + ", " + std::to_string(r.dim) + ")`: `" + name + "` has " +
             (arg.rank == 0 ? "no axes"
                            : std::to_string(arg.rank) + (arg.rank == 1 ? " axis" : " axes") + ", shape " +
                                  show_shape(shape_of(arg)));
  }
  return "";
}

// What in a window cannot be known, or would not be what it is in the whole; empty: nothing.
std::string unclear_in_window(const Spec &spec, const Call &call, const Request &request) {
  const auto &names = spec.names;
  for (size_t a = 0; a < names.indexed.size(); ++a)
    if (names.indexed[a] && names.elementwise[a])
      return quoted(names.arguments[a]) +
             " is read elementwise and at indices, and in a window it would have to be a part "
             "and the whole; give the whole one under a second name";
  for (const Resolved &r : names.of) {
    if (r.binding != Binding::ArgumentLength || !names.elementwise[r.index]) continue;
    const Arg &arg = call.args[r.index];
    const int64_t dim = from_left(r.dim, size_t(arg.rank)), axis = dim - arg.rank + int64_t(request.domain.size());
    if (axis < 0 || arg.shape[dim] != 1 || request.domain[size_t(axis)] != 1 || request.whole[size_t(axis)] == 1)
      continue;
    const std::string &name = names.arguments[r.index];
    return "`len(" + name + (r.dim ? ", " + std::to_string(r.dim) : "") + ")`: the window is 1 long on axis " +
           std::to_string(axis) + ", so " + quoted(name) +
           " of length 1 may be a part of the whole or be repeated along it; ask for the domain's own length, `n` or "
           "that "
           "of a named axis";
  }
  return "";
}

// The call's tensor, if it has exactly one.
const Arg *only_tensor(const Call &call) {
  const Arg *only = nullptr;
  for (const Arg &arg : call.args)
    if (arg.kind == ArgKind::Tensor) {
      if (only) return nullptr;
      only = &arg;
    }
  return only;
}

// `shape=`; else the broadcast of the tensors read elementwise, 0-d ones only if there is no other; else the shape of
// `out`; else that of the only tensor, which in a window is the whole's.
Result<Request> choose_domain(const Spec &spec, const Call &call, Request request) {
  const auto &names = spec.names.arguments;
  llvm::SmallVector<DimsRef, 8> shapes;
  llvm::SmallVector<size_t, 8> whose;
  bool any = false;
  for (size_t a = 0; a < call.args.size(); ++a) {
    if (!spec.names.elementwise[a]) continue; // it is asked for its lengths and takes no part
    any |= call.args[a].kind == ArgKind::Tensor;
    if (call.args[a].kind == ArgKind::Tensor && call.args[a].rank > 0)
      shapes.push_back(shape_of(call.args[a])), whose.push_back(a);
  }
  std::string from;
  if (call.has_domain) {
    request.domain.assign(call.domain.begin(), call.domain.end());
    from = "`shape=`";
    for (int64_t length : request.domain)
      if (length < 0)
        return refuse(spec, Fault::Value, "`shape=" + show_shape(ref(request.domain)) + "` has a negative length");
    for (size_t k = 0; k < shapes.size(); ++k)
      if (size_t axis; !broadcasts_to(shapes[k], ref(request.domain), axis))
        return refuse(spec, Fault::Value,
                      quoted(names[whose[k]]) + " has shape " + show_shape(shapes[k]) +
                          ", which does not broadcast to `shape=" + show_shape(ref(request.domain)) + "`");
  } else if (any) {
    ShapeConflict conflict;
    const auto domain = broadcast({shapes.data(), shapes.size()}, conflict);
    if (!domain) {
      const DimsRef a = shapes[conflict.first], b = shapes[conflict.second];
      return refuse(spec, Fault::Value,
                    quoted(names[whose[conflict.first]]) + " has shape " + show_shape(a) + " and " +
                        quoted(names[whose[conflict.second]]) + " " + show_shape(b) + ": lengths " +
                        std::to_string(a[a.size() - conflict.from_right]) + " and " +
                        std::to_string(b[b.size() - conflict.from_right]) + " on axis -" +
                        std::to_string(conflict.from_right) + " do not broadcast");
    }
    request.domain = *domain;
    from = shapes.size() > 1 ? "the arguments broadcast to"
           : shapes.empty()  ? "the 0-d arguments have"
                             : quoted(names[whose[0]]) + " has";
  } else if (call.out) {
    request.domain.assign(call.out->shape, call.out->shape + call.out->rank);
  } else if (const Arg *only = only_tensor(call); only && !call.has_window) {
    request.domain.assign(only->shape, only->shape + only->rank);
    from = "the only tensor has";
  } else {
    return refuse(spec, Fault::Value,
                  call.has_window ? "no tensor says how much of `domain=" + show_shape(call.whole) +
                                        "` is computed; give `shape=` or `out=`"
                                  : "no tensor says which shape the result has; give `shape=` or `out=`");
  }
  if (call.out &&
      !std::equal(request.domain.begin(), request.domain.end(), call.out->shape, call.out->shape + call.out->rank))
    return refuse(spec, Fault::Value,
                  "`out` has shape " + show_shape(shape_of(*call.out)) + ", but " +
                      (call.has_domain ? "`shape=" + show_shape(ref(request.domain)) + "`"
                                       : from + " " + show_shape(ref(request.domain))));
  if (std::string why = wrong_rank(spec.ast.header, request.domain.size()); !why.empty())
    return refuse(spec, Fault::Value, why + ": shape " + show_shape(ref(request.domain)));
  if (std::string why = lacks_axes(spec, request.signature, request.domain.size()); !why.empty())
    return refuse(spec, Fault::Value, why + ": shape " + show_shape(ref(request.domain)));
  if (call.has_window) {
    const size_t rank = request.domain.size(), axes = call.whole.size();
    auto counted = [](size_t n) { return std::to_string(n) + (n == 1 ? " axis" : " axes"); };
    for (const int64_t length : call.whole)
      if (length < 0)
        return refuse(spec, Fault::Value, "`domain=" + show_shape(call.whole) + "` has a negative length");
    if (rank != axes)
      return refuse(spec, Fault::Value,
                    "`domain=" + show_shape(call.whole) + "` has " + counted(axes) + ", and what is computed " +
                        counted(rank) + ", shape " + show_shape(ref(request.domain)) +
                        "; give `shape=` with an extent for each axis of the domain");
    if (const auto count = element_count(call.whole); !count || *count > most_positions)
      return refuse(spec, Fault::Overflow, "`domain=" + show_shape(call.whole) + "` has more than 2**60 positions");
    request.whole.assign(call.whole.begin(), call.whole.end());
    if (std::string why = unclear_in_window(spec, call, request); !why.empty())
      return refuse(spec, Fault::Value, std::move(why));
  }
  if (spec.names.needs_rank) request.signature.rank = int(request.domain.size());
  const auto count = element_count(ref(request.domain));
  if (!count || *count > INT64_MAX / 16)
    return refuse(spec, Fault::Overflow, "shape " + show_shape(ref(request.domain)) + " has too many elements");
  request.count = *count;
  Result<Request> result;
  result.value = std::move(request);
  return result;
}

} // namespace

std::string wrong_window(const Plan &plan, const Call &call) {
  if (!plan.in_window) return "";
  if (!call.offset.empty() && call.offset.size() != plan.whole.size())
    return "`offset` " + show_shape(call.offset) + " needs one entry for each of the " +
           std::to_string(plan.whole.size()) + " axes of `domain`";
  for (size_t d = 0; d < plan.whole.size(); ++d) {
    const int64_t offset = call.offset.empty() ? 0 : call.offset[d];
    const __int128 end = __int128(offset) + plan.shape[d];
    if (offset < 0)
      return "`offset` is " + std::to_string(offset) + " on axis " + std::to_string(d) +
             ": a window begins at 0 or after it";
    if (end > plan.whole[d])
      return "the window leaves its domain on axis " + std::to_string(d) + ": offset " + std::to_string(offset) +
             " and extent " + std::to_string(plan.shape[d]) + " are beyond the length " +
             std::to_string(plan.whole[d]) + " of `domain=" + show_shape(ref(plan.whole)) + "`";
  }
  return "";
}

Result<Request> read_call(const Spec &spec, const Call &call) {
  const auto &names = spec.names.arguments;
  if (const std::string text = missing_arguments(spec, call); !text.empty()) return refuse(spec, Fault::Type, text);
  if (call.args.size() > most_arguments)
    return refuse(spec, Fault::Value,
                  "the rule has " + std::to_string(call.args.size()) + " arguments, at most " +
                      std::to_string(most_arguments) + " are taken");
  if (const std::string text = missing_axis(spec, call); !text.empty()) return refuse(spec, Fault::Type, text);
  for (size_t a = 0; a < call.args.size(); ++a) // proofs of bounds count on it
    for (int32_t d = 0; call.args[a].kind == ArgKind::Tensor && d < call.args[a].rank; ++d)
      if (call.args[a].shape[d] > most_positions)
        return refuse(spec, Fault::Overflow,
                      quoted(names[a]) + " has shape " + show_shape(shape_of(call.args[a])) + ": an axis is too long");
  Request request;
  for (size_t a = 0; a < names.size(); ++a) {
    const Arg &arg = call.args[a];
    const bool counted = arg.kind == ArgKind::Tensor && spec.names.indexed[a];
    request.signature.args.push_back({arg.kind, arg.kind == ArgKind::Tensor ? arg.dtype : DType::F32, zero_dim(arg),
                                      int8_t(counted ? std::min(arg.rank, 64) : -1)});
  }
  if (call.out && call.out->kind != ArgKind::Tensor) return refuse(spec, Fault::Type, "`out` is not a tensor");
  if (call.out && call.has_dtype && call.dtype != call.out->dtype)
    return refuse(spec, Fault::Type,
                  std::string("`dtype=") + spelling(call.dtype) + "` and an `out` of " + spelling(call.out->dtype) +
                      "; leave one away");
  request.signature.out = asked_dtype(call);
  auto placed = choose_device(spec, call, std::move(request));
  return placed ? choose_domain(spec, call, std::move(placed.value)) : std::move(placed);
}

} // namespace elsewise::api
