// SPDX-License-Identifier: Apache-2.0
// What this computer offers, in words, and what has been done so far, in numbers. It changes nothing but the size of
// the thread pool.
#include "runtime/cpu/pool.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/spec.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/TargetParser/Host.h"

namespace elsewise::api {

Counters counters() noexcept {
  Counters c;
  c.nvrtc = nvrtc_compilations(), c.orc = orc_compilations(), c.launches = cuda_launches();
  c.variants = counts.variants, c.plans = counts.plans, c.variant_hits = counts.variant_hits,
  c.plan_hits = counts.plan_hits;
  return c;
}

void set_threads(int threads) noexcept { set_cpu_threads(threads); }

bool cuda_available(std::string *why) noexcept try {
  std::string reason;
  if (cuda_driver(reason)) return true;
  if (why) *why = std::move(reason);
  return false;
} catch (const std::exception &) {
  return false;
}

std::vector<Fact> environment() noexcept try {
  std::vector<Fact> facts;
  facts.push_back({"elsewise", std::string(version()), ""});
  facts.push_back({"cpu", llvm::sys::getHostCPUName().str() + ", " + std::to_string(cpu_threads()) + " threads", ""});
  std::string features;
  const auto host = llvm::sys::getHostCPUFeatures();
  for (const char *feature : {"avx2", "fma", "f16c", "avx512f", "avx512bf16", "neon", "fullfp16", "bf16", "sve"})
    if (host.lookup(feature)) features += (features.empty() ? "" : " ") + std::string(feature);
  facts.push_back({"cpu features", features.empty() ? "none of those that are asked for" : features, ""});
  facts.push_back({"llvm", LLVM_VERSION_STRING, ""});
  std::string why;
  if (const CudaDriver *driver = cuda_driver(why)) {
    facts.push_back({"cuda driver",
                     driver->path + " (" + std::to_string(driver->driver_version / 1000) + "." +
                         std::to_string(driver->driver_version % 1000 / 10) + ")",
                     ""});
    for (int d = 0; d < driver->devices; ++d)
      facts.push_back({"cuda:" + std::to_string(d), device_description(*driver, d), ""});
  } else {
    facts.push_back({"cuda driver", "none", why});
  }
  why.clear();
  const std::string nvrtc = nvrtc_describe(why);
  facts.push_back({"nvrtc", nvrtc.empty() ? "none" : nvrtc, nvrtc.empty() ? why : ""});
  return facts;
} catch (const std::exception &) {
  return {};
}

std::string_view version() noexcept { return ELSEWISE_VERSION; }

} // namespace elsewise::api
