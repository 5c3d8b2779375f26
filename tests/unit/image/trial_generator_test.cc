// The generator in images that makes a boot on trial end: run as systemd runs it, with the kernel's command
// line in a file.
#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "controller/image/customize.h"
#include "sys/os.h"
#include "tests/catch.h"
#include "tests/fakes/temp_dir.h"

using namespace muster;

namespace {

constexpr const char* kTimer = "normal/muster-trial.timer";
constexpr const char* kService = "normal/muster-trial.service";
constexpr const char* kLink = "normal/sysinit.target.wants/muster-trial.timer";
using Texts = std::vector<std::string>;

// What a unit file sets, "Section/Key" with its values in their order.
std::map<std::string, Texts> keys_of(const std::string& unit) {
  std::map<std::string, Texts> out;
  std::istringstream in(unit);
  std::string section;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.find('=');
    if (line[0] == '[')
      section = line.substr(1, line.size() - 2);
    else if (equals == std::string::npos)
      FAIL_CHECK("no line of a unit: " << line);
    else
      out[section + "/" + line.substr(0, equals)].push_back(line.substr(equals + 1));
  }
  return out;
}

class TrialGenerator {
 public:
  TrialGenerator() {
    for (const auto& file : builtin_files()) {
      if (file.path != kTrialGenerator) continue;
      CHECK(file.mode == 0755u);  // systemd runs no other
      REQUIRE(files_.write("/generator", file.content, file.mode).ok());
    }
    REQUIRE(files_.exists("/generator"));
    for (const char* folder : {"/out/normal", "/out/early", "/out/late"})
      REQUIRE(files_.make_directories(folder).ok());
  }
  void commit() const { REQUIRE(files_.write("/committed", "b\n").ok()); }
  // A file in the folder that it runs in.
  void lies_there(const std::string& name) const { REQUIRE(files_.write("/cwd/" + name, "").ok()); }
  void run(const std::string& command_line) const {
    dir_.write("cmdline", command_line + "\n");
    lies_there("x");
    const auto done = make_process()->run(
        {.argv = {"/bin/sh", dir_.path("generator"), dir_.path("out/normal"), dir_.path("out/early"),
                  dir_.path("out/late"), dir_.path("cmdline"), dir_.path("committed")},
         .cwd = dir_.path("cwd")});
    REQUIRE(done.ok());
    INFO(done->err);
    CHECK(done->exit_code == 0);
    CHECK(done->err.empty());
  }
  // All that lies in the three folders, "normal/x.timer".
  Texts written() const {
    Texts out;
    const std::filesystem::path top = dir_.path("out");
    for (const auto& entry : std::filesystem::recursive_directory_iterator(top))
      if (entry.is_symlink() || !entry.is_directory())
        out.push_back(entry.path().lexically_relative(top).string());
    std::sort(out.begin(), out.end());
    return out;
  }
  std::map<std::string, Texts> keys(const std::string& path) const {
    return keys_of(dir_.read("out/" + path));
  }
  Texts seconds() const {
    const auto timer = keys(kTimer);
    const auto found = timer.find("Timer/OnBootSec");
    return found == timer.end() ? Texts{} : found->second;
  }
  std::string link(const std::string& path) const { return files_.read_link("/out/" + path).value_or(""); }

 private:
  TempDir dir_;
  Files files_{dir_.path("")};
};

}  // namespace

TEST_CASE("a boot that is no trial gets nothing from the generator", "[image][in-place]") {
  const std::string line = GENERATE(
      "", "root=PARTUUID=x quiet muster.slot=b", "muster.trial=", "quiet muster.trial= muster.slot=b",
      "muster.trial", "xmuster.trial=300", "muster.trial.x=300", "muster.slot=b muster.trials=300");
  CAPTURE(line);
  const TrialGenerator g;
  g.run(line);
  CHECK(g.written().empty());
}

