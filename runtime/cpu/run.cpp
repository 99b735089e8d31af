// SPDX-License-Identifier: Apache-2.0
// One call of CPU code: split into chunks, in the arithmetic mode of the language, past the caches where that pays. It
// never changes a bit of the result.
#include "runtime/cpu/run.h"
#include "runtime/cpu/jit.h"
#include "runtime/cpu/pool.h"
#include <algorithm>
#include <cstring>
#include <immintrin.h>
#include <unistd.h>

namespace elsewise {
namespace {

constexpr int64_t inline_bytes = 256 << 10; // below: waking a thread costs more than it saves
constexpr int64_t least_chunk = 128 << 10, greatest_chunk = 2 << 20;
constexpr int64_t line = 64;                // bytes of a cache line: what a streaming store writes whole
constexpr int64_t scratch_bytes = 16 << 10; // stays in the first-level cache
constexpr int64_t least_streamed_row = 4 << 10;

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

// Copies to memory that nobody will read soon without first reading its lines.
void stream(uint8_t *to, const uint8_t *from, int64_t count) {
  const int64_t head = std::min<int64_t>(count, -reinterpret_cast<uintptr_t>(to) & (line - 1));
  std::memcpy(to, from, size_t(head));
  int64_t i = head;
  for (; i + line <= count; i += line)
    for (int64_t j = 0; j < line; j += 16)
      _mm_stream_si128(reinterpret_cast<__m128i *>(to + i + j),
                       _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i + j)));
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
    alignas(line) uint8_t scratch[scratch_bytes + line];
    const int64_t size = code.output_bytes;
    std::vector<Slot> moved(slots, slots + code.slot_count);
    for (int64_t r = row_begin; r < row_end; ++r) {
      const int64_t offset = row_offset(r) * size;
      uint8_t *out = static_cast<uint8_t *>(slots[code.out_slot].pointer) + offset;
      for (int64_t c = begin, z; c < end; c = z) {
        const int64_t phase =
            reinterpret_cast<uintptr_t>(out + c * size) & (line - 1); // every block after the first starts a line
        z = std::min(end, c + (scratch_bytes - phase) / size);
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

int64_t cache_bytes() {
  static const int64_t bytes = [] {
    const long found = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return int64_t(found > 0 ? found : 32 << 20);
  }();
  return bytes;
}

void run_cpu(const CpuCode &code, const Slot *slots, int64_t rows, int64_t extent, int64_t bytes_per_position) {
  if (rows <= 0 || extent <= 0) return;
  bytes_per_position = std::max<int64_t>(1, bytes_per_position);
  const int64_t row_bytes = extent * bytes_per_position, total = rows * row_bytes;
  const Launch launch{code, slots};
  const bool streaming =
      rows * extent * code.output_bytes >= code.stream_from && extent * code.output_bytes >= least_streamed_row;
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
