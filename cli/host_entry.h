// A line of a hosts file, or what stands between two commas of `--hosts`: its words, each with its column.
// No I/O.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/spec/spec.h"

namespace muster::cli {

struct HostWord {
  std::string text;
  int column = 0;  // counts characters, not bytes
};
struct HostEntry {
  std::string text;          // without a comment
  int line = 1, column = 1;  // of its first byte
};

HostEntry without_comment(HostEntry entry);
std::vector<HostWord> words_in(const HostEntry& entry);
// The first character that no name, destination or group has: a binary file is full of them.
std::optional<SpecError> wrong_character(const HostEntry& entry);

// The entries of `--hosts`: commas outside of brackets, and line ends, separate them.
std::vector<HostEntry> entries_of_option(const std::string& text);
// The lines of a file, which end in LF or CRLF; a UTF-8 byte order mark is skipped.
std::vector<std::string> lines_of_hosts_file(const std::string& text);

}  // namespace muster::cli
