// SPDX-License-Identifier: Apache-2.0
// Specs: parsed and checked once, interned by text, and the lock of everything they cache. Nothing here looks at a
// call.
#include "runtime/spec.h"
#include "compiler/check/suspicious.h"
#include "compiler/ir/rows.h"
#include "compiler/lex/lex.h"
#include "compiler/parse/parser.h"
#include "runtime/cpu/engine.h"
#include <algorithm>
#include <condition_variable>
#include <pthread.h>

namespace elsewise::api {

Counts counts;

namespace {

// All specs alive, by text, and the last ones, kept so that a rule written inside a loop is compiled once. Never
// destroyed: specs may die after it would.
struct Library {
  std::mutex mutex;
  // See ForkGate. A plain mutex, which the child of a fork may unlock; a reader-writer lock remembers the parent's
  // thread.
  std::mutex gate;
  std::condition_variable left;
  int inside = 0;
  std::unordered_map<std::string_view, std::weak_ptr<const Spec>> specs; // keys: the specs' own text
  std::list<SpecRef> last;
};
constexpr size_t kept = 64;

Library &library() {
  static Library *l = [] {
    auto *made = new Library;
    (void)compile_mutex(); // registers its own handlers first, so that fork() waits for our gate before it takes that
                           // lock
    pthread_atfork(
        [] {
          std::unique_lock lock(library().gate);
          library().left.wait(lock, [] { return library().inside == 0; });
          lock.release();
        },
        [] { library().gate.unlock(); }, [] { library().gate.unlock(); });
    return made;
  }();
  return *l;
}

std::string one_line(std::string_view text) {
  std::string line;
  for (char c : text) {
    const bool blank = c == '\n' || c == '\r' || c == '\t' || c == ' ';
    if (!blank) line += c;
    else if (!line.empty() && line.back() != ' ') line += ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  constexpr size_t longest = 60;
  if (line.size() > longest) {
    size_t cut = longest;
    while (cut > 0 && (uint8_t(line[cut]) & 0xc0) == 0x80) --cut; // not inside a character
    line.resize(cut);
    line += " …";
  }
  return line;
}

Result<SpecRef> build(std::string_view text, std::string_view file) {
  auto spec = std::make_shared<Spec>(std::string(text), std::string(file));
  Sink sink;
  const Tokens tokens = lex(spec->source, sink);
  spec->ast = parse(spec->source, tokens, sink);
  spec->names = resolve(spec->ast, sink);
  Signature unknown;
  unknown.of_call = false;
  unknown.args.resize(spec->names.arguments.size());
  (void)specialise(spec->source, spec->ast, spec->names, unknown, sink);
  warn_suspicious(spec->source, spec->ast, spec->names, sink);
  spec->shown = one_line(text);
  if (sink.failed()) return spec_fault<SpecRef>(sink, spec->source);
  spec->warnings = convert(sink.take(), spec->source, false);
  Result<SpecRef> result;
  result.value = std::move(spec);
  return result;
}

} // namespace

ForkGate::ForkGate() {
  const std::lock_guard lock(library().gate);
  ++library().inside;
}
ForkGate::~ForkGate() {
  const std::lock_guard lock(library().gate);
  if (--library().inside == 0) library().left.notify_all();
}
LibraryLock::LibraryLock() { library().mutex.lock(); }
LibraryLock::~LibraryLock() { library().mutex.unlock(); }

Spec::~Spec() {
  LibraryLock lock;
  auto &specs = library().specs;
  auto found = specs.find(source.text());
  if (found != specs.end() && found->second.expired() && found->first.data() == source.text().data())
    specs.erase(found);
}

std::vector<Diagnostic> convert(const std::vector<elsewise::Diagnostic> &from, const Source &source, bool errors) {
  std::vector<Diagnostic> to;
  for (const elsewise::Diagnostic &d : from) {
    Diagnostic made;
    made.code = slug(d.code);
    made.error = d.severity == Severity::Error;
    if (errors && !made.error) continue; // what is wrong comes first; the rest may be due to it
    made.message = d.message, made.note = d.note;
    made.rendered = render(d, source);
    const LineColumn begin = source.position(d.where.begin), end = source.position(d.where.end);
    made.line = begin.line, made.column = begin.column, made.end_line = end.line, made.end_column = end.column;
    for (const elsewise::FixIt &f : d.fixits)
      made.fixits.push_back({f.where.begin, f.where.end, apart(f, source), f.label});
    to.push_back(std::move(made));
  }
  return to;
}

Result<SpecRef> compile(std::string_view text, std::string_view file) noexcept try {
  std::list<SpecRef> dropped; // dies after the lock: a spec's end takes it too
  auto interned = [&]() -> SpecRef {
    auto &specs = library().specs;
    auto &last = library().last;
    auto found = specs.find(text);
    SpecRef spec = found == specs.end() ? nullptr : found->second.lock();
    if (!spec) return nullptr;
    if (last.empty() || last.front() != spec) {
      auto at = std::find(last.begin(), last.end(), spec);
      if (at != last.end()) last.splice(last.begin(), last, at);
      else last.push_front(spec);
      if (last.size() > kept) dropped.splice(dropped.begin(), last, std::prev(last.end()));
    }
    return spec;
  };
  Result<SpecRef> result;
  {
    LibraryLock lock;
    if ((result.value = interned())) return result;
  }
  result = build(text, file);
  if (!result) return result;
  LibraryLock lock;
  if (SpecRef other = interned()) { // another thread was faster
    dropped.push_back(std::move(result.value));
    result.value = std::move(other);
    return result;
  }
  const std::string_view key = result.value->source.text();
  library().specs.erase(key); // a dying spec's
  library().specs.emplace(key, result.value);
  (void)interned();
  return result;
} catch (const std::exception &error) {
  return crashed<SpecRef>(error);
}

std::string_view text(const Spec &spec) noexcept { return spec.source.text(); }
std::span<const std::string> arguments(const Spec &spec) noexcept { return spec.names.arguments; }
Allowance allowance(const Spec &spec) noexcept {
  constexpr int64_t most = 1 << 20;
  const Ast &ast = spec.ast;
  std::vector<int64_t> ulp(ast.exprs.size());
  Allowance result;
  for (ExprId e = 0; e < ast.exprs.size(); ++e) {
    const Expr &x = ast[e];
    const bool power = x.kind == ExprKind::Binary && x.op == Operator::Pow;
    for (uint32_t k = 0; k < values(ast, spec.names, e); ++k) ulp[e] += ulp[ast.child(e, k)];
    if (const Builtin *const of = power ? &builtins()[power_row()] : called(ast, spec.names, e)) {
      const Builtin &row = *of;
      if (row.with_torch == Sameness::Ulp) {
        ulp[e] += 2 * int64_t(row.ulp);
        if (const std::string name(row.name);
            std::find(result.functions.begin(), result.functions.end(), name) == result.functions.end())
          result.functions.push_back(name);
      }
    }
    ulp[e] = std::min(ulp[e], most);
  }
  for (const SpecPiece &piece : ast.pieces) result.ulp = std::max(result.ulp, ulp[piece.value]);
  if (result.ulp == 0) result.functions.clear();
  return result;
}

std::span<const Diagnostic> warnings(const Spec &spec) noexcept { return spec.warnings; }

void clear_cache() noexcept try {
  std::list<SpecRef> dropped;
  std::vector<SpecRef> alive;
  std::vector<std::shared_ptr<Plan>> plans;
  std::vector<std::shared_ptr<Variant>> variants;
  LibraryLock lock;
  for (auto &[text, weak] : library().specs)
    if (SpecRef spec = weak.lock()) alive.push_back(std::move(spec));
  for (const SpecRef &spec : alive) {
    for (auto at = spec->plans.begin(); at != spec->plans.end();)
      if (at->second.use_count() == 1) plans.push_back(std::move(at->second)), at = spec->plans.erase(at);
      else ++at;
  }
  plans.clear(); // with them their hold on variants
  for (const SpecRef &spec : alive)
    for (Typing &typing : spec->typings)
      std::erase_if(typing.variants, [&](std::shared_ptr<Variant> &v) {
        if (v.use_count() != 1) return false;
        variants.push_back(std::move(v));
        return true;
      });
  dropped.swap(library().last);
} catch (const std::exception &) { // out of memory: then nothing was dropped
}

} // namespace elsewise::api
