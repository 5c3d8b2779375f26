// House rules as a test: the folders form a tree, docs/architecture.md draws its floors, cmake/folders.cmake
// links it, and the logic is deterministic. tests/tidy_test.cc says how rules are written.
#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/source_dir.h"
#include "tests/tidy_source.h"

namespace {

using namespace muster::tidy;

using Folders = std::map<std::string, std::set<std::string>>;  // folder -> folders that its files include
using Floors = std::map<std::string, int>;

std::string top_of(const std::string& path) { return path.substr(0, path.find('/')); }

Folders folders_of(const std::vector<Source>& sources) {
  Folders found;
  for (const auto& source : sources) {
    if (!is_product(source.path)) continue;
    auto& below = found[folder_of(source.path)];
    for (const auto& path : includes_of(source, '"'))
      if (path.find('/') != std::string::npos && folder_of(path) != folder_of(source.path))
        below.insert(folder_of(path));
  }
  return found;
}

// Of a folder that is on a circle, or above one: -1. `open`: the folders whose floor depends on this one.
int floor_of(const Folders& folders, const std::string& folder, Floors& known,
             std::set<std::string> open = {}) {
  if (const auto found = known.find(folder); found != known.end()) return found->second;
  if (!open.insert(folder).second) return -1;
  int floor = 0;
  const auto includes = folders.find(folder);
  if (includes != folders.end())
    for (const auto& below : includes->second) {
      const int under = floor_of(folders, below, known, open);
      if (under < 0) return -1;
      floor = std::max(floor, under + 1);
    }
  return known[folder] = floor;
}

Complaints folder_circles(const Folders& folders) {
  Floors known;
  Complaints bad;
  for (const auto& [folder, below] : folders)
    if (floor_of(folders, folder, known) < 0)
      bad.push_back(folder + "/: on a circle of folders, or above one");
  return bad;
}

// The rows of the drawing: "| 3 | `controller/plan/` `controller/power/` | `agent/image/` |".
Floors drawn(const std::string& page) {
  static const std::regex row(R"(^\| (\d+) \|)"), folder(R"(`([\w/]+)/`)");
  Floors floors;
  for (const auto& line : lines_of(page)) {
    std::smatch number;
    if (!std::regex_search(line, number, row)) continue;
    for (std::sregex_iterator it(line.begin(), line.end(), folder), end; it != end; ++it)
      floors[(*it)[1]] = std::stoi(number[1]);
  }
  return floors;
}

// A folder stands one floor above the highest that it includes.
Complaints wrong_drawing(const Folders& folders, const Floors& drawing) {
  Floors known;
  Complaints bad;
  for (const auto& [folder, below] : folders) {
    const int floor = floor_of(folders, folder, known);
    const auto found = drawing.find(folder);
    if (found == drawing.end() || found->second != floor)
      bad.push_back(folder + "/: stands on floor " + std::to_string(floor) + ", is drawn on " +
                    (found == drawing.end() ? "none" : std::to_string(found->second)));
  }
  for (const auto& [folder, floor] : drawing)
    if (!folders.count(folder)) bad.push_back(folder + "/: is drawn, and has no sources");
  return bad;
}

// "muster_folder(host LINK base sys NEEDS z)" -> host: base, sys
Folders linked(const std::string& build) {
  static const std::regex call(R"(\nmuster_folder\(([\w/]+)([^)]*)\))"), word(R"([^\s]+)");
  Folders found;
  for (std::sregex_iterator it(build.begin(), build.end(), call), end; it != end; ++it) {
    auto& links = found[(*it)[1]];
    const std::string list = (*it)[2];
    for (std::sregex_iterator w(list.begin(), list.end(), word); w != end; ++w) {
      if (w->str() == "NEEDS") break;
      if (w->str() != "LINK") links.insert(w->str());
    }
  }
  return found;
}

// A program may link more than it includes: what its lists of drivers and modules name.
Complaints wrong_links(const Folders& folders, const Folders& links) {
  static const std::set<std::string> only_programs = {"kernels", "kernels/gpu"}, lists = {"agent"};
  Complaints bad;
  for (const auto& [folder, below] : folders) {
    const auto declared = links.find(folder);
    if (declared == links.end()) {
      if (!only_programs.count(folder)) bad.push_back(folder + "/: no muster_folder()");
      continue;
    }
    for (const auto& one : below)
      if (!declared->second.count(one)) bad.push_back(folder + "/: includes " + one + "/, does not link it");
    for (const auto& one : declared->second)
      if (!below.count(one) && !lists.count(folder))
        bad.push_back(folder + "/: links " + one + "/, includes nothing of it");
  }
  return bad;
}

// ---- what floors do not say

// Programs share base/, sys/ and host/, and adapters do not know each other, whatever the floors.
Complaints borders(const Source& source) {
  static const std::map<std::string, std::set<std::string>> never = {
      {"base", {"sys", "host", "controller", "agent", "kernels", "lab", "cli"}},
      {"sys", {"host", "controller", "agent", "kernels", "lab", "cli"}},
      {"host", {"controller", "agent", "kernels", "lab", "cli"}},
      {"controller", {"agent", "kernels", "lab", "cli"}},
      {"agent", {"controller", "kernels", "lab", "cli"}},
      {"kernels", {"controller", "agent", "lab", "cli"}},
      {"lab", {"agent", "kernels", "cli"}},
      {"cli", {"agent", "kernels"}}};
  static const std::set<std::string> adapters = {"controller/boot", "controller/image", "controller/power",
                                                 "controller/ssh", "controller/store"};
  Complaints bad;
  const auto forbidden = never.find(top_of(source.path));
  if (forbidden == never.end()) return bad;
  for (const auto& path : includes_of(source, '"')) {
    if (path.find('/') == std::string::npos) continue;  // generated
    const std::string edge = source.path + " includes " + path, here = folder_of(source.path);
    if (!never.count(top_of(path))) bad.push_back(edge + ": nothing of the product is there");
    if (forbidden->second.count(top_of(path))) bad.push_back(edge + ": another program's");
    if (adapters.count(here) && adapters.count(folder_of(path)) && here != folder_of(path))
      bad.push_back(edge + ": adapters do not include each other");
  }
  return bad;
}

// Values, with no way to the world.
const std::set<std::string>& pure_folders() {
  static const std::set<std::string> folders = {
      "controller/causes",         "controller/doctor",  "controller/engines",
      "controller/locate",         "controller/metrics", "controller/nodes",
      "controller/notices",        "controller/plan",    "controller/ports",
      "controller/power/describe", "controller/report",  "controller/report/import",
      "controller/rollout",        "controller/run",     "controller/spec",
      "controller/spec/reader"};
  return folders;
}

// The logic behaves the same every time: no clock, no thread, no I/O, no order that depends on addresses or
// hashes. The executor and the agent's loop reach the world through ports.
Complaints purity(const Source& source) {
  static const std::set<std::string> through_ports = {"controller/executor", "agent/core"};
  static const std::set<std::string> never = {
      "unordered_map", "unordered_set", "thread",     "mutex",    "condition_variable",
      "future",        "fstream",       "filesystem", "ctime",    "chrono",
      "sys/socket.h",  "unistd.h",      "random",     "sqlite3.h"};
  const bool pure = pure_folders().count(folder_of(source.path)) > 0;
  Complaints bad;
  if (!pure && !through_ports.count(folder_of(source.path))) return bad;
  for (const auto& header : includes_of(source, '<'))
    if (never.count(header) || header.starts_with("boost/asio") || header.starts_with("boost/beast"))
      bad.push_back(source.path + " includes <" + header + ">: the logic is deterministic");
  for (const auto& header : includes_of(source, '"'))
    if (pure && (header.starts_with("sys/") || header.starts_with("host/")))
      bad.push_back(source.path + " includes " + header + ": this folder is pure");
  return bad;
}

std::string text_at(const char* path) { return muster::text_of(std::string(muster::source_dir()) + path); }

}  // namespace

