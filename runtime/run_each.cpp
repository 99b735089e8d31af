// SPDX-License-Identifier: Apache-2.0
// A list of calls of one rule: every one is checked before any is started, and on CUDA those over contiguous data share
// launches. It plans nothing and knows no list of Python's.
#include "runtime/spec.h"
#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <utility>

namespace elsewise::api {

namespace {

/// Bytes that a call may touch: [low, high).
struct Touched {
  uintptr_t low, high;
  size_t call;
  bool written;
};

void add_touched(const Plan &plan, const Addresses &addresses, size_t index, std::vector<Touched> &all) {
  if (plan.count == 0) return;
  const size_t first = all.size(); // the bytes of `out`, which contain those of what is read in place
  auto add = [&](uintptr_t at, const Extremes &e, bool written) {
    if (e.low == e.high) return;
    const Touched t{at + uintptr_t(e.low), at + uintptr_t(e.high), index, written};
    if (all.size() > first && all[first].low == t.low && all[first].high == t.high) return;
    all.push_back(t);
  };
  add(addresses.out(), plan.out_extremes, true);
  for (size_t a = 0; a < plan.operands.size(); ++a) {
    if (plan.operands[a].tensor) add(addresses[a], plan.operands[a].extremes, false);
    if (plan.operands[a].table) add(addresses[a], plan.operands[a].table_extremes, false);
  }
}

/// True if a call may write what another one reads or writes: then their order decides the result.
bool entangled(std::vector<Touched> all) {
  auto before = [](const Touched &a, const Touched &b) { return a.low < b.low; };
  if (!std::is_sorted(all.begin(), all.end(), before)) std::sort(all.begin(), all.end(), before);
  // Of those before, how far what was written, and what was touched at all, reaches; and how far that of other calls.
  struct Reach {
    uintptr_t high = 0, of_others = 0;
    size_t call = 0;
    void add(const Touched &t) {
      if (t.call == call || high == 0) high = std::max(high, t.high), call = t.call;
      else if (t.high > high) of_others = high, high = t.high, call = t.call;
      else of_others = std::max(of_others, t.high);
    }
    bool covers(const Touched &t) const { return (call == t.call ? of_others : high) > t.low; }
  } written, touched;
  for (const Touched &t : all) {
    if (written.covers(t) || (t.written && touched.covers(t))) return true;
    touched.add(t);
    if (t.written) written.add(t);
  }
  return false;
}

/// True if all that the host works out for two calls of a plan is the same: only their tensors differ.
bool same_on_host(const Plan &plan, const Addresses &a, const Addresses &b) {
  if (plan.in_window) return false;
  for (size_t k = 0; k < plan.operands.size(); ++k) {
    const PlannedOperand &o = plan.operands[k];
    if (o.tensor || o.table || o.measured) continue;
    if (a[k] != b[k]) return false;
    if (&a.call() == &b.call()) continue;
    const Arg &x = a.call().args[k], &y = b.call().args[k];
    if (x.kind != y.kind || x.dtype != y.dtype || x.integer != y.integer ||
        std::memcmp(&x.real, &y.real, sizeof x.real) != 0)
      return false;
  }
  return true;
}

std::string in_list(size_t index, const std::string &message) {
  return "in call " + std::to_string(index) + " of the list: " + message;
}

/// A call of a list as it would be made alone.
class Alone {
public:
  Alone(const ListedCall &listed, size_t index)
      : args_(listed.call->args.begin(), listed.call->args.end()), out_(*listed.call->out), call_(*listed.call) {
    for (size_t a = 0; a < args_.size(); ++a) args_[a].data = listed.addresses[a];
    out_.data = listed.addresses[args_.size()];
    call_.args = {args_.data(), args_.size()}, call_.out = &out_, call_.in_list = int64_t(index);
  }
  Alone(const Alone &) = delete;
  const Call &call() const { return call_; }

private:
  llvm::SmallVector<Arg, 8> args_;
  Arg out_;
  Call call_;
};

/// What calls of a list that have the same code and the same values share.
struct Shared {
  Ready ready;
  // Of the last of them that went into a ListLaunch: the blocks hold for all that begin alike.
  int64_t shift = -1;
  unsigned blocks = 0;
  LiveRanges live;
};

/// Fills launches over a list, of one variant.
class ListLaunch {
public:
  ListLaunch(const Variant &variant, Device device, void *stream)
      : variant_(variant), layout_(item_layout(variant.kernel)), device_(device), stream_(stream),
        // Zeros where no item stands: nothing reads them, but nothing unwritten goes to the driver.
        bytes_(layout_.bytes) {}

  std::string add(const ListedCall &listed, Shared &shared) {
    const Kernel &k = variant_.kernel;
    const Plan &plan = *listed.plan;
    Ready &ready = shared.ready;
    const uintptr_t out = Addresses(listed).out();
    if (const int64_t shift = vector_phase(out, bytes(plan.dtype), k.form.vector); shared.shift != shift) {
      shared.shift = shift;
      shared.blocks = geometry(k, k.form, plan.loop.rows, plan.loop.extent, out).grid;
      if (variant_.cut) shared.live = live_ranges(k, ready.cut->segments, plan.loop.extent, shift, shared.blocks);
      if (ready.launch->shift >= 0) ready.slots[ready.launch->shift].integer = shift;
    }
    if (!variant_.cut) return add(listed, ready, 0, shared.blocks);
    const LiveRanges &live = shared.live;
    std::string error;
    for (size_t r = 0; r < 4 && live.begin[r] != ~0u && error.empty(); ++r) {
      const unsigned end = r + 1 < 4 && live.begin[r + 1] != ~0u ? live.begin[r + 1] : shared.blocks;
      error = add(listed, ready, live.first[r], end - live.begin[r]);
    }
    return error;
  }

