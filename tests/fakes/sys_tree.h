// A machine's files written from a list, one a line: "PATH = CONTENT", "PATH -> TARGET" for a symbolic link.
// Directories on the way are made. Header-only; tests only.
#pragma once

#include <filesystem>
#include <sstream>
#include <string>

#include "sys/os.h"
#include "tests/catch.h"

namespace muster::tests {

inline void write_tree(const Files& files, const std::string& list) {
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    if (const size_t link = line.find(" -> "); link != std::string::npos) {
      REQUIRE(files.symlink(line.substr(link + 4), line.substr(0, link)).ok());
      continue;
    }
    const size_t equals = line.find(" = ");
    REQUIRE(equals != std::string::npos);
    REQUIRE(files.write(line.substr(0, equals), line.substr(equals + 3) + "\n").ok());
  }
}

}  // namespace muster::tests
