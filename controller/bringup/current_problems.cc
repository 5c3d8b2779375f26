#include "controller/bringup/current_problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/json_at.h"
#include "base/utf8.h"
#include "controller/causes/cause_text.h"
#include "controller/rollout/next.h"
#include "controller/rollout/window_result.h"

namespace muster {
namespace {

constexpr DurationMs kBeforeEnd = 14 * kDay;  // of a certificate
constexpr DurationMs kLongestHealing = 60 * kMinute;
constexpr DurationMs kStarting = 5 * kMinute;
constexpr const char* kUnknown = "unknown";  // state of a node in a section that it does not report

std::string back_because(const std::string& reason) { return "back in its previous system: " + reason; }

bool is_back(const NodeNow& node) { return node.returning || node.in_run == NodeRunState::returned; }

// Of a node that failed.
std::string failure_of(const NodeNow& node) {
  return short_reason(is_back(node) ? node.run_reason : node.reason);
}

std::optional<Problem> problem_of(const NodeNow& node) {
  Problem out;
  out.node = node.name;
  out.reason = node.reason;
  if (node.state == NodeState::quarantined || is_back(node)) {
    out.kind = CauseKind::node_failed;
    out.since = node.held_since;
    if (is_back(node))
      out.reason = back_because(node.run_reason);
    else
      out.part = node.faulty_part;
  } else if (!node.by_hand.empty()) {
    out.kind = CauseKind::node_waits;
    out.reason = node.by_hand;
    out.since = node.by_hand_since;
  } else if (node.silent_since > 0 && !node.at_work && !node.switched) {
    out.kind = CauseKind::node_silent;
    out.since = node.silent_since;
  } else if (node.state == NodeState::degraded) {
    out.kind = CauseKind::node_degraded;
    out.part = node.faulty_part;
  } else {
    return std::nullopt;
  }
  return out;
}

// Nodes for which images are held, each with the reason.
using Canaries = std::set<std::pair<std::string, std::string>>;

Canaries add_held_images(const rollout::Record& record, std::vector<Problem>& out) {
  Canaries canaries;
  for (const auto& [image, held] : rollout::held_images(record)) {
    canaries.emplace(held.node, short_reason(held.reason));
    out.push_back({.kind = CauseKind::rollout_stopped,
                   .node = NodeName(held.node),
                   .reason = fmt::format("image '{}' is not rolled out: canary {} failed in run {}: {}",
                                         image, held.node, held.run, held.reason),
                   .image = image});
  }
  return canaries;
}

// Until the next window has a result, what the last one came to counts, also while batches begin.
bool was_stopped(const rollout::Record& record) {
  const bool last = record.last_window && record.last_window->outcome == rollout::WindowOutcome::stopped;
  return last || rollout::state_of(record) == "stopped";
}

// True if canaries that failed are the reason: the images that they hold are problems of their own.
bool is_about_canaries(const rollout::Record& record) {
  constexpr auto kCanaries = rollout::StopReason::canary_failed;
  if (record.row && record.row->stop == kCanaries) return true;
  return record.last_window && record.last_window->why == rollout::to_string(kCanaries);
}

void add_rollout(const rollout::Record& record, bool has_canaries, std::vector<Problem>& out) {
  const std::string text = rollout::rollout_problem(record);
  if (text.empty()) return;
  Problem problem{.kind = CauseKind::rollout_stopped, .reason = "rollout: " + text};
  if (rollout::state_of(record) != "paused") {
    if (has_canaries && is_about_canaries(record)) return;
    if (!was_stopped(record) && record.last_window) {
      // Nodes that failed and images that were not built are problems of their own.
      const rollout::WindowResult& last = *record.last_window;
      if (last.failed > 0 || last.why == to_string(rollout::WaitFor::images)) return;
      problem.kind = CauseKind::window_bad;
      problem.since = last.ended;
    }
  }
  out.push_back(std::move(problem));
}

// Until they are built, by a later window or by hand.
void add_unbuilt(const ClusterNow& now, std::vector<Problem>& out) {
  for (const auto& [image, unbuilt] : rollout::unbuilt_images(*now.rollout)) {
    const auto built = now.built_at.find(image);
    if (built == now.built_at.end() || built->second > unbuilt.opened) continue;
    out.push_back({.kind = CauseKind::image_build,
                   .reason = fmt::format("image '{}' was not built: {}", image, unbuilt.why),
                   .image = image,
                   .since = unbuilt.opened});
  }
}

// Canaries whose batch has not ended. One that fails is judged with it, and is then part of the problem that
// its image is held; until then it would be another one.
std::set<std::string> canaries_under_way(const rollout::Record& record) {
  std::set<std::string> out;
  if (record.row && record.row->batch && record.row->batch->canary)
    for (const auto& [node, image] : record.row->batch->images) out.insert(node);
  return out;
}

// True if the engine itself reports it, and not what a node has mounted.
bool is_of_engine(const Json& problem) { return is_true_at(problem, "of_engine"); }

bool heals(const std::map<std::string, SteadyMs>& sections, const std::string& name) {
  const auto found = sections.find(name);
  return found != sections.end() && found->second;
}

// The node that has the problem. Of the engine's own, another one of the section where that one has a problem
// already, or is being installed: it would not be known as long as that lasts.
std::string node_of(const Json& problem, const Json& section, const std::set<std::string>& healthy) {
  const std::string node = text_at(problem, "node");
  if (!is_of_engine(problem) || healthy.count(node)) return node;
  for (const Json& one : list_at(section, "nodes"))
    if (healthy.count(text_at(one, "node"))) return text_at(one, "node");
  return node;
}

// `healthy`: nodes without a problem so far.
void add_storage(const ClusterNow& now, std::set<std::string> healthy, std::vector<Problem>& out) {
  for (const Json& section : now.storage)
    for (const Json& one : list_at(section, "problems")) {
      if (is_of_engine(one) && heals(now.healing, text_at(section, "name"))) continue;
      const std::string node = node_of(one, section, healthy);
      if (healthy.erase(node) == 0) continue;
      out.push_back(
          {.kind = CauseKind::node_degraded,
           .node = NodeName(node),
           .reason = fmt::format("storage {}: {}", text_at(section, "name"), text_at(one, "problem")),
           .next = "muster status"});
    }
}

// What a section's problems were.
struct Had {
  Had(const StorageProblems& before, const std::string& section) {
    const auto last = before.find(section);
    if (last == before.end()) return;
    for (const Json& one : last->second)
      if (is_of_engine(one))
        engines = &one;
      else
        of_nodes[text_at(one, "node")] = &one;
  }
  std::map<std::string, const Json*> of_nodes;
  const Json* engines = nullptr;
};

Problem problem_of_controller(const std::string& topic, const std::string& text) {
  Problem out{.reason = topic + ": " + text};
  if (topic.starts_with(kReceiverTopic)) out.kind = CauseKind::receiver;
  if (topic == kReplacedCa) out.next = "muster replace ca";
  out.part = topic;
  return out;
}

}  // namespace

std::vector<Problem> certificate_problems(const std::map<std::string, TimeMs>& certificates, TimeMs now) {
  std::vector<Problem> out;
  for (const auto& [name, ends] : certificates) {
    if (ends - now >= kBeforeEnd) continue;
    const bool at_start = name == "server";  // musterd renews it
    out.push_back({.reason = fmt::format("certificate: musterd's '{}' ends at {}", name, to_iso8601(ends)),
                   .part = "certificate " + name,
                   .next = at_start ? "systemctl restart musterd" : "muster replace ca"});
  }
  return out;
}

StorageProblems lasting_problems(Json& storage, const StorageProblems& before,
                                 const std::vector<NodeNow>& nodes) {
  std::set<std::string> excused, away, installing;
  for (const NodeNow& node : nodes) {
    if (node.starting || node.switched) excused.insert(node.name);
    if (node.switched) away.insert(node.name);
    if (node.state == NodeState::installing) installing.insert(node.name);
  }
  StorageProblems out;
  for (Json& section : storage) {
    Had had(before, text_at(section, "name"));
    Json problems = Json::array();
    for (const Json& one : list_at(section, "problems")) {
      const std::string node = text_at(one, "node");
      if (is_of_engine(one))
        had.engines = nullptr;  // it reports
      else if (installing.count(node) || (excused.count(node) && !had.of_nodes.count(node)))
        continue;
      problems.push_back(one);
    }
    for (const Json& one : list_at(section, "nodes")) {
      const std::string node = text_at(one, "node");
      const bool reports = text_at(one, "state") != kUnknown || is_true_at(one, "cut");
      if (reports || installing.count(node)) continue;
      if (const auto last = had.of_nodes.find(node); last != had.of_nodes.end())
        problems.push_back(*last->second);
      if (had.engines && away.count(node) && text_at(*had.engines, "node") == node)
        problems.push_back(*had.engines);
    }
    section["problems"] = problems;
    out[text_at(section, "name")] = std::move(problems);
  }
  return out;
}

std::map<std::string, SteadyMs> healing_sections(const std::map<std::string, SteadyMs>& before,
                                                 const std::set<std::string>& away, const Json& storage,
                                                 SteadyMs now) {
  std::map<std::string, SteadyMs> out;
  for (const Json& section : storage) {
    const std::string name = text_at(section, "name");
    const Json& problems = list_at(section, "problems");
    const bool wrong = std::any_of(problems.begin(), problems.end(), is_of_engine);
    const bool was_healing = heals(before, name);
    SteadyMs& last_away = out[name];
    if (away.count(name) && (!wrong || was_healing || !before.count(name)))
      last_away = now;
    else if (wrong && was_healing && now - before.at(name) < kLongestHealing)
      last_away = before.at(name);
  }
  return out;
}

std::map<NodeName, Boot> boots_seen(std::map<NodeName, Boot> before, const std::vector<NodeNow>& nodes,
                                    SteadyMs now) {
  for (const NodeNow& node : nodes) {
    Boot& known = before.try_emplace(node.name, Boot{node.boot_id, {}}).first->second;
    if (known.id != node.boot_id) known = {node.boot_id, now};
  }
  return before;
}

bool is_starting(const Boot& boot, SteadyMs now) { return boot.seen && now - boot.seen < kStarting; }

bool is_expected_away(const Boot& from, const std::string& boot_id, SteadyMs now, DurationMs limit) {
  return from.seen && from.id == boot_id && now - from.seen < limit;
}

bool counts(const NodeNow& node) {
  if (node.held_by == HeldBy::an_operator) return false;
  return node.state == NodeState::accepted || node.state == NodeState::degraded ||
         node.state == NodeState::quarantined || node.state == NodeState::installing;
}

std::vector<Problem> current_problems(const ClusterNow& now) {
  std::vector<Problem> out;
  Canaries canaries;
  std::set<std::string> unjudged, healthy;
  std::map<std::string, rollout::Returned> returned;
  if (now.rollout) {
    canaries = add_held_images(*now.rollout, out);
    unjudged = canaries_under_way(*now.rollout);
    returned = rollout::returned_nodes(*now.rollout);
    for (const auto& [canary, reason] : canaries) returned.erase(canary);
    add_rollout(*now.rollout, !canaries.empty(), out);
    add_unbuilt(now, out);
  }
  for (const NodeNow& node : now.nodes) {
    // A manual task is one for nodes that were never installed, too.
    if (!counts(node) && node.by_hand.empty()) continue;
    if (auto problem = problem_of(node)) {
      const bool of_image = unjudged.count(node.name) || canaries.count({node.name, failure_of(node)});
      if (problem->kind != CauseKind::node_failed || !of_image) out.push_back(std::move(*problem));
    } else if (const auto back = returned.find(node.name);
               back != returned.end() && back->second.before == node.image_digest) {
      out.push_back({.kind = CauseKind::node_failed,
                     .node = node.name,
                     .reason = back_because(back->second.reason),
                     .next = "muster rollout status"});
    } else if (node.state != NodeState::installing) {  // which mounts its file systems later
      healthy.insert(node.name);
    }
  }
  add_storage(now, std::move(healthy), out);
  for (const auto& [topic, text] : now.controller) out.push_back(problem_of_controller(topic, text));
  for (Problem& one : certificate_problems(now.certificates, now.time)) out.push_back(std::move(one));
  return out;
}

}  // namespace muster
