// SPDX-License-Identifier: Apache-2.0
// Lists of calls: every call's result is the one that it has alone, launches are few, and a refused list writes
// nothing. The device's launches run as C++ behind the shim.
#include "compiler/emit/emit.h"
#include "runtime/launch_taker.h"
#include "tests/shim/shim.h"
#include "tests/unit/calls.h"
#include <deque>
#include <random>

namespace elsewise::tests {
namespace {

constexpr api::Device cuda{api::DeviceKind::Cuda, 0};

// A launch as it was handed to a device: with what its arguments held then.
struct Taken {
  std::string text;
  Geometry geometry;
  bool many;
  std::vector<std::vector<uint8_t>> arguments;
};

// One call of a list, and the same call alone on the CPU.
struct Item {
  Array<float> x, y, out, alone;
};

// A list for run_each(), and what it borrows.
class Listing {
public:
  void add(const api::SpecRef &spec, const api::Call &call) {
    auto plan = api::plan(spec, call);
    ASSERT_TRUE(plan) << plan.message;
    std::vector<void *> &at = addresses_.emplace_back();
    for (const api::Arg &arg : call.args) at.push_back(arg.data);
    at.push_back(call.out->data);
    plans_.push_back(std::move(plan.value));
    listed_.push_back({plans_.back().get(), &call, at.data()});
  }
  // As `call`, of the same layouts, stands elsewhere in memory.
  void add_like(size_t first, const api::Call &call) {
    std::vector<void *> &at = addresses_.emplace_back();
    for (const api::Arg &arg : call.args) at.push_back(arg.data);
    at.push_back(call.out->data);
    listed_.push_back({listed_[first].plan, listed_[first].call, at.data()});
  }
  api::Result<bool> run() { return api::run_each(listed_); }

private:
  std::deque<std::vector<void *>> addresses_;
  std::vector<api::PlanRef> plans_;
  std::vector<api::ListedCall> listed_;
};

class Lists {
public:
  // `shared`: calls that differ in addresses alone share one Call.
  Lists(std::string_view text, bool in_place, bool shared = false)
      : spec(compile(text)), in_place(in_place), shared(shared) {}

  // `misaligned`: elements between a boundary and the start. `stride`: of the inner axis.
  void add(std::vector<int64_t> shape, int64_t misaligned = 0, int64_t stride = 1) {
    int64_t count = 1;
    for (int64_t l : shape) count *= l;
    std::vector<int64_t> strides(shape.size());
    int64_t pitch = stride;
    for (size_t d = shape.size(); d-- > 0;) strides[d] = pitch, pitch *= shape[d];
    auto make = [&] {
      Array<float> a(std::vector<float>(size_t(count * stride + 16 + misaligned)), shape, strides, misaligned);
      // To a boundary of 16 bytes first, whatever the allocator gave.
      a.offset += int64_t(-(reinterpret_cast<uintptr_t>(a.memory.data()) / 4) & 3);
      for (float &v : a.memory) v = float(int(random() % 2001) - 1000) / 8;
      return a;
    };
    auto item = std::make_unique<Item>(Item{make(), make(), make(), make()});
    items.push_back(std::move(item));
  }

  std::map<std::string, api::Arg> given(Item &item, bool device) {
    std::map<std::string, api::Arg> all{{"x", item.x.arg()}, {"y", item.y.arg()}, {"g", number(3.0)}};
    for (auto &[name, arg] : all)
      if (device && arg.kind == ArgKind::Tensor) arg.device = cuda;
    return all;
  }

  // Runs the list; the launches that it made.
  std::vector<Taken> run() {
    std::vector<std::vector<api::Arg>> args;
    std::vector<api::Arg> outs;
    std::vector<api::Call> calls(items.size());
    Listing listing;
    for (auto &item : items) {
      // The CPU's answer first: the list may work in place.
      const auto alone = tests::run(spec, given(*item, false), item->alone.arg());
      EXPECT_TRUE(alone) << alone.message;
      args.push_back(arguments(*spec, given(*item, true)));
      outs.push_back((in_place ? item->x : item->out).arg());
      outs.back().device = cuda;
    }
    std::vector<Taken> taken;
    const api::LaunchTaker taker = [&](const Kernel &k, const Geometry &g, std::span<void *const> arguments) {
      Taken t{emit_cuda(k), g, k.form.many != 0, {}};
      const std::vector<SlotInfo> infos = slots(k, Backend::Cuda);
      for (size_t s = 0; s < arguments.size(); ++s) {
        const size_t bytes = t.many ? item_layout(k).bytes : infos[s].kind == SlotKind::Live ? sizeof(LiveRanges) : 8;
        const auto *from = static_cast<const uint8_t *>(arguments[s]);
        t.arguments.emplace_back(from, from + bytes);
      }
      taken.push_back(std::move(t));
    };
    const api::TakeLaunches taking(taker);
    for (size_t k = 0; k < items.size(); ++k) {
      calls[k].args = args[k], calls[k].out = &outs[k];
      size_t like = 0;
      while (like < k && (items[like]->x.shape != items[k]->x.shape || items[like]->x.stride != items[k]->x.stride))
        ++like;
      if (shared && like < k) listing.add_like(like, calls[k]);
      else listing.add(spec, calls[k]);
    }
    result = listing.run();
    return taken;
  }

