// SPDX-License-Identifier: Apache-2.0
// When modules are unloaded, on a driver of the test's own that runs nothing: behind every launch, never in a capture,
// never one that a graph holds. What a real driver says to that stands in gpu/.
#include "runtime/cuda/launch.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>

namespace elsewise {
namespace {

constexpr int last_device = 63; // no computer has as many: its context is this test's
constexpr int not_ready = 600, implicit_capture = 906, relaxed = 2;

struct Fake {
  uintptr_t made = 0;
  std::set<uintptr_t> modules, events, pending; // alive; pending: events that have not passed
  std::map<uintptr_t, uintptr_t> recorded;      // the event's stream
  std::set<uintptr_t> capturing;
  bool blocking_capture = false;
  int mode = 0, depth = 0, wrong = 0; // wrong: what the driver would not forgive
  int unloaded = 0;
};
Fake fake;

template <class T> uintptr_t number(T handle) { return reinterpret_cast<uintptr_t>(handle); }
template <class T> T handle(uintptr_t n) { return reinterpret_cast<T>(n); }

CudaDriver table() {
  CudaDriver d{};
  d.devices = last_device + 1;
  d.error_name = [](int, const char **) { return 0; };
  d.error_string = [](int, const char **) { return 0; };
  d.device_get = [](int *device, int ordinal) { return *device = ordinal, 0; };
  d.primary_retain = [](CuContext *c, int) { return *c = handle<CuContext>(0xc0), 0; };
  d.context_current = [](CuContext *c) { return *c = fake.depth ? handle<CuContext>(0xc0) : nullptr, 0; };
  d.context_push = [](CuContext) { return ++fake.depth, 0; };
  d.context_pop = [](CuContext *) { return --fake.depth, 0; };
  d.module_load = [](CuModule *m, const void *, unsigned, int *, void **) {
    fake.wrong += fake.mode != relaxed || fake.depth == 0;
    fake.modules.insert(++fake.made);
    return *m = handle<CuModule>(fake.made), 0;
  };
  d.module_unload = [](CuModule m) {
    fake.wrong += fake.mode != relaxed || fake.depth == 0 || fake.blocking_capture || !fake.modules.erase(number(m));
    return ++fake.unloaded, 0;
  };
  d.module_function = [](CuFunction *f, CuModule m, const char *) { return *f = handle<CuFunction>(number(m)), 0; };
  d.launch = [](CuFunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CuStream, void **,
                void **) { return fake.wrong += !fake.modules.count(number(f)), 0; };
  d.stream_is_capturing = [](CuStream s, int *status) {
    if (number(s) == 1 && fake.blocking_capture) return implicit_capture;
    return *status = fake.capturing.count(number(s)) != 0, 0;
  };
  d.event_create = [](CuEvent *e, unsigned) {
    fake.events.insert(++fake.made);
    return *e = handle<CuEvent>(fake.made), 0;
  };
  d.event_record = [](CuEvent e, CuStream s) {
    fake.wrong += !fake.events.count(number(e));
    fake.pending.insert(number(e)), fake.recorded[number(e)] = number(s);
    return 0;
  };
  d.event_query = [](CuEvent e) {
    fake.wrong += !fake.events.count(number(e));
    return fake.pending.count(number(e)) ? not_ready : 0;
  };
  d.event_destroy = [](CuEvent e) { return fake.wrong += !fake.events.erase(number(e)), 0; };
  d.exchange_capture_mode = [](int *mode) { return std::swap(*mode, fake.mode), 0; };
  return d;
}

class CudaUnload : public testing::Test {
protected:
  CudaUnload() : driver(table()), use(driver) { fake = {}; }
  ~CudaUnload() override { // nothing of this driver's may wait for the next one
    fake.pending.clear(), fake.blocking_capture = false;
    for (const int before = fake.unloaded; fake.unloaded == before;) drop(fresh(1));
    EXPECT_EQ(fake.wrong, 0);
    EXPECT_EQ(fake.mode, 0);
    EXPECT_EQ(fake.depth, 0);
  }

