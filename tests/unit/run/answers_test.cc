// What the steps of an action came to, from the rows of its journal.
#include "controller/run/answers.h"

#include "tests/catch.h"

using namespace muster;

namespace {

Json told(const std::string& id, const std::string& status, Json result = nullptr) {
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
  const auto first = ended({told("a", "measured", 1), told("b", "failed")});
  const auto second = ended({told("a", "incomplete"), told("b", "measured", 3), told("c", "incomplete")});
  const auto rows = std::vector<JournalRow>{row("intent", {}),
                                            row("step", told("a", "measured", 1)),
                                            row("failed", first),
                                            row("intent", {}),
                                            row("step", told("b", "measured", 2)),
                                            row("failed", second),
                                            row("abandoned", {{"message", "given up"}})};
  CHECK(after(rows) == Json{told("a", "measured", 1), told("b", "measured", 3), told("c", "incomplete")});
}

TEST_CASE("a success counts alone", "[answers]") {
  CHECK(after({row("failed", ended({told("a", "failed"), told("b", "measured", 1)})),
               row("succeeded", ended({told("a", "measured", 2)}))}) == Json{told("a", "measured", 2)});
}

TEST_CASE("rounds that isolate the faulty node are no answers of the action", "[answers]") {
  const auto own = ended({told("a", "measured", 1), told("all-reduce", "measured", 5)}, true);
  const auto round = ended({told("all-reduce", "measured", {{"parts", Json::array()}})}, true);
  CHECK(after({row("failed", own), row("step", told("all-reduce", "measured", 9)), row("failed", round),
               row("unknown", {{"message", "lost"}}), row("abandoned", {{"message", "given up"}})}) ==
        Json{told("a", "measured", 1), told("all-reduce", "measured", 5)});
  CHECK(after({row("failed", own), row("succeeded", ended({told("all-reduce", "measured", 7)}))}) ==
        Json{told("all-reduce", "measured", 7)});
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
