// SPDX-License-Identifier: Apache-2.0
// Builds and runs shim programs. It knows the compiler's command line and the launch loop, and no language rule.
#include "tests/shim/shim.h"
#include "compiler/emit/cuda_types.h"
#include "compiler/ir/functions.h"
#include "runtime/layout/layout.h"
#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace elsewise::test {

std::string shim_program(const std::vector<std::string> &cuda_texts) {
  std::string program = "#include \"device.h\"\n";
  std::string table, barriers;
  for (size_t k = 0; k < cuda_texts.size(); ++k) {
    // A namespace a kernel: helpers of the same name may differ. C linkage would make all kernels one.
    std::string text = cuda::replace(cuda::for_host(cuda_texts[k]), "extern \"C\" __global__", "__global__");
    const std::string space = "kernel" + std::to_string(k);
    program += "\nnamespace " + space + " {\nSHIM_FUNCTIONS\n" + text + "} // namespace " + space +
               "\n#undef inf\n#undef nan\n";
    table += "    [](const void *const *slots) { call_with(" + space + "::elsewise, slots); },\n";
    barriers += cuda_texts[k].find("__syncthreads();") != std::string::npos ? "true, " : "false, ";
  }
  program += "\nstatic void (*const kernels[])(const void *const *) = {\n" + table + "};\n";
  program += "static constexpr bool has_barrier[] = {" + barriers + "};\n";
  program += "extern \"C\" const unsigned long shim_kernel_count = " + std::to_string(cuda_texts.size()) + ";\n";
  program +=
      R"(extern "C" void shim_launch(int kernel, unsigned grid, unsigned block_x, unsigned block_y, const void *const *slots) {
  blockDim = {block_x, block_y, 1};
  for (unsigned b = 0; b < grid; ++b)
    for (shim_pass = has_barrier[kernel] ? 0 : 1, shim_waiting = 0; shim_pass < 2; ++shim_pass) {
      for (unsigned y = 0; y < block_y; ++y)
        for (unsigned x = 0; x < block_x; ++x) {
          blockIdx = {b, 0, 0}, threadIdx = {x, y, 0};
          kernels[kernel](slots);
        }
      if (has_barrier[kernel] && shim_waiting != int(block_x * block_y)) {
        std::fprintf(stderr, "a thread of block %u left before the barrier\n", b);
        std::abort();
      }
    }
}
)";
  return program;
}

// The row that a device function is, by the spelling for doubles, and its value.
static const void *find_function(const char *name) {
  for (const Builtin &row : builtins())
    if (!row.cpu.empty() && row.cuda[ClassF64].substr(0, row.cuda[ClassF64].find('(')) == name) return &row;
  return nullptr;
}
static double call_function(const void *row, bool is_double, double x, double y) {
  const double operands[] = {x, y};
  return functions::evaluate(*static_cast<const Builtin *>(row), is_double ? DType::F64 : DType::F32, operands);
}

// Where device.h lies; the build says, since __FILE__ may be relative to a folder that is not known here.
static std::string shim_folder() { return ELSEWISE_SHIM_FOLDER; }

std::unique_ptr<ShimBatch> ShimBatch::build(const std::vector<std::string> &cuda_texts, std::string &error,
                                            const std::string &flags) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "elsewise-shim-XXXXXX").string();
  if (!mkdtemp(pattern.data())) {
    error = "no temporary folder for the shim's program";
    return nullptr;
  }
  const fs::path folder = pattern, source = folder / "kernels.cpp", library = folder / "kernels.so",
                 log = folder / "log";
  std::ofstream(source) << shim_program(cuda_texts);
  const char *compiler = std::getenv("CXX");
  const std::string command =
      std::string(compiler && *compiler ? compiler : "g++") +
      " -std=c++20 -O1 -shared -fPIC -ffp-contract=off -fsanitize=alignment,bounds -fno-sanitize-recover=all " + flags +
      " -frounding-math" // else g++ 12 makes -(float)i of 0 - (float)i, which is -0 where i is 0
      " -I'" +
      shim_folder() + "' -o '" + library.string() + "' '" + source.string() + "' > '" + log.string() + "' 2>&1";
  const bool failed = std::system(command.c_str()) != 0;
  std::stringstream text;
  text << std::ifstream(log).rdbuf();
  // g++ only warns of an overload that NVRTC refuses.
  if (failed || text.str().find("says that these are ambiguous") != std::string::npos) {
    error = text.str() + "\nin " + source.string();
    std::error_code ignored;
    if (!std::getenv("ELSEWISE_KEEP_SHIM")) fs::remove_all(folder, ignored);
    else error += ", which is kept";
    return nullptr;
  }
  std::unique_ptr<ShimBatch> batch(new ShimBatch);
  batch->library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!batch->library_) {
    const char *why = dlerror();
    error = why ? why : "dlopen failed";
    return nullptr;
  }
  *static_cast<decltype(&find_function) *>(dlsym(batch->library_, "shim_find")) = find_function;
  *static_cast<decltype(&call_function) *>(dlsym(batch->library_, "shim_function")) = call_function;
  batch->size_ = *static_cast<const unsigned long *>(dlsym(batch->library_, "shim_kernel_count"));
  batch->launch_ = reinterpret_cast<decltype(batch->launch_)>(dlsym(batch->library_, "shim_launch"));
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return batch;
}

