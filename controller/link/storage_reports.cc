#include "controller/link/storage_reports.h"

#include <fnmatch.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/disk_source.h"
#include "base/json_at.h"
#include "base/printable.h"
#include "base/slurm_state.h"
#include "controller/engines/engine.h"
#include "controller/plan/interconnect.h"

namespace muster {
namespace {

constexpr size_t kLongest = 8192;

// Returns the topmost mount at `path`; null if there is none.
Json mount_at(const Json& all, const std::string& path) {
  for (const auto& one : all)
    if (one.is_object() && text_at(one, "at") == path) return one;
  return nullptr;
}

// True if the node has too many mounts and did not report all of them.
bool was_cut(const Json& all) {
  return std::any_of(all.begin(), all.end(), [](const Json& one) { return is_true_at(one, "cut"); });
}

// What must be mounted at a section's mount point. An empty source means any device of the node itself: only
// the node can resolve links to devices.
struct Right {
  RightMount mount;
  bool as_text = false;  // compare as text, not as globs
};
bool fits(const Right& right, const std::string& fs, const std::string& from) {
  const RightMount& want = right.mount;
  if (right.as_text) return fs == want.fstype && from == want.source;
  if (::fnmatch(want.fstype.c_str(), fs.c_str(), 0) != 0) return false;
  return want.source.empty() ? from.starts_with("/dev/")
                             : ::fnmatch(want.source.c_str(), from.c_str(), 0) == 0;
}

// The correct mounts of a section: the leader's may differ from those of the other nodes.
struct Section {
  Section(const Spec& of, const StorageSpec& section) : spec(section) {
    const StorageEngine& engine = engine_of(section);
    const NodeSpec* first = engine.mount ? storage_leader(of, section) : nullptr;
    if (engine.reach == Reach::of_a_site) {
      others = {{section.fstype, section.source}, true};
    } else if (!engine.mount) {
      others = {{section.fs, ""}};
    } else if (!first) {
      others = {{"*", "*"}};  // no leader, so the correct mount is unknown
    } else {
      const std::string address = SectionNetwork(of, section).address(*first);
      others = {engine.mount({of.cluster, section, address, false})};
      leaders = {engine.mount({of.cluster, section, address, true})};
      if (leaders.mount.source.starts_with("/dev/") || is_disk_source(leaders.mount.source))
        leaders.mount.source.clear();
      leader = first->name;
    }
  }
  const Right& right(const std::string& node) const { return node == leader ? leaders : others; }

  const StorageSpec& spec;
  std::string leader;  // empty: the correct mount is the same on all nodes
  Right leaders, others;
};

void copy_number(const Json& from, const char* key, Json& to, const char* as) {
  if (const auto it = from.find(key); it != from.end() && it->is_number_unsigned()) to[as] = *it;
}

// Returns the node's entry for the section, and sets `problem` to its error.
Json of_node(const Section& section, const std::string& node, const Json* report, std::string& problem) {
  const StorageSpec& s = section.spec;
  Json out = {{"node", node}, {"state", "unknown"}};
  if (!report) return out;
  const Json mount = mount_at(*report, s.mount);
  if (mount.is_null() && was_cut(*report)) {
    out["cut"] = true;
    return out;
  }
  if (mount.is_null()) {
    out["state"] = "absent";
    problem = s.mount + " is not mounted";
    return out;
  }
  const std::string from = text_at(mount, "from"), fs = text_at(mount, "fs");
  if (const Right& right = section.right(node); !fits(right, fs, from)) {
    const RightMount& want = right.mount;
    out["state"] = "other";
    const size_t plain = std::min(want.source.size(), want.source.find_first_not_of('*'));
    problem = fmt::format(
        "{} is {} ({}), not {}", s.mount, from, fs,
        want.source.empty() ? want.fstype + " on the node's own drives" : want.source.substr(plain));
    return out;
  }
  if (is_true_at(mount, "silent")) {
    out["state"] = "silent";
    problem = from + " does not answer";
    if (const auto age = mount.find("age"); age != mount.end() && age->is_number_unsigned())
      problem += fmt::format(", last answer {} s ago", age->get<uint64_t>());
    return out;
  }
  out["state"] = "mounted";
  copy_number(mount, "size", out, "size_bytes");
  copy_number(mount, "used", out, "used_bytes");
  for (const char* key : {"array", "health"})
    if (const std::string text = text_at(mount, key); !text.empty()) out[key] = text;
  if (mount.value("ok", Json()) == false)
    problem = fmt::format("{} {}", text_at(mount, "array"), text_at(mount, "health"));
  return out;
}

// The health that the engine itself reports, from the nodes that can query it. A reported problem always
// counts; a missing response counts only if no node gets one, so a single monitor that is cut off is ignored.
class EnginesWord {
 public:
  void add(const std::string& engine, const std::string& node, const Json& report) {
    for (const auto& one : report) {
      if (!one.is_object() || text_at(one, "engine") != engine) continue;
      const Json ok = one.value("ok", Json());
      const std::string words = text_at(one, "health");
      if (ok == false && wrong_.is_null())
        wrong_ = {{"node", node},
                  {"problem", words.empty() ? engine + " is unhealthy" : words},
                  {"of_engine", true}};
      well_ = well_ || ok == true;
      if (is_true_at(one, "silent") && silent_.is_null())
        silent_ = {{"node", node}, {"problem", engine + " does not answer"}};
    }
  }
  // Returns {node, problem, of_engine?}; null: no problem.
  Json problem() const { return wrong_.is_null() && !well_ ? silent_ : wrong_; }

