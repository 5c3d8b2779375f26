#include "kernels/common/library.h"

#include <dlfcn.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstring>

namespace muster::kernels {
namespace {

// Patterns of folders; '*' matches one path component or a part of it.
constexpr const char* kPlaces[] = {"/usr/local/cuda/lib64",
                                   "/usr/local/cuda*/lib64",
                                   "/usr/local/cuda*/targets/x86_64-linux/lib",
                                   "/opt/nvidia/hpc_sdk/Linux_x86_64/*/comm_libs/nccl/lib",
                                   "/opt/nvidia/hpc_sdk/Linux_x86_64/*/math_libs/lib64",
                                   "/opt/hpcx*/*/lib",
                                   "/opt/nccl/lib",
                                   "/opt/nccl/build/lib",
                                   "/usr/lib/x86_64-linux-gnu",
                                   "/usr/lib64"};

// The highest version first.
std::vector<std::string> matching(const Files& files, const std::string& pattern) {
  std::vector<std::string> out = {""};
  for (size_t at = 1; at < pattern.size();) {
    const size_t end = std::min(pattern.find('/', at), pattern.size());
    const std::string part = pattern.substr(at, end - at);
    std::vector<std::string> next;
    for (const auto& folder : out) {
      std::vector<std::string> names = {part};
      if (part.find('*') != std::string::npos) {
        names = files.list(folder);
        std::erase_if(names, [&](const auto& name) { return ::fnmatch(part.c_str(), name.c_str(), 0) != 0; });
        std::sort(names.begin(), names.end(),
                  [](const auto& a, const auto& b) { return ::strverscmp(a.c_str(), b.c_str()) > 0; });
      }
      for (const auto& name : names) next.push_back(folder + "/" + name);
    }
    out = std::move(next);
    at = end + 1;
  }
  return out;
}

}  // namespace

std::vector<std::string> library_places(const Files& files, const std::string& name) {
  std::vector<std::string> out;
  if (name.find('/') != std::string::npos) return out;
  for (const char* place : kPlaces)
    for (const auto& folder : matching(files, place))
      if (const std::string path = folder + "/" + name;
          files.exists(path) && std::find(out.begin(), out.end(), path) == out.end())
        out.push_back(path);
  return out;
}

Result<Library> Library::open(const std::string& name) {
  Library out;
  out.name_ = name;
  std::string why;
  std::vector<std::string> paths = library_places(Files(), name);
  paths.insert(paths.begin(), name);
  for (const std::string& path : paths) {
    out.handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (out.handle_) return out;
    if (why.empty()) why = ::dlerror();
  }
  return fail(Code::unavailable, why);
}

void* Library::symbol(const char* name) const { return ::dlsym(handle_, name); }

}  // namespace muster::kernels
