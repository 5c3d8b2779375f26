#include "cli/terminal.h"

#include <algorithm>

#include "base/json.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::cli;

namespace {

Json status_in_mid_imaging() {
  return Json::parse(
      R"({"cluster": "lab", "run": {"id": 2, "kind": "install", "state": "running", "elapsed_ms": 83000},
    "problems": {},
    "nodes": [
      {"name": "node01", "state": "installing", "phase": "image", "fraction": 0.634, "rate": 41200000, "unit": "bytes",
       "eta_ms": 12000, "text": "writing root a"},
      {"name": "node02", "state": "accepted", "phase": "accept", "fraction": 1.0, "text": "done"},
      {"name": "node03", "state": "quarantined", "phase": "power", "reason": "the BMC answers 503", "text": "x"}]})");
}

}  // namespace

TEST_CASE("the live table shows phase, bar, percent, rate, ETA and reasons", "[cli]") {
  const std::string table = render_status(status_in_mid_imaging(), {110, false, false});
  CHECK(table ==
        "lab  run 2: install running, 1 min 23 s\n"
        "NODE    STATE        PHASE   PROGRESS                RATE     ETA\n"
        "node01  installing   image   ##########......  63 %  41 MB/s  12 s  writing root a\n"
        "node02  accepted     accept  ################ 100 %                 done\n"
        "node03  quarantined  power                                          the BMC answers 503\n");
}

TEST_CASE("the live table says what a person has to do, and not what the action is called", "[cli][manual]") {
  Json status = status_in_mid_imaging();
  Json& node = status["nodes"][0];
  node["waiting"] = "by hand until noon: restart it (rack 3)";
  const auto shows = [&](const char* text) {
    return render_status(status, {110, false, false}).find(text) != std::string::npos;
  };
  CHECK(shows("writing root a"));
  CHECK_FALSE(shows("rack 3"));
  node["by_hand"] = true;
  CHECK(shows("by hand until noon: restart it (rack 3)\n"));
  CHECK_FALSE(shows("writing root a"));
}

TEST_CASE("a narrow terminal cuts lines instead of wrapping them", "[cli]") {
  const std::string table = render_status(status_in_mid_imaging(), {30, false, true});
  size_t begin = 0;
  for (size_t end = table.find('\n'); end != std::string::npos;
       begin = end + 1, end = table.find('\n', begin)) {
    size_t cells = 0;
    for (size_t i = begin; i < end; ++i) cells += (static_cast<unsigned char>(table[i]) & 0xC0) != 0x80;
    CHECK(cells <= 30);
  }
}

TEST_CASE("what is cut is marked, and without a terminal nothing is cut", "[cli]") {
  Json status = status_in_mid_imaging();
  const std::string reason =
      "GPU 3 (GPU-1b2c, 0000:4b:00.0) fell off the bus: Xid 79" + std::string(200, 'x');
  status["nodes"][2]["reason"] = reason;
  status["storage"] =
      Json::array({{{"name", "scratch"}, {"problems", {{{"node", "n1"}, {"problem", reason}}}}}});
  CHECK(render_status(status, {}).find(reason + "\n") != std::string::npos);
  CHECK(render_storage(status, {}).find(reason + "\n") != std::string::npos);
  for (const bool unicode : {true, false}) {
    CAPTURE(unicode);
    const Look look{110, false, unicode};
    const std::string mark = unicode ? "…\n" : "...\n";
    CHECK(render_status(status, look).ends_with(mark));
    CHECK(render_storage(status, look).ends_with(mark));
  }
  CHECK(render_status(status_in_mid_imaging(), {110, false, true}).find("…") == std::string::npos);
}

TEST_CASE("a fresh controller shows the next command, not an empty table", "[cli]") {
  Json fresh = {{"nodes", Json::array()}, {"problems", {{"dhcp", "no interface"}}}};
  const std::string shown = render_status(fresh, {});
  CHECK(shown.find("muster up SPEC") != std::string::npos);
  CHECK(shown.find("NODE") == std::string::npos);
  CHECK(shown.find("no interface") != std::string::npos);
  fresh["spec_revision"] = 1;
  CHECK(render_status(fresh, {}).find("muster up SPEC") == std::string::npos);
}

TEST_CASE("strings from hardware cannot steer the terminal", "[cli]") {
  Json status = status_in_mid_imaging();
  status["nodes"][0]["text"] = "\xc2\x9b[2Jevil \x1b[2J\r\nline";
  const std::string table = render_status(status, {110, false, false});
  CHECK(table.find('\x1b') == std::string::npos);
  CHECK(table.find('\x9b') == std::string::npos);
  CHECK(std::count(table.begin(), table.end(), '\n') == 5);
}

TEST_CASE("text of several lines keeps its lines and nothing else that steers", "[cli]") {
  CHECK(clean_lines("gpu01: waits\n  reason: \x1b[2Jgone\n") == "gpu01: waits\n  reason:  [2Jgone\n");
  CHECK(clean_lines("") == "");
}

TEST_CASE("what is wrong with the controller itself stands on top", "[cli]") {
  Json status = status_in_mid_imaging();
  status["problems"] = {{"dhcp", "no interface carries 10.20.0.1"}};
  CHECK(render_status(status, {110, false, false}).find("! dhcp: no interface carries 10.20.0.1\n") !=
        std::string::npos);
}

