// Floors by model: the table that is shipped, a spec's own lines before it, and what is made of them for
// drives and for arrays of them.
#include "controller/spec/drive_models.h"

#include <algorithm>

#include "controller/report/drive_floors.h"
#include "controller/report/measured.h"
#include "controller/spec/reader/parse_spec.h"
#include "controller/spec/schema.h"
#include "tests/catch.h"
#include "tests/unit/plan/fixture.h"
#include "tests/unit/report/sample.h"

using namespace muster;
using report_sample::measured;
using report_sample::step;

namespace {

const std::string kCm6 = "KIOXIA KCM6DRUL3T84";

const std::vector<DriveModel> kTable = {{"*KCM6?RUL3T84*", 6900, 4200, 1400000, "a data sheet"},
                                        {"READER*", 5000, 0, 0, "another"}};

// Drives S0, S1 ... of these models, which read so much alone.
std::vector<MeasuredStep> drives(const std::vector<std::pair<std::string, double>>& models) {
  Json parts = Json::array();
  for (size_t i = 0; i < models.size(); ++i)
    parts.push_back({{"subject", "S" + std::to_string(i)},
                     {"like", models[i].first + " 3840755982336"},
                     {"result", measured("drives", {{"read_mbps", {models[i].second, "MB/s"}}})}});
  return {step("n0", "drives", "", "",
               Json::parse(R"({"read_mbps":{"min":50,"derive":"drive_models","ratio":0.6,"fail_ratio":0.4,
                               "unit":"MB/s"}})"),
               {{"check", "drives"}, {"parts", parts}})};
}

MeasuredStep file_system(const Json& under, const std::string& level, const Json& jobs,
                         std::map<std::string, std::pair<double, std::string>> metrics) {
  return step(
      "n0", "local storage", "", "/scratch",
      Json::parse(R"({"write_mbps":{"derive":"drive_models","ratio":0.5,"fail_ratio":0.25},
                              "read_mbps":{"derive":"drive_models","ratio":0.6,"fail_ratio":0.4},
                              "random_read_iops":{"derive":"drive_models","ratio":0.5,"fail_ratio":0.2}})"),
      measured("fio", std::move(metrics), {{"drives", under}, {"level", level}, {"random_jobs", jobs}}));
}

Comparison with_table() {
  Comparison with;
  with.drives = kTable;
  return with;
}

const Check& check_of(const std::map<std::string, std::vector<Check>>& judged, const std::string& name,
                      const std::string& subject) {
  for (const auto& check : judged.at("n0"))
    if (check.name == name && check.subject == subject) return check;
  FAIL("no check " << name << " of " << subject);
  return judged.at("n0").front();
}

bool says(const Check& check, const std::string& words) {
  return check.derivation.find(words) != std::string::npos;
}

std::string errors_of(const std::string& drives) {
  std::string text = testing::kSpec;
  const std::string profile = "acceptance: { profile: lab }";
  REQUIRE(text.find(profile) != std::string::npos);
  text.replace(text.find(profile), profile.size(), "acceptance: { profile: lab, drives: " + drives + " }");
  std::string out;
  for (const auto& e : parse_spec(text).errors) out += to_string(e, "f") + "\n";
  return out;
}

}  // namespace

TEST_CASE("a drive is held to a share of what its model does, and the report says of what", "[report]") {
  const auto out = judge_measurements(
      drives({{kCm6, 6500}, {kCm6, 4000}, {kCm6, 2000}, {"UNLISTED 1", 60}, {"UNLISTED 1", 40}}),
      with_table());
  const auto of = [&](const char* drive) { return check_of(out, "drives/read_mbps", drive); };
  CHECK(of("S0").verdict == Verdict::pass);
  CHECK(of("S0").expected == 0.6 * 6900);
  CHECK(says(of("S0"), "a data sheet"));
  CHECK(says(of("S0"), "0.4 x derived"));
  CHECK(of("S1").verdict == Verdict::degraded);
  CHECK(of("S2").verdict == Verdict::fail);
  CHECK(of("S2").missed_floor == 0.4 * 6900);  // asked about where all nodes miss it
  // One that is not in the table has the profile's general floor, and that is said.
  CHECK(of("S3").verdict == Verdict::pass);
  CHECK(of("S3").expected == 50);
  CHECK(says(of("S3"), "the profile's `min`, 50"));
  CHECK(says(of("S3"), "no floor by model"));
  CHECK(says(of("S3"), "UNLISTED 1"));
  CHECK(of("S4").verdict == Verdict::fail);
}