  std::string flush() {
    if (grid_ == 0) return "";
    std::memcpy(bytes_.data(), &count_, sizeof count_);
    Geometry g;
    g.grid = grid_;
    grid_ = 0, count_ = 0;
    void *parameter = bytes_.data();
    return launch_cuda(variant_, device_, g, stream_, {&parameter, 1});
  }

  const Variant &variant() const { return variant_; }

private:
  std::string add(const ListedCall &listed, const Ready &ready, int64_t first, unsigned blocks) {
    if (blocks == 0) return "";
    std::string error;
    if (size_t(count_) == layout_.capacity || blocks > most_blocks - grid_) error = flush();
    uint8_t *item = bytes_.data() + layout_.items_at + size_t(count_) * layout_.item_bytes;
    const int64_t block = first - int64_t(grid_);
    std::memcpy(bytes_.data() + sizeof(uint32_t) * size_t(1 + count_), &grid_, sizeof grid_);
    std::memcpy(item, ready.slots.data(), sizeof(Slot) * ready.slots.size());
    put_pointers(listed, *ready.launch, reinterpret_cast<Slot *>(item));
    std::memcpy(item + sizeof(Slot) * ready.slots.size(), &block, sizeof block);
    grid_ += blocks, ++count_;
    return error;
  }

  static constexpr unsigned most_blocks = 0x7fffffff; // of a grid along x
  const Variant &variant_;
  const ItemLayout layout_;
  const Device device_;
  void *const stream_;
  std::vector<uint8_t> bytes_;
  unsigned grid_ = 0;
  int count_ = 0;
};

} // namespace

Result<bool> run_each(std::span<const ListedCall> calls) noexcept try {
  Result<bool> result;
  result.value = true;
  if (calls.empty()) return result;
  const auto wrong = [&](Fault f, size_t k, const std::string &message) {
    return fault<bool>(f, in_list(k, message), *calls[k].plan->spec);
  };
  const Device device = calls[0].plan->device;
  const bool cuda = calls[0].plan->machine == Machine::Cuda;
  std::vector<Touched> touched;
  touched.reserve(cuda ? calls.size() : 0);
  for (size_t k = 0; k < calls.size(); ++k) {
    const Plan &plan = *calls[k].plan;
    const Call &call = *calls[k].call;
    if (k == 0 || &call != calls[k - 1].call || &plan != calls[k - 1].plan) {
      if (!call.out) return wrong(Fault::Type, k, "run_each() needs an `out`");
      if (plan.device != device)
        return wrong(Fault::Value, k,
                     "it is on " + show_device(plan.device) + ", the first on " + show_device(device) +
                         "; give each device a list of its own");
      if (std::string out_of_domain = wrong_window(plan, call); !out_of_domain.empty())
        return wrong(Fault::Value, k, out_of_domain);
    }
    if (cuda) add_touched(plan, calls[k], k, touched);
  }
  // What one call writes and another reads comes in the order of the list, so each is a launch of its own.
  const bool together = cuda && !entangled(std::move(touched));
  std::deque<Shared> made;
  std::vector<Shared *> shared(calls.size());
  // The latest call of each plan: tensors of one layout are usual, and tensors of a few layouts in turn.
  std::unordered_map<const Plan *, size_t> latest;
  size_t *latest_of_plan = nullptr;
  for (size_t k = 0; k < calls.size(); ++k) {
    const Plan &plan = *calls[k].plan;
    const bool many = together && plan.form.rows == 0 && !plan.form.window;
    if (k == 0 || &plan != calls[k - 1].plan) latest_of_plan = &latest.try_emplace(&plan, k).first->second;
    const size_t like = std::exchange(*latest_of_plan, k);
    if (like != k && serves(plan, *shared[like]->ready.launch, calls[k], many) &&
        !shared[like]->ready.launch->variant->uses_list && same_on_host(plan, calls[k], calls[like])) {
      shared[k] = shared[like];
      if (std::string memory = wrong_memory(plan, *shared[k]->ready.launch, calls[k]); !memory.empty())
        return wrong(Fault::Value, k, memory);
      continue;
    }
    shared[k] = &made.emplace_back();
    auto good = get_ready(plan, Alone(calls[k], k).call(), many, shared[k]->ready);
    if (good) continue;
    good.message = in_list(k, good.message);
    return good;
  }

  void *const stream = calls[0].call->stream;
  std::vector<std::unique_ptr<ListLaunch>> lists; // by variant: few
  ListLaunch *list = nullptr;
  for (size_t k = 0; k < calls.size(); ++k) {
    const Plan &plan = *calls[k].plan;
    if (plan.count == 0) continue;
    if (!shared[k]->ready.launch->many) {
      if (auto started = start(plan, calls[k], stream, shared[k]->ready); !started) return started;
      continue;
    }
    const Variant &variant = *shared[k]->ready.launch->variant;
    if (!list || &list->variant() != &variant) {
      auto found = std::find_if(lists.begin(), lists.end(), [&](const auto &l) { return &l->variant() == &variant; });
      if (found == lists.end()) found = lists.insert(found, std::make_unique<ListLaunch>(variant, device, stream));
      list = found->get();
    }
    if (std::string error = list->add(calls[k], *shared[k]); !error.empty())
      return fault<bool>(Fault::Environment, std::move(error), *plan.spec);
  }
  for (const auto &l : lists)
    if (std::string error = l->flush(); !error.empty())
      return fault<bool>(Fault::Environment, std::move(error), *calls[0].plan->spec);
  return result;
} catch (const std::exception &error) {
  return crashed<bool>(error);
}

} // namespace elsewise::api