 private:
  Json wrong_ = nullptr, silent_ = nullptr;
  bool well_ = false;
};

void add_sizes(const Json& node, bool each_its_own, Json& section) {
  for (const char* key : {"size_bytes", "used_bytes"}) {
    if (!node.contains(key)) continue;
    const uint64_t before = section.value(key, uint64_t{0}), now = node[key].get<uint64_t>();
    section[key] = each_its_own ? before + now : std::max(before, now);
  }
}

}  // namespace

void StorageReports::update(const std::string& node, const std::string& text) {
  auto json =
      text.empty() || text.size() > kLongest ? Result<Json>(fail(Code::invalid, "")) : parse_json(text);
  if (!json.ok() || !json->is_array()) return void(reports_.erase(node));
  make_printable(*json);
  reports_[node] = std::move(*json);
}

SchedulerState StorageReports::scheduler(const std::string& node) const {
  SchedulerState out;
  const auto report = reports_.find(node);
  if (report == reports_.end()) return out;
  for (const Json& one : report->second) {
    if (!one.is_object() || text_at(one, "scheduler").empty()) continue;
    const std::string word = text_at(one, "state");
    out.busy = word.empty() || is_true_at(one, "silent");
    if (word.empty()) continue;
    const slurm::State state = slurm::read_state(word);
    const bool of_reimage = slurm::drain_of(text_at(one, "reason")) == slurm::Drain::reimage;
    out.busy = out.busy || state.busy || state.unclear;
    out.paused = state.draining && of_reimage && !state.lacking;
    out.out = !state.takes_jobs() && !out.paused;
    if (!state.takes_jobs())
      out.words = slurm::in_words(
          {node, word, text_at(one, "reason"), text_at(one, "user"), text_at(one, "since")}, state);
  }
  return out;
}

Json StorageReports::status(const Spec& spec,
                            const std::function<bool(const std::string& node)>& silent) const {
  Json out = Json::array();
  for (const auto& s : spec.storage) {
    const Section of(spec, s);
    const bool local = engine_of(s).reach == Reach::own;
    Json section = {{"name", s.name},           {"engine", s.engine},     {"mount", s.mount},
                    {"healthy", Json(nullptr)}, {"nodes", Json::array()}, {"problems", Json::array()}};
    EnginesWord engine;
    for (const auto& n : spec.nodes) {
      if (local ? !is_member(s, n) : !mounts(s, n)) continue;
      const auto found = reports_.find(n.name);
      const Json* report = found == reports_.end() || silent(n.name) ? nullptr : &found->second;
      std::string problem;
      Json one = of_node(of, n.name, report, problem);
      add_sizes(one, local, section);
      // If only the leader knows the engine's health, only its report counts: a former master that runs again
      // has outdated metadata.
      const bool reports_health = engine_of(s).leader_reports_health ? n.name == of.leader : is_member(s, n);
      if (report && reports_health) engine.add(s.engine, n.name, *report);
      if (!problem.empty()) section["problems"].push_back({{"node", n.name}, {"problem", problem}});
      if (one["state"] != "unknown" && section["healthy"] != false) section["healthy"] = problem.empty();
      section["nodes"].push_back(std::move(one));
    }
    if (Json problem = engine.problem(); !problem.is_null()) {
      section["problems"].push_back(std::move(problem));
      section["healthy"] = false;
    }
    out.push_back(std::move(section));
  }
  return out;
}

}  // namespace muster
