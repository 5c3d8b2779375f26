// Files that a spec names go with it, byte for byte.
#include "cli/spec_file.h"

#include "controller/bringup/signed_gpu_results.h"
#include "controller/spec/yaml.h"
#include "sys/pki.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/report/gpu_report.h"

using namespace muster;
using namespace muster::testing;
using cli::with_carried_files;

namespace {

const std::string kSpec =
    "cluster: c\nacceptance: { profile: quick, gpu: mandatory, gpu_results: results/r.json, gpu_results_key: "
    "r.pub }";

std::string carried(const std::string& spec, const char* key) {
  const auto yaml = parse_yaml(spec);
  REQUIRE(yaml.errors.empty());
  const YamlNode* section = yaml.root.find("carried");
  REQUIRE(section != nullptr);
  const YamlNode* text = section->find(key);
  return text ? text->text : "";
}

}  // namespace

TEST_CASE("a spec carries the files that it names, found beside it, unchanged", "[cli][gpu-results]") {
  const TempDir folder;
  const GpuSigner signer;
  Report report = gpu_report({740.25});
  report.notes = {"odd: \"quotes\", # no comment, {{braces}}, trailing blank ", "\xc3\xa4 - | > %"};
  const std::string text = signer.sign(to_json_text(report));
  REQUIRE(Files().write(folder.path("results/r.json"), text).ok());
  for (const std::string& key : std::vector<std::string>{signer.pair.certificate_pem, "no newline at its end",
                                                         "\n\n  begins with blanks\n\tand a tab\n\n"}) {
    CAPTURE(key);
    REQUIRE(Files().write(folder.path("r.pub"), key).ok());
    const auto spec = with_carried_files(kSpec, folder.path(""), Files());
    REQUIRE(spec.ok());
    CHECK(spec->rfind(kSpec + "\n", 0) == 0);
    CHECK(carried(*spec, "gpu_results") == text);
    CHECK(carried(*spec, "gpu_results_key") == key);
    // Twice is once: what was stored and is sent again stays as it is.
    CHECK(with_carried_files(*spec, "/nowhere", Files()).value() == *spec);
    CHECK(with_carried_files(*spec, folder.path(""), Files()).value() == *spec);
    // A file that was measured again replaces what was carried before.
    REQUIRE(Files().write(folder.path("r.pub"), key + "x").ok());
    const auto other = with_carried_files(*spec, folder.path(""), Files());
    REQUIRE_FALSE(other.ok());
    CHECK(other.error().message.find("acceptance.gpu_results_key") == 0);
  }
}

TEST_CASE("a file that cannot be read is an error that names it; a spec without files stays as it is",
          "[cli][gpu-results]") {
  const TempDir folder;
  const auto missing = with_carried_files(kSpec, folder.path(""), Files());
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == Code::invalid);
  CHECK(missing.error().message.find("acceptance.gpu_results") == 0);
  for (const std::string spec : {"cluster: c\nacceptance: { profile: quick }\n", "", "a: [", "- list\n"})
    CHECK(with_carried_files(spec, "/", Files()).value() == spec);
}

TEST_CASE("what YAML would change on the way is refused, and so is a spec that cannot take a section",
          "[cli][gpu-results]") {
  const TempDir folder;
  REQUIRE(Files().write(folder.path("results/r.json"), "{}\n").ok());
  for (const std::string& key :
       std::vector<std::string>{"a\rb\n", std::string("a\0b", 3), "\xff\n", "a\x01"}) {
    CAPTURE(key);
    REQUIRE(Files().write(folder.path("r.pub"), key).ok());
    const auto refused = with_carried_files(kSpec, folder.path(""), Files());
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::invalid);
    CHECK(refused.error().message.find("acceptance.gpu_results_key") == 0);
  }
  REQUIRE(Files().write(folder.path("r.pub"), "key\n").ok());
  CHECK(with_carried_files(kSpec, folder.path(""), Files()).ok());
  const std::string flow =
      "{ cluster: c, acceptance: { gpu_results: results/r.json, gpu_results_key: r.pub } }\n";
  CHECK_FALSE(with_carried_files(flow, folder.path(""), Files()).ok());
}
