#include "controller/causes/cause.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "base/digest.h"
#include "base/name_ranges.h"
#include "controller/causes/cause_text.h"
#include "controller/causes/explain.h"
#include "controller/causes/normal_reason.h"

namespace muster {
namespace {

// Nodes that fail at one step for different reasons.
constexpr size_t kFewestAtStep = 3;
// Silent nodes that nothing explains are one cause if they are at least so many, and half of all.
constexpr size_t kFewestOfCluster = 3;
constexpr const char* kCluster = "cluster";

using Problems = std::vector<const Problem*>;

// What causes of a kind are identified by. Each part with its length, so that different ones differ.
std::string id_of(CauseKind kind, const std::vector<std::string>& parts) {
  std::string text = cause_kind_word(kind);
  for (const auto& part : parts) text += " " + std::to_string(part.size()) + ":" + part;
  return short_digest(sha256(text));
}

// Of two times; 0: unknown.
TimeMs earlier(TimeMs a, TimeMs b) { return a == 0 || b == 0 ? a + b : std::min(a, b); }

// The nodes of the cluster with their properties, as numbers.
struct Nodes {
  std::map<NodeName, size_t> at;
  std::vector<NodeProperty> properties;  // of equally good explanations, the first counts
};

void add_property(Nodes& nodes, const std::map<NodeName, NodePlace>& places, const char* name,
                  std::string NodePlace::*member) {
  NodeProperty& property = nodes.properties.emplace_back();
  property.name = name;
  property.of_node.assign(nodes.at.size(), -1);
  std::map<std::string, int> known;
  for (const auto& [node, place] : places) {
    const std::string value = on_one_line(place.*member);  // may come from hardware
    if (value.empty()) continue;
    const auto [found, fresh] = known.emplace(value, static_cast<int>(property.values.size()));
    if (fresh) property.values.push_back(value);
    property.of_node[nodes.at.at(node)] = found->second;
  }
}

Nodes numbered(const std::vector<Problem>& problems, const std::map<NodeName, NodePlace>& places) {
  Nodes out;
  for (const auto& [node, place] : places) out.at.emplace(node, 0);
  for (const Problem& problem : problems)
    if (!problem.node.empty()) out.at.emplace(problem.node, 0);
  size_t next = 0;
  for (auto& [node, at] : out.at) at = next++;
  add_property(out, places, "switch", &NodePlace::network_switch);
  add_property(out, places, "rack", &NodePlace::rack);
  add_property(out, places, "image", &NodePlace::image);
  add_property(out, places, "firmware", &NodePlace::firmware);
  add_property(out, places, "model", &NodePlace::model);
  return out;
}

// The causes of one kind. Each step takes the problems that it explains.
class OfKind {
 public:
  OfKind(CauseKind kind, Problems problems, const Nodes& nodes, const std::vector<Cause>& before)
      : kind_(kind),
        left_(std::move(problems)),
        nodes_(nodes),
        before_(before),
        chances_(nodes.at.size()),
        health_(nodes.at.size(), Health::well) {}

  std::vector<Cause> find() {
    if (is_of_nodes(kind_)) {
      take_parts();
      take_lasting();
      take_explained();
      take_most_of_all();
      take_steps();
    }
    take_reasons();
    return std::move(found_);
  }

 private:
  template <typename Belongs>
  Problems taken(Belongs belongs) {
    const auto rest = std::stable_partition(left_.begin(), left_.end(), belongs);
    Problems out(left_.begin(), rest);
    left_.erase(left_.begin(), rest);
    return out;
  }
  int value_of(const NodeProperty& property, const Problem& problem) const {
    const auto at = nodes_.at.find(problem.node);
    return at == nodes_.at.end() ? -1 : property.of_node[at->second];
  }
  std::string reason_of(const Problem& problem) const {
    return normal_reason(problem.reason,
                         [this](const std::string& word) { return nodes_.at.count(NodeName(word)) > 0; });
  }

  void add(const Problems& problems, const std::vector<std::string>& identity, Cause cause, size_t of = 0);
  void take_parts();
  void take_lasting();
  void take_value(const NodeProperty& property, int value);
  std::optional<Explanation> best() const;
  bool is_part_of(const Explanation& other, const NodeProperty& property, int value) const;
  void take_explained();
  void take_most_of_all();
  void take_steps();
  using Identity = std::tuple<std::string, std::string, std::string>;
  Identity identity_of(const Problem& problem) const;
  void take_reasons();

