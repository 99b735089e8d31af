// SPDX-License-Identifier: Apache-2.0
// The driver `ewc`: a rule and a signature from the command line, one stage of it as text. It sees only the facade and
// decides nothing about a rule.
#include "runtime/elsewise.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>

namespace elsewise {
namespace {

namespace cl = llvm::cl;

enum class From : uint8_t { Suffix, Rule, Ir };
enum Exit : int { Success = 0, WrongSpec = 1, WrongUse = 2, WrongEnvironment = 3 };

constexpr const char *overview = "ewc: look at a rule at every stage of its compilation\n\n"
                                 "  ewc -e 'i<n/4: x*0.5; else x' --arg=x:f32 --emit=cuda\n"
                                 "  ewc rule.ew --arg=gain:float --emit=ir --print-after=ranges\n"
                                 "  ewc kernel.ir --passes=fold,ranges --emit=ir\n"
                                 "  ewc --format -i rule.ew\n\n"
                                 "Arguments that --arg does not name are f32 tensors. Exit status: 0 fine, 1 the rule "
                                 "is wrong, 2 the command line is, 3 something is missing on\n"
                                 "this computer (NVRTC, a CPU name).\n";

struct Options {
  cl::OptionCategory category{"Options"};
  cl::opt<std::string> file{cl::Positional, cl::desc("file (- reads standard input)"), cl::value_desc("file"),
                            cl::cat(category)};
  cl::opt<std::string> expression{"e", cl::desc("the rule itself, instead of a file"), cl::value_desc("rule"),
                                  cl::cat(category)};
  cl::list<std::string> args{"arg",
                             cl::desc("kind of an argument: a dtype for a tensor (f32; with its rank f32[2], f32[0], "
                                      "bool[1]), or int, float, bool for a parameter"),
                             cl::value_desc("name:kind"), cl::cat(category)};
  cl::opt<api::Stage> stage{"emit", cl::desc("what to print"), cl::init(api::Stage::Cuda), cl::cat(category),
                            cl::values(clEnumValN(api::Stage::Tokens, "tokens", "what the lexer sees"),
                                       clEnumValN(api::Stage::Ast, "ast", "syntax tree"),
                                       clEnumValN(api::Stage::Ir, "ir", "typed IR, scheduled"),
                                       clEnumValN(api::Stage::Cuda, "cuda", "CUDA C (the default)"),
                                       clEnumValN(api::Stage::Ptx, "ptx", "PTX, by NVRTC"),
                                       clEnumValN(api::Stage::Cubin, "cubin", "cubin, by NVRTC; give -o"),
                                       clEnumValN(api::Stage::Llvm, "llvm", "optimised LLVM IR for the CPU"),
                                       clEnumValN(api::Stage::Asm, "asm", "assembly for the CPU"),
                                       clEnumValN(api::Stage::Torch, "torch", "plain torch source"))};
  cl::opt<std::string> print_after{"print-after", cl::desc("print the IR after a pass, or after each with `all`"),
                                   cl::value_desc("pass"), cl::cat(category)};
  cl::list<std::string> passes{"passes",
                               cl::CommaSeparated,
                               cl::ValueOptional,
                               cl::desc("run these passes alone, in this order"),
                               cl::value_desc("pass,pass"),
                               cl::cat(category)};
  cl::opt<From> from{"from", cl::desc("what is given, if the file's name does not say it"), cl::init(From::Suffix),
                     cl::cat(category),
                     cl::values(clEnumValN(From::Rule, "rule", "a rule"),
                                clEnumValN(From::Ir, "ir", "IR, as `--emit=ir` prints it (a file named .ir)"))};
  cl::opt<bool> verify_each{"verify-each", cl::desc("verify the IR after each pass"), cl::cat(category)};
  cl::opt<std::string> arch{
      "arch", cl::desc("GPU (sm_90; default: the one here, else sm_80), or CPU for llvm and asm (default: this one)"),
      cl::value_desc("arch"), cl::cat(category)};
  cl::opt<bool> format{"format", cl::desc("print the rule in the language's style, or rewrite its file with -i"),
                       cl::cat(category)};
  cl::opt<bool> in_place{"in-place", cl::desc("as if `out` were the first tensor; with --format: rewrite the file"),
                         cl::cat(category)};
  cl::opt<bool> window{"window", cl::desc("emit the form of a part of a domain, as `domain=` in a call"),
                       cl::cat(category)};
  cl::alias in_place_letter{"i", cl::desc("--in-place"), cl::aliasopt(in_place), cl::cat(category)};
  cl::opt<int> rows{"rows", cl::desc("emit the form with that many row axes"), cl::value_desc("axes"), cl::init(0),
                    cl::cat(category)};
  cl::opt<bool> any_length{"any-length", cl::desc("emit the form whose indexes have 64 bits"), cl::cat(category)};
  cl::opt<bool> flat{"flat", cl::desc("emit the form of short rows"), cl::cat(category)};
  cl::opt<std::string> out{"out", cl::desc("dtype of the result, as `dtype=` in a call"), cl::value_desc("dtype"),
                           cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("write to a file"), cl::value_desc("file"), cl::cat(category)};
};

int usage(const std::string &message) {
  llvm::errs() << "ewc: " << message << "\n";
  return WrongUse;
}

/// `known`: the tensor's rank, if it stands there.
std::optional<ArgType> parse_kind(llvm::StringRef kind, int &known) {
  if (kind == "int") return ArgType{ArgKind::Int};
  if (kind == "float") return ArgType{ArgKind::Float};
  if (kind == "bool") return ArgType{ArgKind::Bool};
  unsigned rank = 1;
  auto [name, rest] = kind.split('[');
  if (name.size() != kind.size() &&
      (!rest.consume_back("]") || (rest.empty() ? rank = 0 : rest.getAsInteger(10, rank))))
    return std::nullopt;
  if (name.size() != kind.size() && rank < 64) known = int(rank);
  if (const auto dtype = parse_dtype(std::string_view(name.data(), name.size())))
    return ArgType{ArgKind::Tensor, *dtype, rank == 0};
  return std::nullopt;
}

// Fills the request's signature and ranks; empty if it worked.
std::string parse_signature(const Options &options, const api::Spec &spec, api::EmitRequest &request) {
  Signature &signature = request.signature;
  const auto names = api::arguments(spec);
  signature.args.resize(names.size());
  request.ranks.resize(names.size(), -1);
  for (const std::string &text : options.args) {
    const auto [name, kind] = llvm::StringRef(text).split(':');
    const auto at = std::find(names.begin(), names.end(), name.str());
    if (at == names.end()) {
      std::string list;
      for (const std::string &n : names) list += (list.empty() ? "`" : ", `") + n + "`";
      return "--arg=" + text + ": the rule has no argument `" + name.str() + "`" +
             (list.empty() ? "" : "; it has " + list);
    }
    const auto type = parse_kind(kind, request.ranks[at - names.begin()]);
    if (!type)
      return "--arg=" + text + ": `" + kind.str() + "` is neither a dtype (f32, i64, bool[1]) nor int, float, bool";
    signature.args[at - names.begin()] = *type;
  }
  if (!options.out.empty()) {
    signature.out = parse_dtype(options.out.getValue());
    if (!signature.out) return "--out=" + options.out + " is not a dtype";
  }
  return "";
}

int write(const Options &options, const std::string &text) {
  if (options.output.empty() || options.output == "-") {
    llvm::outs() << text;
    if (!text.empty() && text.back() != '\n' && options.stage != api::Stage::Cubin) llvm::outs() << "\n";
    llvm::outs().flush();
    if (!llvm::outs().has_error()) return Success;
    llvm::outs().clear_error();
    return usage("the output cannot be written");
  }
  std::error_code error;
  llvm::raw_fd_ostream file(options.output, error);
  if (!error) file << text, file.close(), error = file.error();
  file.clear_error();
  return error ? usage(options.output + ": " + error.message()) : Success;
}

/// Puts `text` in the place of a file, which keeps its mode and is at no time half written. What a link leads to is
/// rewritten, not the link.
int rewrite(const std::string &file, const std::string &text) {
  namespace fs = llvm::sys::fs;
  llvm::SmallString<128> real, temporary;
  std::error_code error = fs::real_path(file, real);
  const auto mode = error ? llvm::ErrorOr<fs::perms>(error) : fs::getPermissions(real);
  if (!error) error = mode.getError();
  int descriptor = -1;
  if (!error) error = fs::createUniqueFile(real + ".%%%%%%%%", descriptor, temporary);
  if (error) return usage(file + ": " + error.message());
  {
    llvm::raw_fd_ostream out(descriptor, true);
    out << text;
    out.close();
    error = out.error();
    out.clear_error();
  }
  if (!error) error = fs::setPermissions(temporary, *mode);
  if (!error) error = fs::rename(temporary, real);
  if (error) fs::remove(temporary);
  return error ? usage(file + ": " + error.message()) : Success;
}

int fail(api::Fault fault, const std::string &message) {
  switch (fault) {
  case api::Fault::Spec:
    llvm::errs() << message << "\n";
    return WrongSpec;
  case api::Fault::Environment:
    llvm::errs() << "ewc: " << message << "\n";
    return WrongEnvironment;
  case api::Fault::Type:
  case api::Fault::Value:
    return usage(message);
  default:
    llvm::errs() << "ewc: " << message << "\n";
    return WrongSpec;
  }
}

int drive(const Options &options) {
  const bool given = options.expression.getNumOccurrences() > 0;
  if (given == (options.file.getNumOccurrences() > 0))
    return usage(given ? "give a file or -e, not both" : "no rule; give a file, - for standard input, or -e 'rule'");
  std::string text = options.expression, name = "<spec>";
  if (!given) {
    auto read = llvm::MemoryBuffer::getFileOrSTDIN(options.file, true);
    if (!read) return usage(options.file + ": " + read.getError().message());
    text = (*read)->getBuffer().str();
    name = options.file == "-" ? "<stdin>" : options.file.getValue();
  }
  if (options.format) {
    if (options.in_place && (given || options.file == "-"))
      return usage("--format --in-place rewrites a file: name one");
    auto formatted = api::format(text, name);
    if (!formatted) return fail(formatted.fault, formatted.message);
    if (!options.in_place) return write(options, formatted.value);
    if (formatted.value.empty() || formatted.value.back() != '\n') formatted.value += "\n";
    return formatted.value == text ? Success : rewrite(options.file, formatted.value);
  }
  api::EmitRequest request;
  request.stage = options.stage, request.arch = options.arch, request.in_place = options.in_place,
  request.window = options.window, request.rows = options.rows, request.flat = options.flat;
  request.any_length = options.any_length;
  request.print_after = options.print_after, request.verify_each = options.verify_each;
  if (options.passes.getNumOccurrences()) {
    request.passes.emplace(options.passes.begin(), options.passes.end());
    std::erase(*request.passes, "");
  }
  const bool suffix = options.from == From::Suffix && !given && llvm::StringRef(options.file).ends_with(".ir");
  if (suffix || options.from == From::Ir) {
    if (options.args.getNumOccurrences() || !options.out.empty())
      return usage("a kernel given as IR says itself what its arguments and its result are");
    auto emitted = api::emit_ir(text, name, request);
    return emitted ? write(options, emitted.value) : fail(emitted.fault, emitted.message);
  }
  if (options.stage == api::Stage::Tokens || options.stage == api::Stage::Ast) {
    auto shown = api::emit_syntax(text, name, options.stage);
    return shown ? write(options, shown.value) : fail(shown.fault, shown.message);
  }
  auto compiled = api::compile(text, name);
  if (!compiled) return fail(compiled.fault, compiled.message);
  for (const api::Diagnostic &warning : api::warnings(*compiled.value))
    llvm::errs() << warning.rendered << (llvm::StringRef(warning.rendered).ends_with("\n") ? "" : "\n");

  if (std::string wrong = parse_signature(options, *compiled.value, request); !wrong.empty()) return usage(wrong);
  auto emitted = api::emit(*compiled.value, request);
  if (!emitted && emitted.fault == api::Fault::Type && !emitted.diagnostics.empty()) { // of a call; here it has a place
    for (const api::Diagnostic &d : emitted.diagnostics) llvm::errs() << d.rendered;
    return WrongSpec;
  }
  if (!emitted) return fail(emitted.fault, emitted.message);
  return write(options, emitted.value);
}

} // namespace
} // namespace elsewise

extern "C" int ew_main(int argc, char **argv) noexcept {
  namespace cl = llvm::cl;
  // LLVM's own options (print-after is one) mean nothing here: they go, so that ours are the only ones, in --help too.
  llvm::SmallVector<cl::Option *, 0> foreign;
  for (auto &entry : cl::getRegisteredOptions())
    if (!entry.second->Subs.contains(&cl::SubCommand::getAll()) && entry.first != "version")
      foreign.push_back(entry.second); // --help and --version stay
  for (cl::Option *option : foreign) option->removeArgument();
  const elsewise::Options options;
  cl::SetVersionPrinter([](llvm::raw_ostream &out) { out << "ewc " << elsewise::api::version() << "\n"; });
  if (!cl::ParseCommandLineOptions(argc, argv, elsewise::overview, &llvm::errs(), nullptr, nullptr, true))
    return elsewise::WrongUse;
  return elsewise::drive(options);
}
