// A shared library found at run time, so that a program starts without it and can report that it is missing.
//
// Not for a static program: the file it finds would bring in a second C library.
// Thread: what it returns may be used by any thread.
#pragma once

#include <string>
#include <vector>

#include "base/os.h"
#include "base/result.h"

namespace muster::kernels {

class Library {
 public:
  // The given name or path as the loader finds it (LD_LIBRARY_PATH, then the cache of ldconfig), then where
  // toolkits put their libraries: library_places(). unavailable: with the loader's message about the name.
  static Result<Library> open(const std::string& name);
  template <typename Function>
  Status find(const char* name, Function*& out) const {
    out = reinterpret_cast<Function*>(symbol(name));
    return out ? Status(Ok{}) : Status(fail(Code::unavailable, name_ + " has no " + name));
  }

 private:
  void* symbol(const char* name) const;
  void* handle_ = nullptr;  // never closed: what it started may still run
  std::string name_ = {};
};

// Paths of files of this name in the folders of CUDA's toolkits, NVIDIA's HPC SDK, HPC-X and the system, of
// several versions the highest first. A name with a slash has none.
std::vector<std::string> library_places(const Files& files, const std::string& name);

}  // namespace muster::kernels
