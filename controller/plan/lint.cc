#include "controller/plan/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/disk_identity.h"
#include "base/secrets.h"
#include "controller/plan/disk_selection.h"

namespace muster {
namespace {

using Problems = std::vector<std::string>;

// A text with none of these strings need not be parsed. A text that many nodes share is searched only once.
using Marks = std::vector<std::string>;
const Marks kMarksOfDisks = {"\"content_hash\":"};
const Marks kMarksOfSecrets = {"PRIVATE KEY-----", "\"password\":", "\"secret\":", "\"private_key\":"};

class Texts {
 public:
  bool says(const SharedText& text, const Marks& marks) {
    bool out = false;
    text.each_source([&](std::string_view source) { out = out || says(source, marks); });
    return out;
  }

 private:
  bool says(std::string_view source, const Marks& marks) {
    const auto [known, fresh] = known_.try_emplace({&marks, source.data()}, false);
    if (fresh)
      known->second = std::any_of(marks.begin(), marks.end(), [&](const std::string& mark) {
        return source.find(mark) != std::string_view::npos;
      });
    return known->second;
  }

  std::map<std::pair<const Marks*, const char*>, bool> known_;
};

Json json_of(const SharedText& text) { return parse_json(text.text()).value_or(Json()); }

void check_actions(const Plan& plan, Problems& problems) {
  std::set<std::string> nodes(plan.nodes.begin(), plan.nodes.end()), ids;
  for (const auto& a : plan.actions) {
    if (!ids.insert(a.id).second) problems.push_back(a.id + ": this id occurs twice");
    if (!a.id.starts_with(a.node + "/"))
      problems.push_back(a.id + ": an id must be NODE/NAME, and the node is " + a.node);
    if (!nodes.count(a.node)) problems.push_back(a.id + ": its node does not take part in the plan");
    if ((a.kind == ActionKind::wake) != (plan.kind == PlanKind::wake))
      problems.push_back(a.id + ": a wake action is allowed only in a wake plan, which has no other actions");
    if (a.timeout <= 0 || a.max_attempts <= 0)
      problems.push_back(a.id + ": timeout and attempts must be positive");
  }
  for (const auto& node : plan.unchanged)
    if (nodes.count(node)) problems.push_back(node + ": is listed as unchanged, but is part of the plan");
}

// `when_failed` actions come after the node's ordinary actions, and no other action waits for them.
void check_when_failed(const Plan& plan, Problems& problems) {
  std::set<std::string> apart, begun;
  for (const auto& a : plan.actions)
    if (a.when_failed) apart.insert(a.id);
  for (const auto& a : plan.actions) {
    if (a.when_failed) begun.insert(a.node);
    if (!a.when_failed && begun.count(a.node))
      problems.push_back(a.id + ": an ordinary action follows a `when_failed` action");
    if (a.when_failed && a.behind >= 0)
      problems.push_back(a.id + ": a `when_failed` action must not wait at a barrier");
    for (const auto& d : a.after)
      if (a.when_failed != (apart.count(d.action) > 0) ||
          (a.when_failed && !d.action.starts_with(a.node + "/")))
        problems.push_back(a.id + ": depends on '" + d.action +
                           "', but ordinary and `when_failed` actions must not depend on each other");
    if (a.kind == ActionKind::return_slot && !a.when_failed)
      problems.push_back(a.id + ": only a `when_failed` action may return a node to its old slot");
    if (a.kind == ActionKind::boot_slot && a.max_attempts != 1)
      problems.push_back(a.id + ": a trial boot must have exactly one attempt");
    if (a.kind == ActionKind::write_slot &&
        !a.params.own().value("image", Json::object()).value("allow_ours", false))
      problems.push_back(a.id + ": writes a slot of a disk that is not known to be the node's own");
  }
  for (const auto& barrier : plan.barriers)
    for (const auto& id : barrier)
      if (apart.count(id))
        problems.push_back(id + ": it is a `when_failed` action, but other actions wait for it");
}

// Finds cycles in the declared dependencies and the order of each node's actions (Kahn's algorithm).
void check_order(const Plan& plan, Problems& problems) {
  std::map<std::string, std::set<std::string>> before;
  std::map<std::string, std::vector<std::string>> next;
  std::map<std::string, std::string> last_of_node;
  for (const auto& a : plan.actions) before[a.id];
  // A barrier is treated as an action whose id begins with a slash; no real action has such an id.
  const auto barrier = [](size_t i) { return "/barrier-" + std::to_string(i); };
  for (size_t i = 0; i < plan.barriers.size(); ++i)
    for (const auto& member : plan.barriers[i])
      if (!before.count(member))
        problems.push_back("barrier " + std::to_string(i) + " has '" + member + "', which does not exist");
      else
        before[barrier(i)].insert(member);
  for (const auto& a : plan.actions) {
    for (const auto& d : a.after)
      if (!before.count(d.action))
        problems.push_back(a.id + ": depends on '" + d.action + "', which does not exist");
      else
        before[a.id].insert(d.action);
    if (a.behind >= static_cast<int>(plan.barriers.size()))
      problems.push_back(a.id + ": waits at a barrier that does not exist");
    else if (a.behind >= 0)
      before[a.id].insert(barrier(static_cast<size_t>(a.behind)));
    if (auto& last = last_of_node[a.node]; !last.empty() && last != a.id) before[a.id].insert(last);
    last_of_node[a.node] = a.id;
  }
  std::map<std::string, size_t> open;
  std::vector<std::string> free;
  for (const auto& [id, all] : before) {
    open[id] = all.size();
    if (all.empty()) free.push_back(id);
    for (const auto& d : all) next[d].push_back(id);
  }
  size_t sorted = 0;
  while (!free.empty()) {
    const std::string id = free.back();
    free.pop_back();
    ++sorted;
    for (const auto& n : next[id])
      if (--open[n] == 0) free.push_back(n);
  }
  if (sorted == before.size()) return;
  for (const auto& [id, n] : open)
    if (n > 0) return problems.push_back("the dependencies have a cycle through " + id);
}

using Destroyed = std::set<std::pair<std::string, std::string>>;  // node, disk_key()

// A step formats a disk only with the hash of its content; a disk with such a hash must be in the destruction
// list.
void check_step_disks(const Action& action, const Json& json, const Destroyed& destroyed,
                      Problems& problems) {
  if (json.is_object() && json.contains("serial") && json.contains("content_hash") &&
      json["content_hash"].is_string() && !json["content_hash"].get_ref<const std::string&>().empty()) {
    const auto text = [&](const char* key) {
      const auto it = json.find(key);
      return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    const DiskId disk{text("serial"), text("wwid")};
    if (!destroyed.count({action.node, disk_key(disk)}))
      problems.push_back(action.id + ": may format disk " + disk_title(disk) +
                         ", which is not in the destruction list");
  }
  if (json.is_structured())
    for (const auto& value : json) check_step_disks(action, value, destroyed, problems);
}

// A provider that reinstalls a machine may overwrite all of its disks: the machine must have exactly one
// entry for all disks, and no other machine may have such an entry.
void check_whole_machines(const Plan& plan, Problems& problems) {
  std::set<std::string> lost;
  for (const auto& d : plan.destroys)
    if (d.every_disk && !lost.insert(d.node).second)
      problems.push_back(d.node + ": is in the destruction list twice");
  std::set<std::string> installed;
  for (const auto& node : installed_by_provider(plan)) installed.insert(node);
  for (const auto& node : installed)
    if (!lost.count(node))
      problems.push_back(node + ": its provider reinstalls it, but it is not in the destruction list");
  for (const auto& node : lost)
    if (!installed.count(node))
      problems.push_back(node + ": the destruction list has all its disks, but no action destroys them");
}

void check_destruction(const Plan& plan, Texts& texts, Problems& problems) {
  check_whole_machines(plan, problems);
  Destroyed destroyed;
  std::map<std::string, std::string> node_of;  // disk identity, the same on every node -> node
  for (const auto& d : plan.destroys) {
    if (d.every_disk) continue;
    const std::string identity = disk_title(d);
    if (identity.empty())
      problems.push_back(d.node + ": a disk with neither serial number nor WWID would be destroyed");
    if (d.content_hash.empty())
      problems.push_back(d.node + ": disk " + identity +
                         " would be destroyed, but the destruction list lacks the hash of its content");
    if (!destroyed.insert({d.node, disk_key(d)}).second)
      problems.push_back(d.node + ": disk " + identity + " is in the destruction list twice");
    const std::string medium = medium_of(d);
    if (const auto [it, fresh] = node_of.emplace(medium, d.node);
        !fresh && !medium.empty() && it->second != d.node)
      problems.push_back(
          fmt::format("{}: disk {} would be destroyed on this node and on {}: {} is the same disk on both",
                      d.node, identity, it->second, medium));
  }
  for (const auto& a : plan.actions) {
    if (a.kind != ActionKind::image) check_step_disks(a, a.params.own(), destroyed, problems);
    if (a.kind != ActionKind::image)
      for (const auto& step : a.params.steps())
        if (texts.says(step, kMarksOfDisks)) check_step_disks(a, json_of(step), destroyed, problems);
    if (a.kind != ActionKind::image || a.params.own().value("allow_ours", false)) continue;
    const DiskId disk{a.params.own().value("disk_serial", ""), a.params.own().value("disk_wwid", "")};
    if (!destroyed.count({a.node, disk_key(disk)}))
      problems.push_back(a.id + ": writes disk " + disk_title(disk) +
                         ", which is not in the destruction list");
  }
}

void find_secrets(const Json& json, const std::string& where, Problems& problems) {
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    if (text.find("PRIVATE KEY-----") != std::string::npos)
      problems.push_back(where + ": contains a private key");
    return;
  }
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      if ((key == "password" || key == "secret" || key == "private_key") && value.is_string() &&
          !is_secret_reference(value.get_ref<const std::string&>()) &&
          !value.get_ref<const std::string&>().empty())
        problems.push_back(where + "." + key + ": contains a value instead of secret:NAME");
      find_secrets(value, where + "." + key, problems);
    }
  } else if (json.is_array()) {
    for (const auto& value : json) find_secrets(value, where + "[]", problems);
  }
}

void check_secrets(const Action& a, Texts& texts, Problems& problems) {
  find_secrets(a.params.own(), a.id, problems);
  for (const auto& step : a.params.steps())
    if (texts.says(step, kMarksOfSecrets)) find_secrets(json_of(step), a.id + ".steps[]", problems);
  for (const auto& [key, text] : a.params.shared())
    if (texts.says(text, kMarksOfSecrets)) find_secrets(json_of(text), a.id + "." + key, problems);
}

}  // namespace

std::vector<std::string> lint_plan(const Plan& plan) {
  Problems problems;
  check_actions(plan, problems);
  check_when_failed(plan, problems);
  check_order(plan, problems);
  Texts texts;
  check_destruction(plan, texts, problems);
  for (const auto& a : plan.actions) check_secrets(a, texts, problems);
  return problems;
}

}  // namespace muster
