// A preview on the terminal: 80 columns into a pipe, nodes with the same change in one line.
#include "cli/shown_preview.h"
#include "cli/spec_request.h"

#include <algorithm>

#include "base/split.h"
#include "base/time.h"
#include "tests/catch.h"

using namespace muster;
using cli::render_spec_preview;

namespace {

constexpr TimeMs kNow = 1'800'000'000'000;

Json step(const std::string& id, const std::string& diff = "") {
  return {{"step", id}, {"module", "file"}, {"change", "changed"}, {"diff", diff}};
}

Json change(const std::string& node, const std::string& work, const Json& steps, DurationMs age) {
  return {{"node", node},
          {"work", work},
          {"why", "its configuration or acceptance is declared differently"},
          {"steps", steps},
          {"accepted_again", true},
          {"compared", true},
          {"facts_time", kNow - age}};
}

Json whole() {
  const Json motd =
      Json::array({step("greeting/motd", "--- content\n+++ content\n@@ -1,1 +1,1 @@\n-a\n+b\n")});
  Json out = {{"cluster", "gaggle"}, {"revision", 7},
              {"coming", 8},         {"unchanged", false},
              {"digest", ""},        {"diff", "--- revision 7\n+++ cluster.yaml\n@@ -1,1 +1,1 @@\n-a\n+b\n"}};
  out["images"] = Json::array({{{"name", "gpu"}, {"why", "packages: +htop"}},
                               {{"name", "cpu"}, {"why", ""}, {"error", "no recipe debian-14"}}});
  out["secrets"] =
      Json::array({{{"name", "bmc"}, {"nodes", {"gpu01", "gpu02"}}, {"receivers", Json::array()}}});
  out["removed"] = Json::array({"gpu09"});
  Json plan = {{"kind", "apply"},
               {"unchanged", {"cpu01", "cpu02"}},
               {"left_out", Json::array({"gpu08"})},
               {"notes", Json::array({"gpu08 is left out: it is quarantined because of \x1b[2Jits PSU"})}};
  plan["nodes"] = Json::array({change("gpu01", "configure", motd, kMinute),
                               change("gpu02", "configure", motd, 3 * 60 * kMinute),
                               change("gpu03", "re-image", Json::array(), kMinute)});
  plan["destroys"] = Json::array({{{"node", "gpu03"},
                                   {"group", "os"},
                                   {"serial", "S1"},
                                   {"model", "Micron 7450"},
                                   {"size_bytes", 960'000'000'000},
                                   {"content", "ext4 label=FAMILY"},
                                   {"why", "operating system image gpu"}}});
  out["plans"] = Json::array({plan});
  return out;
}

size_t count(const std::string& text, const std::string& part) {
  size_t out = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++out;
  return out;
}

}  // namespace

TEST_CASE("a preview has no line over the width but those of diffs, and no control characters",
          "[cli][preview]") {
  for (const size_t width : {size_t{40}, size_t{80}}) {
    const std::string text = render_spec_preview(whole(), kNow, width);
    for (const std::string& line : split_lines(text)) {
      CAPTURE(line);
      CHECK(line.size() <= width);
      CHECK(std::none_of(line.begin(), line.end(), [](char c) { return c == '\x1b'; }));
    }
  }
}

TEST_CASE("a preview groups nodes with the same change, with the age of the oldest inventory",
          "[cli][preview]") {
  const std::string text = render_spec_preview(whole(), kNow, 200);
  CHECK(has(text, "gpu[01-02]: configure"));
  CHECK(has(text, to_human(3 * 60 * kMinute)));
  CHECK(has(text, "gpu03: re-image"));
  CHECK(count(text, "greeting/motd") == 1);
  CHECK(has(text, "unchanged: cpu[01-02]"));
  CHECK(has(text, "left out: gpu08"));
  CHECK(has(text, "gpu: packages: +htop"));
  CHECK(has(text, "no recipe debian-14"));
  CHECK(has(text, "bmc: of gpu[01-02]"));
  CHECK(has(text, "gpu09"));
  CHECK(has(text, "serial S1"));
}

TEST_CASE("a preview of refusals names node, rule and message", "[cli][preview]") {
  Json preview = whole();
  preview["plans"] = Json::array({{{"refusals", Json::array({{{"node", "gpu01"},
                                                              {"rule", "disk-foreign"},
                                                              {"message", "disk S1 is not blank"}}})}}});
  const std::string text = render_spec_preview(preview, kNow, 200);
  CHECK(has(text, "gpu01: disk S1 is not blank [disk-foreign]"));
  CHECK_FALSE(has(text, "configure"));
}

TEST_CASE("a preview of a later plan that is refused, or cannot be made, does not say that nothing is lost",
          "[cli][preview]") {
  Json preview = whole();
  preview["plans"][0]["destroys"] = Json::array();
  CHECK(has(render_spec_preview(preview, kNow, 200), "Nothing will be destroyed"));
  SECTION("refused") {
    preview["plans"].push_back(
        Json{{"refusals", Json::array({{{"node", "gpu04"}, {"rule", "disk-foreign"}, {"message", "m"}}})}});
  }
  SECTION("not made") {
    preview["plans"].push_back(Json{{"error", "gpu04: unknown variable\ngpu05: \x1b[2Jtoo"}});
    const std::string text = render_spec_preview(preview, kNow, 200);
    CHECK(has(text, "  gpu04: unknown variable\n"));
    CHECK_FALSE(has(text, "\x1b"));
  }
  CHECK_FALSE(has(render_spec_preview(preview, kNow, 200), "Nothing will be destroyed"));
}

TEST_CASE("up stops for what is refused or cannot be planned or built, not for nodes that are left out",
          "[cli][preview]") {
  Json preview = whole();
  CHECK(cli::why_up_would_stop(preview) == "image cpu cannot be built: no recipe debian-14");
  preview["images"][1].erase("error");
  CHECK(cli::why_up_would_stop(preview) == "");
  CHECK(cli::question_about(preview) == "Store this as revision 8 and go on without gpu08?");
  preview["plans"].push_back(Json{{"error", "unknown variable"}});
  CHECK(cli::why_up_would_stop(preview) == "some nodes cannot be planned: unknown variable");
  const Json refusal = {{"node", "gpu04"}, {"rule", "disk-count"}, {"message", "no disk"}};
  preview["plans"][1] = Json{{"refusals", Json::array({refusal, refusal})}};
  CHECK(cli::why_up_would_stop(preview) == "gpu04 is refused: no disk [disk-count], and 1 more");
  preview["plans"] = Json::array();
  preview["unchanged"] = true;
  CHECK(cli::question_about(preview) == "Build these images and go on?");
}

TEST_CASE("a preview has its warnings below the plans, with place and code", "[cli][preview]") {
  Json preview = whole();
  preview["warnings"] = Json::array({{{"code", "image-unused"},
                                      {"file", "new.yaml"},
                                      {"line", 8},
                                      {"column", 3},
                                      {"path", "images.spare"},
                                      {"message", "no node has it\x1b[2J"}}});
  const std::string text = render_spec_preview(preview, kNow, 200);
  const size_t at = text.find("new.yaml:8:3: images.spare: no node has it");
  REQUIRE(at != std::string::npos);
  CHECK(has(text, "[image-unused]"));
  CHECK_FALSE(has(text, "\x1b"));
  CHECK(at > text.find("gpu03: re-image"));
  CHECK(at < text.find("Nothing is stored"));
}

TEST_CASE("a preview says what storing alone does, if it would be stored", "[cli][preview]") {
  Json preview = whole();
  const std::string text = render_spec_preview(preview, kNow, 400);
  const size_t said = text.find("Storing it takes effect on the controller at once");
  REQUIRE(said != std::string::npos);
  for (const char* what : {"DHCP", "provider installs", "limits of events"})
    CHECK(text.find(what, said) != std::string::npos);
  preview["unchanged"] = true;
  CHECK_FALSE(has(render_spec_preview(preview, kNow, 400), "Storing it"));
}

TEST_CASE("a preview shows what agents found, and who was not checked", "[cli][preview]") {
  Json preview = whole();
  const Json found = {
      {"step", "base/motd"}, {"status", "failed"}, {"message", "is not as declared"}, {"diff", ""}};
  preview["live"] =
      Json::array({{{"node", "gpu01"}, {"error", ""}, {"as_declared", 12}, {"steps", Json::array({found})}},
                   {{"node", "gpu02"}, {"error", ""}, {"as_declared", 12}, {"steps", Json::array({found})}},
                   {{"node", "gpu03"},
                    {"error", "its agent does not answer"},
                    {"as_declared", 0},
                    {"steps", Json::array()}}});
  const std::string text = render_spec_preview(preview, kNow, 200);
  CHECK(count(text, "base/motd") == 1);
  CHECK(has(text, "gpu[01-02]: 12 steps as declared, 1 not"));
  CHECK(has(text, "gpu03: NOT CHECKED: its agent does not answer"));
}