TEST_CASE("without a table every drive has the general floor", "[report]") {
  const auto out = judge_measurements(drives({{kCm6, 60}, {kCm6, 40}}));
  CHECK(check_of(out, "drives/read_mbps", "S0").verdict == Verdict::pass);
  CHECK(says(check_of(out, "drives/read_mbps", "S0"), "no floor by model"));
  CHECK(check_of(out, "drives/read_mbps", "S1").verdict == Verdict::fail);
}

TEST_CASE("an array is held to as many drives as it has, less its redundancy", "[report]") {
  const Json four = {"S0", "S1", "S2", "S3"};
  const auto raw = drives({{kCm6, 6500}, {kCm6, 6500}, {kCm6, 6500}, {kCm6, 6500}});
  const auto expected = [&](const std::string& level, const std::string& metric, const Json& under) {
    auto steps = raw;
    steps.push_back(file_system(under, level, 16,
                                {{"write_mbps", {50000, "MB/s"}},
                                 {"read_mbps", {50000, "MB/s"}},
                                 {"random_read_iops", {9e6, "1/s"}}}));
    return check_of(judge_measurements(steps, with_table()), "local storage/" + metric, "/scratch").expected;
  };
  const std::map<std::string, double> data = {{"raid0", 4},  {"", 4},      {"raid1", 1},
                                              {"raid10", 2}, {"raid5", 3}, {"raid6", 2}};
  for (const auto& [level, drives] : data) {
    CAPTURE(level);
    CHECK(expected(level, "read_mbps", four) == 0.6 * (drives * 6900));
    const bool parity = level == "raid5" || level == "raid6";
    CHECK(expected(level, "write_mbps", four) ==
          (parity ? std::nullopt : std::optional<double>(0.5 * (drives * 4200))));
    CHECK(expected(level, "random_read_iops", four) == 0.5 * 160000);  // 16 at a time
  }
  CHECK(expected("raid0", "read_mbps", {"S0", "S1"}) == 0.6 * (2 * 6900));
  CHECK(expected("raid4711", "read_mbps", four) == std::nullopt);
  CHECK(expected("raid0", "read_mbps", {"S0", "S9"}) == std::nullopt);  // S9 is unknown
  CHECK(expected("raid0", "read_mbps", Json::array()) == std::nullopt);
}

TEST_CASE("a slow array fails although its drives are as slow as it is", "[report]") {
  auto steps = drives({{kCm6, 1000}, {kCm6, 1000}});
  steps.push_back(file_system(
      {"S0", "S1"}, "raid0", 8,
      {{"write_mbps", {1200, "MB/s"}}, {"read_mbps", {2000, "MB/s"}}, {"random_read_iops", {10000, "1/s"}}}));
  const auto out = judge_measurements(steps, with_table());
  CHECK(check_of(out, "local storage/read_mbps", "/scratch").verdict == Verdict::fail);
  CHECK(check_of(out, "local storage/write_mbps", "/scratch").verdict == Verdict::fail);
  CHECK(check_of(out, "local storage/random_read_iops", "/scratch").verdict == Verdict::fail);
  CHECK(says(check_of(out, "local storage/read_mbps", "/scratch"), "2 x " + kCm6));
  CHECK(says(check_of(out, "local storage/random_read_iops", "/scratch"), "8 reads at a time"));
}

TEST_CASE("random reads are not asked for more than the test has in flight, or the drives can", "[report]") {
  const auto found = [] {
    DrivesFound out;
    out["n0"]["S0"] = {kCm6, ""};
    return out;
  }();
  const auto value = [&](const Json& jobs, const std::vector<DriveModel>& table) {
    return drive_value(file_system({"S0"}, "", jobs, {}), "random_read_iops", table, found).value;
  };
  CHECK(value(1, kTable) == 10000);
  CHECK(value(nullptr, kTable) == 10000);  // an agent that does not say: one
  CHECK(value(64, kTable) == 640000);
  CHECK(value(1000, kTable) == 1400000);
  CHECK(value(1000, {{"*", 0, 0, 7000, "x"}}) == 7000);
  CHECK(value(1, {{"*", 5000, 0, 0, "x"}}) == std::nullopt);
}

