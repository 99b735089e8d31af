// SPDX-License-Identifier: Apache-2.0
// The loop nest of a kernel in LLVM IR: rows, then exact segments between bounds, then one plain loop a piece. It gives
// no operation its meaning.
#include "compiler/emit/llvm.h"
#include "compiler/emit/llvm_value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Transforms/Utils/IntegerDivision.h"
#include <map>

namespace elsewise {
using namespace llvm;
using llvm_emit::Arithmetic;

namespace {

// From this many guarded pieces on, all share one chain loop; below, each has its own chain of just the pieces that may
// still follow.
constexpr unsigned shared_chain_from = 5;

// From this many loops on each is a function of its own, worked on alone: what LLVM does to a function grows faster
// than the number of its loops.
constexpr size_t own_function_from = 16;

// From this many boxes on, a loop over a table of them looks for the piece of a segment: a test and a branch each are
// compiled far longer than they run.
constexpr size_t searched_from = 32;

class Emitter {
public:
  Emitter(const Kernel &kernel, LLVMContext &context, const CpuTarget &target)
      : k(kernel), context(context), module(std::make_unique<Module>("elsewise", context)), b(context),
        arithmetic(b, kernel.form.wide, target), infos(slots(kernel, Backend::Cpu)) {}

  /// Null, and why, if the kernel is not as the schedule should leave it.
  std::unique_ptr<Module> run(std::string &error) {
    llvm::Type *i64 = b.getInt64Ty();
    function = Function::Create(FunctionType::get(b.getVoidTy(), {b.getPtrTy(), i64, i64, i64, i64}, false),
                                GlobalValue::ExternalLinkage, "elsewise", *module);
    function->setDoesNotThrow();
    frame.end = function->getArg(4);
    static constexpr const char *names[] = {"slots", "row_begin", "row_end", "begin", "end"};
    for (unsigned i = 0; i < 5; ++i) function->getArg(i)->setName(names[i]);
    function->getArg(0)->addAttr(Attribute::NoAlias), function->getArg(0)->addAttr(Attribute::ReadOnly);

    b.SetInsertPoint(block("entry"));
    list_pieces();
    apart = loops() >= own_function_from;
    frame.is_main = true;
    list_bounds();
    searched = can_search();
    if (apart || searched) kept = b.CreateAlloca(b.getInt64Ty(), b.getInt64(most_bounds() + 2), "bounds");
    load_slots();
    make_scopes();
    BasicBlock *done = block("return");
    if (k.form.rows == 0) one_row(done);
    else row_loop(done);
    b.SetInsertPoint(done);
    b.CreateRetVoid();
    if (k.form.wide)
      for (Function &f : *module) expand_wide_divisions(f);
    error = broken;
    return error.empty() ? std::move(module) : nullptr;
  }

private:
  struct Piece {
    bool everywhere; // no box: every position, as far as ranges go
    bool identity;   // nothing to do
    bool shares;     // its body takes constants from tables, and serves all pieces of its shape
  };

  BasicBlock *block(const Twine &name) { return BasicBlock::Create(context, name, function); }

  // ---- what is fixed for a call

  // The value of a slot; null if the kernel has none of that kind.
  Value *slot(SlotKind kind, uint32_t index = 0, uint32_t box = 0) {
    const auto found = slot_of.find({kind, index, box});
    return found == slot_of.end() ? nullptr : slot_value(found->second);
  }
  // Loaded where the function begins, when it is first needed.
  Value *slot_value(size_t i) {
    Value *&v = slot_values[i];
    if (v) return v;
    IRBuilderBase::InsertPointGuard guard(b);
    BasicBlock &entry = function->getEntryBlock();
    if (entry.hasTerminator()) b.SetInsertPoint(entry.getTerminator());
    return v = load(infos[i], i);
  }
  Value *required(SlotKind kind, uint32_t index = 0, uint32_t box = 0) {
    Value *v = slot(kind, index, box);
    if (v) return v;
    broken = "a launch argument that the kernel needs is not in its list";
    if (kind == SlotKind::Out || kind == SlotKind::In || kind == SlotKind::Table) return PoisonValue::get(b.getPtrTy());
    return PoisonValue::get(b.getInt64Ty());
  }

  std::string slot_name(const SlotInfo &s) const {
    const std::string n = std::to_string(s.index), nth = std::to_string(s.index + 1),
                      box = (s.box ? "_" + std::to_string(s.box + 1) : "") + (s.range ? "x" : "");
    switch (s.kind) {
    case SlotKind::Out:
      return k.outputs.size() > 1 ? "out" + nth : "out";
    case SlotKind::In:
      return k.arguments[s.index].name;
    case SlotKind::Uniform:
      return "uniform" + n;
    case SlotKind::Extent:
      return "extent";
    case SlotKind::End:
      return "end" + nth + box;
    case SlotKind::Begin:
      return "begin" + nth + box;
    case SlotKind::RowLength:
      return "length" + n;
    case SlotKind::RowPitch:
      return "pitch" + n;
    case SlotKind::InnerPitch:
      return "pitch";
    case SlotKind::OutStride:
      return "out.stride" + n;
    case SlotKind::InStride:
      return k.arguments[s.index].name + ".stride" + std::to_string(s.box);
    case SlotKind::OutInner:
      return "out.inner";
    case SlotKind::InInner:
      return k.arguments[s.index].name + ".inner";
    case SlotKind::Table:
      return k.arguments[s.index].name + ".table";
    case SlotKind::TableStride:
      return k.arguments[s.index].name + ".step" + std::to_string(s.box);
    default:
      return "slot";
    }
  }

  void list_bounds() {
    for (size_t i = 0; i < infos.size(); ++i) {
      const SlotInfo &s = infos[i];
      slot_of.insert({{s.kind, s.index, s.box}, i});
      if (s.kind == SlotKind::Uniform) uniform_slots[k.uniforms[s.index]] = i;
      if (s.kind == SlotKind::Begin || s.kind == SlotKind::End) bound_slots[{bound_node(k, s), bound_axis(k, s)}] = i;
    }
  }
  void load_slots() {
    slot_values.assign(infos.size(), nullptr);
    if (apart) return;
    for (size_t i = 0; i < infos.size(); ++i) { // Extent and Rows are the caller's, who passes ranges
      const SlotKind kind = infos[i].kind;
      const bool elsewhere = kept && (kind == SlotKind::Begin || kind == SlotKind::End);
      if (kind != SlotKind::Extent && kind != SlotKind::Rows && !elsewhere) slot_value(i);
    }
  }
  Value *load(const SlotInfo &s, size_t i) {
    if (s.kind == SlotKind::Out || s.kind == SlotKind::In || s.kind == SlotKind::Table)
      return load_slot(b.getPtrTy(), i, slot_name(s));
    if (s.kind != SlotKind::Uniform) return load_slot(b.getInt64Ty(), i, slot_name(s));
    const DType d = k[k.uniforms[s.index]].type;
    return arithmetic.from_memory(d, load_slot(arithmetic.memory_type(d), i, slot_name(s)));
  }
  Value *load_slot(llvm::Type *t, size_t i, const Twine &name) {
    return b.CreateAlignedLoad(t, b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), function->getArg(0), i), Align(8), name);
  }

