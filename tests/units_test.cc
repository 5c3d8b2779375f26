// The units of systemd that the packages have: what they name is installed, what is installed can be removed,
// and what follows a failed rollout works without configuration.
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

namespace {

namespace fs = std::filesystem;

using namespace muster;

using Units = std::set<std::string>;

fs::path in_tree(const std::string& path) { return fs::path(source_dir()) / path; }

Units captured(const std::string& pattern, const std::string& text) {
  const std::regex expression(pattern);
  Units out;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), expression); it != std::sregex_iterator();
       ++it)
    out.insert((*it)[1]);
  return out;
}

Units controller_units() {
  Units out;
  for (const auto& entry : fs::directory_iterator(in_tree("systemd"))) {
    const std::string name = entry.path().filename();
    const std::string extension = entry.path().extension();
    if ((extension == ".service" || extension == ".timer") && name != "muster-agent.service")
      out.insert(name);
  }
  return out;
}

// The program that follows a failed rollout, with commands of the system that only print their names.
struct Failed {
  Failed() {
    for (const char* name : {"muster", "journalctl"})
      executable(std::string("bin/") + name, "#!/bin/sh\necho \"$(basename \"$0\") $*\"\n");
  }
  void executable(const std::string& name, const std::string& text) const {
    dir.write(name, text);
    fs::permissions(dir.path(name), fs::perms(0755));
  }
  Output run() const {
    const auto process = make_process();
    Command command{.argv = {in_tree("systemd/rollout-failed").string(), dir.path("program")}};
    command.env = {{"PATH", dir.path("bin") + ":/usr/bin:/bin"},
                   {"MONITOR_EXIT_STATUS", "3"},
                   {"MONITOR_INVOCATION_ID", "1a2b"}};
    const auto out = process->run(command);
    REQUIRE(out.ok());
    return *out;
  }

  TempDir dir;
};

}  // namespace

TEST_CASE("units: all are in the controller's package, and a removal stops and forgets them") {
  const std::string package = text_of(in_tree("cmake/package.cmake"));
  const std::string prerm = text_of(in_tree("systemd/deb/controller/prerm"));
  const std::string postrm = text_of(in_tree("systemd/deb/controller/postrm"));
  const Units units = controller_units();
  CHECK(units.size() >= 4);
  for (const std::string& unit : units) {
    CAPTURE(unit);
    CHECK(package.find("systemd/" + unit) != std::string::npos);
    CHECK(prerm.find(" " + unit) != std::string::npos);
    CHECK(postrm.find(" " + unit) != std::string::npos);
  }
}

TEST_CASE("units: the programs and units that they name are in the package") {
  const std::string package = text_of(in_tree("cmake/package.cmake"));
  const Units units = controller_units();
  Units programs;
  for (const std::string& unit : units) {
    CAPTURE(unit);
    const std::string text = text_of(in_tree("systemd/" + unit));
    for (const std::string& next : captured(R"(\nOnFailure=(\S+))", text)) CHECK(units.count(next) == 1);
    programs.merge(captured(R"(\nExecStart=/usr/lib/muster/(\S+))", text));
  }
  CHECK(programs == Units{"rollout-failed"});
  for (const std::string& program : programs) {
    CHECK(package.find("PROGRAMS systemd/" + program + " DESTINATION lib/muster") != std::string::npos);
    CHECK((fs::status(in_tree("systemd/" + program)).permissions() & fs::perms::owner_exec) !=
          fs::perms::none);
  }
  CHECK(captured(R"(\nOnFailure=(\S+))", text_of(in_tree("systemd/muster-rollout.service"))) ==
        Units{"muster-rollout-failed.service"});
}

TEST_CASE("units: what follows a failed rollout prints its state, and needs no configuration") {
  Failed f;
  const Output out = f.run();
  CHECK(out.exit_code == 0);
  CHECK(out.out.find("muster rollout status") != std::string::npos);
  CHECK(out.out.find("_SYSTEMD_INVOCATION_ID=1a2b") != std::string::npos);
}

TEST_CASE("units: what follows a failed rollout starts the program behind the last try only") {
  Failed f;
  f.executable("program", "#!/bin/sh\necho started\n");
  for (const char* state : {"failed", "auto-restart"}) {
    CAPTURE(state);
    f.executable("bin/systemctl", std::string("#!/bin/sh\necho ") + state + "\n");
    const Output out = f.run();
    CHECK(out.exit_code == 0);
    CHECK((out.out.find("started") != std::string::npos) == (state == std::string("failed")));
    CHECK(out.out.find("muster rollout status") != std::string::npos);
  }
}

TEST_CASE("units: the operator's program reads what was printed, and its failure is seen") {
  Failed f;
  f.executable("program", "#!/bin/sh\ncat > \"$(dirname \"$0\")/read\"\nexit 7\n");
  const Output out = f.run();
  CHECK(out.exit_code == 7);
  CHECK(f.dir.read("read") == out.out);
  fs::permissions(f.dir.path("program"), fs::perms(0644));
  CHECK(f.run().exit_code == 0);  // not executable: it is switched off
}
