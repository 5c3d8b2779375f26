#include "cli/shown_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/json_at.h"
#include "base/split.h"
#include "cli/cli_context.h"
#include "cli/terminal.h"
#include "controller/nodes/states.h"
#include "controller/spec/spec.h"

namespace muster::cli {
namespace {

// Not counted as silent during a run: the run itself reports why the node waits.
bool silent(const Json& node) {
  const auto since = node.is_object() ? node.find("silent_since") : node.end();
  return since != node.end() && since->is_number() && *since > 0 && text_at(node, "phase").empty();
}
bool returned(const Json& node) {
  return text_at(node, "run_state") == "returned" || is_true_at(node, "returning");
}
bool waiting(const Json& node) { return !text_at(node, "waiting").empty(); }

std::set<std::string> words_of(const std::string& list) {
  const auto words = split(list, ',');
  return {words.begin(), words.end()};
}

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool fits(const Json& node, const NodeFilter& filter) {
  const auto& [names, states, roles, options] = filter;
  if (!names.empty() && !has(names, text_at(node, "name"))) return false;
  if (!roles.empty() && !has(roles, text_at(node, "role"))) return false;
  if (states.empty()) return true;
  const auto words = words_of_node(node);
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return has(states, word); });
}

constexpr const char* kBeside[] = {"silent", "returned", "by-hand", "waiting"};

bool concerns_one_of(const Json& cause, const std::set<std::string>& names) {
  const Json& nodes = list_at(cause, "nodes");
  for (const Json& node : nodes)
    if (node.is_string() && names.count(node.get<std::string>())) return true;
  return nodes.empty();
}

void keep_causes(Json& status) {
  std::set<std::string> names;
  for (const Json& node : list_at(status, "nodes")) names.insert(text_at(node, "name"));
  Json kept = Json::array();
  for (const Json& cause : list_at(status, "causes"))
    if (concerns_one_of(cause, names)) kept.push_back(cause);
  if (status.contains("causes")) status["causes"] = std::move(kept);
}

}  // namespace

std::vector<std::string> words_of_node(const Json& node) {
  std::vector<std::string> out = {text_at(node, "state")};
  const bool applies[] = {silent(node), returned(node), is_true_at(node, "by_hand"), waiting(node)};
  for (size_t at = 0; at < std::size(kBeside); ++at)
    if (applies[at]) out.emplace_back(kBeside[at]);
  return out;
}

std::vector<std::string> node_words() {
  std::vector<std::string> out;
  for (const NodeState state : node_states()) out.emplace_back(to_string(state));
  out.insert(out.end(), std::begin(kBeside), std::end(kBeside));
  return out;
}

Result<NodeFilter> node_filter(const std::string& names, const std::string& states,
                               const std::string& roles) {
  NodeFilter out;
  TRY(out.names, node_list(names));
  const auto known = node_words();
  for (const auto& word : words_of(states)) {
    if (!has(known, word))
      return fail(Code::invalid,
                  fmt::format("no state of a node: '{}'; there are {}", clean(word), fmt::join(known, ", ")));
    out.states.push_back(word);
  }
  for (const auto& word : words_of(roles)) out.roles.push_back(word);
  const std::pair<const char*, const std::string&> said[] = {
      {"--limit ", names}, {"--state ", states}, {"--role ", roles}};
  for (const auto& [option, words] : said)
    if (!words.empty()) out.options += (out.options.empty() ? "" : " ") + (option + words);
  return out;
}

