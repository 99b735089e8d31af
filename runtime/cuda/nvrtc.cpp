// SPDX-License-Identifier: Apache-2.0
// NVRTC through dlopen: where it is looked for, which architecture is asked of it, and what a failure says. It never
// touches the driver.
#include "runtime/cuda/nvrtc.h"
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <mutex>

namespace elsewise {
namespace {

using Program = void *;
constexpr int out_of_memory = 1, invalid_option = 5, builtin_failure = 7; // nvrtcResult

// The part of nvrtc.h that is used, by name.
struct Nvrtc {
  int (*version)(int *, int *);
  const char *(*error_string)(int);
  int (*archs_count)(int *);
  int (*archs)(int *);
  int (*create)(Program *, const char *, const char *, int, const char *const *, const char *const *);
  int (*destroy)(Program *);
  int (*compile)(Program, int, const char *const *);
  int (*ptx_size)(Program, size_t *);
  int (*ptx)(Program, char *);
  int (*cubin_size)(Program, size_t *);
  int (*cubin)(Program, char *);
  int (*log_size)(Program, size_t *);
  int (*log)(Program, char *);

  std::string path;
  int major = 0, minor = 0;
  std::vector<int> known; // supported architectures, ascending
};

struct State {
  std::mutex mutex;
  std::vector<std::string> paths;
  Nvrtc api;
  bool open = false;
};
// Process-wide because a shared library is: it is opened once and stays.
State &state() {
  static State *s = new State; // never destroyed: NVRTC may be in use in another thread at exit
  return *s;
}
std::atomic<uint64_t> compilations{0};

template <class F> bool symbol(void *library, const char *name, F &to) {
  to = reinterpret_cast<F>(dlsym(library, name));
  return to != nullptr;
}

bool resolve(void *library, Nvrtc &api) {
  if (!(symbol(library, "nvrtcVersion", api.version) && symbol(library, "nvrtcGetErrorString", api.error_string) &&
        symbol(library, "nvrtcGetNumSupportedArchs", api.archs_count) &&
        symbol(library, "nvrtcGetSupportedArchs", api.archs) && symbol(library, "nvrtcCreateProgram", api.create) &&
        symbol(library, "nvrtcDestroyProgram", api.destroy) && symbol(library, "nvrtcCompileProgram", api.compile) &&
        symbol(library, "nvrtcGetPTXSize", api.ptx_size) && symbol(library, "nvrtcGetPTX", api.ptx) &&
        symbol(library, "nvrtcGetCUBINSize", api.cubin_size) && symbol(library, "nvrtcGetCUBIN", api.cubin) &&
        symbol(library, "nvrtcGetProgramLogSize", api.log_size) && symbol(library, "nvrtcGetProgramLog", api.log)))
    return false;
  int count = 0;
  if (api.version(&api.major, &api.minor) != 0 || api.archs_count(&count) != 0 || count <= 0) return false;
  api.known.resize(count);
  if (api.archs(api.known.data()) != 0) return false;
  std::sort(api.known.begin(), api.known.end());
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(api.version), &info) && info.dli_fname) api.path = info.dli_fname;
  return true;
}

// "libnvrtc.so.13.0" -> {13, 0}; false for other files (the static library, the builtins).
bool version_of(const std::string &name, std::string_view stem, std::vector<int> &version) {
  if (name.rfind(stem, 0) != 0) return false;
  version.clear();
  std::string_view rest = std::string_view(name).substr(stem.size());
  while (!rest.empty()) {
    if (rest[0] != '.' || rest.size() < 2) return false;
    size_t at = 1;
    int v = 0;
    for (; at < rest.size() && rest[at] >= '0' && rest[at] <= '9'; ++at) v = v * 10 + (rest[at] - '0');
    if (at == 1) return false;
    version.push_back(v);
    rest.remove_prefix(at);
  }
  return true;
}

// Files of a folder called `stem` or `stem.N…`, newest version first.
std::vector<std::string> libraries(const std::string &folder, std::string_view stem) {
  namespace fs = std::filesystem;
  std::vector<std::pair<std::vector<int>, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::vector<int> version;
    if (version_of(at->path().filename().string(), stem, version)) found.emplace_back(version, at->path().string());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> paths;
  for (auto &[version, path] : found) paths.push_back(std::move(path));
  return paths;
}

// Folders and files to look in, in this order.
std::vector<NvrtcPlace> candidates(const std::vector<std::string> &given) {
  std::vector<NvrtcPlace> places;
  if (const char *own = std::getenv("ELSEWISE_NVRTC"); own && *own) places.push_back({own, "ELSEWISE_NVRTC"});
  for (const std::string &path : given) places.push_back({path, "pip"});
  auto toolkit = [&](const std::string &root, const char *named_by) {
    for (const char *lib : {"/lib64", "/targets/x86_64-linux/lib", "/targets/sbsa-linux/lib", "/lib"})
      places.push_back({root + lib, named_by});
  };
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *root = std::getenv(variable); root && *root) toolkit(root, variable);
  toolkit("/usr/local/cuda", "/usr/local/cuda");
  return places;
}

