// docs/safety.md names the test of every finding: each of them must be there.
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/source_dir.h"

namespace fs = std::filesystem;

using muster::text_of;

namespace {

// The third of the four columns of each table row that is neither head nor rule.
std::vector<std::string> test_cells(const std::string& page) {
  std::vector<std::string> cells;
  std::istringstream in(page);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("| ", 0) != 0 || line.rfind("| finding", 0) == 0) continue;
    std::vector<std::string> columns;
    size_t at = 2;
    for (size_t end; (end = line.find(" |", at)) != std::string::npos; at = end + 3)
      columns.push_back(line.substr(at, end - at));
    cells.push_back(columns.size() == 4 ? columns[2]
                                        : "a row of " + std::to_string(columns.size()) + " columns: " + line);
  }
  return cells;
}

std::vector<std::string> all(const std::string& text, const std::string& pattern) {
  const std::regex what(pattern);
  std::vector<std::string> found;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), what); it != std::sregex_iterator(); ++it)
    found.push_back((*it)[1]);
  return found;
}

}  // namespace

TEST_CASE("documents: every finding has a test, and the tests named for it exist", "[tidy]") {
  const fs::path root = muster::source_dir();
  std::string tests;
  for (const auto& entry : fs::recursive_directory_iterator(root / "tests"))
    if (entry.path().extension() == ".cc" && entry.path().filename() != "safety_doc_test.cc")
      tests += text_of(entry.path());
  // A name that is too long for one line is two literals.
  tests = std::regex_replace(tests, std::regex("\"\\s*\n\\s*\""), "");
  const auto cells = test_cells(text_of(root / "docs/safety.md"));
  CHECK(cells.size() > 40);
  for (const auto& cell : cells) {
    CAPTURE(cell);
    for (const auto& file : all(cell, "([a-z]+/[a-z_]+_test\\.cc)"))
      CHECK((fs::exists(root / "tests/unit" / file) || fs::exists(root / file)));
    for (const auto& name : all(cell, "e2e `([a-z-]+)`"))
      CHECK(fs::exists(root / "tests/e2e" / (name + ".sh")));
    // A name may be cut short, and stand behind the subject that all names of its file begin with.
    const auto names = all(cell, "\"([^\"]+?)(?:…|\\.\\.\\.)?\"");
    for (const auto& name : names) {
      CAPTURE(name);
      CHECK(tests.find(name) != std::string::npos);
    }
    CHECK((!names.empty() || cell.find("_test.cc") != std::string::npos ||
           cell.find("four tests") != std::string::npos));
  }
}