Status names_nodes(const NodeFilter& filter, const Json& status) {
  std::set<std::string> names, roles;
  for (const Json& node : list_at(status, "nodes")) {
    names.insert(text_at(node, "name"));
    roles.insert(text_at(node, "role"));
  }
  const auto lacking = [](const std::vector<std::string>& requested, const std::set<std::string>& there) {
    std::string out;
    for (const auto& word : requested)
      if (!there.count(word)) out += (out.empty() ? "" : ", ") + clean(word);
    return out;
  };
  if (const auto no = lacking(filter.names, names); !no.empty()) {
    const bool one = no.find(',') == std::string::npos;
    const std::string near = one ? nearest_spelling(no, {names.begin(), names.end()}) : "";
    return fail(Code::invalid,
                "no node is called " + no + (near.empty() ? "" : ": did you mean '" + clean(near) + "'?"));
  }
  if (const auto no = lacking(filter.roles, roles); !no.empty())
    return fail(Code::invalid, "no node has the role " + no);
  return Ok{};
}

size_t shown_at_most(size_t nodes, const NodeFilter& filter, bool terminal) {
  return terminal && filter.any() && nodes > kManyNodes ? kShownNodes : 0;
}

Json only(Json status, const NodeFilter& filter) {
  const auto nodes = status.is_object() ? status.find("nodes") : status.end();
  if (nodes == status.end() || !nodes->is_array()) return status;
  Json kept = Json::array();
  for (Json& node : *nodes)
    if (fits(node, filter)) kept.push_back(std::move(node));
  *nodes = std::move(kept);
  if (!filter.any()) keep_causes(status);
  return status;
}

std::vector<const Json*> shown_causes(const Json& status) {
  std::vector<const Json*> out;
  for (const Json& cause : list_at(status, "causes"))
    if (list_at(cause, "nodes").size() > 1) out.push_back(&cause);
  return out;
}

std::set<std::string> folded_nodes(const Json& status) {
  std::set<std::string> out;
  for (const Json* cause : shown_causes(status))
    if (list_at(*cause, "nodes").size() >= kFoldedFrom)
      for (const Json& node : list_at(*cause, "nodes"))
        if (node.is_string()) out.insert(node.get<std::string>());
  return out;
}

Urgency urgency_of(const Json& node) {
  const std::string state = text_at(node, "state"), run_state = text_at(node, "run_state");
  if (state == "quarantined") return Urgency::quarantined;
  if (returned(node)) return Urgency::returned;
  if (silent(node)) return Urgency::silent;
  if (is_true_at(node, "by_hand")) return Urgency::by_hand;
  // "waiting": the node's turn has not come, as for most nodes of a large run; needs no attention.
  if (waiting(node) && run_state != "waiting") return Urgency::waits_at_work;
  if (state == "degraded") return Urgency::degraded;
  if (run_state == "running") return Urgency::at_work;
  return Urgency::calm;
}

ShownNodes shown_nodes(const Json& nodes, size_t most, const std::set<std::string>& folded) {
  ShownNodes out;
  for (const Json& node : nodes)
    if (!folded.count(text_at(node, "name"))) out.nodes.push_back(&node);
  if (most == 0 || out.nodes.size() <= most) return out;
  std::stable_sort(out.nodes.begin(), out.nodes.end(),
                   [](const Json* a, const Json* b) { return urgency_of(*a) < urgency_of(*b); });
  out.left_out = out.nodes.size() - most;
  out.nodes.resize(most);
  return out;
}

std::string node_counts(const Json& nodes) {
  std::map<std::string, size_t> states;
  size_t silent_ones = 0, returned_ones = 0;
  for (const Json& node : nodes) {
    ++states[clean(text_at(node, "state"))];
    silent_ones += silent(node);
    returned_ones += returned(node);
  }
  std::vector<std::pair<size_t, std::string>> by_count;
  for (const auto& [state, count] : states) by_count.emplace_back(count, state);
  std::stable_sort(by_count.begin(), by_count.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (const auto& [count, state] : by_count)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, state.empty() ? "unknown" : state);
  out = fmt::format("{} nodes: {}", nodes.size(), out);
  if (silent_ones) out += fmt::format("; {} silent", silent_ones);
  if (returned_ones) out += fmt::format("; {} back in the previous system", returned_ones);
  return out;
}

}  // namespace muster::cli
