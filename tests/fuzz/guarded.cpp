// SPDX-License-Identifier: Apache-2.0
// Pages and signals of the host. A signal's handler only writes what was made ready before.
#include "tests/fuzz/guarded.h"
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace elsewise::fuzz {
namespace {

constexpr size_t nobody = size_t(1) << 32; // bytes to each side that are not there

struct Report {
  char text[16384];
  size_t size;
};
Report &report() { // what a handler can reach
  static Report r;
  return r;
}

void say_and_end(int signal) {
  const char *what = signal == SIGFPE    ? "MISMATCH: arithmetic trapped, "
                     : signal == SIGILL  ? "MISMATCH: an instruction trapped, "
                     : signal == SIGABRT ? "MISMATCH: aborted, "
                                         : "MISMATCH: memory beside a tensor was touched, ";
  const Report &r = report();
  if (write(STDOUT_FILENO, what, std::strlen(what)) < 0 || write(STDOUT_FILENO, r.text, r.size) < 0) _exit(2);
  _exit(1);
}

} // namespace

Guarded::Guarded(const Case &c) : c_(c), at_end_(Random(c.program.seed ^ 0x9a6e).chance(50)) {
  for (size_t a = 0; a < c.arguments.size(); ++a) {
    const Input &in = *c.arguments[a];
    const bool own = in.type.kind == ArgKind::Tensor && int(a) != c.same_view;
    blocks_.push_back(own ? place(in.buffer.data(), in.buffer.size()) : Block{});
  }
  // One guard zone of `out` stays, for stores that pages do not see; on the other side the page begins.
  const std::vector<uint8_t> &whole = c.out_buffer;
  blocks_.push_back(at_end_ ? place(whole.data(), whole.size() - zone)
                            : place(whole.data() + zone, whole.size() - zone));
}

Guarded::~Guarded() {
  for (const Block &b : blocks_) {
    if (!b.map) continue;
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(b.map, b.mapped);
#endif
    munmap(b.map - nobody, b.mapped + 2 * nobody);
  }
}

Guarded::Block Guarded::place(const uint8_t *bytes, size_t size) const {
  const auto page = size_t(sysconf(_SC_PAGESIZE));
  Block b;
  b.size = size, b.mapped = std::max<size_t>((size + page - 1) / page, 1) * page;
  void *all = mmap(nullptr, b.mapped + 2 * nobody, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) std::perror("mmap"), std::abort();
  b.map = static_cast<uint8_t *>(all) + nobody;
  b.at = at_end_ ? b.map + (b.mapped - size) : b.map;
  if (size == 0) return b; // it is nowhere
  if (mprotect(b.map, b.mapped, PROT_READ | PROT_WRITE) != 0) std::perror("mprotect"), std::abort();
  std::memset(b.map, 0xff, b.mapped); // NaN, or the last value of a type
  std::memcpy(b.at, bytes, size);
#if defined(__SANITIZE_ADDRESS__)
  if (at_end_) ASAN_POISON_MEMORY_REGION(b.map, b.mapped - size);
  else ASAN_POISON_MEMORY_REGION(b.map + size, b.mapped - size);
#endif
  return b;
}

void Guarded::move(CallOf &call) const {
  uint8_t *out = blocks_.back().at + (c_.out_offset - (at_end_ ? 0 : zone));
  call.move_out(out);
  for (size_t a = 0; a < c_.arguments.size(); ++a) {
    const Input &in = *c_.arguments[a];
    if (int(a) == c_.same_view) call.move(a, out);
    else if (in.type.kind == ArgKind::Tensor) call.move(a, blocks_[a].at + in.offset * bytes(in.type.dtype));
  }
}

std::vector<uint8_t> Guarded::out() const {
  std::vector<uint8_t> all = c_.out_buffer;
  const Block &b = blocks_.back();
  std::copy_n(b.at, b.size, all.begin() + (at_end_ ? 0 : zone));
  return all;
}

std::string Guarded::written() const {
  for (size_t a = 0; a < c_.arguments.size(); ++a)
    if (blocks_[a].size && std::memcmp(blocks_[a].at, c_.arguments[a]->buffer.data(), blocks_[a].size))
      return c_.arguments[a]->name + " was written";
  return {};
}

void catch_traps() {
  const size_t size = 65536;
  stack_t stack{};
  stack.ss_sp = std::malloc(size), stack.ss_size = size; // for as long as the program runs
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_handler = say_and_end;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback([] { say_and_end(SIGSEGV); });
#endif
}

void running(const char *where, int programs, const std::string &text) {
  Report &r = report();
  const int size = std::snprintf(r.text, sizeof r.text, "%s, program %d: %s\n", where, programs, text.c_str());
  r.size = std::min<size_t>(size_t(std::max(size, 0)), sizeof r.text - 1);
}

} // namespace elsewise::fuzz
