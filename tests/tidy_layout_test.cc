// House rules as a test, continued: where files lie, what they are called, and that includes go one way.
// tests/tidy_test.cc says how rules are written.
#include <fnmatch.h>

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

// From a file, or a unit (a source and its header), to what it includes.
using Graph = std::map<std::string, std::set<std::string>>;

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string unit_of(const std::string& path) { return path.substr(0, path.rfind('.')); }

// The landing of a program: what assembles it. All else has a folder, whatever kind of file it is.
Complaints program_roots(const std::vector<Source>& sources) {
  static const std::set<std::string> files = {
      "agent/all_drivers.cc",   "agent/main.cc",          "controller/all_drivers.cc", "controller/daemon.cc",
      "controller/daemon.h",    "controller/main.cc",     "kernels/main.cc",           "kernels/portable.cc",
      "kernels/program_mpi.cc", "kernels/program_nvml.cc"};
  static const std::set<std::string> roots = {"agent", "controller", "kernels"};
  Complaints bad;
  for (const auto& source : sources)
    if (const std::string root = folder_of(source.path); roots.count(root) && !files.count(source.path))
      bad.push_back(source.path + ": belongs into one of " + root + "/'s folders");
  return bad;
}

// A name says which file is meant. What every program has is called alike in each.
Complaints shared_names(const std::vector<Source>& sources) {
  static const std::set<std::string> alike = {"main.cc", "all_drivers.cc"};
  std::map<std::string, std::string> first;
  Complaints bad;
  for (const auto& source : sources) {
    const std::string name = file_name(source.path);
    if (!is_product(source.path) || alike.count(name)) continue;
    const auto [at, fresh] = first.emplace(name, source.path);
    if (!fresh) bad.push_back(source.path + ": the name of " + at->second);
  }
  return bad;
}

// The names on one circle, in order; empty: there is none.
std::vector<std::string> circle(const Graph& graph) {
  enum class Mark { fresh, open, done };
  std::map<std::string, Mark> marks;
  std::vector<std::string> way, found;
  const auto visit = [&](const auto& self, const std::string& at) -> void {
    marks[at] = Mark::open;
    way.push_back(at);
    const auto next = graph.find(at);
    if (next != graph.end())
      for (const auto& to : next->second) {
        if (!found.empty()) return;
        if (marks[to] == Mark::open) found.assign(std::find(way.begin(), way.end(), to), way.end());
        if (marks[to] == Mark::fresh) self(self, to);
      }
    way.pop_back();
    marks[at] = Mark::done;
  };
  for (const auto& [name, includes] : graph)
    if (marks[name] == Mark::fresh && found.empty()) visit(visit, name);
  return found;
}

Complaints circles(const Graph& graph) {
  std::string all;
  for (const auto& name : circle(graph)) all += name + " -> ";
  if (all.empty()) return {};
  return {all + "...: a circle of includes"};
}

Graph files_graph(const std::vector<Source>& sources) {
  Graph graph;
  for (const auto& source : sources)
    if (is_cpp(source.path))
      for (const auto& to : includes_of(source, '"')) graph[source.path].insert(to);
  return graph;
}

// A source and its header as one: where a pass includes the header of the entry that calls it, the include
// goes up.
Graph units_graph(const std::vector<Source>& sources, const std::string& folder) {
  Graph graph;
  for (const auto& source : sources)
    if (is_cpp(source.path) && folder_of(source.path) == folder)
      for (const auto& to : includes_of(source, '"'))
        if (folder_of(to) == folder && unit_of(to) != unit_of(source.path))
          graph[unit_of(source.path)].insert(unit_of(to));
  return graph;
}

// docs/architecture.md has a row for each folder with sources: "| `controller/run/` | ...".
Complaints folders_without_row(const std::vector<Source>& sources, const std::string& page) {
  std::set<std::string> folders;
  for (const auto& source : sources)
    if (is_product(source.path)) folders.insert(folder_of(source.path));
  Complaints bad;
  for (const auto& folder : folders)
    if (page.find("\n| `" + folder + "/` | ") == std::string::npos)
      bad.push_back(folder + "/: docs/architecture.md does not say what is in it");
  return bad;
}

