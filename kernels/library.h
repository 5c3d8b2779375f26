// A shared library found at run time, so that a program starts where it is missing and can say so.
//
// Not for a static program: the file it finds would bring another C library along.
// Thread: what it returns may be used by any thread.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::kernels {

class Library {
 public:
  // The given name or path, then in the CUDA toolkit's usual folder. unavailable: the loader's own words.
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

}  // namespace muster::kernels