  // `out` is the identical view of an input or shares no byte with it (checked at every call): say so to alias
  // analysis.
  void make_scopes() {
    MDBuilder md(context);
    MDNode *domain = md.createAnonymousAliasScopeDomain("elsewise");
    out_scope = MDNode::get(context, {md.createAnonymousAliasScope(domain, "out")});
    in_scope = MDNode::get(context, {md.createAnonymousAliasScope(domain, "in")});
  }
  void annotate(Instruction *access, bool of_out) const {
    access->setMetadata(LLVMContext::MD_alias_scope, of_out ? out_scope : in_scope);
    access->setMetadata(LLVMContext::MD_noalias, of_out ? in_scope : out_scope);
  }

  bool is_out(uint32_t argument) const { return argument < k.form.same_view.size() && k.form.same_view[argument]; }
  Access access(uint32_t argument) const {
    const Access how = k.form.args[argument];
    return how == Access::Column ? Access::Strided : how; // there is no flat form here
  }

  // ---- rows

  void one_row(BasicBlock *done) {
    enter_sole_row();
    row(done);
  }
  void enter_sole_row() {
    for (size_t i = 0; i < k.outputs.size(); ++i) out.push_back(required(SlotKind::Out, uint32_t(i)));
    for (uint32_t a = 0; a < k.arguments.size(); ++a)
      in.push_back(access(a) == Access::Absent || is_out(a) ? nullptr : required(SlotKind::In, a));
    rowbase = nullptr;
  }

  // Row positions are worked out by division once, then stepped like an odometer.
  void row_loop(BasicBlock *done) {
    const unsigned rows = k.form.rows;
    Value *row_begin = function->getArg(1), *row_end = function->getArg(2);
    std::vector<Value *> start;
    Value *rest = row_begin;
    for (unsigned d = 0; d < rows; ++d) {
      if (d + 1 == rows) start.push_back(rest);
      else {
        Value *length = required(SlotKind::RowLength, d);
        start.push_back(b.CreateURem(rest, length));
        rest = b.CreateUDiv(rest, length);
      }
    }
    BasicBlock *entry = b.GetInsertBlock(), *loop = block("row"), *next = block("row.next");
    b.CreateCondBr(b.CreateICmpSLT(row_begin, row_end), loop, done);

    b.SetInsertPoint(loop);
    PHINode *r = b.CreatePHI(b.getInt64Ty(), 2, "r");
    r->addIncoming(row_begin, entry);
    for (unsigned d = 0; d < rows; ++d) {
      at.push_back(b.CreatePHI(b.getInt64Ty(), 2, "row" + Twine(d)));
      cast<PHINode>(at[d])->addIncoming(start[d], entry);
    }
    enter_row();
    row(next);

    b.SetInsertPoint(next);
    r->addIncoming(b.CreateNSWAdd(r, b.getInt64(1)), next);
    Value *carry = b.getTrue();
    for (unsigned d = 0; d < rows; ++d) {
      Value *stepped = b.CreateAdd(at[d], b.CreateZExt(carry, b.getInt64Ty()));
      if (d + 1 < rows) {
        carry = b.CreateICmpEQ(stepped, required(SlotKind::RowLength, d));
        stepped = b.CreateSelect(carry, b.getInt64(0), stepped);
      }
      cast<PHINode>(at[d])->addIncoming(stepped, next);
    }
    b.CreateCondBr(b.CreateICmpSLT(r->getIncomingValueForBlock(next), row_end), loop, done);
  }

  // Where every operand's row starts, from the positions in `at`.
  void enter_row() {
    const unsigned rows = k.form.rows;
    auto offset = [&](SlotKind kind, uint32_t argument) { // sum of position * stride
      Value *sum = nullptr;
      for (unsigned d = 0; d < rows; ++d) {
        Value *stride = kind == SlotKind::InStride ? required(kind, argument, d) : slot(kind, d);
        if (!stride) return sum;
        Value *term = b.CreateMul(at[d], stride);
        sum = sum ? b.CreateAdd(sum, term) : term;
      }
      return sum;
    };
    Value *out_offset = offset(SlotKind::OutStride, 0);
    for (size_t i = 0; i < k.outputs.size(); ++i)
      out.push_back(b.CreateGEP(arithmetic.memory_type(k.outputs[i]), required(SlotKind::Out, uint32_t(i)), out_offset,
                                "out.row"));
    for (uint32_t a = 0; a < k.arguments.size(); ++a) {
      const bool separate = access(a) != Access::Absent && !is_out(a);
      in.push_back(!separate ? nullptr
                             : b.CreateGEP(arithmetic.memory_type(k.arguments[a].type.dtype), required(SlotKind::In, a),
                                           offset(SlotKind::InStride, a), k.arguments[a].name + ".row"));
    }
    rowbase = offset(SlotKind::RowPitch, 0);
  }

  // ---- one row: segments

  // A bound as one on this row's inner position. On the flat position that is ceil((bound - rowbase) / pitch), never
  // negative.
  Value *in_row(NodeId node, uint8_t axis) {
    Value *&bound = bounds[{node, axis}];
    if (bound) return bound;
    if (k[node].stage == Stage::Row) {
      bound = near(value(node));
    } else if (const auto found = bound_slots.find({node, axis}); found != bound_slots.end()) {
      bound = kept ? load(infos[found->second], found->second) : slot_value(found->second);
    } else {
      broken = "a bound is not in the list of launch arguments";
      return bound = b.getInt64(0);
    }
    if (axis != flat_axis) return bound;
    if (rowbase) bound = b.CreateSub(bound, rowbase);
    if (k.form.unit_pitch) return bound;
    Value *pitch = required(SlotKind::InnerPitch);
    bound = b.CreateBinaryIntrinsic(Intrinsic::smax, bound, b.getInt64(0));
    return bound = b.CreateUDiv(b.CreateAdd(bound, b.CreateSub(pitch, b.getInt64(1))), pitch);
  }

  // A bound that a row works out, in 64 bits and so far within them that a position can be subtracted.
  Value *near(Value *bound) {
    if (!k.form.wide) return bound; // the host saw to it
    llvm::Type *wide = bound->getType();
    bound = b.CreateBinaryIntrinsic(Intrinsic::smax, bound, ConstantInt::get(wide, 0));
    bound = b.CreateBinaryIntrinsic(Intrinsic::smin, bound, ConstantInt::get(wide, uint64_t(1) << 62));
    return b.CreateTrunc(bound, b.getInt64Ty());
  }

