#include "tests/field/case.h"

#include <filesystem>

#include "tests/source_dir.h"

namespace muster::tests {

namespace fs = std::filesystem;

std::string field_folder(const std::string& name) {
  for (const auto& area : fs::directory_iterator(source_dir() + "/tests/field"))
    if (fs::is_directory(area.path() / name)) return (area.path() / name).string();
  return "";
}

std::string field_input(const std::string& name, const std::string& file) {
  const fs::path path = fs::path(field_folder(name)) / file;
  INFO(path.string());
  REQUIRE(fs::is_regular_file(path));
  return text_of(path);
}

}  // namespace muster::tests
