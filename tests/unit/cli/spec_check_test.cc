// `muster spec check`: specs with one mistake each are refused or warned of at the place of the mistake, and
// what muster ships is not.
#include "cli/spec_check.h"

#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/cli_context.h"
#include "tests/catch.h"
#include "tests/fakes/muster_command.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"
#include "tests/unit/plan/shipped.h"
#include "tests/unit/plan/spec_text.h"

using namespace muster;
using namespace muster::cli;
using muster::testing::muster_command;

namespace {

// RFC 8536, version 2: one type, no change.
std::string zone_file() {
  std::string block = "TZif2" + std::string(15 + 4 * 4, '\0');
  block += std::string("\0\0\0\1\0\0\0\4", 8);
  block += std::string(6, '\0') + std::string("UTC\0", 4);
  return block + block + "\nUTC0\n";
}

constexpr const char* kOwnKey =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMoH8DjInlSv4hPRVSzZ9rzTDZGMk3ztdsEUCsjTLYnl ops";

// A host with time zones.
class Host {
 public:
  Host() {
    for (const char* zone : {"UTC", "Etc/UTC", "Asia/Tokyo", "Europe/Berlin"})
      root_.write(std::string("usr/share/zoneinfo/") + zone, zone_file());
  }
  CheckedSpec check(const std::string& path) const {
    auto read = read_spec_file(path);
    REQUIRE(read.ok());
    // As `muster lab up` does.
    const std::string lab_key = "ssh-ed25519 LAB_SSH_KEY lab";
    if (const size_t at = read->text.find(lab_key); at != std::string::npos)
      read->text.replace(at, lab_key.size(), kOwnKey);
    return check_spec("f", *read, shipped_names(), Files(root_.path("")));
  }

 private:
  TempDir root_;
};

std::string lines_of(const std::vector<SpecError>& found) {
  std::string out;
  for (const SpecError& one : found) out += to_string(one, "f") + " [" + one.code + "]\n";
  return out;
}

struct Broken {
  const char *file, *code;  // no code: a rule of the spec's own
  const char* path;
  int line, column;
};
// The larger ones have placeholders as well.
const Broken kBroken[] = {
    {"01-tab", "yaml-tab", "", 5, 1},
    {"02-indent3", "yaml-indentation", "", 8, 4},
    {"03-nocolon", "yaml-colon", "", 5, 3},
    {"04-openbrace", "yaml-bracket", "", 4, 8},
    {"05-openquote", "yaml-quote", "", 20, 14},
    {"08-size-nounit", "size-without-unit", "nodes[0].disks.fast.match.size", 30, 47},
    {"10-mem-nounit", "size-without-unit", "nodes[0].hardware.memory", 24, 34},
    {"29-recipe", "mirror-undeclared", "images.node.recipe", 13, 13},
    {"30-recipe2", "", "images.node.recipe", 13, 13},
    {"31-timezone", "", "time_zone", 2, 12},
    {"32-nousers", "no-login", "users", 1, 1},
    {"34-mount-root", "", "storage.scratch.mount", 33, 71},
    {"37-netboot", "", "limits.netboot", 38, 19},
    {"41-gpus-noplaybook", "gpus-without-driver", "nodes[0].hardware.gpus", 24, 22},
    {"42-image-unused", "image-unused", "images.spare", 12, 3},
    {"43-role-unused", "role-unused", "roles.spare", 35, 3},
    {"44-vars-typo", "variable-unread", "vars.nvidia_drver", 101, 3},
    {"45-novars", "variable-missing", "roles.hgx.playbooks[5]", 83, 66},
    {"46-rails9", "rails-unlike-gpus", "network.rails.count", 12, 12},
    {"47-baked-not-role", "baked-not-applied", "images.hgx.bake[5]", 29, 98},
    {"60-port026", "leading-zero", "firewall[0].port", 38, 37},
    {"64-zero-digest", "placeholder-digest", "vars.nvidia_key_sha256", 100, 22},
    {"71-phy-fib", "install-not-format", "nodes[0].disks.os.policy", 66, 84},
    {"80-drain", "", "limits.drain_timeout", 38, 25},
    {"81-mtu", "key-without-effect", "network.provisioning.mtu", 3, 58},
    {"83-mem-lt", "", "nodes[0].hardware.memory", 24, 34},
    {"90-window", "", "rollout.window", 38, 33},
};

std::string example_of_readme() {
  const std::string page = text_of(source_dir() + "/README.md");
  const size_t begin = page.find("\ncluster: ") + 1;
  return page.substr(begin, page.find("\n```", begin) + 1 - begin);
}

// With the key replaced, as the page says.
std::string one_of_readme() { return testing::replaced(example_of_readme(), testing::kKey, kOwnKey); }

// Of the examples' key, which a copy is warned of, and of all else.
std::pair<size_t, std::vector<SpecError>> keys_and_others(std::vector<SpecError> warnings) {
  const size_t keys =
      std::erase_if(warnings, [](const SpecError& one) { return one.code == "placeholder-key"; });
  return {keys, std::move(warnings)};
}

}  // namespace

