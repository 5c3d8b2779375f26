// The state of a file, its owner, and its text with both. Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

// The result of lstat(2) or fstat(2).
struct FileState {
  bool exists = false, directory = false, regular = false, link = false;
  unsigned mode = 0;
  int64_t uid = -1, gid = -1;
  int64_t modified_us = 0;  // mtime, microseconds of wall clock time
};

// -1: unchanged; of a new file, this process' own.
struct FileOwner {
  int64_t uid = -1, gid = -1;
};

// A regular file, as one open of it found it.
struct FileText {
  FileState state;
  std::string text;
  bool linked = false;  // the last part of the path is a link to it
};

}  // namespace muster
