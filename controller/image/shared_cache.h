// Built images that several controllers on one machine share, so that each image is built once: a folder with
// one sub-folder per build, named by the digest of everything that went into it. Nothing in it is ever
// removed, and changed only by a rebuild.
//
// Files are hard links where both sides are on one file system, else copies. What comes out is checked
// against the digests its build recorded. Whoever can write to the folder decides what nodes run: it must be
// as private as the state folder. Thread: blocking (a second or two); for worker threads.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

// Fills `into`, which must not exist, with the build of that key. Code::not_found when there is none,
// Code::corrupt when it is not what was put in (`into` is gone again).
Status fetch_build(const std::string& cache, const std::string& key, const std::string& into);
// Puts a finished build there under its key. One that is there already stays, unless `replace`.
Status keep_build(const std::string& cache, const std::string& key, const std::string& build, bool replace);

}  // namespace muster
