#include "controller/bringup/nodes_view.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/json_at.h"
#include "base/version.h"
#include "controller/bringup/run_view.h"
#include "controller/link/discovery.h"
#include "controller/nodes/next_step.h"
#include "controller/nodes/states.h"
#include "controller/spec/lab_only.h"

namespace muster {
namespace {

// Uses the names of the live table.
void add_progress(Json& node, const Json& p) {
  for (const char* key : {"phase", "title", "action", "attempt", "index", "of", "rate", "unit", "eta_ms"})
    if (p.contains(key)) node[key] = p[key];
  if (p.contains("percent") && p["percent"].is_number()) node["fraction"] = p["percent"].get<double>() / 100;
  if (p.contains("text"))
    node["text"] = p["text"];
  else if (p.contains("title"))
    node["text"] = p["title"];
  if (p.contains("state")) node["run_state"] = p["state"];
  for (const char* key : {"by_hand", "returning"})
    if (p.contains(key)) node[key] = p[key];
  // The reason why the node failed, unless the row already has it; else what the node is waiting for.
  if (const std::string lost = p.value("reason", ""); !lost.empty()) {
    if (node.value("reason", "").empty()) node["waiting"] = lost;
  } else if (p.contains("wait")) {
    node["waiting"] = p["wait"].value("reason", "");
  }
}

// Since when a quarantined node is, and by which operator; "" where neither is known.
std::string held_line(const Json& why) {
  const std::string caller = text_at(why, "held_caller");
  const TimeMs since = integer_at(why, "held_since");
  if (caller.empty() && since == 0) return "";
  std::string out = "  quarantined";
  if (!caller.empty()) out += " by " + caller;
  if (since > 0) out += " at " + to_iso8601(since);
  return out + "\n";
}

// Of a cause that says more than the other lines do.
std::string cause_line(const Cause& cause, const NodeStanding& node) {
  const bool alone = cause.nodes.size() == 1;
  if (alone && (node.silent || node.state != NodeState::accepted)) return "";
  return fmt::format("  cause:     {}{}: `{}`\n", cause.what,
                     alone && !cause.detail.empty() ? "; " + cause.detail : "", cause.next);
}

std::string why_text(const Json& why, const std::string& cause) {
  std::string out = fmt::format("{}: {}", text_at(why, "node"), text_at(why, "state"));
  if (const auto title = text_at(why, "title"); !title.empty()) out += fmt::format(", {}", title);
  out += "\n" + held_line(why);
  if (const auto reason = text_at(why, "reason"); !reason.empty())
    out += fmt::format("  reason:    {}\n", reason);
  if (const TimeMs silent = why.value("silent_since", TimeMs{0}); silent > 0)
    out += fmt::format("  silent:    since {}\n", to_iso8601(silent));
  const Json wait = why.value("wait", Json());
  if (wait.is_object()) {
    for (const char* key : {"reason", "awaited", "observed"})
      if (const auto value = text_at(wait, key); !value.empty())
        out += fmt::format("  {:<10} {}\n", std::string(key) + ":", value);
    if (const auto until = wait.value("until", int64_t{0}); until > 0)
      out += fmt::format("  until:     {}\n", to_iso8601(until));
    if (const auto then = text_at(wait, "next"); !then.empty()) out += fmt::format("  then:      {}\n", then);
  }
  if (why.contains("others_took_ms") && why["others_took_ms"].is_number())
    out += fmt::format("  others:    {}\n", to_human(why["others_took_ms"].get<int64_t>()));
  return out + cause + fmt::format("  next:      {}\n", text_at(why, "next"));
}

}  // namespace

// Undeclared machines are not nodes.
std::vector<std::string> NodesView::names() const {
  std::vector<std::string> names;
  std::set<std::string> seen;
  if (const auto spec = parts_.spec.get(); spec.ok())
    for (const auto& node : (*spec)->spec.nodes)
      if (seen.insert(node.name).second) names.push_back(node.name);
  if (const auto rows = parts_.store.node_names(); rows.ok())
    for (const auto& name : *rows)
      if (mac_of_unknown(name).empty() && seen.insert(name).second) names.push_back(name);
  return names;
}

bool NodesView::contains(const NodeName& node) const {
  if (const auto spec = parts_.spec.get(); spec.ok() && (*spec)->spec.node(node)) return true;
  return parts_.store.node(node).ok();
}

bool has_agent(const NodeRow& row) {
  return !row.image_digest.empty() || row.mode == wire::to_string(wire::Mode::adopted);
}

TimeMs NodesView::silent_since(const NodeRow& row) const {
  return has_agent(row) ? parts_.executor.silent_since(row.name) : 0;
}

std::map<std::string, std::string> NodesView::problems() const {
  std::map<std::string, std::string> problems = parts_.problems;
  if (const auto current = parts_.spec.get(); current.ok() && !parts_.lab) {
    const Spec& spec = (*current)->spec;
    if (const auto fine = refuse_lab_only(spec, (*current)->revision, spec.acceptance_profile); !fine.ok())
      problems["spec"] = fine.error().message;
  }
  if (const std::string why = parts_.executor.unwritten(); !why.empty())
    problems["store"] = "the store cannot be written; writing is retried every second: " + why;
  return problems;
}

Json NodesView::node(const NodeName& name) const {
  const NodeRow row = parts_.executor.node_row(name);
  Json j = {{"name", name},
            {"state", to_string(row.state)},
            {"reason", row.reason},
            {"held_by", to_string(row.held_by)},
            {"held_caller", row.held_caller},
            {"held_since", row.held_since},
            {"image_digest", row.image_digest},
            {"config_digest", row.config_digest},
            {"mode", row.mode},
            {"boot_id", row.boot_id},
            {"product_uuid", row.product_uuid},
            {"serial", row.system_serial},
            {"last_seen", row.last_seen},
            {"facts_time", row.facts_time},
            {"accepted_run", row.accepted_run},
            {"declared", false}};
  if (const TimeMs silent = silent_since(row); silent > 0) j["silent_since"] = silent;
  if (parts_.storage.scheduler(name).busy) j["busy"] = true;
  const auto spec = parts_.spec.get();
  const NodeSpec* declared = spec.ok() ? (*spec)->spec.node(name) : nullptr;
  if (const std::string mac = mac_of_unknown(name); !mac.empty()) j["mac"] = mac;
  if (!declared) return j;
  j["declared"] = true;
  j["role"] = declared->role;
  j["image"] = declared->image;
  if (!declared->rack.empty()) j["rack"] = declared->rack;
  if (!declared->network_switch.empty()) j["switch"] = declared->network_switch;
  j["address"] = declared->address;
  j["mac"] = declared->mac;
  j["bmc"] = declared->power.address;
  if (declared->adopt.declared())
    j["adopted"] = {{"host", declared->adopt.host},
                    {"port", declared->adopt.port},
                    {"user", declared->adopt.user},
                    {"host_key", declared->adopt.host_key}};
  return j;
}

Json NodesView::run() const {
  const auto row = parts_.store.run(0);
  if (!row.ok()) return nullptr;
  Json j = run_row_json(*row);
  const auto plan = parts_.store.plan_head(row->plan_digest);
  j["kind"] = plan.ok() ? plan->kind : "";
  j["elapsed_ms"] = (row->ended > 0 ? row->ended : parts_.reactor.now()) - row->started;
  return j;
}

Json NodesView::status() const {
  const Executor& executor = parts_.executor;
  Json status = {{"version", kProgramVersion},   {"lab", parts_.lab},
                 {"time", parts_.reactor.now()}, {"run", run()},
                 {"nodes", Json::array()},       {"problems", problems()}};
  if (const auto current = parts_.spec.get(); current.ok()) {
    const Spec& spec = (*current)->spec;
    status["cluster"] = spec.cluster;
    status["spec_revision"] = (*current)->revision;
    status["simulated"] = is_simulated(spec, spec.acceptance_profile);
    status["storage"] = parts_.storage.status(
        spec, [&](const std::string& node) { return executor.silent_since(NodeName(node)) > 0; });
  }
  const Json progress = executor.active() ? executor.progress() : Json{{"nodes", Json::array()}};
  std::map<std::string, const Json*> of_node;
  for (const auto& p : progress["nodes"]) of_node[p.value("node", "")] = &p;
  for (const auto& name : names()) {
    Json one = node(NodeName(name));
    if (const auto p = of_node.find(name); p != of_node.end()) add_progress(one, *p->second);
    status["nodes"].push_back(std::move(one));
  }
  return status;
}

Json NodesView::why(const NodeName& node, const ImageService& images, const Cause* cause) const {
  const Executor& executor = parts_.executor;
  Json why = executor.why(node);
  const NodeRow row = executor.node_row(node);
  const TimeMs silent = silent_since(row);
  why.erase("silent_since");  // the executor does not know which nodes have an agent
  if (silent > 0) why["silent_since"] = silent;
  NodeStanding standing{node, row.state, row.held_by};
  if (const auto current = parts_.spec.get(); current.ok())
    if (const NodeSpec* declared = (*current)->spec.node(node)) {
      standing.declared = true;
      standing.adopted = declared->adopt.declared();
      standing.image = declared->image;
      standing.image_built = images.has(declared->image);
    }
  standing.silent = silent > 0;
  standing.by_hand = is_true_at(why, "by_hand");
  standing.run = why.value("run", int64_t{0});
  standing.in_run = node_run_state_from_string(text_at(why, "run_state"));
  standing.active_run = executor.active() ? executor.run_id() : 0;
  if (cause) {
    standing.cause_next = cause->next;
    why["cause"] = record_json(*cause);
  }
  why["next"] = next_step(standing);
  why["text"] = why_text(why, cause ? cause_line(*cause, standing) : "");
  return why;
}

}  // namespace muster