TEST_CASE("tidy: every rule about floors can fail", "[tidy]") {
  const std::vector<Source> sources = {{"base/a.h", ""},
                                       {"sys/b.cc", "#include \"base/a.h\"\n#include \"sys/b.h\"\n"},
                                       {"agent/x/c.cc", "#include \"sys/b.h\"\n#include \"base/a.h\"\n"}};
  const Folders folders = folders_of(sources);
  CHECK(folders == Folders{{"base", {}}, {"sys", {"base"}}, {"agent/x", {"base", "sys"}}});
  CHECK(folder_circles(folders).empty());
  CHECK(folder_circles({{"a", {"b"}}, {"b", {"c"}}, {"c", {"b"}}, {"d", {}}}).size() == 3);

  CHECK(drawn("| 2 | `agent/x/` |\n| 1 | `sys/` |\n| 0 | `base/` |\n| word | `no/` |\n") ==
        Floors{{"agent/x", 2}, {"sys", 1}, {"base", 0}});
  CHECK(wrong_drawing(folders, {{"agent/x", 2}, {"sys", 1}, {"base", 0}}).empty());
  CHECK(wrong_drawing(folders, {{"agent/x", 1}, {"sys", 1}, {"base", 0}}).size() == 1);
  CHECK(wrong_drawing(folders, {{"agent/x", 2}, {"sys", 1}, {"base", 0}, {"lab", 1}}).size() == 1);
  CHECK(wrong_drawing(folders, {{"sys", 1}, {"base", 0}}).size() == 1);

  const Folders links = linked(
      "\nmuster_folder(base NEEDS z)\nmuster_folder(sys LINK base)\nmuster_folder(agent/x LINK\n  base sys "
      "NEEDS x)\n");
  CHECK(wrong_links(folders, links).empty());
  CHECK(wrong_links(folders, linked("\nmuster_folder(base)\nmuster_folder(sys)\n")).size() == 2);
  CHECK(wrong_links(folders, linked("\nmuster_folder(base LINK sys)\nmuster_folder(sys LINK base)\n"
                                    "muster_folder(agent/x LINK base sys)\n"))
            .size() == 1);

  CHECK(borders({"controller/power/redfish.cc", "#include \"controller/ssh/ssh.h\"\n"}).size() == 1);
  CHECK(borders({"controller/power/redfish.cc", "#include \"controller/ports/power.h\"\n"}).empty());
  CHECK(borders({"agent/core/agent.cc", "#include \"controller/plan/plan.h\"\n"}).size() == 1);
  CHECK(borders({"sys/http/http.cc", "#include \"agent/core/step.h\"\n"}).size() == 1);
  CHECK(borders({"controller/main.cc", "#include \"controller/api/routes.h\"\n"}).empty());
  CHECK(purity({"controller/plan/plan.cc", "#include <unordered_map>\n#include \"sys/log.h\"\n"}).size() ==
        2);
  CHECK(purity({"controller/executor/executor.cc", "#include <thread>\n#include \"sys/log.h\"\n"}).size() ==
        1);
  CHECK(purity({"controller/ssh/ssh.cc", "#include <thread>\n"}).empty());
}

TEST_CASE("tidy: folders form a tree", "[tidy]") {
  REQUIRE(folders_of(tree()).size() > 40);
  CHECK(all_of(folder_circles(folders_of(tree()))) == "");
}

TEST_CASE("tidy: docs/architecture.md draws the floors as they are", "[tidy]") {
  CHECK(all_of(wrong_drawing(folders_of(tree()), drawn(text_at("/docs/architecture.md")))) == "");
}

TEST_CASE("tidy: a folder links what it includes", "[tidy]") {
  CHECK(all_of(wrong_links(folders_of(tree()), linked(text_at("/cmake/folders.cmake")))) == "");
}

TEST_CASE("tidy: programs and adapters keep apart, and the logic is deterministic", "[tidy]") {
  CHECK(over_tree(borders, is_product) == "");
  CHECK(over_tree(purity, is_product) == "");
}
