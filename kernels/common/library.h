// A shared library found at run time, so that a program starts without it and can report that it is missing.
// Not for static programs: the library would load a second C library. Once loaded: usable from any thread.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::kernels {

class Library {
 public:
  // Opens the name or path as the loader resolves it (LD_LIBRARY_PATH, then ldconfig's cache), else from the
  // places of sys/library_places.h. unavailable: not found, with the loader's message.
  static Result<Library> open(const std::string& name);
  template <typename Function>
  Status find(const char* name, Function*& out) const {
    out = reinterpret_cast<Function*>(symbol(name));
    return out ? Status(Ok{}) : Status(fail(Code::unavailable, name_ + " has no " + name));
  }
  // The file that was opened; the name that was given if the loader does not report it.
  std::string path() const;

 private:
  void* symbol(const char* name) const;
  void* handle_ = nullptr;  // never closed: threads that the library started may still run
  std::string name_ = {};
};

}  // namespace muster::kernels
