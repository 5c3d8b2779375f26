#include "tests/source_dir.h"

#include <fstream>
#include <iterator>

namespace muster {

const std::string& source_dir() {
  static const std::string dir = MUSTER_SOURCE_DIR;
  return dir;
}

const std::string& build_dir() {
  static const std::string dir = MUSTER_BUILD_DIR;
  return dir;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace muster
