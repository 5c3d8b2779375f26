// The root of the source tree that these tests were built from, for tests that read files of it. A function, not a macro for all
// files: objects without the path of a checkout in them are shared between checkouts by a compiler cache.
#pragma once

#include <string>

namespace muster {

// Absolute, without a slash at its end.
const std::string& source_dir();

}  // namespace muster