  std::vector<std::unique_ptr<CudaCode>> fresh(int count) {
    std::vector<std::unique_ptr<CudaCode>> made;
    for (int k = 0; k < count; ++k) {
      std::string error;
      made.push_back(std::make_unique<CudaCode>());
      EXPECT_TRUE(made.back()->load(last_device, "sm_90", "code", error)) << error;
    }
    return made;
  }
  void launch(const CudaCode &code, uintptr_t stream) {
    std::string error;
    EXPECT_TRUE(code.launch(last_device, Geometry{}, handle<void *>(stream), nullptr, error)) << error;
  }
  void drop(std::vector<std::unique_ptr<CudaCode>> codes) { codes.clear(); }
  /// The streams' work is done up to here.
  void finish(uintptr_t stream) {
    std::erase_if(fake.pending, [&](uintptr_t e) { return fake.recorded[e] == stream; });
  }

  CudaDriver driver;
  UseDriver use;
};

TEST_F(CudaUnload, AFunctionTellsOfItselfWhereTheDriverCan) {
  auto codes = fresh(1);
  EXPECT_FALSE(codes[0]->facts(last_device)) << "this driver has no such function";
  driver.function_attribute = [](int *value, int attribute, CuFunction f) {
    fake.wrong += fake.depth == 0 || !fake.modules.count(number(f));
    return *value = 100 + attribute, 0;
  };
  const auto facts = codes[0]->facts(last_device);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->shared_bytes, 101); // CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES is 1
  EXPECT_EQ(facts->local_bytes, 103);
  EXPECT_EQ(facts->registers, 104);
  EXPECT_EQ(facts->binary, 106);
  EXPECT_FALSE(codes[0]->facts(0)) << "it is not loaded there";
  driver.function_attribute = [](int *, int, CuFunction) { return 1; };
  EXPECT_FALSE(codes[0]->facts(last_device));
}

TEST_F(CudaUnload, BehindTheLastLaunch) {
  auto codes = fresh(20);
  for (auto &code : codes) launch(*code, 100), launch(*code, 200);
  drop(std::move(codes));
  EXPECT_EQ(fake.unloaded, 0) << "work is on its way";
  finish(100);
  drop(fresh(1));
  EXPECT_EQ(fake.unloaded, 1) << "the one that never ran; the others' launches on the other stream are on their way";
  finish(200);
  drop(fresh(1));
  EXPECT_EQ(fake.unloaded, 22);
  EXPECT_TRUE(fake.modules.empty());
  EXPECT_TRUE(fake.events.empty());
}

TEST_F(CudaUnload, TenThousandLevelOff) {
  size_t most = 0;
  for (int k = 0; k < 10000; ++k) {
    auto code = fresh(1);
    launch(*code[0], 100 + uintptr_t(k % 3));
    finish(100 + uintptr_t(k % 3));
    drop(std::move(code));
    most = std::max(most, fake.modules.size() + fake.events.size());
  }
  EXPECT_LE(most, 40u);
}

TEST_F(CudaUnload, NeverWhileTheDefaultStreamWouldBeCaptured) {
  auto codes = fresh(16);
  for (auto &code : codes) launch(*code, 0);
  finish(0);
  fake.blocking_capture = true;
  drop(std::move(codes));
  drop(fresh(4));
  EXPECT_EQ(fake.unloaded, 0);
  fake.blocking_capture = false;
  drop(fresh(1));
  EXPECT_EQ(fake.unloaded, 21);
}

TEST_F(CudaUnload, WhatAGraphHoldsStays) {
  auto codes = fresh(16);
  fake.capturing.insert(100);
  for (int k = 0; k < 16; ++k) launch(*codes[k], k < 4 ? 100 : 200); // an event in a capture would be the graph's
  EXPECT_EQ(fake.events.size(), 12u);
  fake.capturing.clear();
  finish(200);
  drop(std::move(codes));
  drop(fresh(4));
  EXPECT_EQ(fake.unloaded, 16);
  EXPECT_EQ(fake.modules.size(), 4u);
}

TEST_F(CudaUnload, ManyStreamsOneAfterAnother) {
  auto codes = fresh(1);
  for (uintptr_t stream = 100; stream < 200; ++stream) launch(*codes[0], stream), finish(stream);
  EXPECT_LE(fake.events.size(), 16u) << "events that have passed are used again";
  drop(std::move(codes));
  drop(fresh(15));
  EXPECT_TRUE(fake.modules.empty());
  auto busy = fresh(1);
  for (uintptr_t stream = 100; stream < 117; ++stream) launch(*busy[0], stream); // one more than are told apart
  fake.pending.clear();
  drop(std::move(busy));
  drop(fresh(16));
  EXPECT_EQ(fake.modules.size(), 1u) << "nobody knows when the last launch is over";
}

} // namespace
} // namespace elsewise