  void list_pieces() {
    for (uint32_t p = 0; p < k.pieces.size(); ++p) {
      bool everywhere = k.pieces[p].boxes.empty();
      for (const auto &box : k.pieces[p].boxes) everywhere |= box.empty();
      const auto varies = [&](NodeId v) { return entry_below[v]; };
      pieces.push_back({everywhere, is_identity(k, p), llvm::any_of(k.pieces[p].values, varies)});
    }
  }
  // By node: some constant of a table stands at or below it, so that its value depends on the piece.
  std::vector<bool> depends_on_entry() const {
    std::vector<bool> is(k.insts.size());
    for (NodeId n = 0; n < k.insts.size(); ++n) {
      is[n] = k[n].op == Op::Entry;
      for (const NodeId o : operands(k, n)) is[n] = is[n] || is[o];
    }
    return is;
  }

  // Every end of the box: where it begins, then where it ends.
  template <class See> static void each_end(const std::vector<Range> &box, See see) {
    for (const Range &range : box)
      if (range.lo != no_node) see(range.lo, range.axis, true);
    for (const Range &range : box)
      if (range.hi != no_node) see(range.hi, range.axis, false);
  }

  // Works a bound out, once a row. Where there are many, each goes to memory: registers that live through all segments
  // cost the code generator more than anything else.
  void keep(NodeId node, uint8_t axis) {
    if (!kept || !frame.is_main) {
      in_row(node, axis);
      return;
    }
    const auto [at, is_new] = kept_at.insert({{node, axis}, kept_at.size()});
    if (!is_new) return;
    b.CreateStore(in_row(node, axis), kept_place(b.getInt64(at->second)));
    bounds.clear();
  }
  Value *kept_place(Value *at) { return b.CreateInBoundsGEP(b.getInt64Ty(), kept, at); }
  Value *bound(std::pair<NodeId, uint8_t> which) {
    if (!kept || !frame.is_main) return in_row(which.first, which.second);
    return b.CreateAlignedLoad(b.getInt64Ty(), kept_place(b.getInt64(kept_at.at(which))), Align(8));
  }

  // The nearest bound beyond c, or the end: until there the same pieces hold.
  Value *nearest(Value *end) {
    Value *result = end;
    auto nearer = [&](Value *v) {
      return b.CreateSelect(b.CreateAnd(b.CreateICmpSLT(c, v), b.CreateICmpSLT(v, result)), v, result);
    };
    if (!kept) {
      for (const auto &[which, v] : bounds) result = nearer(v);
      return result;
    }
    if (kept_at.empty()) return end;
    BasicBlock *before = b.GetInsertBlock(), *loop = block("nearest"), *after = block("nearest.done");
    b.CreateBr(loop);
    b.SetInsertPoint(loop);
    PHINode *i = b.CreatePHI(b.getInt64Ty(), 2), *so_far = b.CreatePHI(b.getInt64Ty(), 2);
    i->addIncoming(b.getInt64(0), before), so_far->addIncoming(end, before);
    result = so_far;
    Value *found = nearer(b.CreateAlignedLoad(b.getInt64Ty(), kept_place(i), Align(8)));
    Value *more = b.CreateAdd(i, b.getInt64(1));
    i->addIncoming(more, loop), so_far->addIncoming(found, loop);
    b.CreateCondBr(b.CreateICmpULT(more, b.getInt64(kept_at.size())), loop, after);
    b.SetInsertPoint(after);
    return found;
  }

  void row(BasicBlock *done) {
    load_broadcasts();
    for (const elsewise::Piece &piece : k.pieces)
      for (const auto &box : piece.boxes) each_end(box, [&](NodeId node, uint8_t axis, bool) { keep(node, axis); });
    if (searched)
      for (const bool begin : {true, false}) { // what a box lacks: reached by every position, and by none
        const auto at = kept_at.insert({{no_node, uint8_t(begin)}, kept_at.size()}).first;
        b.CreateStore(b.getInt64(begin ? 0 : INT64_MAX), kept_place(b.getInt64(at->second)));
      }
    Value *begin = function->getArg(3), *end = function->getArg(4);
    BasicBlock *entry = b.GetInsertBlock(), *segment = block("segment"), *work = block("classify"),
               *next = block("segment.next");
    b.CreateBr(segment);
    b.SetInsertPoint(segment);
    PHINode *start = b.CreatePHI(b.getInt64Ty(), 2, "c");
    start->addIncoming(begin, entry);
    c = start;
    b.CreateCondBr(b.CreateICmpSLT(c, end), work, done);

    b.SetInsertPoint(work);
    stop = nearest(end);
    stop->setName("stop");
    dispatch(next);

    b.SetInsertPoint(next);
    if (bounds.empty() && kept_at.empty()) b.CreateBr(done); // one segment
    else {
      start->addIncoming(stop, next);
      b.CreateBr(segment);
    }
  }

  // True if the ranges of piece p hold at c, and so on the whole segment.
  Value *holds(uint32_t p) {
    if (pieces[p].everywhere) return b.getTrue();
    Value *any = b.getFalse();
    for (const auto &box : k.pieces[p].boxes) {
      Value *inside = b.getTrue();
      each_end(box, [&](NodeId node, uint8_t axis, bool begins) {
        Value *end = bound({node, axis}), *in = begins ? b.CreateICmpSLE(end, c) : b.CreateICmpSLT(c, end);
        inside = inside == b.getTrue() ? in : b.CreateAnd(inside, in);
      });
      any = any == b.getFalse() ? inside : b.CreateOr(any, inside);
    }
    return any;
  }

  // Whether the first box that holds says all of a segment.
  bool can_search() const {
    size_t boxes = 0;
    for (const elsewise::Piece &piece : k.pieces) {
      if (piece.guard != no_node) return false;
      for (const auto &box : piece.boxes) {
        size_t begins = 0, ends = 0;
        each_end(box, [&](NodeId, uint8_t, bool begin) { ++(begin ? begins : ends); });
        if (begins > 1 || ends > 1) return false;
      }
      boxes += std::max<size_t>(piece.boxes.size(), 1);
    }
    return boxes >= searched_from;
  }

