#include "kernels/common/library.h"

#include <dlfcn.h>
#include <link.h>

#include <vector>

#include "sys/library_places.h"

namespace muster::kernels {

Result<Library> Library::open(const std::string& name) {
  Library out;
  out.name_ = name;
  std::string why;
  const Files files;
  std::vector<std::string> paths = library_places(files, name, own_library_homes(files));
  paths.insert(paths.begin(), name);
  for (const std::string& path : paths) {
    out.handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (out.handle_) return out;
    if (why.empty()) why = ::dlerror();
  }
  return fail(Code::unavailable, why);
}

std::string Library::path() const {
  link_map* map = nullptr;
  const bool known = ::dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name;
  return known ? map->l_name : name_;
}

void* Library::symbol(const char* name) const { return ::dlsym(handle_, name); }

}  // namespace muster::kernels