TEST_CASE("without a terminal only changes are printed", "[cli]") {
  ChangeLines changes;
  Json status = status_in_mid_imaging();
  CHECK(changes.next(status) ==
        "   1:23  node01       installing   image       50 %\n"
        "   1:23  node02       accepted     accept     100 %\n"
        "   1:23  node03       quarantined  power       the BMC answers 503\n");
  CHECK(changes.next(status).empty());
  status["nodes"][0]["fraction"] = 0.7;  // within the same quarter
  CHECK(changes.next(status).empty());
  status["nodes"][0]["fraction"] = 0.76;
  CHECK(changes.next(status) == "   1:23  node01       installing   image       75 %\n");
}

TEST_CASE("the summary has one line per node, times per phase, and reasons", "[cli]") {
  const Json run = Json::parse(R"({"nodes": [
    {"name": "node01", "result": "accepted", "ms": 95000,
     "phases": [{"phase": "image", "ms": 62000}, {"phase": "accept", "ms": 33000}]},
    {"name": "node02", "result": "quarantined", "reason": "disk died", "ms": 5000, "phases": [{"phase": "image", "ms": 5000}]}]})");
  CHECK(render_summary(run) ==
        "NODE    RESULT            image      accept       total\n"
        "node01  accepted      1 min 2 s        33 s  1 min 35 s\n"
        "node02  quarantined         5 s           -         5 s\n"
        "node02: disk died\n");
  // On a terminal of 48 columns.
  CHECK(render_summary(run, 47) ==
        "NODE    RESULT            image      accept\n"
        "node01  accepted      1 min 2 s        33 s\n"
        "node02  quarantined         5 s           -\n"
        "NODE    RESULT            total\n"
        "node01  accepted     1 min 35 s\n"
        "node02  quarantined         5 s\n"
        "node02: disk died\n");
  const std::string least = render_summary(run, 1);
  CHECK(std::count(least.begin(), least.end(), '\n') == 10);
}

TEST_CASE("bytes and rates read as people say them", "[cli]") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(999) == "999 B");
  CHECK(human_bytes(1500) == "1.5 kB");
  CHECK(human_bytes(3.84e12) == "3.8 TB");
  CHECK(human_rate(2.5, "steps") == "2.5 steps/s");
  CHECK(bar(0, 4, false) == "....");
  CHECK(bar(1.7, 4, false) == "####");
  CHECK(bar(0.5, 4, true) == "██░░");
}

TEST_CASE("a node that is silent is shown with the time since when", "[cli]") {
  constexpr int64_t kAt = 1'700'036'398'000;  // 2023-11-15T08:19:58Z
  Json status = {{"time", kAt + 60'000},
                 {"nodes", {{{"name", "node01"}, {"state", "accepted"}, {"silent_since", kAt}}}}};
  CHECK(render_status(status, {110, false, false}).find("accepted") != std::string::npos);
  CHECK(render_status(status, {110, false, false}).find("silent since 08:19:58Z\n") != std::string::npos);
  status["time"] = kAt + 3 * 86'400'000;
  CHECK(render_status(status, {110, false, false}).find("silent since 2023-11-15T08:19:58Z\n") !=
        std::string::npos);
  status["nodes"][0]["phase"] = "power";  // a run is at it, and says what it waits for
  CHECK(render_status(status, {110, false, false}).find("silent since") == std::string::npos);
}

TEST_CASE("storage sections are shown with what is wrong with them and where", "[cli]") {
  Json status = status_in_mid_imaging();
  CHECK(render_storage(status, {110, false, false}).empty());
  status["storage"] = Json::parse(R"([
    {"name": "scratch", "engine": "local", "mount": "/scratch", "healthy": true, "size_bytes": 2000000000, "used_bytes": 500000000,
     "problems": [], "nodes": [{"node": "node01", "state": "mounted", "array": "raid5", "health": "recover, 12 %"}]},
    {"name": "home", "engine": "external", "mount": "/home/site", "healthy": false, "nodes": [],
     "problems": [{"node": "node02", "problem": "10.0.0.5:/x does not\u001b answer"}]},
    {"name": "new", "engine": "nfs", "mount": "/new", "healthy": null, "nodes": [], "problems": []}])");
  CHECK(render_storage(status, {110, false, false}) ==
        "\n"
        "STORAGE  ENGINE    MOUNT       SIZE    USED  HEALTH\n"
        "scratch  local     /scratch    2.0 GB  25 %  node01: recover, 12 %\n"
        "home     external  /home/site                node02: 10.0.0.5:/x does not  answer\n"
        "new      nfs       /new                      unknown\n");
}

TEST_CASE("a refusal is printed with its rule, which the manual lists") {
  const std::string text =
      render_refusals({{"refusals",
                        {{{"node", "head01"}, {"rule", "own-machine"}, {"message", "the controller is here"}},
                         {{"node", ""}, {"message", "no run"}}}}});
  CHECK(text.find("head01: ") != std::string::npos);
  CHECK(text.find("[own-machine]\n") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '[') == 1);
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
}
