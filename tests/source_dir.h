// The source tree that these tests were built from and the folder they were built in, for tests that read
// files there. Functions, not macros for all files: objects without the path of a checkout in them are shared
// between checkouts by a compiler cache.
#pragma once

#include <filesystem>
#include <string>

namespace muster {

// Both absolute, without a slash at its end.
const std::string& source_dir();
const std::string& build_dir();

// What a file holds, for tests about the tree itself; a file that cannot be read holds nothing.
std::string text_of(const std::filesystem::path& path);

}  // namespace muster