TEST_CASE("a link that carries less than the drive does is no fault of the drive", "[report]") {
  const std::vector<DriveModel> gen5 = {{"*", 14000, 3500, 0, "x"}};
  const auto value = [&](const std::string& link, const std::string& metric) {
    DrivesFound found;
    found["n0"]["S0"] = {"M", link};
    const auto derived = drive_value(file_system({"S0"}, "", 1, {}), metric, gen5, found);
    REQUIRE(derived.value);
    return *derived.value;
  };
  CHECK(value("32.0 GT/s x4", "read_mbps") == 14000);
  CHECK(value("16.0 GT/s x4", "read_mbps") > 6500);
  CHECK(value("16.0 GT/s x4", "read_mbps") < 7500);
  CHECK(value("16.0 GT/s x4", "write_mbps") == 3500);
  for (const char* nothing : {"", "unknown", "GT/s x4", "0 GT/s x4", "16.0 GT/s x-4"})
    CHECK(value(nothing, "read_mbps") == 14000);
}

TEST_CASE("the inventory's models count, and those of the measured drives where there is none", "[report]") {
  HardwareFacts facts;
  facts.disks.resize(2);
  facts.disks[0].serial = "S0";
  facts.disks[0].model = "FROM FACTS";
  facts.disks[0].transport = "nvme";
  facts.disks[0].bus_speed = "16.0 GT/s x4";
  const auto found =
      drives_found(expand(drives({{"FROM PARTS", 1}, {kCm6, 1}})), {{"n0", &facts}, {"n1", nullptr}});
  CHECK(found.at("n0").at("S0").model == "FROM FACTS");
  CHECK(found.at("n0").at("S0").link == "16.0 GT/s x4");
  CHECK(found.at("n0").at("S1").model == kCm6);
  CHECK(found.count("n1") == 0);
}

TEST_CASE("the table that is shipped is sound, and each line of it can be reached", "[report]") {
  const ParsedYaml yaml = parse_yaml(embedded::drive_models);
  REQUIRE(yaml.errors.empty());
  const YamlNode* list = yaml.root.find("drives");
  REQUIRE(list);
  std::vector<SpecError> errors;
  CHECK(read_drive_models(*list, "drives", errors).size() == list->items.size());
  for (const auto& e : errors) FAIL_CHECK(to_string(e, "hardware/drives.yaml"));
  REQUIRE(shipped_drive_models().size() >= 15);
  // The schema of a spec's own lines holds for these, too.
  Json schema = Json::parse(embedded::spec_schema);
  const Json lines = schema["properties"]["acceptance"]["properties"]["drives"];
  check_schema(*list, lines, errors);
  for (const auto& e : errors) FAIL_CHECK(to_string(e, "hardware/drives.yaml"));
  for (const DriveModel& line : shipped_drive_models()) {
    CAPTURE(line.model);
    CHECK_FALSE(line.source.empty());
    CHECK(line.read_mbps >= 1000);  // every one of them is an NVMe drive, and none of them is a rocket
    CHECK(line.read_mbps <= 15750);
    CHECK(line.write_mbps <= line.read_mbps);
    CHECK((line.random_read_iops == 0 || line.random_read_iops >= 100000));
  }
  const auto read_of = [](const std::string& model) {
    const DriveModel* line = find_drive_model(shipped_drive_models(), model);
    return line ? line->read_mbps : 0;
  };
  // As kernels call them.
  CHECK(read_of("KIOXIA KCM6DRUL3T84") == 6900);
  CHECK(read_of("KCD6XLUL15T3") == 6200);
  CHECK(read_of("KIOXIA KCMYDRUG1T92") == 14000);
  CHECK(read_of("SAMSUNG MZQL23T8HCLS-00A07") == 6500);
  CHECK(read_of("SAMSUNG MZWLO3T8HCLS-00A07") == 13000);
  CHECK(read_of("Micron_7450_MTFDKCC3T2TFS") == 6800);
  CHECK(read_of("INTEL SSDPF2KX038T1") == 6500);
  CHECK(read_of("SOLIDIGM SSDPF2KX019T1M") == 6500);
  for (const char* not_known : {"Micron_7450_MTFDKBA960TFR", "QEMU NVMe Ctrl", "Samsung SSD 980 PRO 2TB", ""})
    CHECK(read_of(not_known) == 0);
}

