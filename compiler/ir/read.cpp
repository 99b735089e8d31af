// SPDX-License-Identifier: Apache-2.0
// Reads the IR line by line. What a line means for the rest of the kernel it leaves to the verifier.
#include "compiler/ir/read.h"
#include "compiler/ir/arithmetic.h"
#include "grammar/builtins.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <optional>
#include <unordered_map>

namespace elsewise {
namespace {

constexpr std::string_view accesses[] = {"absent", "vector", "scalar", "broadcast", "strided", "column", "tiled"};
constexpr uint64_t most_axes = 64;

bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || uint8_t(c) >= 0x80; }
std::string ticked(std::string_view s) { return "`" + std::string(s) + "`"; }

class Reader {
public:
  Reader(const Source &source, Sink &sink) : source(source), sink(sink), text(source.text()) {}

  Kernel read() {
    for (uint32_t begin = 0; begin < text.size();) {
      const size_t newline = text.find('\n', begin);
      end = newline == text.npos ? uint32_t(text.size()) : uint32_t(newline);
      const uint32_t next = end + 1;
      while (end > begin && (text[end - 1] == ' ' || text[end - 1] == '\t' || text[end - 1] == '\r')) --end;
      at = begin, wrong = false;
      blanks();
      if (at < end && text[at] != '#') line();
      begin = next;
    }
    at = end = uint32_t(text.size()), wrong = false;
    if (!headed) expected("`kernel`");
    k.guards.resize(std::max(k.guards.size(), k.bodies.size()));
    if (!sink.failed()) verified();
    return std::move(k);
  }

private:
  // The line's text. After the first fault of a line nothing is read from it and every answer is a harmless one.

  void blanks() {
    while (at < end && (text[at] == ' ' || text[at] == '\t')) ++at;
  }
  bool done() { return blanks(), wrong || at >= end; }

  uint32_t word_end() const {
    uint32_t to = at;
    if (to < end && letter(text[to]))
      while (to < end &&
             (letter(text[to]) || digit(text[to]) || (text[to] == '-' && to + 1 < end && letter(text[to + 1]))))
        ++to;
    return to;
  }
  /// What stands here, as a person would name it: a word, a number, a node, or one character.
  Span here() {
    blanks();
    uint32_t to = word_end();
    if (to == at && to < end) {
      if (text[to] == '%' || text[to] == '-') ++to;
      while (to < end && digit(text[to])) ++to;
      if (to == at) ++to;
    }
    return {at, to};
  }

  void fault(Code code, Span where, std::vector<std::string> arguments) {
    if (!wrong) sink.report(code, where, std::move(arguments));
    wrong = true;
  }
  void expected(std::string what) {
    const Span found = here();
    const std::string seen = found.begin == found.end
                                 ? headed || end < text.size() ? "the end of the line" : "the end of the text"
                                 : ticked(source.slice(found));
    fault(Code::IrExpected, found, {std::move(what), seen});
  }

  /// Takes `mark` if it stands here: a whole word, or signs.
  bool is(std::string_view mark) {
    if (done() || text.substr(at, end - at).substr(0, mark.size()) != mark) return false;
    if (letter(mark[0]) && word_end() != at + mark.size()) return false;
    at += uint32_t(mark.size());
    return true;
  }
  void want(std::string_view mark) {
    if (!is(mark)) expected(ticked(mark));
  }
  std::string_view word(const char *what) {
    blanks();
    const uint32_t begin = at;
    if (wrong || word_end() == at) return expected(what), std::string_view();
    at = word_end();
    return text.substr(begin, at - begin);
  }

  template <class T> T number(T least, T most, const std::string &what) {
    blanks();
    const char *const from = text.data() + at, *const to = text.data() + end;
    T value = 0;
    if (wrong) return least;
    const auto [stop, error] = std::from_chars(from, to, value);
    if (error != std::errc() || value < least || value > most) return expected(what), least;
    at += uint32_t(stop - from);
    return value;
  }
  template <class T> T number(T least, T most) {
    return number<T>(least, most, "a number from " + std::to_string(least) + " to " + std::to_string(most));
  }

