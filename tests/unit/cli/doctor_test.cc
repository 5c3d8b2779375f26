// muster doctor: exit codes, and what it prints.
#include "base/split.h"
#include "cli/cli_context.h"
#include "tests/catch.h"
#include "tests/fakes/api_answers.h"

using namespace muster;
using namespace muster::cli;
using muster::testing::ApiAnswers;

namespace {

Json check_of(const std::string& state, const Json& findings, const Json& not_looked) {
  return {{"code", "bmc-login"},   {"title", "BMC logins"}, {"state", state},
          {"looked_at", "3 BMCs"}, {"findings", findings},  {"not_looked", not_looked}};
}

testing::Ran doctor(const std::string& state, const Json& check, const std::vector<std::string>& more = {}) {
  ApiAnswers api({{"/v1/doctor", {{"state", state}, {"checks", Json::array({check})}}}});
  std::vector<std::string> words = {"doctor"};
  words.insert(words.end(), more.begin(), more.end());
  return api.run(words);
}

const Json kNone = Json::array();

}  // namespace

TEST_CASE("doctor: healthy is 0, findings are 3, and what could not be looked at is 1", "[cli][doctor]") {
  const Json finding = {{"at", "gpu01"}, {"what", "broken"}, {"next", "muster secret set bmc"}};
  CHECK(doctor("healthy", check_of("healthy", kNone, kNone)).exit == kAccepted);
  CHECK(doctor("findings", check_of("findings", Json::array({finding}), kNone)).exit == kPartial);
  CHECK(doctor("not-looked", check_of("not-looked", kNone, Json::array({"late"}))).exit == kFailed);
  CHECK(doctor("", check_of("healthy", kNone, kNone)).exit == kFailed);
  CHECK(testing::muster_command({"doctor", "--socket", "/nonexistent/sock"}).exit == kFailed);
}

TEST_CASE("doctor: a finding shows its code and its command, in lines of 80 columns", "[cli][doctor]") {
  const std::string what =
      "E: The repository 'http://mirror.example/debian bookworm-updates Release' does not "
      "have a Release file.\nE: Unable to locate package \x1b[31mx";
  const Json finding = {{"at", "gpu[01-64]"}, {"what", what}, {"next", "muster secret set bmc"}};
  const auto ran =
      doctor("findings", check_of("findings", Json::array({finding}), Json::array({"gpu65: late"})));
  CHECK(ran.out.find("bmc-login") != std::string::npos);
  CHECK(ran.out.find("next: muster secret set bmc") != std::string::npos);
  CHECK(ran.out.find("gpu65: late") != std::string::npos);
  CHECK(ran.out.find('\x1b') == std::string::npos);
  for (const std::string& line : split_lines(ran.out)) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
  }
  const auto json =
      parse_json(doctor("findings", check_of("findings", Json::array({finding}), kNone), {"--json"}).out);
  REQUIRE(json.ok());
  CHECK((*json)["checks"][0]["findings"][0]["at"] == "gpu[01-64]");
}
