// Built images, and archives of their packages (recipe_tree.h), that several controllers on one machine
// share, so that each is built once: a folder with one sub-folder per build, named by the digest of all that
// went into it. Nothing in it is ever removed. A rebuild replaces an entry; an archive that is too old or
// damaged is replaced, too.
//
// Files are hard links if both folders are on one file system, else copies. What is read from the cache is
// checked against the digests that its build recorded. Write access to the folder means control of what nodes
// run: it must be as private as the state folder. Thread: blocking (a second or two); for worker threads.
#pragma once

#include <string>

#include "base/result.h"

namespace muster {

// Fills `into`, which must not exist, with the build of that key. Code::not_found if there is none,
// Code::corrupt if it differs from what was stored (`into` is then removed).
Status fetch_build(const std::string& cache, const std::string& key, const std::string& into);
// Stores a finished build under its key. An existing build is kept unless `replace` is set.
Status keep_build(const std::string& cache, const std::string& key, const std::string& build, bool replace);

}  // namespace muster