  std::string string(bool lines) {
    blanks();
    std::string s;
    want("\"");
    while (!wrong && at < end && text[at] != '"') {
      char c = text[at];
      if (c == '\\' && at + 1 < end) {
        const char escape = text[++at];
        c = escape == 'n' ? '\n' : escape == 't' ? '\t' : escape == 'r' ? '\r' : escape;
        const bool known = escape == '"' || escape == '\\' || (lines && c != escape) || escape == 't';
        if (!known)
          return --at, expected(lines ? "`\\n`, `\\r`, `\\t`, `\\\"` or `\\\\`" : "`\\t`, `\\\"` or `\\\\`"), s;
      } else if (uint8_t(c) < 0x20) {
        return expected("a character that can be seen"), s;
      }
      s += c, ++at;
    }
    if (wrong) return s;
    if (at >= end) return at = end, expected("a closing `\"`"), s;
    ++at;
    return s;
  }

  /// A name as it is, or in quotes where it is one of the text's own words.
  std::string name(const char *what) {
    blanks();
    if (at >= end || text[at] != '"') return std::string(word(what));
    const uint32_t begin = at;
    std::string s = string(false);
    const bool plain =
        !s.empty() && letter(s[0]) && std::all_of(s.begin(), s.end(), [](char c) { return letter(c) || digit(c); });
    if (!plain && !wrong) at = begin, expected(what);
    return s;
  }

  /// `list`: what could stand here, by name.
  template <class List> uint32_t known(const List &list, const char *what) {
    blanks();
    const uint32_t begin = at;
    const std::string s = name(what);
    if (wrong) return 0;
    const auto found = std::find_if(list.begin(), list.end(), [&](const auto &entry) { return entry.name == s; });
    if (found != list.end()) return uint32_t(found - list.begin());
    const Span where{begin, at};
    fault(Code::IrUnknown, where, {what + 3, s}); // without its article
    return 0;
  }
  uint32_t argument() { return known(k.arguments, "an argument"); }
  uint32_t axis(bool any = true) {
    if (any && is("flat")) return flat_axis;
    if (any && is("row")) return no_axis;
    if (any && is("list")) return list_axis;
    return known(k.axes, "an axis");
  }

  uint64_t id() {
    want("%");
    if (!wrong && (at >= end || !digit(text[at]))) expected("a node's number");
    return number<uint64_t>(0, ~uint64_t(0) >> 1);
  }
  NodeId node() {
    blanks();
    const uint32_t begin = at;
    if (!wrong && (at >= end || text[at] != '%')) return expected("a node"), 0;
    const uint64_t written = id();
    if (wrong) return 0;
    const auto found = nodes.find(written);
    if (found != nodes.end()) return found->second;
    fault(Code::IrUnknown, {begin, at}, {"node", "%" + std::to_string(written)});
    return 0;
  }
  std::vector<NodeId> node_list() {
    std::vector<NodeId> list;
    while (!done()) list.push_back(node());
    return list;
  }

  DType dtype(bool index) {
    blanks();
    const uint32_t begin = at;
    const std::string_view s = word("a dtype");
    for (int d = 0; d < dtype_count + index; ++d)
      if (s == spelling(DType(d))) return DType(d);
    if (!wrong) at = begin, expected("a dtype");
    return DType::F32;
  }
  /// `which`: the place in `words` of the word that stands here.
  template <class Words> size_t choice(const Words &words, const char *what) {
    blanks();
    const uint32_t begin = at;
    const std::string_view s = word(what);
    const auto found = std::find(std::begin(words), std::end(words), s);
    if (found != std::end(words)) return size_t(found - std::begin(words));
    if (!wrong) at = begin, expected(what);
    return 0;
  }
  Span place() {
    if (!is("@")) return {};
    const uint32_t from = number<uint32_t>(0, ~0u);
    want("..");
    return {from, number<uint32_t>(from, ~0u)};
  }
  void ended() {
    if (!done()) expected("the end of the line");
  }

