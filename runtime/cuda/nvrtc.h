// SPDX-License-Identifier: Apache-2.0
// NVRTC, found and opened at run time. It compiles text and knows no device.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace elsewise {

struct NvrtcResult {
  std::string code;     // cubin bytes, or PTX text
  std::string error;    // empty if it worked; otherwise says where NVRTC was looked for and what to install, or the
                        // compiler's log with numbered source
  bool missing = false; // no NVRTC at all (an environment fault, not ours)
};

/// arch: "sm_90" gives a cubin, "compute_90" or ptx = true gives PTX. If this NVRTC does not know `arch`: the highest
/// of the same major that it knows, else PTX of its highest.
NvrtcResult nvrtc_compile(const std::string &source, const std::string &arch, bool ptx,
                          const std::vector<std::string> &options);
/// Architectures that the NVRTC in use compiles for, ascending: {"sm_75", "sm_80", …}. Empty without NVRTC.
std::vector<std::string> nvrtc_archs();
/// Folders (or files) to look in before CUDA_HOME, CUDA_PATH, /usr/local/cuda and the system's loader; ELSEWISE_NVRTC,
/// a file or a folder, goes before all. Has no effect once an NVRTC is open.
void set_nvrtc_paths(std::vector<std::string>);
/// A library that may be taken, and what named its place. Without a folder the path is a name for the system's loader.
struct NvrtcPlace {
  std::string path, named_by; // "ELSEWISE_NVRTC", "pip", "CUDA_HOME", "CUDA_PATH", "/usr/local/cuda", "the system"
};
/// Every library that is there, in the order of trying; the loader's names come last, there or not. Opens none.
std::vector<NvrtcPlace> nvrtc_places();
/// "/path/libnvrtc.so.13 (13.0)" or "" with `error` set.
std::string nvrtc_describe(std::string &error);
/// 12040: 12.4, as the driver counts; 0 without one.
int nvrtc_version();
uint64_t nvrtc_compilations();

} // namespace elsewise
