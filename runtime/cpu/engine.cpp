// SPDX-License-Identifier: Apache-2.0
// One ORC session for the process, with one library of code a kernel, removed when the kernel dies. It never looks into
// the process for symbols.
#include "runtime/cpu/engine.h"
#include "compiler/ir/functions.h"
#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include <cmath>
#include <cstring>
#include <pthread.h>

namespace elsewise {
using namespace llvm;

namespace {

std::mutex mutex;
[[maybe_unused]] const int registered =
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });

class Engine {
public:
  static Engine *create(std::string &error) {
    auto control = orc::SelfExecutorProcessControl::Create(nullptr, std::make_unique<orc::InPlaceTaskDispatcher>());
    if (!control) {
      error = toString(control.takeError());
      return nullptr;
    }
    return new Engine(std::move(*control));
  }

  std::unique_ptr<LinkedCode> link(ArrayRef<char> object, StringRef entry, std::string &error);

private:
  explicit Engine(std::unique_ptr<orc::ExecutorProcessControl> control)
      : session(std::move(control)), memory(sys::Process::getPageSizeEstimate()), layer(session, memory),
        symbols(session.createBareJITDylib("symbols")) {
    session.setErrorReporter([this](Error e) { reported += toString(std::move(e)); });
    // All that generated code may call. The remainders are exact, so that every libm gives the same.
    orc::SymbolMap map;
    auto add = [&](StringRef name, auto *function) {
      map[session.intern(name)] = {orc::ExecutorAddr::fromPtr(function),
                                   JITSymbolFlags::Exported | JITSymbolFlags::Callable};
    };
    add("memcpy", static_cast<void *(*)(void *, const void *, size_t)>(std::memcpy));
    add("memset", static_cast<void *(*)(void *, int, size_t)>(std::memset));
    add("fmod", static_cast<double (*)(double, double)>(::fmod));
    add("fmodf", static_cast<float (*)(float, float)>(::fmodf));
    for (const auto &[name, address] : functions::addresses())
      map[session.intern(name)] = {orc::ExecutorAddr::fromPtr(address),
                                   JITSymbolFlags::Exported | JITSymbolFlags::Callable};
    cantFail(symbols.define(orc::absoluteSymbols(std::move(map))));
  }

  orc::ExecutionSession session;
  jitlink::InProcessMemoryManager memory;
  orc::ObjectLinkingLayer layer;
  orc::JITDylib &symbols;
  std::string reported;
  uint64_t made = 0;

  friend class OrcCode;
};

class OrcCode final : public LinkedCode {
public:
  OrcCode(Engine &engine, orc::JITDylib &library) : engine(engine), library(&library) {}
  ~OrcCode() override {
    std::lock_guard lock(compile_mutex());
    remove();
  }
  void remove() {
    if (library) consumeError(engine.session.removeJITDylib(*library));
    library = nullptr;
  }

private:
  Engine &engine;
  orc::JITDylib *library;
};

std::unique_ptr<LinkedCode> Engine::link(ArrayRef<char> object, StringRef entry, std::string &error) {
  orc::JITDylib &library = session.createBareJITDylib("kernel" + std::to_string(++made));
  library.addToLinkOrder(symbols);
  reported.clear();
  auto buffer = MemoryBuffer::getMemBufferCopy(StringRef(object.data(), object.size()), "elsewise");
  Error added = layer.add(library, std::move(buffer));
  if (!added) {
    auto found = session.lookup({&library}, entry);
    if (found) {
      auto code = std::make_unique<OrcCode>(*this, library);
      code->entry = found->getAddress().toPtr<void *>();
      return code;
    }
    added = found.takeError();
  }
  error = toString(std::move(added));
  if (!reported.empty()) error += "; " + reported;
  consumeError(session.removeJITDylib(library));
  return nullptr;
}

} // namespace

std::mutex &compile_mutex() { return mutex; }

std::unique_ptr<LinkedCode> link_object(ArrayRef<char> object, StringRef entry, std::string &error) {
  static Engine *engine = nullptr; // under compile_mutex(); never destroyed, since kernels may outlive static objects
  if (!engine) engine = Engine::create(error);
  return engine ? engine->link(object, entry, error) : nullptr;
}

} // namespace elsewise
