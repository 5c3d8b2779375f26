#include "kernels/library.h"

#include <dlfcn.h>

namespace muster::kernels {

Result<Library> Library::open(const std::string& name) {
  Library out;
  out.name_ = name;
  std::string why;
  for (const std::string& path : {name, "/usr/local/cuda/lib64/" + name}) {
    out.handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (out.handle_) return out;
    if (why.empty()) why = ::dlerror();
  }
  return fail(Code::unavailable, why);
}

void* Library::symbol(const char* name) const { return ::dlsym(handle_, name); }

}  // namespace muster::kernels