constexpr const char *loader_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};

// Opens one library. NVRTC itself opens its builtins by bare name, which fails outside the loader's path: so they go
// first, by path.
bool open_library(const std::string &path, Nvrtc &api, std::string &why) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty())
    for (const std::string &builtins : libraries(folder, "libnvrtc-builtins.so"))
      if (dlopen(builtins.c_str(), RTLD_NOW | RTLD_GLOBAL)) break;
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *message = dlerror();
    why = message ? message : "cannot be opened";
    return false;
  }
  if (resolve(library, api)) return true;
  why = "is not an NVRTC of CUDA 11.2 or newer";
  dlclose(library);
  return false;
}

// The open NVRTC, or null with `error` set. What was opened stays open; a failure is tried anew at the next call.
const Nvrtc *nvrtc(std::string &error) {
  State &s = state();
  const std::lock_guard lock(s.mutex);
  if (s.open) return &s.api;
  std::string looked;
  auto attempt = [&](const std::string &path) {
    std::string why;
    if (open_library(path, s.api, why)) return s.open = true;
    if (why.rfind(path + ": ", 0) == 0) why.erase(0, path.size() + 2);
    looked += "\n  " + path + ": " + why;
    return false;
  };
  for (const auto &[place, named_by] : candidates(s.paths)) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(place, ignored)) {
      if (std::filesystem::exists(place, ignored)) {
        if (attempt(place)) return &s.api;
      } else looked += "\n  " + place + ": not there";
      continue;
    }
    const std::vector<std::string> found = libraries(place, "libnvrtc.so");
    if (found.empty()) looked += "\n  " + place + ": no libnvrtc.so in this folder";
    for (const std::string &path : found)
      if (attempt(path)) return &s.api;
  }
  for (const char *name : loader_names)
    if (attempt(name)) return &s.api;
  error = "no NVRTC was found, which compiles kernels for the GPU; `pip install nvidia-cuda-nvrtc` brings one, and "
          "ELSEWISE_NVRTC can name its file or folder; looked in:" +
          looked;
  return nullptr;
}

struct Target {
  std::string option; // "sm_90" or "compute_90"
  bool ptx;
};

// Digits of "sm_90", "sm_90a", "compute_90"; 0 if there are none.
int number_of(const std::string &arch) {
  const size_t at = arch.find('_');
  int v = 0;
  for (size_t k = at == std::string::npos ? 0 : at + 1; k < arch.size() && arch[k] >= '0' && arch[k] <= '9'; ++k)
    v = v * 10 + (arch[k] - '0');
  return v;
}

// A cubin runs on its own major version from its minor upwards; PTX on everything from its version upwards.
bool choose(const Nvrtc &api, const std::string &arch, bool ptx, Target &target) {
  const int wanted = number_of(arch);
  ptx |= arch.rfind("compute_", 0) == 0;
  if (std::binary_search(api.known.begin(), api.known.end(), wanted)) {
    const size_t at = arch.find('_');
    target = {(ptx ? "compute_" : "sm_") + arch.substr(at == std::string::npos ? 0 : at + 1), ptx};
    return true;
  }
  int cubin = 0, any = 0;
  for (int known : api.known)
    if (known <= wanted) any = known, cubin = known / 10 == wanted / 10 ? known : cubin;
  if (!any) return false;
  target =
      cubin && !ptx ? Target{"sm_" + std::to_string(cubin), false} : Target{"compute_" + std::to_string(any), true};
  return true;
}

std::string numbered(const std::string &source) {
  std::string out;
  int line = 1;
  for (size_t at = 0; at < source.size(); ++line) {
    const size_t end = std::min(source.find('\n', at), source.size());
    std::string number = std::to_string(line);
    out += std::string(number.size() < 4 ? 4 - number.size() : 0, ' ') + number + "  " + source.substr(at, end - at) +
           "\n";
    at = end + 1;
  }
  return out;
}