  // Lines.

  void line() {
    const Span all{at, end};
    if (!headed) {
      head();
      head_line = all;
    } else if (text[at] == '%') {
      instruction(all);
    } else if (is("table")) {
      table();
    } else if (is("piece")) {
      piece();
      piece_lines.push_back(all);
    } else if (is("check")) {
      check();
      check_lines.push_back(all);
    } else if (is("form")) {
      once(formed, "the form", all);
      form();
      form_line = all;
    } else if (is("host")) {
      once(hosted, "the host's list", all);
      k.host = node_list();
      schedule_line = all;
    } else if (is("uniforms")) {
      once(passed, "the list of uniforms", all);
      k.uniforms = node_list();
    } else if (is("rows")) {
      once(rowed, "the rows' list", all);
      k.row = node_list();
    } else if (is("guard")) {
      const size_t p = k.bodies.size();
      if (k.guards.size() > p) fault(Code::IrTwice, all, {"this piece's guard"});
      std::vector<Step> list = steps(p);
      k.guards.resize(p), k.guards.push_back(std::move(list));
    } else if (is("body")) {
      std::vector<Step> list = steps(k.bodies.size());
      k.bodies.push_back(std::move(list));
    } else if (is("kernel")) {
      fault(Code::IrTwice, all, {"`kernel`"});
    } else {
      expected("a node, `table`, `piece`, `check`, `form`, `host`, `uniforms`, `rows`, `guard` or `body`");
    }
    ended();
  }

  void once(bool &before, const char *what, Span where) {
    if (before) fault(Code::IrTwice, where, {what});
    before = true;
  }

  void head() {
    want("kernel");
    headed = true;
    want("(");
    while (!wrong && !is(")")) {
      if (!k.arguments.empty()) want(",");
      blanks();
      const uint32_t begin = at;
      Argument a{name("an argument's name"), {}};
      if (std::any_of(k.arguments.begin(), k.arguments.end(), [&](const Argument &o) { return o.name == a.name; }))
        fault(Code::IrTwice, {begin, at}, {"the argument " + ticked(a.name)});
      want(":");
      a.type = argument_type();
      k.arguments.push_back(std::move(a));
    }
    if (is("over")) {
      want("[");
      do {
        blanks();
        const uint32_t begin = at;
        Axis axis{name("an axis' name")};
        if (std::any_of(k.axes.begin(), k.axes.end(), [&](const Axis &o) { return o.name == axis.name; }))
          fault(Code::IrTwice, {begin, at}, {"the axis " + ticked(axis.name)});
        want(":");
        axis.dim = number<int>(-int(most_axes), int(most_axes) - 1);
        k.axes.push_back(std::move(axis));
        if (k.axes.size() > most_axes) expected("at most 64 axes");
      } while (is(","));
      want("]");
    }
    want("->");
    do k.outputs.push_back(dtype(false));
    while (!done() && text[at] != '"');
    if (!done()) k.source = string(true);
  }

  ArgType argument_type() {
    if (is("unknown")) return {};
    if (is("int")) return {ArgKind::Int};
    if (is("float")) return {ArgKind::Float};
    ArgType type{ArgKind::Tensor, dtype(false)};
    if (type.dtype == DType::Bool && is("parameter")) return {ArgKind::Bool};
    if (!is("[")) return type;
    if (!is("]")) {
      type.rank = int8_t(number<int>(0, int(most_axes)));
      want("]");
    }
    type.zero_dim = type.rank <= 0;
    return type;
  }

