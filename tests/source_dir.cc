#include "tests/source_dir.h"

namespace muster {

const std::string& source_dir() {
  static const std::string dir = MUSTER_SOURCE_DIR;
  return dir;
}

const std::string& build_dir() {
  static const std::string dir = MUSTER_BUILD_DIR;
  return dir;
}

}  // namespace muster
