#include "cli/event_words.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/event_kind.h"
#include "tests/catch.h"
#include "tests/tidy_source.h"

using namespace muster;
using namespace muster::cli;

namespace {

// As they are sent, and what an operator must find in the words.
struct Sample {
  Json data;
  std::vector<std::string> shown;
};
const std::map<std::string, Sample>& samples() {
  static const std::map<std::string, Sample> all = {
      {"hello",
       {{{"mode", "installed"}, {"slot", "b"}, {"trial", true}, {"agent_version", "0.1.0"}},
        {"installed", "slot b", "trial", "0.1.0"}}},
      {"started", {{{"order", "7/gpu01/steps"}}, {"7/gpu01/steps"}}},
      {"progress", {{{"text", "writing root b"}, {"done", 50}, {"total", 200}}, {"writing root b", "25 %"}}},
      {"step",
       {{{"step", "ssh/harden"}, {"name", "ssh/harden"}, {"status", "failed"}, {"message", "no such user"}},
        {"ssh/harden", "failed", "no such user"}}},
      {"log", {{{"level", "error"}, {"text", "journal: disk full"}}, {"error", "disk full"}}},
      {"finished",
       {{{"ok", false}, {"code", "timeout"}, {"message", "too slow"}, {"order", "7/a"}},
        {"7/a", "timeout", "too slow"}}},
      {"run",
       {{{"state", "failed"}, {"kind", "install"}, {"reason", "budget"}, {"by", "anna (sudo), muster up"}},
        {"failed", "install", "budget", "anna (sudo), muster up"}}},
      {"action",
       {{{"action", "gpu01/image"},
         {"event", "failed"},
         {"attempt", 2},
         {"title", "write the image"},
         {"message", "EIO"}},
        {"write the image", "failed", "attempt 2", "EIO"}}},
      {"wait",
       {{{"reason", "it boots"},
         {"awaited", "its agent"},
         {"until", 1'700'036'398'000},
         {"next", "power cycle"}},
        {"it boots", "its agent", "2023-11-15T08:19:58Z", "power cycle"}}},
      {"node", {{{"state", "quarantined"}, {"reason", "PSU"}}, {"quarantined", "PSU"}}},
      {"power", {{{"action", "off"}, {"by", "anna (sudo)"}}, {"off", "anna (sudo)"}}},
      {"boot",
       {{{"action", "script"}, {"text", "gets the RAM system"}, {"remote", "10.20.0.11"}},
        {"RAM system", "10.20.0.11"}}},
      {"join", {{{"action", "second"}, {"text", "a second machine"}}, {"second", "a second machine"}}},
      {"console", {{{"text", "Kernel panic"}}, {"Kernel panic"}}},
      {"spec", {{{"revision", 7}, {"digest", "sha256:0123456789abcdef"}}, {"revision 7", "0123456789ab"}}},
      {"image", {{{"name", "gpu"}, {"digest", "sha256:0123456789abcdef"}}, {"gpu", "built", "0123456789ab"}}},
      {"secret", {{{"name", "bmc"}, {"action", "set"}}, {"bmc", "set"}}},
      {"certificate", {{{"action", "revoked"}, {"serial", "1f"}}, {"revoked", "1f"}}},
      {"rollout",
       {{{"id", 3}, {"state", "stopped"}, {"night", 4}, {"outcome", "stopped"}},
        {"rollout 3", "stopped", "night 4"}}},
      {"restored", {{{"reason", "an older copy"}}, {"an older copy"}}},
      {"cause",
       {{{"action", "acknowledged"}, {"name", "3fa9"}, {"message", "gpu01 is silent"}, {"reason", "PSU"}},
        {"3fa9", "acknowledged", "gpu01 is silent", "PSU"}}},
      {"backup", {{{"path", "/srv/muster.db"}}, {"/srv/muster.db"}}},
      {"discovery", {{{"on", true}}, {"on"}}}};
  return all;
}

std::string words(const std::string& kind, const Json& data) {
  return event_words({{"kind", kind}, {"data", data}});
}

}  // namespace

TEST_CASE("every kind of event has words for what an operator needs of it", "[cli]") {
  for (const std::string_view kind : EventKind::kAll) {
    CAPTURE(kind);
    REQUIRE(samples().count(std::string(kind)) == 1);
    const Sample& sample = samples().at(std::string(kind));
    const std::string shown = words(std::string(kind), sample.data);
    CAPTURE(shown);
    CHECK(shown.find('{') == std::string::npos);  // no JSON
    for (const auto& part : sample.shown) CHECK(shown.find(part) != std::string::npos);
  }
  CHECK(samples().size() == EventKind::kAll.size());
}

TEST_CASE("an image that was not built, imported or exported has the error, and no digest", "[cli]") {
  for (const Sample& sample :
       {Sample{{{"name", "gpu"}, {"error", "no mirror"}}, {"gpu", "not built", "no mirror"}},
        Sample{{{"imported", "/a.tar"}, {"error", "no such file"}},
               {"/a.tar", "not imported", "no such file"}},
        Sample{{{"name", "gpu"}, {"exported", "/a.tar"}, {"error", "disk full"}},
               {"gpu", "not exported", "disk full"}}}) {
    const std::string shown = words("image", sample.data);
    CAPTURE(shown);
    CHECK(shown.find("digest") == std::string::npos);
    for (const auto& part : sample.shown) CHECK(shown.find(part) != std::string::npos);
  }
}

TEST_CASE("an event of a kind or shape that is not known shows its data", "[cli]") {
  CHECK(words("of a later version", {{"a", 1}}) == R"({"a":1})");
  CHECK(words("log", "text") == R"("text")");
  CHECK_FALSE(event_words(Json::object()).empty());
  for (const std::string_view kind : EventKind::kAll) {
    CAPTURE(kind);
    CHECK_FALSE(words(std::string(kind), Json::object()).empty());
    CHECK_FALSE(words(std::string(kind), {{"by", 5}, {"text", 5}, {"revision", "x"}}).empty());
  }
}

TEST_CASE("an event cannot control the terminal", "[cli]") {
  CHECK(words("console", {{"text", "a\x1b[2J\nb"}}) == "a [2J b");
}

TEST_CASE("the kinds that agents send are in the list, as those of the controller are", "[tidy]") {
  static const std::regex sent(R"re(\bemit_?\((?:[^,"()]*,\s*)?"([a-z]+)",)re");
  std::set<std::string> found;
  for (const auto& source : tidy::tree()) {
    if (!source.path.starts_with("agent/")) continue;
    const std::string text = tidy::without_comments(source.text);
    for (auto it = std::sregex_iterator(text.begin(), text.end(), sent); it != std::sregex_iterator(); ++it)
      found.insert((*it)[1]);
  }
  CHECK(found.count("step") == 1);
  CHECK(found.count("finished") == 1);
  for (const std::string& kind : found) {
    CAPTURE(kind);
    CHECK(std::find(EventKind::kAll.begin(), EventKind::kAll.end(), kind) != EventKind::kAll.end());
  }
}