TEST_CASE("spec check: each broken spec is refused or warned of where its mistake is", "[cli][warnings]") {
  const Host host;
  const std::string folder = source_dir() + "/tests/golden/broken-specs/";
  for (const Broken& one : kBroken) {
    CAPTURE(one.file);
    const CheckedSpec checked = host.check(folder + one.file + ".yaml");
    INFO(lines_of(checked.errors) << lines_of(checked.warnings));
    std::vector<SpecError> found = checked.errors;
    const std::vector<SpecError> warnings = keys_and_others(checked.warnings).second;
    found.insert(found.end(), warnings.begin(), warnings.end());
    CHECK(std::any_of(found.begin(), found.end(), [&](const SpecError& e) {
      return e.code == one.code && e.path == one.path && e.line == one.line && e.column == one.column;
    }));
    const bool small = text_of(folder + one.file + ".yaml").find("name: node[01-04]") != std::string::npos;
    if (small) CHECK(found.size() == 1);
    const bool refused = *one.code == '\0' || std::string(one.code).starts_with("yaml-");
    CHECK(checked.errors.empty() == !refused);
  }
  CHECK(std::size(kBroken) == 27);
}

TEST_CASE("spec check: what muster ships is warned of its key only, or silences it by name",
          "[cli][warnings]") {
  const Host host;
  const TempDir dir;
  dir.write("readme.yaml", example_of_readme());
  std::vector<std::string> files = {dir.path("readme.yaml")};
  for (const char* folder : {"/docs/specs", "/lab"})
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() + folder))
      if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  CHECK(files.size() >= 10);
  for (const std::string& file : files) {
    CAPTURE(file);
    const CheckedSpec checked = host.check(file);
    CHECK(lines_of(checked.errors) == "");
    const auto [keys, others] = keys_and_others(checked.warnings);
    CHECK(lines_of(others) == "");
    CHECK((keys > 0) == (std::filesystem::path(file).parent_path().filename() != "lab"));
    // Nothing is silenced in vain.
    CHECK(checked.silenced.empty() == (text_of(file).find("\nwarnings:") == std::string::npos));
  }
}

TEST_CASE("spec check: warnings leave the spec valid, unless they are errors", "[cli][warnings]") {
  const TempDir dir;
  const std::string text = one_of_readme();
  dir.write("a.yaml", text + "vars: { colour: blue }\n");
  const auto loose = muster_command({"spec", "check", dir.path("a.yaml")});
  CHECK(loose.exit == kAccepted);
  CHECK(loose.err.find(":38:9: warning: vars.colour: ") != std::string::npos);
  CHECK(loose.err.find("[variable-unread]\n") != std::string::npos);
  CHECK(loose.out.find("valid") != std::string::npos);
  const auto strict = muster_command({"spec", "check", "--strict", dir.path("a.yaml")});
  CHECK(strict.exit == kUsage);
  CHECK(strict.err.find(":38:9: error: vars.colour: ") != std::string::npos);
  CHECK(strict.out.empty());
  dir.write("b.yaml", text + "vars: { colour: blue }\nwarnings: { silence: [ variable-unread ] }\n");
  const auto silent = muster_command({"spec", "check", "--strict", dir.path("b.yaml")});
  CHECK(silent.exit == kAccepted);
  CHECK(silent.err.empty());
  CHECK(silent.out.find("variable-unread (1)") != std::string::npos);
}

TEST_CASE("spec check: the JSON of a finding has code, place, message and remedy", "[cli][warnings]") {
  const TempDir dir;
  dir.write("a.yaml", one_of_readme() + "vars: { colour: blue }\n");
  dir.write("b.yaml", "cluster: x\n\tnodes: []\n");
  const Json one =
      parse_json(muster_command({"spec", "check", "--json", dir.path("a.yaml")}).out).value_or(Json());
  CHECK(one["valid"] == true);
  CHECK(one["errors"].empty());
  REQUIRE(one["warnings"].size() == 1);
  const Json& warning = one["warnings"][0];
  CHECK(warning["code"] == "variable-unread");
  CHECK(warning["file"] == dir.path("a.yaml"));
  CHECK(warning["line"] == 38);
  CHECK(warning["column"] == 9);
  CHECK(warning["path"] == "vars.colour");
  CHECK_FALSE(warning["message"].get<std::string>().empty());
  CHECK_FALSE(warning["remedy"].get<std::string>().empty());
  // Of several files there is still one value.
  const auto both =
      muster_command({"spec", "check", "--json", dir.path("a.yaml"), dir.path("b.yaml"), dir.path("c.yaml")});
  CHECK(both.exit == kUsage);
  const Json several = parse_json(both.out).value_or(Json());
  CHECK(several["valid"] == false);
  REQUIRE(several["files"].size() == 3);
  CHECK(several["files"][0] == one);
  CHECK(several["files"][1]["errors"][0]["code"] == "yaml-tab");
  CHECK(several["files"][1]["errors"][0]["line"] == 2);
  CHECK(several["files"][2]["valid"] == false);  // there is none
  CHECK(several["files"][2]["errors"][0]["code"] == "invalid");
}

TEST_CASE("spec check: a spec with errors is not warned of, since it is read in part", "[cli][warnings]") {
  const Host host;
  const TempDir dir;
  std::string text = one_of_readme() + "vars: { colour: blue }\n";
  text.replace(text.find("role: cpu"), 9, "role: cpx");
  dir.write("a.yaml", text);
  const CheckedSpec checked = host.check(dir.path("a.yaml"));
  CHECK(checked.errors.size() == 2);  // the role, and the storage that nothing creates then
  CHECK(checked.warnings.empty());
}

TEST_CASE("spec check: - is standard input", "[cli]") {
  std::istringstream in(one_of_readme() + "vars: { colour: blue }\n");
  std::streambuf* const before = std::cin.rdbuf(in.rdbuf());
  const auto ran = muster_command({"spec", "check", "-"});
  std::cin.rdbuf(before);
  CHECK(ran.exit == kAccepted);
  CHECK(ran.err.find("<stdin>:38:9: warning: ") != std::string::npos);
}