// Destroys the program on every way out.
class Unit {
public:
  Unit(const Nvrtc &api, const std::string &source)
      : api_(api), failed_(api.create(&program_, source.c_str(), "elsewise.cu", 0, nullptr, nullptr)) {}
  Unit(const Unit &) = delete;
  Unit &operator=(const Unit &) = delete;
  ~Unit() {
    if (program_) api_.destroy(&program_);
  }
  int compile(const std::vector<std::string> &options) {
    if (failed_) return failed_;
    std::vector<const char *> pointers;
    for (const std::string &o : options) pointers.push_back(o.c_str());
    return api_.compile(program_, int(pointers.size()), pointers.data());
  }
  std::string log() const { return text(api_.log_size, api_.log); }
  std::string code(bool ptx) const { return ptx ? text(api_.ptx_size, api_.ptx) : bytes(api_.cubin_size, api_.cubin); }

private:
  std::string bytes(int (*size)(Program, size_t *), int (*get)(Program, char *)) const {
    size_t count = 0;
    if (!program_ || size(program_, &count) != 0) return "";
    std::string s(count, '\0');
    if (get(program_, s.data()) != 0) return "";
    return s;
  }
  std::string text(int (*size)(Program, size_t *), int (*get)(Program, char *)) const {
    std::string s = bytes(size, get);
    while (!s.empty() && s.back() == '\0') s.pop_back();
    return s;
  }
  const Nvrtc &api_;
  Program program_ = nullptr;
  int failed_;
};

} // namespace

NvrtcResult nvrtc_compile(const std::string &source, const std::string &arch, bool ptx,
                          const std::vector<std::string> &options) {
  NvrtcResult result;
  const Nvrtc *api = nvrtc(result.error);
  if (!api) {
    result.missing = true;
    return result;
  }
  Target target;
  if (!choose(*api, arch, ptx, target)) {
    result.missing = true;
    result.error = "NVRTC " + std::to_string(api->major) + "." + std::to_string(api->minor) + " (" + api->path +
                   ") does not compile for " + arch + ", only from sm_" + std::to_string(api->known.front()) +
                   " on; an older nvidia-cuda-nvrtc does";
    return result;
  }
  std::vector<std::string> all{"--gpu-architecture=" + target.option};
  all.insert(all.end(), options.begin(), options.end());
  int status = 0;
  std::string log;
  // `--minimal` only saves time, and NVRTCs before CUDA 12.8 do not know it.
  for (bool again = true; again;) {
    again = false;
    ++compilations;
    Unit unit(*api, source);
    status = unit.compile(all);
    if (status == 0) {
      result.code = unit.code(target.ptx);
      if (!result.code.empty()) return result;
    }
    log = unit.log();
    const auto minimal = std::find(all.begin(), all.end(), "--minimal");
    if (status == invalid_option && minimal != all.end()) all.erase(minimal), again = true;
  }
  if (status == out_of_memory || status == builtin_failure) {
    result.missing = true;
    result.error = std::string(api->error_string(status)) + " from " + api->path + "; " +
                   (status == out_of_memory ? "there is not enough memory to compile"
                                            : "its libnvrtc-builtins is missing or of another version, "
                                              "`pip install --force-reinstall nvidia-cuda-nvrtc` mends it") +
                   "\n" + log;
    return result;
  }
  std::string flags;
  for (const std::string &o : all) flags += " " + o;
  result.error = "NVRTC refused CUDA C that elsewise wrote, which is a bug in elsewise; please report this text\n" +
                 std::string(api->error_string(status)) + " from NVRTC " + std::to_string(api->major) + "." +
                 std::to_string(api->minor) + " with" + flags + "\n" + log + "\n" + numbered(source);
  return result;
}

std::vector<std::string> nvrtc_archs() {
  std::string error;
  std::vector<std::string> out;
  if (const Nvrtc *api = nvrtc(error))
    for (int known : api->known) out.push_back("sm_" + std::to_string(known));
  return out;
}

std::vector<NvrtcPlace> nvrtc_places() {
  State &s = state();
  const std::lock_guard lock(s.mutex);
  std::vector<NvrtcPlace> found;
  for (const NvrtcPlace &place : candidates(s.paths)) {
    std::error_code ignored;
    if (std::filesystem::is_directory(place.path, ignored))
      for (std::string &path : libraries(place.path, "libnvrtc.so")) found.push_back({std::move(path), place.named_by});
    else if (std::filesystem::exists(place.path, ignored)) found.push_back(place);
  }
  for (const char *name : loader_names) found.push_back({name, "the system"});
  return found;
}

std::string nvrtc_describe(std::string &error) {
  const Nvrtc *api = nvrtc(error);
  return api ? api->path + " (" + std::to_string(api->major) + "." + std::to_string(api->minor) + ")" : "";
}

int nvrtc_version() {
  std::string error;
  const Nvrtc *api = nvrtc(error);
  return api ? api->major * 1000 + api->minor * 10 : 0;
}

uint64_t nvrtc_compilations() { return compilations; }

void set_nvrtc_paths(std::vector<std::string> paths) {
  State &s = state();
  const std::lock_guard lock(s.mutex);
  s.paths = std::move(paths);
}

} // namespace elsewise