  // Goes to the piece of the first box that holds at c. Pieces cover every position, so the last one has an open box.
  void search(BasicBlock *next) {
    llvm::Type *i64 = b.getInt64Ty(), *i32 = b.getInt32Ty();
    auto open = [&](bool begin) { return uint32_t(kept_at.at({no_node, uint8_t(begin)})); };
    struct Body {
      uint32_t piece;
      BasicBlock *at;
    };
    std::vector<Body> list;
    DenseMap<uint32_t, uint32_t> number; // by piece: its body's, from 1 on
    std::vector<uint32_t> rows[4];       // by box: where it begins and ends in `kept`, its body, its constants
    for (uint32_t p = 0; p < k.pieces.size(); ++p) {
      uint32_t which = 0;
      if (!pieces[p].identity) {
        const uint32_t same = pieces[p].shares ? body[p] : p;
        which = number[same];
        if (!which) {
          list.push_back({p, block("piece" + Twine(p + 1))});
          which = number[same] = uint32_t(list.size());
        }
      }
      auto add = [&](uint32_t begin, uint32_t end) {
        const uint32_t row[] = {begin, end, which, k.pieces[p].entry};
        for (int r = 0; r < 4; ++r) rows[r].push_back(row[r]);
      };
      const bool last = pieces[p].everywhere || p + 1 == k.pieces.size();
      if (last) {
        add(open(true), open(false));
        break;
      }
      for (const auto &box : k.pieces[p].boxes) {
        uint32_t begin = ~0u, end = ~0u;
        each_end(box, [&](NodeId node, uint8_t axis, bool begins) {
          (begins ? begin : end) = uint32_t(kept_at.at({node, axis}));
        });
        add(begin == ~0u ? open(true) : begin, end == ~0u ? open(false) : end);
      }
    }
    Value *table[4];
    for (int r = 0; r < 4; ++r) {
      llvm::Constant *all = ConstantDataArray::get(context, rows[r]);
      table[r] = new GlobalVariable(*module, all->getType(), true, GlobalValue::PrivateLinkage, all, "boxes");
    }
    BasicBlock *before = b.GetInsertBlock(), *loop = block("search"), *miss = block("search.next"),
               *found = block("found");
    b.CreateBr(loop);
    b.SetInsertPoint(loop);
    PHINode *i = b.CreatePHI(i64, 2, "box");
    i->addIncoming(b.getInt64(0), before);
    auto read = [&](int r) {
      return b.CreateZExt(b.CreateAlignedLoad(i32, b.CreateInBoundsGEP(i32, table[r], i), Align(4)), i64);
    };
    auto kept_bound = [&](int r) { return b.CreateAlignedLoad(i64, kept_place(read(r)), Align(8)); };
    Value *inside = b.CreateAnd(b.CreateICmpSLE(kept_bound(0), c), b.CreateICmpSLT(c, kept_bound(1)));
    b.CreateCondBr(inside, found, miss);
    b.SetInsertPoint(miss);
    i->addIncoming(b.CreateAdd(i, b.getInt64(1)), miss);
    b.CreateBr(loop);
    b.SetInsertPoint(found);
    Value *entry = read(3);
    SwitchInst *to = b.CreateSwitch(read(2), next, unsigned(list.size()));
    for (uint32_t n = 0; n < list.size(); ++n) {
      to->addCase(b.getInt64(n + 1), list[n].at);
      b.SetInsertPoint(list[n].at);
      frame.entry = pieces[list[n].piece].shares ? entry : nullptr;
      if (apart) call_piece(list[n].piece, false, next);
      else piece_loop(list[n].piece, false, next);
    }
  }

  // Goes to the first piece that can match. Pieces cover every position, so the last one needs no test.
  void dispatch(BasicBlock *next) {
    if (searched) return search(next);
    const uint32_t count = uint32_t(k.pieces.size());
    uint32_t guarded = 0, first_guarded = count;
    for (uint32_t p = count; p-- > 0;)
      if (k.pieces[p].guard != no_node) ++guarded, first_guarded = p;
    BasicBlock *shared = nullptr;
    std::vector<std::pair<uint32_t, BasicBlock *>> pending;
    DenseMap<uint32_t, PHINode *> entries; // by the first piece of a shared body: which of its pieces came there
    for (uint32_t p = 0; p < count; ++p) {
      const bool chain = k.pieces[p].guard != no_node && p + 1 < count;
      BasicBlock *target = next;
      if (chain && guarded >= shared_chain_from) {
        if (!shared) pending.push_back({first_guarded, shared = block("chain")});
        target = shared;
      } else if (pieces[p].shares) {
        PHINode *&entry = entries[body[p]];
        if (!entry) {
          pending.push_back({p, block("piece" + Twine(p + 1))});
          entry = PHINode::Create(b.getInt64Ty(), 2, "entry", pending.back().second);
        }
        entry->addIncoming(b.getInt64(k.pieces[p].entry), b.GetInsertBlock());
        target = entry->getParent();
      } else if (chain || !pieces[p].identity) {
        target = block("piece" + Twine(p + 1));
        pending.push_back({p, target});
      }
      const bool last = pieces[p].everywhere || p + 1 == count;
      if (last) {
        b.CreateBr(target);
        break;
      }
      BasicBlock *otherwise = block("not" + Twine(p + 1));
      b.CreateCondBr(holds(p), target, otherwise);
      b.SetInsertPoint(otherwise);
    }
    for (auto [p, target] : pending) {
      b.SetInsertPoint(target);
      frame.entry = pieces[p].shares && target != shared ? entries.lookup(body[p]) : nullptr;
      if (apart) call_piece(p, target == shared, next);
      else piece_loop(p, target == shared, next);
    }
  }

  // Ends of all ranges.
  size_t most_bounds() const {
    size_t count = 0;
    for (const elsewise::Piece &p : k.pieces)
      for (const auto &box : p.boxes)
        for (const Range &r : box) count += (r.lo != no_node) + (r.hi != no_node);
    return std::max<size_t>(count, 1);
  }

  // Loops that the kernel will have.
  size_t loops() const {
    size_t count = 0;
    for (uint32_t p = 0; p < pieces.size(); ++p) count += !pieces[p].identity && (!pieces[p].shares || body[p] == p);
    return count;
  }

  // What is said of values in one function.
  struct Frame {
    bool is_main = false;
    Function *function = nullptr;
    std::vector<Value *> slot_values, out, in, at;
    DenseMap<NodeId, Value *> row_values;
    Value *rowbase = nullptr, *c = nullptr, *stop = nullptr, *end = nullptr;
    Value *entry = nullptr; // of the piece, where its body serves several
    DenseMap<uint32_t, std::pair<Value *, Value *>> broadcast;
    std::map<std::pair<NodeId, uint8_t>, Value *> bounds;
    Instruction *ahead = nullptr;
  };