  void instruction(Span all) {
    const uint64_t written = id();
    const Span name{all.begin, at};
    want("=");
    if (wrong) return;
    const bool again = nodes.count(written);
    if (again) fault(Code::IrTwice, name, {"node " + ticked("%" + std::to_string(written))});
    Span where;
    Inst made = operation(where);
    if (again) return;
    if (wrong) made = {.op = Op::Len, .type = DType::Index, .a = flat_axis}; // so that its users have no fault
    nodes.emplace(written, NodeId(k.insts.size()));
    k.insts.push_back(made), k.spans.push_back(where);
    node_lines.push_back(all), ids.push_back(written);
  }

  Inst operation(Span &where) {
    blanks();
    const uint32_t begin = at;
    const std::string_view s = word("an operation");
    if (wrong) return {};
    Inst i{};
    Reading reading{};
    Span literal;
    size_t want_operands = 0;
    std::optional<Exactness> exactness;
    if (auto op = spelled<UnaryOp>(s, 2)) i = {.op = Op::Unary, .sub = *op}, want_operands = 1;
    else if (auto op = spelled<BinaryOp>(s, 12)) i = {.op = Op::Binary, .sub = *op}, want_operands = 2;
    else if (auto op = spelled<CompareOp>(s, 6)) {
      i = {.op = Op::Compare, .sub = *op}, want_operands = 2;
      for (const Exactness e : {Exactness::Data, Exactness::Exact, Exactness::Value})
        if (!exactness && is(spelling(e))) exactness = e;
    } else if (auto op = spelled<LogicOp>(s, 3)) {
      i = {.op = Op::Logic, .sub = *op}, want_operands = LogicOp(*op) == LogicOp::Not ? 1 : 2;
    } else if (s == spelling(Op::Where)) i.op = Op::Where, want_operands = 3;
    else if (s == spelling(Op::Cast)) i.op = Op::Cast, want_operands = 1;
    else if (s == spelling(Op::Const)) {
      i.op = Op::Const;
      blanks();
      literal.begin = at;
      while (at < end && text[at] != ' ' && text[at] != '\t') ++at;
      literal.end = at;
    } else if (s == spelling(Op::Param)) i.op = Op::Param, i.a = argument();
    else if (s == spelling(Op::Load)) i.op = Op::Load, i.a = argument();
    else if (s == spelling(Op::Len)) i.op = Op::Len, i.a = axis();
    else if (s == spelling(Op::Pos)) i.op = Op::Pos, i.a = axis();
    else if (s == spelling(Op::Origin)) i.op = Op::Origin, i.a = axis();
    else if (s == spelling(Op::Entry)) i.op = Op::Entry, i.a = number<uint32_t>(0, ~0u);
    else if (s == spelling(Op::ArgLen)) {
      i.op = Op::ArgLen, i.a = argument();
      i.b = uint32_t(number<int>(-int(most_axes), int(most_axes) - 1));
    } else if (s == spelling(Op::Call)) {
      i.op = Op::Call, want_operands = any;
      blanks();
      const uint32_t from = at;
      const std::string_view builtin = word("a builtin");
      const int row = wrong ? 0 : find_builtin(builtin);
      if (row < 0) fault(Code::IrUnknown, {from, at}, {"builtin", std::string(builtin)});
      i.sub = uint8_t(std::max(row, 0));
    } else if (s == spelling(Op::Read)) {
      i.op = Op::Read, want_operands = any;
      i.sub = annotations(reading);
    } else return at = begin, expected("an operation"), i;

    std::vector<NodeId> list;
    while (!wrong &&
           (want_operands == any ? list.empty() || !(done() || text[at] == ':') : list.size() < want_operands)) {
      if (!list.empty()) want(",");
      list.push_back(node());
    }
    want(":");
    i.type = dtype(true);
    i.stage = Stage(choice(std::array<std::string_view, 3>{"host", "row", "element"}, "`host`, `row` or `element`"));
    where = place();
    ended();
    if (wrong) return i;

    switch (i.op) {
    case Op::Const:
      i.a = constant(i.type, literal);
      break;
    case Op::Call:
    case Op::Read:
      i.a = uint32_t(k.operands.size()), i.b = uint32_t(list.size());
      k.operands.insert(k.operands.end(), list.begin(), list.end());
      if (i.op == Op::Read) {
        const auto found = std::find(k.reads.begin(), k.reads.end(), reading);
        i.c = uint32_t(found - k.reads.begin());
        if (found == k.reads.end()) k.reads.push_back(std::move(reading));
      }
      break;
    case Op::Compare: {
      const DType of = k[list[0]].type;
      i.c = uint32_t(exactness.value_or(usual_exactness(of)));
      [[fallthrough]];
    }
    default:
      if (list.size() > 0) i.a = list[0];
      if (list.size() > 1) i.b = list[1];
      if (list.size() > 2) i.c = list[2];
    }
    return i;
  }

