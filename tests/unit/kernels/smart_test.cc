// What NVMe drives report about themselves, from the bytes of their SMART log to the metrics.
#include "kernels/counters/smart.h"

#include "kernels/counters/counters.h"
#include "tests/catch.h"
#include "sys/os.h"
#include "tests/fakes/temp_dir.h"
#include "tests/source_dir.h"

using namespace muster;
using namespace muster::kernels;

namespace {

std::string smart_log(unsigned warning, unsigned spare, unsigned used) {
  std::string out(512, '\0');
  out[0] = static_cast<char>(warning);
  out[1] = 0x31, out[2] = 0x01;  // kelvin
  out[3] = static_cast<char>(spare);
  out[4] = 10;
  out[5] = static_cast<char>(used);
  out[160] = 0x02, out[161] = 0x01;  // media errors: 258
  return out;
}

struct Drives {
  TempDir dir;
  std::map<std::string, Result<std::string>> logs = {};
  void add(const std::string& name, Result<std::string> log, const std::string& transport = "pcie") {
    const Files files(dir.path(""));
    REQUIRE(files.write("/sys/class/nvme/" + name + "/transport", transport + "\n").ok());
    REQUIRE(files.write("/sys/class/nvme/" + name + "/serial", "SN-" + name + "   \n").ok());
    logs.emplace("/dev/" + name, std::move(log));
  }
  Measurement look() const {
    const Files files(dir.path(""));
    REQUIRE(run_counters(files, {.save = "/run/before.json"}).outcome == Outcome::measured);
    return run_counters(files,
                        {.since = "/run/before.json",
                         .query_smart = [this](const std::string& device) { return logs.at(device); }});
  }
};
bool is_absent(const Measurement& m, const char* metric) {
  const Json& absent = m.detail["absent"];
  return std::count(absent.begin(), absent.end(), metric) > 0;
}

}  // namespace

TEST_CASE("SMART: critical warnings and wear are metrics, and the drive is named by its serial", "[smart]") {
  Drives drives;
  drives.add("nvme0", smart_log(0, 100, 3));
  drives.add("nvme1", smart_log(0x0c, 4, 103));
  drives.add("nvme2", smart_log(0x01, 100, 0), "tcp");  // another host's
  const Measurement m = drives.look();
  CHECK(m.metrics.at("drive_warnings").value == 1);
  CHECK(m.metrics.at("drive_wear").value == 103);
  CHECK(m.detail["moved"]["drive SN-nvme1"].size() == 2);
  CHECK_FALSE(m.detail["moved"].contains("drive SN-nvme0"));
  CHECK(m.detail["smart"]["drive SN-nvme1"]["warning"] == "unreliable after errors, read-only");
  CHECK(m.detail["smart"]["drive SN-nvme1"]["media_errors"] == 258);
  CHECK(m.detail["smart"].size() == 2);
}

TEST_CASE("SMART: the program reads drives only with its option", "[smart]") {
  const TempDir dir;
  const auto process = make_process();
  const std::string program = build_dir() + "/muster-accept", file = dir.path("before.json");
  REQUIRE(run_ok(*process, {.argv = {program, "counters", "--save", file}}).ok());
  const auto without = run_ok(*process, {.argv = {program, "counters", "--since", file}});
  REQUIRE(without.ok());
  CHECK(without->find("drive_wear") == std::string::npos);
  const auto with = run_ok(*process, {.argv = {program, "counters", "--since", file, "--smart"}});
  REQUIRE(with.ok());
  CHECK(with->find("drive_wear") != std::string::npos);  // measured, absent, or not looked at
}

TEST_CASE("SMART: without drives, without a log and without root there is no metric, each for its reason",
          "[smart]") {
  const Drives none;
  CHECK(is_absent(none.look(), "drive_warnings"));
  Drives silent;
  silent.add("nvme0", std::string(512, '\0'));  // of an emulation
  silent.add("nvme1", fail(Code::unavailable, "/dev/nvme1: NVMe status 0x4002"));
  const Measurement m = silent.look();
  CHECK(is_absent(m, "drive_wear"));
  CHECK(m.metrics.count("drive_warnings") == 0);
  CHECK(m.detail["smart"]["drive SN-nvme1"] == "/dev/nvme1: NVMe status 0x4002");
  Drives user;
  user.add("nvme0", fail(Code::denied, "/dev/nvme0: Permission denied"));
  const Measurement hidden = user.look();
  CHECK_FALSE(is_absent(hidden, "drive_wear"));
  CHECK(hidden.detail["not_looked_at"]["drive_wear"].is_string());
  // What one drive reports counts, whatever another one does.
  silent.add("nvme2", smart_log(0, 90, 12));
  CHECK(silent.look().metrics.at("drive_wear").value == 12);
}