// Sources that the build names, or a glob of it, and that are not there.
Complaints missing_sources(const std::vector<Source>& sources, const Source& build) {
  static const std::regex word(R"((^|[ (/])((\w[\w./-]*/)?[\w*-]+\.cc)\b)");
  Complaints bad;
  for (std::sregex_iterator it(build.text.begin(), build.text.end(), word), end; it != end; ++it) {
    const std::string pattern = (*it)[2];
    if ((*it)[1] == "/") continue;  // the rest of a path that begins with a variable, or a regular expression
    const bool any = std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
      return ::fnmatch(pattern.c_str(), source.path.c_str(), FNM_PATHNAME) == 0;
    });
    if (!any) bad.push_back(build.path + ": " + pattern + " finds nothing");
  }
  return bad;
}

}  // namespace

TEST_CASE("tidy: every rule about the layout can fail", "[tidy]") {
  CHECK(program_roots({{"controller/extra.cc", ""}}).size() == 1);
  for (const char* name : {"extra.h", "extra.cpp", "extra.py", "notes.md", "services.cc"})
    CHECK(program_roots({{std::string("controller/") + name, ""}}).size() == 1);
  CHECK(program_roots({{"controller/daemon.cc", ""}, {"controller/run/extra.cc", ""}}).empty());

  CHECK(shared_names({{"agent/a.cc", ""}, {"controller/x/a.cc", ""}}).size() == 1);
  CHECK(shared_names({{"agent/a.cc", ""}, {"agent/a.h", ""}, {"tests/a.cc", ""}}).empty());
  CHECK(shared_names({{"agent/main.cc", ""}, {"cli/main.cc", ""}}).empty());

  const Source a{"base/a.h", "#include \"base/b.h\"\n"}, b{"base/b.h", "#include \"base/c.h\"\n"},
      c{"base/c.h", "#include \"base/a.h\"\n"};
  CHECK(circles(files_graph({a, b, c})).size() == 1);
  CHECK(circles(files_graph({a, b})).empty());
  CHECK(circle({{"x", {"y"}}, {"y", {"z"}}, {"z", {"y"}}}) == std::vector<std::string>{"y", "z"});

  // The entry calls a pass, whose header includes the entry's.
  const std::vector<Source> up = {{"controller/plan/entry.cc", "#include \"controller/plan/pass.h\"\n"},
                                  {"controller/plan/pass.h", "#include \"controller/plan/entry.h\"\n"}};
  CHECK(circles(files_graph(up)).empty());
  CHECK(circles(units_graph(up, "controller/plan")).size() == 1);
  CHECK(circles(units_graph({up[0]}, "controller/plan")).empty());

  CHECK(folders_without_row({{"agent/x/a.cc", ""}}, "\n| `agent/` | all |\n").size() == 1);
  CHECK(folders_without_row({{"agent/x/a.cc", ""}}, "\n| `agent/x/` | all |\n").empty());

  const std::vector<Source> one = {{"agent/x/a.cc", ""}};
  CHECK(missing_sources(one, {"CMakeLists.txt", "  GLOBS agent/*/*.cc faults/*.cc\n"}).size() == 1);
  CHECK(missing_sources(one, {"CMakeLists.txt", "  GLOBS agent/x/b.cc\n"}).size() == 1);
  CHECK(missing_sources(one, {"CMakeLists.txt", "  GLOBS agent/x/a.cc agent/x/*.cc\n"}).empty());
}

TEST_CASE("tidy: every file has a folder and a name of its own", "[tidy]") {
  CHECK(all_of(program_roots(tree())) == "");
  CHECK(all_of(shared_names(tree())) == "");
}

TEST_CASE("tidy: includes go one way", "[tidy]") {
  CHECK(all_of(circles(files_graph(tree()))) == "");
  CHECK(all_of(circles(units_graph(tree(), "controller/plan"))) == "");
}

TEST_CASE("tidy: folders are described, and globs find something", "[tidy]") {
  CHECK(all_of(folders_without_row(
            tree(), muster::text_of(std::string(muster::source_dir()) + "/docs/architecture.md"))) == "");
  for (const auto& source : tree())
    if (source.path == "CMakeLists.txt") CHECK(all_of(missing_sources(tree(), source)) == "");
}