  // One segment of a piece as a function of the slots, the end of positions, the segment and the row's positions.
  void call_piece(uint32_t first_piece, bool shared, BasicBlock *next) {
    llvm::Type *i64 = b.getInt64Ty();
    std::vector<llvm::Type *> types{b.getPtrTy(), i64, i64, i64};
    std::vector<Value *> given{function->getArg(0), frame.end, c, stop};
    for (Value *position : at) types.push_back(i64), given.push_back(position);
    if (frame.entry) types.push_back(i64), given.push_back(frame.entry);
    const std::string name = b.GetInsertBlock()->getName().str();
    Function *f =
        Function::Create(FunctionType::get(b.getVoidTy(), types, false), GlobalValue::InternalLinkage, name, *module);
    f->setDoesNotThrow(), f->addFnAttr(Attribute::NoInline);
    f->getArg(0)->addAttr(Attribute::NoAlias), f->getArg(0)->addAttr(Attribute::ReadOnly);
    b.CreateCall(f, given);
    b.CreateBr(next);

    Frame own;
    own.function = f, own.slot_values.assign(infos.size(), nullptr), own.end = f->getArg(1);
    own.c = f->getArg(2), own.stop = f->getArg(3);
    own.c->setName("c"), own.stop->setName("stop");
    for (size_t d = 0; d < at.size(); ++d) own.at.push_back(f->getArg(unsigned(4 + d)));
    if (frame.entry) own.entry = f->getArg(unsigned(4 + at.size()));
    std::swap(frame, own);
    b.SetInsertPoint(block("entry"));
    if (k.form.rows == 0) enter_sole_row();
    else enter_row();
    load_broadcasts();
    BasicBlock *done = block("return");
    piece_loop(first_piece, shared, done);
    b.SetInsertPoint(done);
    b.CreateRetVoid();
    std::swap(frame, own);
  }

  // ---- one segment: a loop

  struct Choice {
    uint32_t piece;
    Value *holds; // on the whole segment; null: certainly
  };

  void piece_loop(uint32_t first, bool shared, BasicBlock *next) {
    std::vector<Choice> choices; // first match wins
    for (uint32_t p = first; p < k.pieces.size(); ++p) {
      Value *inside = (p == first && !shared) || pieces[p].everywhere ? nullptr : holds(p);
      choices.push_back({p, inside});
      if (!inside && k.pieces[p].guard == no_node) break;
    }
    const std::string name = b.GetInsertBlock()->getName().str();
    BasicBlock *before = b.GetInsertBlock(), *loop = block(name + ".loop");
    start_segment();
    Value *length = b.CreateNSWSub(stop, c, "length"), *from = b.getInt64(0), *until = length;
    BasicBlock *entry = before, *done = next;
    const std::vector<NodeId> noise = shared_noise(choices);
    noise_from.clear();
    if (noise.empty()) {
      b.CreateBr(loop);
      ahead = before->getTerminator();
    } else {
      const Run run = noise_run(noise, name, length, next);
      entry = b.GetInsertBlock(), from = run.from, until = run.until, done = run.done;
      b.CreateBr(loop);
    }
    b.SetInsertPoint(loop);
    t = b.CreatePHI(b.getInt64Ty(), 2, "t"); // counts from the segment's start
    t->addIncoming(from, entry);
    values.clear(), raw.clear();
    if (choices.size() > 1) frame.entry = nullptr; // each brings its own
    const std::vector<Value *> result = must_branch(choices) ? branches(choices) : selects(choices);
    for (size_t o = 0; o < k.outputs.size(); ++o)
      annotate(
          b.CreateAlignedStore(result[o], element(out_here[o], k.outputs[o], out_inner()), Align(bytes(k.outputs[o]))),
          true);
    Value *after = b.CreateAdd(t, b.getInt64(1), "t.next", true, true);
    t->addIncoming(after, b.GetInsertBlock());
    auto *back = b.CreateCondBr(b.CreateICmpEQ(after, until), done, loop);
    back->setMetadata(LLVMContext::MD_loop, loop_metadata());
  }

  // Every value is worked out and one selected.
  std::vector<Value *> selects(const std::vector<Choice> &choices) {
    std::vector<Value *> result(k.outputs.size());
    for (size_t i = choices.size(); i-- > 0;) {
      const elsewise::Piece &piece = k.pieces[choices[i].piece];
      const bool last = i + 1 == choices.size();
      Value *chosen = last || piece.guard == no_node ? nullptr : value(piece.guard);
      if (!last && choices[i].holds) chosen = chosen ? b.CreateAnd(choices[i].holds, chosen) : choices[i].holds;
      for (size_t o = 0; o < k.outputs.size(); ++o) {
        take_entry(piece);
        Value *v = stored(piece.values[o], k.outputs[o]);
        result[o] = last ? v : b.CreateSelect(chosen, v, result[o]);
      }
    }
    return result;
  }

  // Values worked out for another piece of the shape are not this one's.
  void take_entry(const elsewise::Piece &piece) {
    if (k.tables.empty() || frame.entry) return;
    piece_entry = piece.entry;
    for (auto *known : {&values, &raw})
      for (NodeId n = 0; n < k.insts.size(); ++n)
        if (entry_below[n]) known->erase(n);
  }

  // A constant of a table: the same along the segment.
  Value *entry(NodeId n) {
    const Table &table = k.tables[k[n].a];
    llvm::Type *type = arithmetic.memory_type(table.type);
    GlobalVariable *&global = tables[k[n].a];
    if (!global) {
      SmallVector<llvm::Constant *> all;
      for (const elsewise::Constant &c : table.entries)
        all.push_back(cast<llvm::Constant>(arithmetic.to_memory(table.type, arithmetic.constant(table.type, c))));
      auto *array = ArrayType::get(type, all.size());
      global = new GlobalVariable(*module, array, true, GlobalValue::PrivateLinkage, ConstantArray::get(array, all),
                                  "constants");
    }
    Value *which = frame.entry ? frame.entry : b.getInt64(piece_entry);
    IRBuilderBase::InsertPointGuard guard(b);
    b.SetInsertPoint(ahead);
    return arithmetic.from_memory(
        table.type, b.CreateAlignedLoad(type, b.CreateInBoundsGEP(type, global, which), Align(bytes(table.type))));
  }

  // Some piece reads what its guard alone, or a guard that failed before it, keeps in bounds.
  bool must_branch(const std::vector<Choice> &choices) const {
    if (choices.size() == 1 || k.reads.empty()) return false;
    auto guarded = [&](const std::vector<Step> &steps) {
      return std::any_of(steps.begin(), steps.end(), [&](const Step &s) {
        return k[s.node].op == Op::Read && k[s.node].stage == Stage::Element && !reads_anywhere(k, s.node);
      });
    };
    for (const Choice &choice : choices)
      if (guarded(k.bodies[choice.piece]) || guarded(k.guards[choice.piece])) return true;
    return false;
  }