  void compare(const std::vector<Taken> &launches) {
    std::vector<std::string> texts;
    for (const Taken &t : launches) texts.push_back(t.text);
    std::string error;
    const auto batch = test::ShimBatch::build(texts, error);
    ASSERT_TRUE(batch) << error;
    for (size_t k = 0; k < launches.size(); ++k) {
      std::vector<const void *> pointers;
      for (const auto &a : launches[k].arguments) pointers.push_back(a.data());
      batch->launch(k, launches[k].geometry, pointers.data());
    }
    for (size_t k = 0; k < items.size(); ++k)
      EXPECT_EQ((in_place ? items[k]->x : items[k]->out).elements(), items[k]->alone.elements()) << "item " << k;
  }

  api::SpecRef spec;
  bool in_place, shared;
  std::vector<std::unique_ptr<Item>> items;
  api::Result<bool> result;
  std::minstd_rand random{7};
};

TEST(Foreach, EveryCallHasItsOwnResult) {
  for (const char *rule : {"i<n/4: x*0.5; i>=n-n/4: x*2; else x", "i<n/4: x*g; i>=n-n/4: y; else x", "x*g + i",
                           "i>2 and y>x: y - x; i%3==1: 0; else x", "i<n/2: x; else x", "i>0: y[i-1]; else x"})
    for (const auto &[in_place, shared] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
      SCOPED_TRACE(std::string(rule) + (in_place ? " in place" : "") + (shared ? " shared" : ""));
      Lists lists(rule, in_place, shared);
      for (int64_t n : {1, 3, 4, 5, 1023, 1024, 1025, 5000, 0, 17, 20000, 5000, 17, 0}) lists.add({n});
      for (int64_t from : {1, 2, 3}) lists.add({2000 + from}, from), lists.add({5000}, from);
      if (!strchr(rule, '[')) lists.add({7, 300}); // one index reads what has one axis
      lists.add({500}, 0, 2);
      const std::vector<Taken> launches = lists.run();
      ASSERT_TRUE(lists.result) << lists.result.message;
      EXPECT_TRUE(std::any_of(launches.begin(), launches.end(), [](const Taken &t) { return t.many; }) ||
                  std::string(rule) == "i<n/2: x; else x"); // nothing to do in place
      EXPECT_LE(launches.size(), 4u);
      lists.compare(launches);
    }
}

TEST(Foreach, ManyTensorsTakeFewLaunches) {
  Lists lists("i<n/4: x*0.5; else x", true);
  for (int k = 0; k < 1500; ++k) lists.add({k % 70 ? 40 : 4096 + k});
  const std::vector<Taken> launches = lists.run();
  ASSERT_TRUE(lists.result) << lists.result.message;
  EXPECT_LE(launches.size(), 30u); // in 4096 bytes of arguments at least
  EXPECT_GT(launches.size(), 1u);
  lists.compare(launches);
}

TEST(Foreach, OneRefusedCallRefusesTheList) {
  Lists lists("100 // n * x", false);
  for (int64_t n : {4, 0, 4}) lists.add({n});
  auto &last = *lists.items[2];
  const std::vector<float> before = last.out.memory;
  // The third overlaps its own output by one element.
  last.out = Array<float>(last.x.memory, {4}, {1}, 0);
  std::vector<std::vector<api::Arg>> args;
  std::vector<api::Arg> outs;
  for (auto &item : lists.items)
    args.push_back(arguments(*lists.spec, lists.given(*item, false))), outs.push_back(item->out.arg());
  args[2][0].data = last.out.memory.data() + 1;
  std::vector<api::Call> calls(3);
  Listing listing;
  for (size_t k = 0; k < 3; ++k) {
    calls[k].args = args[k], calls[k].out = &outs[k];
    listing.add(lists.spec, calls[k]);
  }
  const std::vector<float> first = lists.items[0]->out.memory;
  const auto result = listing.run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.message.rfind("in call 2 of the list: `out` overlaps `x`", 0), 0u) << result.message;
  EXPECT_EQ(lists.items[0]->out.memory, first) << "written before the refusal";
}

TEST(Foreach, CallsThatReadWhatOthersWriteKeepTheirOrder) {
  const api::SpecRef spec = compile("x + 1");
  std::vector<Array<float>> memory;
  for (int k = 0; k < 5; ++k) memory.emplace_back(std::vector<int64_t>{8});
  std::vector<std::vector<api::Arg>> args;
  std::vector<api::Arg> outs;
  for (int k = 0; k < 4; ++k) {
    args.push_back({memory[size_t(k)].arg()}), outs.push_back(memory[size_t(k) + 1].arg());
    args.back()[0].device = outs.back().device = cuda;
  }
  std::vector<api::Call> calls(4);
  Listing listing;
  int launches = 0, many = 0;
  const api::LaunchTaker taker = [&](const Kernel &k, const Geometry &, std::span<void *const>) {
    ++launches, many += k.form.many != 0;
  };
  const api::TakeLaunches taking(taker);
  for (size_t k = 0; k < 4; ++k) {
    calls[k].args = args[k], calls[k].out = &outs[k];
    listing.add(spec, calls[k]);
  }
  ASSERT_TRUE(listing.run());
  EXPECT_EQ(launches, 4);
  EXPECT_EQ(many, 0);
}

} // namespace
} // namespace elsewise::tests
