// What there is nothing of: the command to type next is shown, and no empty table.
#include "cli/cli_context.h"
#include "tests/catch.h"
#include "tests/fakes/api_answers.h"

using namespace muster;
using namespace muster::cli;
using muster::testing::ApiAnswers;

namespace {

const Json kNone = Json::array();

bool shows(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a list without entries says what to type next", "[cli]") {
  ApiAnswers api({{"/v1/secrets", {{"secrets", kNone}}},
                  {"/v1/images", {{"images", kNone}}},
                  {"/v1/specs", {{"specs", kNone}}},
                  {"/v1/runs", {{"runs", kNone}}},
                  {"/v1/notices", {{"causes", kNone}, {"receivers", kNone}}},
                  {"/v1/nodes", {{"nodes", kNone}, {"unknown_machines", kNone}, {"discover_until", 0}}}});
  const std::pair<std::vector<std::string>, const char*> next[] = {
      {{"secret", "list"}, "muster secret set"}, {{"image", "list"}, "muster up"},
      {{"spec", "history"}, "muster up"},        {{"runs"}, "muster up"},
      {{"node", "list"}, "muster up"},           {{"notify"}, "notify:"}};
  for (const auto& [words, shown] : next) {
    const auto ran = api.run(words);
    CAPTURE(words, ran.out, ran.err);
    CHECK(ran.exit == kAccepted);
    CHECK(shows(ran.out, shown));
    CHECK_FALSE(shows(ran.out, "NODE"));
    CHECK_FALSE(shows(ran.out, "IMAGE"));
    std::vector<std::string> json = words;
    json.push_back("--json");
    CHECK(parse_json(api.run(json).out).ok());
  }
}

TEST_CASE("a plan that leaves every node out has accepted none", "[cli]") {
  const Json planned = {{"digest", "sha256:0123456789"},
                        {"kind", "accept"},
                        {"empty", true},
                        {"unchanged", kNone},
                        {"left_out", Json::array({"n1"})},
                        {"notes", Json::array({"n1 is left out: never seen"})}};
  const auto accept = [](const Json& answer) {
    std::map<std::string, Json> answers;
    answers["/v1/plan"] = answer;
    return ApiAnswers(answers).run({"accept", "--yes"});
  };
  const auto ran = accept(planned);
  CHECK(ran.exit == kPartial);
  CHECK_FALSE(shows(ran.out, "accepted,"));
  CHECK(shows(ran.out, "n1 is left out"));

  Json rest = planned;
  rest["unchanged"] = Json::array({"n2"});
  CHECK(shows(accept(rest).out, "already accepted"));
}