  // A block a piece: only the one whose guard holds is worked. What a guard needed is there for all that follow it,
  // what a value needed for nothing else.
  std::vector<Value *> branches(const std::vector<Choice> &choices) {
    BasicBlock *done = block("chosen");
    std::vector<std::pair<BasicBlock *, std::vector<Value *>>> arms;
    auto arm = [&](const elsewise::Piece &piece) {
      const auto kept_values = values, kept_raw = raw;
      std::vector<Value *> all;
      take_entry(piece);
      for (size_t o = 0; o < k.outputs.size(); ++o) all.push_back(stored(piece.values[o], k.outputs[o]));
      arms.push_back({b.GetInsertBlock(), std::move(all)});
      b.CreateBr(done);
      values = kept_values, raw = kept_raw;
    };
    for (size_t i = 0; i < choices.size(); ++i) {
      const elsewise::Piece &piece = k.pieces[choices[i].piece];
      const bool last = i + 1 == choices.size();
      if (last) {
        arm(piece);
        break;
      }
      BasicBlock *yes = block("arm" + Twine(choices[i].piece + 1)),
                 *no = block("arm.not" + Twine(choices[i].piece + 1));
      const bool both = choices[i].holds && piece.guard != no_node;
      const auto kept_values = values, kept_raw = raw;
      if (both) { // the guard too is looked at only where its ranges hold
        BasicBlock *test = block("guard" + Twine(choices[i].piece + 1));
        b.CreateCondBr(choices[i].holds, test, no);
        b.SetInsertPoint(test);
      }
      b.CreateCondBr(piece.guard != no_node ? value(piece.guard) : choices[i].holds, yes, no);
      b.SetInsertPoint(yes);
      arm(piece);
      if (both) values = kept_values, raw = kept_raw;
      b.SetInsertPoint(no);
    }
    b.SetInsertPoint(done);
    std::vector<Value *> result;
    for (size_t o = 0; o < k.outputs.size(); ++o) {
      PHINode *phi = b.CreatePHI(arms[0].second[o]->getType(), unsigned(arms.size()));
      for (const auto &[from, all] : arms) phi->addIncoming(all[o], from);
      result.push_back(phi);
    }
    return result;
  }

  // ---- noise: four neighbouring positions share the work of one counter

  // Words of noise that a segment's pieces need at its own positions, under a seed and a stream of the host.
  std::vector<NodeId> shared_noise(const std::vector<Choice> &choices) const {
    constexpr size_t most = 4; // each takes a buffer on the stack
    std::vector<NodeId> found;
    if (!k.form.unit_pitch || k.bodies.size() != k.pieces.size()) return found;
    const auto see = [&](const std::vector<Step> &steps) {
      for (const Step &s : steps) {
        const Inst &i = k[s.node];
        if (i.op != Op::Call || builtins()[i.sub].meaning != Meaning::Uniform) continue;
        const Inst &position = k[k.operands[i.a]];
        const bool own = position.op == Op::Cast && k[position.a].op == Op::Pos && k[position.a].a == flat_axis;
        const bool known = k[k.operands[i.a + 1]].stage == Stage::Host && k[k.operands[i.a + 2]].stage == Stage::Host;
        if (own && known && !llvm::is_contained(found, s.node)) found.push_back(s.node);
      }
    };
    for (const Choice &choice : choices) see(k.guards[choice.piece]), see(k.bodies[choice.piece]);
    if (found.size() > most) found.resize(most);
    return found;
  }

  struct Run {
    Value *from, *until; // steps of the segment
    BasicBlock *done;    // where the elements' loop goes then
  };

  // Cuts the segment into runs. Ahead of each, a loop of its own works the run's words out, all four of a counter at
  // once.
  Run noise_run(const std::vector<NodeId> &noise, const std::string &name, Value *length, BasicBlock *next) {
    constexpr uint64_t run = 1024; // a multiple of four: every run begins at the same word of its counter
    llvm::Type *i64 = b.getInt64Ty(), *i32 = b.getInt32Ty();
    BasicBlock *before = b.GetInsertBlock(), *head = block(name + ".run"), *fill = block(name + ".noise"),
               *ready = block(name + ".ready"), *done = block(name + ".run.next");
    std::vector<Value *> buffers;
    {
      IRBuilderBase::InsertPointGuard guard(b);
      BasicBlock &entry = function->getEntryBlock();
      b.SetInsertPoint(&entry, entry.begin());
      for (size_t n = 0; n < noise.size(); ++n) buffers.push_back(b.CreateAlloca(i32, b.getInt64(run + 4), "words"));
    }
    Value *skipped = b.CreateAnd(first, b.getInt64(3)), *counter = b.CreateLShr(first, 2);
    std::vector<std::array<Value *, 2>> keys;
    for (const NodeId n : noise) keys.push_back({value(k.operands[k[n].a + 1]), value(k.operands[k[n].a + 2])});
    b.CreateBr(head);
    ahead = before->getTerminator();

    b.SetInsertPoint(head);
    PHINode *from = b.CreatePHI(i64, 2, "from");
    from->addIncoming(b.getInt64(0), before);
    Value *rest = b.CreateNSWSub(length, from);
    Value *until = b.CreateAdd(from, b.CreateBinaryIntrinsic(Intrinsic::umin, rest, b.getInt64(run)), "until");
    Value *used = b.CreateAdd(skipped, b.CreateSub(until, from));
    Value *groups = b.CreateLShr(b.CreateAdd(used, b.getInt64(3)), 2);
    Value *here = b.CreateAdd(counter, b.CreateLShr(from, 2));
    b.CreateBr(fill);

    b.SetInsertPoint(fill);
    PHINode *g = b.CreatePHI(i64, 2, "g");
    g->addIncoming(b.getInt64(0), head);
    for (size_t n = 0; n < noise.size(); ++n) {
      const std::array<Value *, 4> words = arithmetic.philox(b.CreateAdd(here, g), keys[n][0], keys[n][1]);
      Value *at = b.CreateInBoundsGEP(i32, buffers[n], b.CreateShl(g, 2));
      for (uint64_t w = 0; w < 4; ++w)
        b.CreateAlignedStore(words[w], b.CreateInBoundsGEP(i32, at, b.getInt64(w)), Align(4));
    }
    Value *after = b.CreateAdd(g, b.getInt64(1), "g.next", true, true);
    g->addIncoming(after, fill);
    auto *back = b.CreateCondBr(b.CreateICmpEQ(after, groups), ready, fill);
    back->setMetadata(LLVMContext::MD_loop, loop_metadata());

    b.SetInsertPoint(done);
    Value *later = b.CreateAdd(from, b.getInt64(run));
    from->addIncoming(later, done);
    b.CreateCondBr(b.CreateICmpULT(later, length), head, next);

    b.SetInsertPoint(ready);
    for (size_t n = 0; n < noise.size(); ++n)
      noise_from[noise[n]] = b.CreateGEP(i32, buffers[n], b.CreateSub(skipped, from));
    return {from, until, done};
  }

  // Addresses and position at c, so that the loop itself adds nothing but its counter.
  void start_segment() {
    auto at_c = [&](Value *base, DType d, Value *inner) {
      return b.CreateGEP(arithmetic.memory_type(d), base, inner ? b.CreateMul(c, inner) : c);
    };
    out_here.clear(), in_here.clear();
    for (size_t o = 0; o < k.outputs.size(); ++o) out_here.push_back(at_c(out[o], k.outputs[o], out_inner()));
    for (uint32_t a = 0; a < k.arguments.size(); ++a) {
      const bool moves = in[a] && access(a) != Access::Broadcast;
      in_here.push_back(moves ? at_c(in[a], k.arguments[a].type.dtype, in_inner(a)) : nullptr);
    }
    if (!flat) return;
    first = k.form.unit_pitch ? static_cast<Value *>(c) : b.CreateMul(c, required(SlotKind::InnerPitch));
    if (rowbase) first = b.CreateAdd(rowbase, first);
  }

