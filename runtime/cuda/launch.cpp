// SPDX-License-Identifier: Apache-2.0
// Loading, launching and unloading of modules. A module goes only when an event behind every launch of it has passed,
// and never while a stream captures.
#include "runtime/cuda/launch.h"
#include <vector>

namespace elsewise {

namespace {

std::atomic<uint64_t> launches = 0;

enum { legacy_stream = 1, per_thread_stream = 2 };                             // CU_STREAM_LEGACY, …_PER_THREAD
enum { disable_timing = 2 };                                                   // CUevent_flags
enum { relaxed_capture = 2 };                                                  // CUstreamCaptureMode
enum { info_log = 3, info_log_bytes = 4, error_log = 5, error_log_bytes = 6 }; // CUjit_option

// While it lives, this thread may load and unload though another one captures: none of it touches a stream.
class RelaxedCapture {
public:
  explicit RelaxedCapture(const CudaDriver &driver) : driver(driver) { driver.exchange_capture_mode(&mode); }
  ~RelaxedCapture() { driver.exchange_capture_mode(&mode); }

private:
  const CudaDriver &driver;
  int mode = relaxed_capture;
};

} // namespace

constexpr size_t most_streams = 16; // whose last launches of one module are told apart

struct LoadedModule {
  const CudaDriver *driver = nullptr;
  CuContext context = nullptr;
  CuModule module = nullptr;
  CuFunction function = nullptr;
  // The last launch on each stream that was used. A stream is known by its address, so a new one at an old one's place
  // shares its event: then the event is behind the later launch, and the earlier stream was waited for when it was
  // destroyed.
  struct Last {
    CuStream stream;
    CuEvent event;
  };
  std::mutex mutex;
  std::vector<Last> last;
  std::atomic<bool> in_graph = false; // a graph holds the function: it may be launched at any time
};

namespace {

// Modules that nobody can launch any more, waiting for their events. The driver's unloading waits for the device too,
// so they go some at a time.
constexpr size_t unload_from = 16;
struct Graveyard {
  std::mutex mutex;
  std::vector<std::unique_ptr<LoadedModule>> modules;
};
Graveyard &graveyard() {
  static Graveyard *g = new Graveyard;
  return *g;
}

// A capture into which the driver would take what the default stream does; the driver refuses to say more of it.
bool captures(const CudaDriver &driver) {
  int status = 0;
  return driver.stream_is_capturing(reinterpret_cast<CuStream>(uintptr_t(legacy_stream)), &status) != 0 || status != 0;
}

bool finished(const CudaDriver &driver, const LoadedModule &m) {
  for (const auto &last : m.last)
    if (driver.event_query(last.event) != 0) return false;
  return true;
}

void bury(std::unique_ptr<LoadedModule> module) {
  std::string why;
  const CudaDriver *driver = cuda_driver(why);
  if (!driver || module->in_graph) { // in a forked child the handles mean nothing
    module.release();
    return;
  }
  Graveyard &g = graveyard();
  std::lock_guard lock(g.mutex);
  g.modules.push_back(std::move(module));
  if (g.modules.size() < unload_from) return;
  const RelaxedCapture relaxed(*driver);
  std::erase_if(g.modules, [&](const std::unique_ptr<LoadedModule> &m) {
    if (m->driver != driver) return false;
    const CurrentContext current(*driver, m->context);
    if (current.error() != 0 || captures(*driver) || !finished(*driver, *m)) return false;
    for (const auto &last : m->last) driver->event_destroy(last.event);
    driver->module_unload(m->module);
    return true;
  });
}

} // namespace

CudaCode::~CudaCode() {
  for (auto &slot : modules_)
    if (LoadedModule *m = slot.load()) bury(std::unique_ptr<LoadedModule>(m));
}

bool CudaCode::loaded(int ordinal) const {
  return ordinal >= 0 && ordinal < most_devices && modules_[ordinal].load(std::memory_order_acquire);
}

std::string CudaCode::cubin(const std::string &arch) const {
  const auto found = code_.find(arch);
  return found == code_.end() ? "" : found->second;
}

bool CudaCode::load(int ordinal, const std::string &arch, const std::string &code, std::string &error) {
  const CudaDriver *driver = cuda_driver(error);
  if (!driver) return false;
  const CuContext context = primary_context(*driver, ordinal, error);
  if (!context) return false;
  const CurrentContext current(*driver, context);
  auto failed = [&](const char *what, int result, const std::string &log = "") {
    error = std::string(what) + " on CUDA device " + std::to_string(ordinal) +
            " failed: " + cuda_error(*driver, result) + (log.empty() ? "" : "\n" + log);
    return false;
  };
  if (current.error() != 0) return failed("making the context current", current.error());
  auto module = std::make_unique<LoadedModule>();
  module->driver = driver, module->context = context;
  const RelaxedCapture relaxed(*driver);
  std::string log(8192, '\0');
  int options[] = {error_log, error_log_bytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
  if (int result = driver->module_load(&module->module, code.c_str(), 2, options, values))
    return failed("loading the kernel", result, log.c_str());
  if (int result = driver->module_function(&module->function, module->module, "elsewise")) {
    driver->module_unload(module->module);
    return failed("finding the kernel", result);
  }
  code_[arch] = code;
  modules_[ordinal].store(module.release(), std::memory_order_release);
  return true;
}

std::optional<CudaFacts> CudaCode::facts(int ordinal) const {
  enum { shared = 1, local = 3, registers = 4, binary = 6 }; // CUfunction_attribute
  std::string why;
  const CudaDriver *driver = cuda_driver(why);
  if (!driver || !driver->function_attribute || !loaded(ordinal)) return std::nullopt;
  const LoadedModule &module = *modules_[ordinal].load(std::memory_order_acquire);
  const CurrentContext current(*driver, module.context);
  if (current.error() != 0) return std::nullopt;
  CudaFacts f;
  for (const auto &[attribute, to] : {std::pair<int, int *>{registers, &f.registers},
                                      {local, &f.local_bytes},
                                      {shared, &f.shared_bytes},
                                      {binary, &f.binary}})
    if (driver->function_attribute(to, attribute, module.function) != 0) return std::nullopt;
  return f;
}

bool CudaCode::launch(int ordinal, const Geometry &g, void *stream, void **parameters, std::string &error) const {
  LoadedModule *module = loaded(ordinal) ? modules_[ordinal].load(std::memory_order_acquire) : nullptr;
  const CudaDriver *driver = cuda_driver(error);
  if (!driver) return false;
  if (!module) {
    error = "the kernel is not loaded on CUDA device " + std::to_string(ordinal);
    return false;
  }
  const CurrentContext current(*driver, module->context);
  const CuStream on = static_cast<CuStream>(stream);
  int result = current.error();
  if (result == 0)
    result = driver->launch(module->function, g.grid, 1, 1, g.block_x, g.block_y, 1, 0, on, parameters, nullptr);
  if (result != 0) {
    error = "the launch on CUDA device " + std::to_string(ordinal) + " failed: " + cuda_error(*driver, result) +
            "; if an earlier kernel of this process failed, its error shows here";
    return false;
  }
  launches.fetch_add(1, std::memory_order_relaxed);

  int capturing = 0;
  const bool many = reinterpret_cast<uintptr_t>(on) == per_thread_stream; // one address, a stream for each thread
  if (many || (on && driver->stream_is_capturing(on, &capturing) == 0 && capturing)) {
    module->in_graph = true;
    return true;
  }
  // The event that unloading waits for. If it cannot be had, the module stays for good.
  std::lock_guard lock(module->mutex);
  auto last = module->last.begin();
  while (last != module->last.end() && last->stream != on) ++last;
  if (last == module->last.end()) {
    CuEvent event = nullptr;
    if (module->last.size() >= most_streams) { // an event that has passed is free for another stream
      const RelaxedCapture relaxed(*driver);   // a query would end what another thread captures
      last = module->last.begin();
      while (last != module->last.end() && driver->event_query(last->event) != 0) ++last;
      if (last != module->last.end()) last->stream = on;
    } else if (driver->event_create(&event, disable_timing) == 0) {
      last = module->last.insert(last, {on, event});
    }
    if (last == module->last.end()) {
      module->in_graph = true;
      return true;
    }
  }
  if (driver->event_record(last->event, on) != 0) module->in_graph = true;
  return true;
}

uint64_t cuda_launches() { return launches; }

} // namespace elsewise