  template <class Sub> static std::optional<uint8_t> spelled(std::string_view s, int count) {
    for (int op = 0; op < count; ++op)
      if (s == spelling(Sub(op))) return uint8_t(op);
    return std::nullopt;
  }

  /// What stands between a read's argument and its operands; true if a condition is the first of these.
  bool annotations(Reading &r) {
    r.argument = argument();
    auto axis_number = [&] { return number<uint32_t>(0, most_axes - 1); };
    auto set = [&](uint64_t &bits) {
      want("(");
      do bits |= uint64_t(1) << axis_number();
      while (!wrong && !is(")"));
    };
    while (!done() && text[at] != '%') {
      if (is("own")) set(r.own);
      else if (is("settled")) r.settled = true;
      else if (is("proved")) set(r.proved);
      else if (is("checked")) set(r.checked);
      else if (is("free")) r.free = true;
      else if (is("tested")) {
        want("(");
        if (is("alone")) r.tested = Reading::Alone;
        else want("behind"), r.tested = Reading::Behind;
        want(")");
      } else if (is("not-empty") || is("as-long")) {
        const bool as_long = text[at - 1] == 'g';
        want("(");
        Premise p{as_long ? Premise::AsLong : Premise::NotEmpty, uint8_t(axis_number())};
        if (as_long) p.of = uint8_t(is("flat") ? flat_axis : axis(false));
        want(")");
        r.premises.push_back(p);
      } else if (is("when")) return true;
      else expected("`own`, `settled`, `proved`, `checked`, `not-empty`, `as-long`, `free`, `when` or a node");
    }
    return false;
  }

  /// `table f32 0.5, 0.25`
  void table() {
    Table t{dtype(true), {}};
    do {
      blanks();
      Span literal{at, at};
      while (at < end && text[at] != ' ' && text[at] != '\t' && text[at] != ',') ++at;
      literal.end = at;
      t.entries.push_back(value(t.type, literal));
    } while (!wrong && is(","));
    k.tables.push_back(std::move(t));
  }