  // The vectorizer of LLVM 23 walks an address as a tree, forgetting what it has seen (getSCEVExprForVPValue), so that
  // `let b = min(a, a+1)` and so on takes it twice as long a line: such loops stay scalar.
  bool has_tangled_index() const {
    std::vector<uint64_t> size(k.insts.size(), 1); // by node: of the tree, in which what is shared stands at each use
    for (NodeId n = 0; n < k.insts.size(); ++n) {
      const bool read = k[n].op == Op::Read;
      for (const NodeId o : operands(k, n)) {
        if (read && size[o] > 4096) return true;
        if (!read) size[n] = SaturatingAdd(size[n], size[o]);
      }
    }
    return false;
  }

  // One vector a turn: iterations are independent, so that more of them only lengthen what is compiled and what a short
  // row cannot use.
  MDNode *loop_metadata() {
    MDNode *progress = MDNode::get(context, {MDString::get(context, "llvm.loop.mustprogress")});
    MDNode *single = MDNode::get(
        context, {MDString::get(context, "llvm.loop.interleave.count"), ConstantAsMetadata::get(b.getInt32(1))});
    SmallVector<Metadata *> all{nullptr, progress, single};
    if (tangled)
      all.push_back(MDNode::get(
          context, {MDString::get(context, "llvm.loop.vectorize.enable"), ConstantAsMetadata::get(b.getFalse())}));
    MDNode *id = MDNode::getDistinct(context, all);
    id->replaceOperandWith(0, id);
    return id;
  }

  // Inner strides; null is 1.
  Value *out_inner() { return k.form.out == Access::Strided ? required(SlotKind::OutInner) : nullptr; }
  Value *in_inner(uint32_t a) { // tiles are for GPUs: what they would hold is strided here
    const bool strided = access(a) == Access::Strided || access(a) == Access::Tiled;
    return strided ? required(SlotKind::InInner, a) : nullptr;
  }

  Value *element(Value *here, DType d, Value *inner) {
    return b.CreateInBoundsGEP(arithmetic.memory_type(d), here, inner ? b.CreateMul(t, inner) : t);
  }

  // The bits of argument `a` at this element.
  Value *load(uint32_t a) {
    const DType d = k.arguments[a].type.dtype;
    Value *pointer = is_out(a) ? element(out_here[0], d, out_inner()) : element(in_here[a], d, in_inner(a));
    LoadInst *bits = b.CreateAlignedLoad(arithmetic.memory_type(d), pointer, Align(bytes(d)), k.arguments[a].name);
    annotate(bits, is_out(a));
    return bits;
  }

  void load_broadcasts() {
    for (uint32_t a = 0; a < k.arguments.size(); ++a) {
      if (access(a) != Access::Broadcast || is_out(a)) continue;
      const DType d = k.arguments[a].type.dtype;
      LoadInst *bits = b.CreateAlignedLoad(arithmetic.memory_type(d), in[a], Align(bytes(d)), k.arguments[a].name);
      annotate(bits, false);
      broadcast[a] = {bits, arithmetic.from_memory(d, bits)};
    }
  }

  Value *raw_load(NodeId n) {
    const uint32_t a = k[n].a;
    if (const auto found = broadcast.find(a); found != broadcast.end()) return found->second.first;
    Value *&bits = raw[n];
    if (!bits) bits = load(a);
    return bits;
  }

  // What is written for a value: a bare element moves as bits.
  Value *stored(NodeId n, DType d) {
    if (k[n].op == Op::Load) return raw_load(n);
    return k[n].op == Op::Read ? raw_read(n) : arithmetic.to_memory(d, value(n));
  }

  // The bits of an element read at indices.
  Value *raw_read(NodeId n) {
    if (!ahead) return read(n); // of a row's bound
    if (Value *known = raw.lookup(n)) return known;
    Value *bits = nullptr;
    if (k[n].stage == Stage::Row) {
      IRBuilderBase::InsertPointGuard guard(b);
      b.SetInsertPoint(ahead);
      bits = read(n);
    } else {
      bits = read(n);
    }
    return raw[n] = bits;
  }

  // Where its condition fails nothing is read: in a loop that is a branch, which vectorises as a masked load; once a
  // row a pointer to zeros does as well.
  Value *read(NodeId n) {
    const Inst &i = k[n];
    const uint32_t a = k.reads[i.c].argument, rank = i.b - i.sub;
    const DType d = i.type;
    Value *condition = i.sub ? value(k.operands[i.a]) : nullptr, *offset = nullptr;
    for (uint32_t axis = 0; axis < rank; ++axis) {
      Value *at = value(k.operands[i.a + i.sub + axis]);
      if (k.form.wide) at = b.CreateTrunc(at, b.getInt64Ty());
      if (axis + 1 < rank || !is_dense(k, a)) at = b.CreateMul(at, required(SlotKind::TableStride, a, axis));
      offset = offset ? b.CreateAdd(offset, at) : at;
    }
    Value *pointer = b.CreateGEP(arithmetic.memory_type(d), required(SlotKind::Table, a), offset);
    auto load = [&](Value *from) {
      LoadInst *bits = b.CreateAlignedLoad(arithmetic.memory_type(d), from, Align(bytes(d)), k.arguments[a].name);
      annotate(bits, false);
      return bits;
    };
    if (!condition) return load(pointer);
    if (i.stage == Stage::Row) return load(b.CreateSelect(condition, pointer, zeros()));
    BasicBlock *before = b.GetInsertBlock(), *reading = block("read"), *after = block("read.done");
    b.CreateCondBr(condition, reading, after);
    b.SetInsertPoint(reading);
    Value *bits = load(pointer);
    b.CreateBr(after);
    b.SetInsertPoint(after);
    PHINode *result = b.CreatePHI(bits->getType(), 2);
    result->addIncoming(bits, reading);
    result->addIncoming(llvm::Constant::getNullValue(bits->getType()), before);
    return result;
  }

  Value *zeros() {
    if (nothing) return nothing;
    llvm::Type *type = b.getInt64Ty();
    auto *global = new GlobalVariable(*module, type, true, GlobalValue::PrivateLinkage,
                                      llvm::Constant::getNullValue(type), "zeros");
    global->setAlignment(Align(8));
    return nothing = global;
  }

