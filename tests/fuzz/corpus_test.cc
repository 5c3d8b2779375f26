// The corpora, read without clang: what fuzzers begin with, and each input that once broke something.
// Beginnings of each file are read, too, as of a message that was cut off.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/fuzz/targets.h"
#include "tests/source_dir.h"

using namespace muster;

namespace {

struct Target {
  const char* name;
  void (*read)(std::string_view bytes);
};
constexpr Target kTargets[] = {{"agents", fuzz::agents_fuzz},
                               {"redfish", fuzz::redfish_fuzz},
                               {"ipmi", fuzz::ipmi_fuzz},
                               {"hosts", fuzz::hosts_fuzz},
                               {"tables", fuzz::tables_fuzz}};
constexpr size_t kCuts = 16, kLeastFiles = 5;

std::vector<std::filesystem::path> corpus_of(const std::string& target) {
  std::vector<std::filesystem::path> out;
  for (const auto& file : std::filesystem::directory_iterator(source_dir() + "/tests/fuzz/corpus/" + target))
    out.push_back(file.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("fuzz: every file of the corpora is read to its end, and so is each beginning of it", "[fuzz]") {
  for (const Target& target : kTargets) {
    const auto files = corpus_of(target.name);
    CHECK(files.size() >= kLeastFiles);
    for (const auto& file : files) {
      const std::string bytes = text_of(file);
      INFO(file.string());
      REQUIRE_FALSE(bytes.empty());
      for (size_t cut = 1; cut <= kCuts; ++cut) {
        INFO("the first " << bytes.size() * cut / kCuts << " bytes");
        CHECK_NOTHROW(target.read(std::string_view(bytes).substr(0, bytes.size() * cut / kCuts)));
      }
    }
  }
}

TEST_CASE("fuzz: bytes that are nothing are read to an end by every target", "[fuzz]") {
  const std::string deep = std::string(20000, '[') + std::string(20000, '{');
  for (const std::string& bytes : {std::string(), std::string(1, '\0'), std::string("\xff\xfe\x00\x5b", 4),
                                   std::string("\n---\n---\n"), deep}) {
    for (const Target& target : kTargets) {
      INFO(target.name << ", " << bytes.size() << " bytes");
      CHECK_NOTHROW(target.read(bytes));
    }
    CHECK_NOTHROW(fuzz::spec_fuzz(bytes));
  }
}

TEST_CASE("fuzz: a target notices what must not be", "[fuzz]") {
  CHECK_THROWS_AS(fuzz::demand(false, "x"), std::logic_error);
  CHECK_NOTHROW(fuzz::demand(true, "x"));
  CHECK(fuzz::pieces_of("a\n---\nb\n---\n") == std::vector<std::string>{"a", "b", ""});
}
