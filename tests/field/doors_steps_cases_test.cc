// What users of a node see of files that steps are writing.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "tests/field/case.h"
#include "tests/unit/agent/step_run.h"

namespace muster::tests {

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