  Value *position(uint32_t axis) {
    for (size_t d = 0; d < k.form.row_axes.size(); ++d)
      if (k.form.row_axes[d] == axis) return b.CreateSExt(at[d], arithmetic.type(DType::Index));
    if (axis != flat_axis) return b.CreateSExt(b.CreateAdd(c, t), arithmetic.type(DType::Index));
    Value *step = k.form.unit_pitch ? static_cast<Value *>(t) : b.CreateMul(t, required(SlotKind::InnerPitch));
    return b.CreateSExt(b.CreateAdd(first, step), arithmetic.type(DType::Index));
  }

  Value *value(NodeId n) {
    if (const auto found = uniform_slots.find(n); found != uniform_slots.end()) return slot_value(found->second);
    if (const auto found = row_values.find(n); found != row_values.end()) return found->second;
    if (const auto found = values.find(n); found != values.end()) return found->second;
    if (k[n].stage == Stage::Row && !ahead) return row_values[n] = make(n); // of a bound
    Value *v = nullptr;
    if (k[n].stage == Stage::Row) { // the same along the segment: worked out ahead of its loop
      IRBuilderBase::InsertPointGuard guard(b);
      b.SetInsertPoint(ahead);
      v = make(n);
    } else {
      v = make(n);
    }
    values[n] = v;
    return v;
  }

  Value *make(NodeId n) {
    const Inst &i = k[n];
    switch (i.op) {
    case Op::Const:
      return arithmetic.constant(i.type, k.constants[i.a]);
    case Op::Pos:
      return position(i.a);
    case Op::Load:
      if (const auto found = broadcast.find(i.a); found != broadcast.end()) return found->second.second;
      return arithmetic.from_memory(i.type, raw_load(n));
    case Op::Read:
      return arithmetic.from_memory(i.type, raw_read(n));
    case Op::Unary:
      return arithmetic.unary(UnaryOp(i.sub), i.type, value(i.a));
    case Op::Binary: {
      Value *l = value(i.a), *r = value(i.b);
      return arithmetic.binary(BinaryOp(i.sub), i.type, l, r);
    }
    case Op::Compare: {
      Value *l = value(i.a), *r = value(i.b);
      return arithmetic.compare(CompareOp(i.sub), k[i.a].type, l, r);
    }
    case Op::Logic: {
      Value *l = value(i.a);
      if (LogicOp(i.sub) == LogicOp::Not) return b.CreateNot(l);
      Value *r = value(i.b);
      return LogicOp(i.sub) == LogicOp::And ? b.CreateAnd(l, r) : b.CreateOr(l, r);
    }
    case Op::Where: {
      Value *condition = value(i.a), *yes = value(i.b), *no = value(i.c);
      return b.CreateSelect(condition, yes, no);
    }
    case Op::Cast:
      return arithmetic.cast(value(i.a), k[i.a].type, i.type);
    case Op::Call: {
      if (Value *words = noise_from.lookup(n))
        return b.CreateAlignedLoad(b.getInt32Ty(), b.CreateGEP(b.getInt32Ty(), words, t), Align(4), "word");
      SmallVector<Value *> operands;
      for (uint32_t o = 0; o < i.b; ++o) operands.push_back(value(k.operands[i.a + o]));
      return arithmetic.call(builtins()[i.sub], k[k.operands[i.a]].type, operands);
    }
    case Op::Len:
      if (i.a == no_axis) return b.CreateSExt(frame.end, arithmetic.type(DType::Index)); // or the chunk's end
      break;
    case Op::Entry:
      return entry(n);
    case Op::Param:
    case Op::ArgLen:
    case Op::Origin:
      break;
    }
    broken = "element code reads a host value that is not among the kernel's uniforms";
    return PoisonValue::get(arithmetic.type(i.type));
  }

  // LLVM divides 128 bits by a library call, and this code calls no library.
  static void expand_wide_divisions(Function &function) {
    std::vector<BinaryOperator *> found;
    for (BasicBlock &block : function)
      for (Instruction &i : block)
        if (auto *op = dyn_cast<BinaryOperator>(&i); op && op->isIntDivRem() && op->getType()->isIntegerTy(128))
          found.push_back(op);
    for (BinaryOperator *op : found) {
      if (op->getOpcode() == Instruction::SDiv || op->getOpcode() == Instruction::UDiv) expandDivision(op);
      else expandRemainder(op);
    }
  }

  const Kernel &k;
  LLVMContext &context;
  std::unique_ptr<Module> module;
  IRBuilder<> b;
  Arithmetic arithmetic;
  const std::vector<SlotInfo> infos;
  const bool flat = uses_flat(k);
  const std::vector<uint32_t> body = bodies(k);
  const std::vector<bool> entry_below = depends_on_entry();
  const bool tangled = has_tangled_index();
  DenseMap<uint32_t, GlobalVariable *> tables;
  uint32_t piece_entry = 0; // of the piece at hand, where its body serves it alone
  std::vector<Piece> pieces;
  std::map<std::tuple<SlotKind, uint32_t, uint32_t>, size_t> slot_of; // the first of a kind, index and box
  std::map<std::pair<NodeId, uint8_t>, size_t> bound_slots;
  DenseMap<NodeId, size_t> uniform_slots;
  Value *nothing = nullptr; // zeros()
  bool apart = false;       // loops are functions
  bool searched = false;    // a table of boxes says which
  Value *kept = nullptr;    // where bounds stand in memory
  std::map<std::pair<NodeId, uint8_t>, size_t> kept_at;
  MDNode *out_scope = nullptr, *in_scope = nullptr;
  const char *broken = "";

  Frame frame;
  Function *&function = frame.function;
  std::vector<Value *> &slot_values = frame.slot_values;

  // the row
  std::vector<Value *> &out = frame.out, &in = frame.in;    // where it starts, by output and argument
  std::vector<Value *> &at = frame.at;                      // its position along each row axis
  DenseMap<NodeId, Value *> &row_values = frame.row_values; // what its bounds need
  Value *&rowbase = frame.rowbase;                          // flat position of its first element; null: 0
  DenseMap<uint32_t, std::pair<Value *, Value *>> &broadcast = frame.broadcast; // by argument: bits, value
  std::map<std::pair<NodeId, uint8_t>, Value *> &bounds = frame.bounds; // by node and axis: inner position of this row
  Value *&c = frame.c, *&stop = frame.stop;                             // the segment's ends

  // the element: t steps beyond where its segment starts
  std::vector<Value *> out_here, in_here;
  Value *first = nullptr;
  PHINode *t = nullptr;
  Instruction *&ahead = frame.ahead; // what is the same along the segment goes before this
  DenseMap<NodeId, Value *> values, raw;
  DenseMap<NodeId, Value *> noise_from; // words worked out ahead: where that of the segment's first element would be
};

} // namespace

std::unique_ptr<Module> emit_llvm(const Kernel &scheduled, LLVMContext &context, const CpuTarget &target,
                                  std::string &error) {
  return Emitter(scheduled, context, target).run(error);
}

} // namespace elsewise
