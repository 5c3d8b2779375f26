// File systems are held to what the drives under them read in the same run.
#include "controller/report/drive_floors.h"

#include "tests/catch.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using report_sample::measured;
using report_sample::step;

namespace {

// A node whose drives S0, S1 ... read so much, alone and side by side (0: not measured so).
std::vector<MeasuredStep> drives(const std::string& node,
                                 const std::vector<std::pair<double, double>>& speeds) {
  Json parts = Json::array();
  for (size_t i = 0; i < speeds.size(); ++i) {
    std::map<std::string, std::pair<double, std::string>> metrics = {
        {"read_mbps", {speeds[i].first, "MB/s"}}};
    if (speeds[i].second > 0) metrics["parallel_mbps"] = {speeds[i].second, "MB/s"};
    parts.push_back(
        {{"subject", "S" + std::to_string(i)}, {"like", "X"}, {"result", measured("drives", metrics)}});
  }
  return {step(node, "drives", "", "", nullptr, {{"check", "drives"}, {"parts", parts}})};
}

MeasuredStep file_system(const std::string& node, double write, double read, const Json& under,
                         const std::string& level) {
  return step(node, "local storage", "", "/scratch",
              Json::parse(R"({"write_mbps":{"of_raw_reads":0.1,"otherwise_min":400,"unit":"MB/s"},
                              "read_mbps":{"of_raw_reads":0.7,"otherwise_min":800,"unit":"MB/s"}})"),
              measured("fio", {{"write_mbps", {write, "MB/s"}}, {"read_mbps", {read, "MB/s"}}},
                       {{"drives", under}, {"level", level}}));
}

const Check& check_of(const std::map<std::string, std::vector<Check>>& judged, const std::string& name) {
  for (const auto& check : judged.at("n0"))
    if (check.name == name) return check;
  FAIL("no check " << name);
  return judged.at("n0").front();
}

std::map<std::string, std::vector<Check>> judged(std::vector<MeasuredStep> steps, const MeasuredStep& fs) {
  steps.push_back(fs);
  return judge_measurements(steps);
}

}  // namespace

TEST_CASE("a file system's floor is a part of what its drives read side by side", "[report]") {
  const Json two = {"S0", "S1"};
  const auto steps =
      drives("n0", {{3000, 2000}, {3000, 2500}, {3000, 3000}});  // the third is not in the array
  auto good = judged(steps, file_system("n0", 500, 3200, two, "raid0"));
  CHECK(check_of(good, "local storage/read_mbps").verdict == Verdict::pass);
  CHECK(check_of(good, "local storage/read_mbps").expected == 0.7 * 4500);
  CHECK(check_of(good, "local storage/write_mbps").expected == 0.1 * 4500);
  auto slow = judged(steps, file_system("n0", 440, 3100, two, "raid0"));
  CHECK(check_of(slow, "local storage/read_mbps").verdict == Verdict::fail);
  CHECK(check_of(slow, "local storage/read_mbps").missed_floor);  // asked about where all nodes miss it
  CHECK(check_of(slow, "local storage/write_mbps").verdict == Verdict::fail);
  // Drives that were not read side by side count as they were read alone.
  auto alone = judged(drives("n0", {{3000, 0}}), file_system("n0", 500, 2000, {"S0"}, ""));
  CHECK(check_of(alone, "local storage/read_mbps").expected == 0.7 * 3000);
  CHECK(check_of(alone, "local storage/read_mbps").verdict == Verdict::fail);
}

TEST_CASE("an array is held to the drives that hold its data, and writing parity to no drive at all",
          "[report]") {
  const Json four = {"S0", "S1", "S2", "S3"};
  const auto steps = drives("n0", {{0, 1000}, {0, 1000}, {0, 1000}, {0, 1000}});
  const std::map<std::string, double> reads = {{"raid0", 4000}, {"raid1", 1000},  {"raid5", 3000},
                                               {"raid6", 2000}, {"raid10", 2000}, {"", 4000}};
  for (const auto& [level, sum] : reads) {
    CAPTURE(level);
    const auto out = judged(steps, file_system("n0", 5000, 5000, four, level));
    CHECK(check_of(out, "local storage/read_mbps").expected == 0.7 * sum);
    const bool parity = level == "raid5" || level == "raid6";
    CHECK(check_of(out, "local storage/write_mbps").expected == (parity ? 400 : 0.1 * sum));
  }
  CHECK(check_of(judged(steps, file_system("n0", 5000, 5000, four, "raid4711")), "local storage/read_mbps")
            .expected == 800);
}

TEST_CASE("where a drive was not read, or is not named, the constant floor holds", "[report]") {
  const auto least = [](const std::vector<MeasuredStep>& steps, const Json& under) {
    const auto out = judged(steps, file_system("n0", 300, 900, under, "raid0"));
    CHECK(check_of(out, "local storage/write_mbps").verdict == Verdict::fail);
    CHECK(check_of(out, "local storage/read_mbps").verdict == Verdict::pass);
    return check_of(out, "local storage/read_mbps").expected;
  };
  CHECK(least({}, {"S0"}) == 800);
  CHECK(least(drives("n0", {{3000, 3000}}), {"S0", "S1"}) == 800);
  CHECK(least(drives("n0", {{3000, 3000}}), Json::array()) == 800);
  CHECK(least(drives("n1", {{3000, 3000}}), {"S0"}) == 800);  // another node's
  auto failed = drives("n0", {{3000, 3000}});
  failed[0].result["parts"][0]["result"]["outcome"] = "failed";
  CHECK(least(failed, {"S0"}) == 800);
}

TEST_CASE("a share that the lab's spec gives is the lab's in the report, too", "[report]") {
  auto steps = drives("n0", {{300, 200}, {300, 100}});
  MeasuredStep fs = file_system("n0", 1, 1, {"S0", "S1"}, "raid0");
  for (auto& [metric, limit] : fs.expect.items())
    limit = {{"of_raw_reads", 0.001}, {"otherwise_min", 2}, {"unit", "MB/s"}, {"set_by", "lab"}};
  const auto passed = judged(steps, fs);
  CHECK(check_of(passed, "local storage/read_mbps").verdict == Verdict::pass);
  CHECK(check_of(passed, "local storage/read_mbps").expected == 0.001 * 300);
  CHECK(check_of(passed, "local storage/read_mbps").derivation.find("lab: 0.001 x raw drives") == 0);
  const auto otherwise = judged({}, fs);
  CHECK(check_of(otherwise, "local storage/read_mbps").verdict == Verdict::fail);
  CHECK(check_of(otherwise, "local storage/read_mbps").derivation.find("the lab's `otherwise_min`, 2 MB/s") ==
        0);
}

TEST_CASE("a floor of raw reads is written with the constant it stands for", "[report]") {
  const auto ok = [](const char* expect) { return check_expectations(Json::parse(expect)).ok(); };
  CHECK(ok(R"({"read_mbps":{"of_raw_reads":0.7,"otherwise_min":800}})"));
  CHECK_FALSE(ok(R"({"read_mbps":{"of_raw_reads":0.7}})"));
  CHECK_FALSE(ok(R"({"read_mbps":{"otherwise_min":800}})"));
  CHECK_FALSE(ok(R"({"read_mbps":{"of_raw_reads":1.7,"otherwise_min":800}})"));
}
