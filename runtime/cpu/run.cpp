// SPDX-License-Identifier: Apache-2.0
// One call of CPU code: split into chunks, in the arithmetic mode of the language, past the caches where that pays. It
// never changes a bit of the result.
#include "runtime/cpu/run.h"
#include "runtime/cpu/jit.h"
#include "runtime/cpu/pool.h"
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <immintrin.h>
#include <vector>

namespace elsewise {
namespace {

constexpr int64_t inline_bytes =
    1 << 20; // below: a sleeping thread wakes when the work is done (measured: 2 threads gain from 4 MiB on)
constexpr int64_t least_chunk = 128 << 10, greatest_chunk = 2 << 20;
constexpr int64_t line = 64; // bytes of a cache line: what a streaming store writes whole
// Bytes that code writes before they are streamed out. Small, so that the CPU reads the next block's input while it
// streams this one: measured at 2^26 floats, blocks of 512 bytes take 0.68 of plain stores, as long as streaming stores
// inside the loop would; 4096 bytes take 1.0.
constexpr int64_t block_bytes = 512;
constexpr int64_t least_streamed_row = 4 << 10;
constexpr uint32_t most_slots = 24; // each block loads them all

// Round to nearest, keep subnormal numbers: whatever the calling thread has set (torch.set_flush_denormal, a library
// built with -ffast-math).
class FloatMode {
public:
  FloatMode() : saved(_mm_getcsr()) {
    if (saved != plain) _mm_setcsr(plain);
  }
  ~FloatMode() {
    if (_mm_getcsr() != saved) _mm_setcsr(saved);
  }

private:
  static constexpr unsigned plain = 0x1f80; // all exceptions masked, no flag raised
  unsigned saved;
};

// Copies to memory that nobody will read soon, without first reading its lines.
__attribute__((target("avx"))) void stream(uint8_t *to, const uint8_t *from, int64_t count) {
  const int64_t head = std::min<int64_t>(count, -reinterpret_cast<uintptr_t>(to) & (line - 1));
  std::memcpy(to, from, size_t(head));
  int64_t i = head;
  for (; i + line <= count; i += line) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from + i));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from + i + line / 2));
    _mm256_stream_si256(reinterpret_cast<__m256i *>(to + i), low);
    _mm256_stream_si256(reinterpret_cast<__m256i *>(to + i + line / 2), high);
  }
  std::memcpy(to + i, from + i, size_t(count - i));
}

struct Launch {
  const CpuCode &code;
  const Slot *slots;

  // Elements between the output's start and that of row `r`.
  int64_t row_offset(int64_t r) const {
    int64_t offset = 0;
    for (uint32_t d = 0; d < code.rows; ++d) {
      int64_t at = r;
      if (d + 1 < code.rows) {
        const int64_t length = slots[code.row_lengths[d]].integer;
        at = r % length, r /= length;
      }
      offset += at * slots[code.out_strides[d]].integer;
    }
    return offset;
  }

  // The same code writes a small buffer, placed where the output's part would lie, and that is streamed out: no second
  // compilation, and the same bits.
  void run_streaming(int64_t row_begin, int64_t row_end, int64_t begin, int64_t end) const {
    alignas(line) uint8_t scratch[block_bytes + line];
    const int64_t size = code.output_bytes;
    std::vector<Slot> moved(slots, slots + code.slot_count);
    for (int64_t r = row_begin; r < row_end; ++r) {
      const int64_t offset = row_offset(r) * size;
      uint8_t *out = static_cast<uint8_t *>(slots[code.out_slot].pointer) + offset;
      for (int64_t c = begin, z; c < end; c = z) {
        const int64_t phase =
            reinterpret_cast<uintptr_t>(out + c * size) & (line - 1); // every block after the first starts a line
        z = std::min(end, c + (block_bytes + line - phase) / size);
        moved[code.out_slot].pointer =
            reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(scratch) + phase - c * size - offset);
        code.function(moved.data(), r, r + 1, c, z);
        stream(out + c * size, scratch + phase, (z - c) * size);
      }
    }
    _mm_sfence();
  }
};

} // namespace

// sysconf() is no help: in a virtual machine it has told of ten times the cache that there was.
static int64_t cache_bytes() {
  int64_t kilobytes = 0;
  if (FILE *file = std::fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re")) {
    if (std::fscanf(file, "%" SCNd64 "K", &kilobytes) != 1) kilobytes = 0;
    std::fclose(file);
  }
  return (kilobytes > 0 ? kilobytes : 32 << 10) << 10;
}

int64_t stream_from() {
  static const int64_t bytes = __builtin_cpu_supports("avx") ? cache_bytes() / 4 * 3 : INT64_MAX;
  return bytes;
}

void run_cpu(const CpuCode &code, const Slot *slots, int64_t rows, int64_t extent, int64_t bytes_per_position) {
  if (rows <= 0 || extent <= 0) return;
  bytes_per_position = std::max<int64_t>(1, bytes_per_position);
  const int64_t row_bytes = extent * bytes_per_position, total = rows * row_bytes;
  const Launch launch{code, slots};
  const bool streaming = rows * extent * code.output_bytes >= code.stream_from &&
                         extent * code.output_bytes >= least_streamed_row && code.slot_count <= most_slots;
  auto work = [&](int64_t row_begin, int64_t row_end, int64_t begin, int64_t end) {
    const FloatMode mode;
    if (streaming) launch.run_streaming(row_begin, row_end, begin, end);
    else code.function(slots, row_begin, row_end, begin, end);
  };
  const int threads = total < inline_bytes ? 1 : cpu_threads();
  if (threads == 1) return work(0, rows, 0, extent);

  const int64_t chunk = std::clamp(total / (threads * 4), least_chunk, greatest_chunk);
  if (row_bytes >= 2 * chunk) { // parts of rows; their ends are multiples of a line, so that no two threads write one
    const int64_t step = (chunk / bytes_per_position + line - 1) / line * line;
    const int64_t parts = (extent + step - 1) / step;
    parallel_for(rows * parts, [&](int64_t i) {
      const int64_t row = i / parts, begin = i % parts * step;
      work(row, row + 1, begin, std::min(extent, begin + step));
    });
  } else { // whole rows
    const int64_t step = std::max<int64_t>(1, chunk / row_bytes);
    parallel_for((rows + step - 1) / step,
                 [&](int64_t i) { work(i * step, std::min(rows, (i + 1) * step), 0, extent); });
  }
}

} // namespace elsewise