  const CauseKind kind_;
  Problems left_;
  const Nodes& nodes_;
  const std::vector<Cause>& before_;
  const Chances chances_;
  std::vector<Health> health_;  // left_out: its properties explain something already; never bad
  std::vector<Cause> found_;
};

void OfKind::add(const Problems& problems, const std::vector<std::string>& identity, Cause cause, size_t of) {
  cause.kind = kind_;
  cause.id = id_of(kind_, identity);
  std::map<std::string, Problems> by_reason;
  std::set<NodeName> nodes;
  for (const Problem* problem : problems) {
    by_reason[reason_of(*problem)].push_back(problem);
    if (!problem->node.empty()) nodes.insert(problem->node);
    cause.since = earlier(cause.since, problem->since);
  }
  const auto most = std::max_element(by_reason.begin(), by_reason.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  cause.detail = on_one_line(most->second.front()->reason);
  cause.nodes.assign(nodes.begin(), nodes.end());
  describe(cause, of, problems);
  found_.push_back(std::move(cause));
}

// A part that is named by several nodes, since the measurements cannot tell whose it is; until the last of
// them is well.
void OfKind::take_parts() {
  std::set<std::string> lasting;
  for (const Cause& cause : before_)
    if (cause.kind == kind_ && cause.common == "part") lasting.insert(cause.common_value);
  std::map<std::string, std::set<NodeName>> nodes;
  for (const Problem* problem : left_)
    if (!problem->part.empty()) nodes[problem->part].insert(problem->node);
  for (const auto& [part, of_part] : nodes) {
    if (of_part.size() < 2 && !lasting.count(on_one_line(part))) continue;
    for (const NodeName& node : of_part)
      if (const auto at = nodes_.at.find(node); at != nodes_.at.end()) health_[at->second] = Health::left_out;
    Cause cause;
    cause.common = "part";
    cause.common_value = on_one_line(part);
    const std::string name = part;
    add(taken([&](const Problem* p) { return p->part == name; }), {"part", name}, std::move(cause));
  }
}

void OfKind::take_value(const NodeProperty& property, int value) {
  size_t of = 0;
  for (const auto& [node, at] : nodes_.at)
    if (property.of_node[at] == value) ++of, health_[at] = Health::left_out;
  Cause cause;
  cause.common = property.name;
  cause.common_value = property.values[static_cast<size_t>(value)];
  const std::vector<std::string> identity = {cause.common, cause.common_value};
  const Problems problems = taken([&](const Problem* p) { return value_of(property, *p) == value; });
  add(problems, identity, std::move(cause), of);
}

std::optional<Explanation> OfKind::best() const {
  std::vector<Health> health = health_;
  for (const Problem* problem : left_)
    if (const auto at = nodes_.at.find(problem->node); at != nodes_.at.end())
      health[at->second] = Health::bad;
  return best_explanation(nodes_.properties, health, chances_);
}

// True if the other explanation has all problems of this value, and further ones.
bool OfKind::is_part_of(const Explanation& other, const NodeProperty& property, int value) const {
  bool further = false;
  for (const Problem* problem : left_) {
    const bool here = value_of(property, *problem) == value;
    const bool there = value_of(nodes_.properties[other.property], *problem) == other.value;
    if (here && !there) return false;
    further = further || (there && !here);
  }
  return further;
}

// What explained problems before does so until the last of them is over, unless something explains more: of a
// switch that fails, the nodes of one rack may fall silent first.
void OfKind::take_lasting() {
  for (const Cause& cause : before_) {
    if (cause.kind != kind_) continue;
    for (const NodeProperty& property : nodes_.properties) {
      if (property.name != cause.common) continue;
      const auto known = std::find(property.values.begin(), property.values.end(), cause.common_value);
      const int value = static_cast<int>(known - property.values.begin());
      const bool lasts = std::any_of(left_.begin(), left_.end(),
                                     [&](const Problem* p) { return value_of(property, *p) == value; });
      if (!lasts) continue;
      if (const auto more = best(); more && is_part_of(*more, property, value)) continue;
      take_value(property, value);
    }
  }
}

void OfKind::take_explained() {
  while (left_.size() > 1) {
    const auto found = best();
    if (!found) return;
    take_value(nodes_.properties[found->property], found->value);
  }
}

// Nodes give no reason for silence. When half of all are silent, the reason is more likely one than many.
void OfKind::take_most_of_all() {
  if (kind_ != CauseKind::node_silent) return;
  std::set<NodeName> lasting;
  for (const Cause& cause : before_)
    if (cause.kind == kind_ && cause.common == kCluster)
      lasting.insert(cause.nodes.begin(), cause.nodes.end());
  const bool most = left_.size() >= kFewestOfCluster && 2 * left_.size() >= nodes_.at.size();
  Cause cause;
  cause.common = kCluster;
  const Problems problems = taken([&](const Problem* p) { return most || lasting.count(p->node) > 0; });
  if (!problems.empty()) add(problems, {kCluster}, std::move(cause), nodes_.at.size());
}

// Different reasons at one step. Nodes with one reason are left for take_reasons().
void OfKind::take_steps() {
  std::map<std::string, std::set<std::string>> reasons;  // by step
  std::map<std::string, std::set<NodeName>> nodes;
  for (const Problem* problem : left_) {
    if (problem->step.empty()) continue;
    reasons[problem->step].insert(reason_of(*problem));
    nodes[problem->step].insert(problem->node);
  }
  std::set<std::string> lasting;
  for (const Cause& cause : before_)
    if (cause.kind == kind_ && cause.common == "step") lasting.insert(cause.common_value);
  for (const auto& [step, of_step] : nodes) {
    // Mostly different ones: else the step is what the nodes were at, and a reason says more.
    const bool common = of_step.size() >= kFewestAtStep && 2 * reasons[step].size() > of_step.size();
    if (!common && !lasting.count(on_one_line(step))) continue;
    Cause cause;
    cause.common = "step";
    cause.common_value = on_one_line(step);
    const std::string name = step;
    add(taken([&](const Problem* p) { return p->step == name; }), {"step", name}, std::move(cause));
  }
}

// What is left. Nodes with one reason are one cause, and silent ones, which give none, one each.
void OfKind::take_reasons() {
  std::map<Identity, Problems> groups;
  for (const Problem* problem : left_) groups[identity_of(*problem)].push_back(problem);
  left_.clear();
  for (const auto& [identity, problems] : groups) {
    const auto& [what, value, more] = identity;
    Cause cause;
    if (what == "reason" && problems.front()->node != problems.back()->node) {
      cause.common = "reason";
      cause.common_value = on_one_line(value);
    }
    add(problems, {what, value, more}, std::move(cause));
  }
}

// What is not about nodes is identified by its image or the part of the controller: the wording changes while
// it lasts, "2 nights in a row".
OfKind::Identity OfKind::identity_of(const Problem& problem) const {
  if (!is_of_nodes(kind_)) return {"about", problem.part, problem.image};
  const std::string reason = reason_of(problem);
  if (reason.empty() || kind_ == CauseKind::node_silent) return {"node", problem.node.str(), ""};
  return {"reason", reason, problem.step};
}

// A cause began when it was first found, also when the node that it was found by is well again.
void keep_since(std::vector<Cause>& causes, const std::vector<Cause>& before) {
  std::map<std::string, TimeMs> began;
  for (const Cause& cause : before) {
    TimeMs& since = began[cause.id];
    since = earlier(since, cause.since);
  }
  for (Cause& cause : causes)
    if (const auto known = began.find(cause.id); known != began.end())
      cause.since = earlier(cause.since, known->second);
}

}  // namespace

std::vector<Cause> find_causes(const std::vector<Problem>& problems,
                               const std::map<NodeName, NodePlace>& places,
                               const std::vector<Cause>& before) {
  if (problems.empty()) return {};
  std::map<CauseKind, Problems> by_kind;
  for (const Problem& problem : problems) by_kind[problem.kind].push_back(&problem);
  const Nodes nodes = numbered(problems, places);
  std::vector<Cause> out;
  for (const auto& [kind, of_kind] : by_kind) {
    auto found = OfKind(kind, of_kind, nodes, before).find();
    std::move(found.begin(), found.end(), std::back_inserter(out));
  }
  std::sort(out.begin(), out.end(), [](const Cause& a, const Cause& b) {
    if (a.nodes.size() != b.nodes.size()) return a.nodes.size() > b.nodes.size();
    return std::tie(a.kind, a.nodes, a.id) < std::tie(b.kind, b.nodes, b.id);
  });
  keep_since(out, before);
  return out;
}

std::string cause_kind_word(CauseKind kind) { return std::string(word_of(kCauseKinds, kind)); }

std::string image_value(const std::string& name, const std::string& digest) {
  const std::string build = short_digest(digest);
  return name + (name.empty() || build.empty() ? "" : " ") + build;
}

Json causes_json(const std::vector<Cause>& causes) {
  Json out = Json::array();
  for (const Cause& cause : causes) out.push_back(record_json(cause));
  return out;
}

std::string nodes_of(const Cause& cause) {
  return names_in_ranges(std::vector<std::string>(cause.nodes.begin(), cause.nodes.end()));
}

const Cause* cause_of(const std::vector<Cause>& causes, const NodeName& node) {
  for (const Cause& cause : causes)
    if (std::binary_search(cause.nodes.begin(), cause.nodes.end(), node)) return &cause;
  return nullptr;
}

}  // namespace muster