TEST_CASE("a spec's own lines come first, and of a lab's drives nothing else is known", "[report][spec]") {
  Spec spec;
  spec.drive_models = {{"SAMSUNG MZQL2*", 3000, 0, 0, ""}};
  auto table = drive_models_of(spec);
  CHECK(table.size() == shipped_drive_models().size() + 1);
  const DriveModel* line = find_drive_model(table, "SAMSUNG MZQL23T8HCLS-00A07");
  REQUIRE(line);
  CHECK(line->read_mbps == 3000);
  CHECK(line->source.find("acceptance.drives") != std::string::npos);
  spec.lab = true;
  table = drive_models_of(spec);
  CHECK(table.size() == 1);
}

TEST_CASE("a wrong line about drives is an error of the spec, with its place", "[spec]") {
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  CHECK(errors_of("[ { model: \"A*\", read_mbps: 7000.5 }, { model: \"*\", write_mbps: 9 } ]").empty());
  CHECK(has(errors_of("[ { read_mbps: 7000 } ]"), "acceptance.drives[0]"));
  CHECK(has(errors_of("[ { model: A } ]"), "acceptance.drives[0]"));
  CHECK(has(errors_of("[ { model: \"\", read_mbps: 1 } ]"), "acceptance.drives[0].model"));
  CHECK(has(errors_of("[ { model: \" A\", read_mbps: 1 } ]"), "acceptance.drives[0].model"));
  CHECK(has(errors_of("[ { model: A, read_mbps: 0 } ]"), "acceptance.drives[0].read_mbps"));
  CHECK(has(errors_of("[ { model: A, read_mbps: -5 } ]"), "acceptance.drives[0].read_mbps"));
  CHECK(has(errors_of("[ { model: A, read_mbps: 7 GB/s } ]"), "acceptance.drives[0].read_mbps"));
  CHECK(has(errors_of("[ { model: A, read_mbps: .nan } ]"), "acceptance.drives[0].read_mbps"));
  CHECK(has(errors_of("[ { model: A, reads_mbps: 7000 } ]"), "read_mbps"));
  CHECK(has(errors_of("[]"), "acceptance.drives"));
  CHECK(has(errors_of("{ \"A*\": 7000 }"), "acceptance.drives"));
  // The first that fits counts: one behind a wider one, or the same again, never would.
  CHECK(has(errors_of("[ { model: \"*\", read_mbps: 1 }, { model: A, read_mbps: 1 } ]"),
            "acceptance.drives[1].model"));
  CHECK(has(errors_of("[ { model: A, read_mbps: 1 }, { model: A, write_mbps: 1 } ]"),
            "acceptance.drives[1].model"));
  CHECK(errors_of("[ { model: A1, read_mbps: 1 }, { model: \"A*\", read_mbps: 1 } ]").empty());
  CHECK(errors_of("[ { model: \"A?\", read_mbps: 1 }, { model: \"A*\", read_mbps: 1 } ]").empty());
}

TEST_CASE("a profile may ask for the model's figures of what they are about", "[report]") {
  const auto ok = [](const char* metric) {
    return check_expectations({{metric, {{"derive", "drive_models"}, {"ratio", 0.5}}}}).ok();
  };
  for (const char* metric : {"read_mbps", "parallel_mbps", "write_mbps", "random_read_iops"})
    CHECK(ok(metric));
  CHECK_FALSE(ok("gflops"));
  CHECK_FALSE(check_expectations(Json::parse(R"({"read_mbps":{"derive":"drive_models"}})")).ok());
  CHECK_FALSE(check_expectations(Json::parse(R"({"read_mbps":{"derive":"drive_model","ratio":0.5}})")).ok());
}
