// What the steps of an action came to, from the rows of its journal.
#include "controller/executor/answers.h"

#include "tests/catch.h"

using namespace muster;

namespace {

Json reported(const std::string& id, const std::string& status, Json result = nullptr) {
  return {{"step", id}, {"status", status}, {"message", ""}, {"ms", 1}, {"result", std::move(result)}};
}
JournalRow row(const std::string& event, Json data, const std::string& action = "n/accept") {
  JournalRow out;
  out.run = 1;
  out.node = "n";
  out.action = action;
  out.event = event;
  out.data = std::move(data);
  return out;
}
Json ended(std::initializer_list<Json> steps, bool follow_up = false) {
  Json data = {{"message", "no"}, {"result", {{"steps", steps}}}};
  if (follow_up) data["follow_up"] = true;
  return data;
}
Json after(const std::vector<JournalRow>& rows) {
  StepAnswers answers;
  for (const auto& r : rows) answers.apply(r);
  return answers.of("n/accept");
}

}  // namespace

TEST_CASE("what was reported of a step stands until the next report, and being given up changes nothing",
          "[answers]") {
  const auto first = ended({reported("a", "measured", 1), reported("b", "failed")});
  const auto second =
      ended({reported("a", "incomplete"), reported("b", "measured", 3), reported("c", "incomplete")});
  const auto rows = std::vector<JournalRow>{row("intent", {}),
                                            row("step", reported("a", "measured", 1)),
                                            row("failed", first),
                                            row("intent", {}),
                                            row("step", reported("b", "measured", 2)),
                                            row("failed", second),
                                            row("abandoned", {{"message", "given up"}})};
  CHECK(after(rows) ==
        Json{reported("a", "measured", 1), reported("b", "measured", 3), reported("c", "incomplete")});
}

TEST_CASE("a success counts alone", "[answers]") {
  CHECK(after({row("failed", ended({reported("a", "failed"), reported("b", "measured", 1)})),
               row("succeeded", ended({reported("a", "measured", 2)}))}) ==
        Json{reported("a", "measured", 2)});
}

TEST_CASE("rounds that isolate the faulty node are no answers of the action", "[answers]") {
  const auto own = ended({reported("a", "measured", 1), reported("all-reduce", "measured", 5)}, true);
  const auto round = ended({reported("all-reduce", "measured", {{"parts", Json::array()}})}, true);
  CHECK(after({row("failed", own), row("step", reported("all-reduce", "measured", 9)), row("failed", round),
               row("unknown", {{"message", "lost"}}), row("abandoned", {{"message", "given up"}})}) ==
        Json{reported("a", "measured", 1), reported("all-reduce", "measured", 5)});
  CHECK(after({row("failed", own), row("succeeded", ended({reported("all-reduce", "measured", 7)}))}) ==
        Json{reported("all-reduce", "measured", 7)});
}

TEST_CASE(
    "rows that an agent or another version could have spoilt are no answers, and no end of the controller",
    "[answers]") {
  CHECK(after({row("step", nullptr), row("step", "x"), row("step", {{"step", 3}}), row("failed", nullptr),
               row("failed", {{"result", 4}}), row("failed", {{"result", {{"steps", 5}}}}),
               row("failed", {{"follow_up", "yes"}, {"result", {{"steps", {1, nullptr, "x"}}}}})}) ==
        Json::array());
  CHECK(StepAnswers().of("nobody/accept") == Json::array());
}
