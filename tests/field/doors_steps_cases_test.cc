// What users of a node see of steps: arguments of programs, results, files that are being written.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/split.h"
#include "controller/spec/reader/own_playbooks.h"
#include "tests/field/case.h"
#include "tests/unit/agent/step_run.h"

namespace muster::tests {
namespace {

constexpr char kSecret[] = "password=THE-APP-SECRET";

ParsedPlaybook read_playbook(const std::string& file) {
  return parse_own_playbook({file, field_input("secret-in-argv-and-result", file)});
}

bool complains_of(const ParsedPlaybook& read, const std::string& part) {
  return std::any_of(read.errors.begin(), read.errors.end(),
                     [&](const SpecError& error) { return has(error.path, part); });
}

}  // namespace

FIELD_CASE("secret-in-argv-and-result") {
  const ParsedPlaybook read = read_playbook("site.yaml");
  for (const char* place : {"steps[0].params.argv", "steps[0].params.check", "steps[1].params.command"}) {
    INFO(place);
    CHECK(complains_of(read, place));
  }
  for (const SpecError& error : read.errors) CHECK(error.line > 0);
  CHECK(read_playbook("fine.yaml").errors.empty());
}

FIELD_CASE("secret-in-argv-and-result: what a step says does not repeat the arguments of its programs") {
  testing::StepRun run;
  const Json failing = {{"argv", {"false", kSecret}}, {"check", {"false", kSecret}}};
  const auto checked = run.check("command", failing);
  REQUIRE(checked.ok());
  CHECK_FALSE(has(checked->diff, kSecret));
  CHECK(has(checked->diff, "false"));
  const Status applied = run.apply("command", failing);
  REQUIRE_FALSE(applied.ok());
  CHECK_FALSE(has(applied.error().message, kSecret));
  const auto waited = run.check("wait_for", {{"command", {"false", kSecret}}, {"deadline_seconds", 0}});
  CHECK_FALSE(has(waited.ok() ? waited->diff : waited.error().message, kSecret));
}

FIELD_CASE("content-before-permissions") {
  testing::StepRun run;
  run.machine.put("/etc/app.key", "old\n");
  const std::string path = run.machine.files().real("/etc/app.key");
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(reader >= 0);
  REQUIRE(run.apply("file", {{"path", "/etc/app.key"}, {"mode", "0600"}, {"content", "new\n"}}).ok());
  std::array<char, 16> seen = {};
  const ssize_t bytes = ::read(reader, seen.data(), seen.size());
  ::close(reader);
  CHECK(std::string(seen.data(), static_cast<size_t>(std::max<ssize_t>(bytes, 0))) == "old\n");
  CHECK(run.machine.get("/etc/app.key") == "new\n");
  struct stat info = {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

FIELD_CASE("content-before-permissions: an owner that does not exist") {
  testing::StepRun run;
  run.machine.put("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n");
  REQUIRE(run.machine.files().make_directories("/etc/app").ok());
  const Json key = {{"path", "/etc/app/key"}, {"mode", "0600"}, {"owner", "app"}, {"content", "new\n"}};
  CHECK_FALSE(run.apply("file", key).ok());
  CHECK(run.machine.files().list("/etc/app").empty());  // neither the file nor what it was to become
}

}  // namespace muster::tests
