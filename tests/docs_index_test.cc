// Pages can be found, and two decisions never have one number.
#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <string>

#include "tests/catch.h"
#include "tests/source_dir.h"

namespace fs = std::filesystem;

using muster::text_of;

TEST_CASE("documents: the index names every page, and nothing that is not there", "[tidy]") {
  const fs::path docs = fs::path(muster::source_dir()) / "docs";
  const std::string index = text_of(docs / "README.md");
  for (const auto& entry : fs::directory_iterator(docs)) {
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    if (entry.path().extension() != ".md" || name == "README.md") continue;
    CHECK(index.find("](" + name + ")") != std::string::npos);
  }
  const std::regex link(R"(\]\(([^)#:]+)[^)]*\))");
  for (auto it = std::sregex_iterator(index.begin(), index.end(), link); it != std::sregex_iterator(); ++it) {
    CAPTURE((*it)[1].str());
    CHECK(fs::exists(docs / (*it)[1].str()));
  }
}

TEST_CASE("documents: decisions have numbers of their own", "[tidy]") {
  const fs::path root = muster::source_dir();
  std::map<std::string, std::string> numbers;
  for (const auto& entry : fs::directory_iterator(root / "docs/decisions")) {
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    CHECK(std::regex_match(name, std::regex(R"(\d{4}-[a-z0-9-]+\.md)")));
    CHECK(numbers.emplace(name.substr(0, 4), name).second);
    CHECK(text_of(entry.path()).starts_with("# " + name.substr(0, 4) + ": "));
  }
}