TEST_CASE("a boot on trial has a timer that needs nothing but itself", "[image][in-place]") {
  const TrialGenerator g;
  g.run("muster.trial=300");
  auto timer = g.keys(kTimer);
  CHECK(timer["Timer/OnBootSec"] == Texts{"300"});
  CHECK(timer["Unit/ConditionPathExists"] == Texts{"!/run/muster-committed"});
  CHECK(timer["Unit/IgnoreOnIsolate"] == Texts{"yes"});
  CHECK(timer["Unit/DefaultDependencies"] == Texts{"no"});
  for (const char* key : {"Unit/After", "Unit/Requires", "Unit/BindsTo", "Unit/PartOf", "Unit/Conflicts"})
    CHECK(timer.count(key) == 0);
  CHECK(timer.count("Timer/Unit") == 0);  // the service of its own name
  // It is wanted before anything of the system that could fail.
  CHECK(g.link(kLink) == "../muster-trial.timer");
}

TEST_CASE("the end of a trial reboots by force, also where that command fails", "[image][in-place]") {
  const TrialGenerator g;
  g.run("muster.trial=300");
  auto service = g.keys(kService);
  CHECK(service["Service/ExecStart"] == Texts{"/bin/systemctl --force reboot"});
  CHECK(service["Service/Type"] == Texts{"oneshot"});
  CHECK(service["Unit/FailureAction"] == Texts{"reboot-force"});
  CHECK(service["Unit/ConditionPathExists"] == Texts{"!/run/muster-committed"});
  CHECK(service["Unit/DefaultDependencies"] == Texts{"no"});
}

TEST_CASE("a trial that ends in a shell for emergencies reboots instead", "[image][in-place]") {
  const TrialGenerator g;
  g.run("muster.trial=300");
  for (const std::string name : {"emergency", "rescue"}) {
    CAPTURE(name);
    auto drop_in = g.keys("normal/" + name + ".service.d/muster-trial.conf");
    // The empty value removes what the unit had: nothing waits at a console.
    CHECK(drop_in["Service/ExecStart"] == Texts{"", "/bin/systemctl --force reboot"});
    CHECK(drop_in["Service/ExecStartPre"] == Texts{""});
    CHECK(drop_in["Unit/FailureAction"] == Texts{"reboot-force"});
  }
  CHECK(g.written() == Texts{"normal/emergency.service.d/muster-trial.conf", kService, kTimer,
                             "normal/rescue.service.d/muster-trial.conf", kLink});
}

TEST_CASE("a trial that was committed has no units any more after a daemon-reload", "[image][in-place]") {
  const TrialGenerator g;
  g.commit();
  g.run("root=PARTUUID=x muster.slot=b muster.trial=300");
  CHECK(g.written().empty());
}

TEST_CASE("a word of the command line is no pattern for the names of files", "[image][in-place]") {
  const TrialGenerator g;
  g.lies_there("muster.trial=7");
  g.run("quiet muster.tr* muster.tria[l]=7 *");
  CHECK(g.written().empty());
  g.run("quiet muster.trial=300 *");
  CHECK(g.seconds() == Texts{"300"});
}

TEST_CASE("a trial whose time is no number ends all the same", "[image][in-place]") {
  const std::string value = GENERATE("abc", "-5", "1h", "3.5", "0x10", "infinity", "300s", "\"300\"");
  CAPTURE(value);
  const TrialGenerator g;
  g.run("muster.slot=b muster.trial=" + value + " quiet");
  const Texts seconds = g.seconds();
  REQUIRE(seconds.size() == 1);
  REQUIRE_FALSE(seconds[0].empty());
  CHECK(seconds[0].size() < 7);
  CHECK(seconds[0].find_first_not_of("0123456789") == std::string::npos);
  CHECK(g.link(kLink) == "../muster-trial.timer");
}

TEST_CASE("the time of a trial is found wherever it stands, and the last one counts", "[image][in-place]") {
  const TrialGenerator g;
  SECTION("in the middle") { g.run("root=PARTUUID=x ro quiet muster.slot=b muster.trial=5400 panic=30"); }
  SECTION("at the end") { g.run("quiet systemd.watchdog_sec=120  muster.trial=5400"); }
  SECTION("with a tab and spaces") { g.run("quiet\tmuster.trial=5400   muster.slot=b "); }
  SECTION("twice") { g.run("muster.trial=300 quiet muster.trial=5400"); }
  SECTION("beside one of a similar name") { g.run("muster.trials=1 muster.trial=5400 x.muster.trial=2"); }
  SECTION("run again, as systemd does in a daemon-reload") {
    g.run("muster.trial=300");
    const Texts before = g.written();
    g.run("muster.trial=5400");
    CHECK(g.written() == before);
  }
  CHECK(g.seconds() == Texts{"5400"});
}