  Constant value(DType type, Span literal) {
    const std::string_view s = source.slice(literal);
    Constant c;
    bool good = true;
    if (type == DType::Bool) {
      good = s == "true" || s == "false";
      c.integer = s == "true";
    } else if (is_float(type)) {
      good = real(type, s, c.real);
    } else {
      good = whole(s, c.integer) && (type == DType::Index || fits(type, c.integer));
    }
    if (!good) fault(Code::IrInexact, literal, {std::string(s), spelling(type)});
    return c;
  }
  uint32_t constant(DType type, Span literal) {
    const Constant c = value(type, literal);
    const auto same = [&](const Constant &o) {
      return o.integer == c.integer && std::bit_cast<uint64_t>(o.real) == std::bit_cast<uint64_t>(c.real);
    };
    const auto found = std::find_if(k.constants.begin(), k.constants.end(), same);
    if (found == k.constants.end()) return k.constants.push_back(c), uint32_t(k.constants.size() - 1);
    return uint32_t(found - k.constants.begin());
  }
  static bool whole(std::string_view s, __int128 &value) {
    const bool negative = !s.empty() && s[0] == '-';
    if (negative) s.remove_prefix(1);
    if (s.empty()) return false;
    value = 0;
    for (const char c : s) {
      const int next = negative ? '0' - c : c - '0';
      if (!digit(c) || __builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, next, &value))
        return false;
    }
    return true;
  }
  /// The digits mean the nearest value; a half's are those of F32, and must be a half's value.
  static bool real(DType type, std::string_view s, double &value) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const char *const from = s.data(), *const to = from + s.size();
    if (s == "nan" || s == "inf" || s == "-inf") {
      value = s == "nan" ? std::numeric_limits<double>::quiet_NaN() : s == "inf" ? infinity : -infinity;
      return true;
    }
    if (s.find_first_not_of("+-.0123456789e") != s.npos) return false;
    std::from_chars_result got{};
    if (type == DType::F64) {
      got = std::from_chars(from, to, value);
    } else {
      float narrow = 0;
      got = std::from_chars(from, to, narrow);
      value = narrow;
    }
    return got.ec == std::errc() && got.ptr == to && round_to(type, value) == value;
  }

  void piece() {
    Piece p;
    auto entry = [&] { p.entry = number<uint32_t>(1, ~0u); };
    p.line = number<uint32_t>(1, ~0u);
    want(":");
    p.column = number<uint32_t>(1, ~0u);
    p.where = place();
    while (!done() && text[at] != '-') {
      if (is("when")) {
        p.guard = node();
        break;
      }
      if (is("entry")) {
        entry();
        break;
      }
      if (p.boxes.empty() || is("or")) p.boxes.emplace_back();
      else if (!is("and")) expected("`and`, `or`, `when` or `->`");
      Range r{uint8_t(axis())};
      want("in"), want("[");
      if (!is(",")) r.lo = node(), want(",");
      if (!is(")")) r.hi = node(), want(")");
      p.boxes.back().push_back(r);
    }
    if (p.guard != no_node && is("entry")) entry();
    want("->");
    while (!done() && text[at] == '%') p.values.push_back(node());
    if (p.values.empty()) expected("a node");
    if (!done()) p.text = string(false);
    k.pieces.push_back(std::move(p));
  }

  void check() {
    Check c{};
    c.what = Check::What(choice(std::array<std::string_view, 4>{"notnan", "nonzero", "fits", "inbounds"},
                                "`notnan`, `nonzero`, `fits` or `inbounds`"));
    if (c.what == Check::Fits) c.dtype = dtype(false);
    c.node = node();
    if (is("piece")) c.piece = number<uint32_t>(0, ~0u - 1);
    c.in_guard = is("guard");
    c.where = place();
    k.checks.push_back(c);
  }

  void form() {
    Form f;
    want("rows"), want("(");
    f.rows = uint8_t(number<unsigned>(0, most_axes - 1));
    want(")"), want("vector");
    f.vector = uint8_t(number<unsigned>(0, 255));
    want("out");
    f.out = Access(choice(accesses, "how `out` is reached"));
    for (const Argument &a : k.arguments) {
      blanks();
      const uint32_t begin = at;
      const bool named = !wrong && at < end && (text[at] == '"' || word_end() != at) && name("an argument") == a.name;
      at = named ? at : begin;
      if (!named && f.args.empty() && (done() || own_word())) break; // a form that has not reached its arguments yet
      if (!named) expected("the argument " + ticked(a.name));
      f.args.push_back(
          Access(choice(accesses, "`absent`, `vector`, `scalar`, `broadcast`, `strided`, `column` or `tiled`")));
      f.same_view.push_back(is("same"));
      f.dense.push_back(is("dense"));
    }
    if (is("inner")) f.inner_axis = uint8_t(axis(false));
    for (unsigned r = 0; r < f.rows && !wrong; ++r)
      if (is("r" + std::to_string(r))) f.row_axes.resize(r + 1, no_axis), f.row_axes[r] = uint8_t(axis(false));
    f.unit_pitch = !is("pitched");
    f.wide = is("wide");
    f.narrow = is("narrow");
    f.window = is("window");
    if (is("tile")) want("("), f.tile = uint8_t(number<unsigned>(1, 255)), want(")");
    if (is("many")) want("("), f.many = number<uint16_t>(1, 65535), want(")");
    f.flat = is("flat");
    if (is("segments")) f.segments = uint16_t(number<unsigned>(1, 65535));
    k.form = std::move(f);
  }

  /// What stands behind the arguments of a form.
  bool own_word() const { return is_form_word({text.data() + at, word_end() - at}); }

  std::vector<Step> steps(size_t p) {
    if (p >= k.pieces.size()) return expected("a piece for it before this line"), std::vector<Step>{};
    const Piece &of = k.pieces[p];
    want(std::to_string(of.line) + ":" + std::to_string(of.column));
    want("{");
    std::vector<Step> list;
    std::vector<std::pair<NodeId, Span>> under; // a step may stand below one that comes later
    while (!wrong && !is("}")) {
      list.push_back({node()});
      under.push_back({no_node, {}});
      if (!is("under")) continue;
      blanks();
      const uint32_t begin = at;
      const NodeId chooser = node();
      under.back() = {chooser, {begin, at}};
    }
    for (size_t s = 0; s < list.size() && !wrong; ++s) {
      if (under[s].first == no_node) continue;
      const auto found =
          std::find_if(list.begin(), list.end(), [&](const Step &o) { return o.node == under[s].first; });
      if (found == list.end()) at = under[s].second.begin, expected("a node of this list");
      else list[s].under = uint32_t(found - list.begin());
    }
    return list;
  }

  /// The verifier's complaint, with the text's numbers, at the line that it is about.
  void verified() {
    const std::string why = verify(k);
    if (why.empty()) return;
    std::string shown;
    std::optional<size_t> first;
    for (size_t c = 0; c < why.size();) {
      shown += why[c++];
      if (shown.back() != '%' || c >= why.size() || !digit(why[c])) continue;
      size_t n = 0;
      for (; c < why.size() && digit(why[c]); ++c) n = n * 10 + size_t(why[c] - '0');
      if (shown.size() == 1) first = n;
      shown += std::to_string(n < ids.size() ? ids[n] : n);
    }
    auto listed = [&](llvm::StringRef what, const std::vector<Span> &lines) -> Span {
      llvm::StringRef rest(why);
      size_t n = 0;
      if (!rest.consume_front(what) || rest.consumeInteger(10, n) || n >= lines.size()) return {};
      return lines[n];
    };
    Span where = first && *first < node_lines.size() ? node_lines[*first] : Span{};
    if (where == Span{}) where = listed("piece ", piece_lines);
    if (where == Span{}) where = listed("check ", check_lines);
    if (where == Span{} && llvm::StringRef(why).starts_with("the form")) where = form_line;
    if (where == Span{} && llvm::StringRef(why).starts_with("the schedule")) where = schedule_line;
    if (where == Span{}) where = head_line;
    wrong = false;
    fault(Code::IrMalformed, where, {shown});
  }

  static constexpr size_t any = ~size_t(0);

  const Source &source;
  Sink &sink;
  std::string_view text;
  uint32_t at = 0, end = 0; // of the line
  bool wrong = false;       // something of this line was reported
  Kernel k;
  std::unordered_map<uint64_t, NodeId> nodes; // by the number written
  std::vector<uint64_t> ids;                  // by node
  std::vector<Span> node_lines, piece_lines, check_lines;
  Span head_line, form_line, schedule_line;
  bool headed = false, formed = false, hosted = false, passed = false, rowed = false;
};

} // namespace

Kernel read(const Source &source, Sink &sink) { return Reader(source, sink).read(); }

} // namespace elsewise