ShimBatch::~ShimBatch() {
  if (library_) dlclose(library_);
}

void ShimBatch::launch(size_t kernel, const Geometry &g, const void *const *slots) const {
  launch_(int(kernel), g.grid, g.block_x, g.block_y, slots);
}

std::vector<const void *> CudaCall::pointers() const {
  std::vector<const void *> p;
  for (size_t s = 0; s < infos.size(); ++s)
    p.push_back(infos[s].kind == SlotKind::Live       ? static_cast<const void *>(&live)
                : infos[s].kind == SlotKind::Segments ? table.data()
                                                      : static_cast<const void *>(&slots[s]));
  return p;
}

Slot Alike::slot(const SlotInfo &s) const {
  Slot v{};
  switch (s.kind) {
  case SlotKind::Out:
    v.pointer = out;
    break;
  case SlotKind::In:
    v.pointer = const_cast<void *>(in);
    break;
  case SlotKind::Rows:
    v.integer = rows;
    break;
  case SlotKind::Extent:
  case SlotKind::RowPitch:
    v.integer = extent;
    break;
  case SlotKind::OutStride:
  case SlotKind::InStride:
    v.integer = pitch;
    break;
  case SlotKind::OutInner:
  case SlotKind::InInner:
    v.integer = inner;
    break;
  default:
    break;
  }
  return v;
}

CudaCall cuda_call(const Kernel &k, const std::function<Slot(const SlotInfo &)> &value) {
  CudaCall call;
  call.infos = slots(k, Backend::Cuda);
  std::vector<int64_t> out_strides, lengths;
  int64_t rows = 1, extent = 0;
  uintptr_t out = 0;
  for (const SlotInfo &s : call.infos) {
    const bool own = s.kind == SlotKind::Shift || s.kind == SlotKind::Blocks || s.kind == SlotKind::Live ||
                     s.kind == SlotKind::Inverse || s.kind == SlotKind::InverseShift || s.kind == SlotKind::Segments;
    const Slot v = own ? Slot{} : value(s);
    call.slots.push_back(v);
    if (s.kind == SlotKind::OutStride) out_strides.push_back(v.integer);
    if (s.kind == SlotKind::RowLength) lengths.push_back(v.integer);
    if (s.kind == SlotKind::Rows) rows = v.integer;
    if (s.kind == SlotKind::Extent) extent = v.integer;
    if (s.kind == SlotKind::Out && s.index == 0) out = reinterpret_cast<uintptr_t>(v.pointer);
  }
  call.geometry = geometry(k, k.form, rows, extent, out, out_strides, lengths);
  for (size_t s = 0; s < call.infos.size(); ++s) {
    if (call.infos[s].kind == SlotKind::Shift) call.slots[s].integer = call.geometry.shift;
    if (call.infos[s].kind == SlotKind::Blocks) call.slots[s].integer = call.geometry.blocks;
    if (call.infos[s].kind == SlotKind::Inverse || call.infos[s].kind == SlotKind::InverseShift) {
      const SlotInfo &of = call.infos[s];
      int64_t length = k.form.flat ? extent : int64_t(call.geometry.blocks);
      for (size_t l = 0; of.index && l < call.infos.size(); ++l)
        if (call.infos[l].kind == SlotKind::RowLength && call.infos[l].index == of.index - 1)
          length = call.slots[l].integer;
      const Inverse i = inverse(length, int(of.box));
      call.slots[s].integer = of.kind == SlotKind::Inverse ? int64_t(i.multiplier) : i.shift;
    }
  }
  if (!has_live(k) && !k.form.segments) return call;
  std::vector<BoxBounds> boxes;
  for (uint32_t p = 0; p < k.pieces.size(); ++p)
    for (uint32_t x = 0; x < k.pieces[p].boxes.size(); ++x) {
      BoxBounds all{0, extent}; // row-major positions too: then there is one row
      const auto &box = k.pieces[p].boxes[x];
      for (uint8_t r = 0; r < box.size(); ++r) {
        auto bound = [&](SlotKind kind) { return value({kind, p, x, DType::Index, r}).integer; };
        if (box[r].lo != no_node) all.begin = std::max(all.begin, bound(SlotKind::Begin));
        if (box[r].hi != no_node) all.end = std::min(all.end, bound(SlotKind::End));
      }
      boxes.push_back(all);
    }
  std::vector<Segment> segments;
  cut(k, boxes, extent, segments);
  if (k.form.segments) segment_table(k, segments, call.table);
  if (has_live(k)) call.live = live_ranges(k, segments, extent, call.geometry.shift, call.geometry.grid);
  return call;
}

} // namespace elsewise::test
