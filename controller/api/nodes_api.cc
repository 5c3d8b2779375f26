// Nodes: the live status, and what is known of each.
#include <fmt/format.h>

#include <map>
#include <set>

#include "base/version.h"
#include "controller/api/handlers.h"
#include "controller/boot/boot_service.h"
#include "controller/bringup/bringup.h"
#include "controller/nodes/discovery.h"
#include "controller/link/event_log.h"
#include "controller/nodes/states.h"
#include "controller/nodes/storage_told.h"
#include "controller/power/power_service.h"
#include "controller/power/sakura/provider_install.h"
#include "controller/bringup/run_view.h"
#include "controller/services.h"
#include "controller/spec/lab_only.h"

namespace muster::api {
namespace {

// Spec first, then nodes that only the store still knows. Machines nobody declared are no nodes.
std::vector<std::string> all_names(Services& services) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  if (const auto spec = services.spec.get(); spec.ok())
    for (const auto& node : (*spec)->spec.nodes)
      if (seen.insert(node.name).second) names.push_back(node.name);
  if (const auto rows = services.store.node_names(); rows.ok())
    for (const auto& name : *rows)
      if (mac_of_unknown(name).empty() && seen.insert(name).second) names.push_back(name);
  return names;
}

bool known(Services& services, const std::string& node) {
  if (const auto spec = services.spec.get(); spec.ok() && (*spec)->spec.node(node)) return true;
  return services.store.node(node).ok();
}

Json node_json(Services& services, const std::string& name) {
  const NodeRow row = services.bringup.executor().node_row(name);
  Json j = {{"name", name},
            {"state", to_string(row.state)},
            {"reason", row.reason},
            {"held_by", to_string(row.held_by)},
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
  // One that was never installed has nothing to say. An adopted one has no image, and an agent all the same.
  const bool has_agent = !row.image_digest.empty() || row.mode == wire::to_string(wire::Mode::adopted);
  if (const TimeMs silent = services.bringup.executor().silent_since(name); silent > 0 && has_agent)
    j["silent_since"] = silent;
  const auto spec = services.spec.get();
  const NodeSpec* node = spec.ok() ? (*spec)->spec.node(name) : nullptr;
  if (const std::string mac = mac_of_unknown(name); !mac.empty()) j["mac"] = mac;
  if (!node) return j;
  j["declared"] = true;
  j["role"] = node->role;
  j["image"] = node->image;
  j["address"] = node->address;
  j["mac"] = node->mac;
  j["bmc"] = node->power.address;
  if (node->adopt.declared())
    j["adopted"] = {{"host", node->adopt.host},
                    {"port", node->adopt.port},
                    {"user", node->adopt.user},
                    {"host_key", node->adopt.host_key}};
  return j;
}

// The executor's numbers about one node, under the names the live table uses.
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
  // Why it was given up, where the row does not say so itself; else what it waits for.
  if (const std::string lost = p.value("reason", ""); !lost.empty()) {
    if (node.value("reason", "").empty()) node["waiting"] = lost;
  } else if (p.contains("wait")) {
    node["waiting"] = p["wait"].value("reason", "");
  }
}

std::string why_text(const Json& why) {
  const auto text = [](const Json& j, const char* key) {
    return j.is_object() && j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : std::string();
  };
  std::string out = fmt::format("{}: {}", text(why, "node"), text(why, "state"));
  if (const auto title = text(why, "title"); !title.empty()) out += fmt::format(", {}", title);
  out += "\n";
  if (const auto reason = text(why, "reason"); !reason.empty())
    out += fmt::format("  reason:    {}\n", reason);
  if (const TimeMs silent = why.value("silent_since", TimeMs{0}); silent > 0)
    out += fmt::format("  silent:    since {}\n", to_iso8601(silent));
  const Json wait = why.value("wait", Json());
  if (wait.is_object()) {
    for (const char* key : {"reason", "awaited", "observed", "next"})
      if (const auto value = text(wait, key); !value.empty())
        out += fmt::format("  {:<10} {}\n", std::string(key) + ":", value);
    if (const auto until = wait.value("until", int64_t{0}); until > 0)
      out += fmt::format("  until:     {}\n", to_iso8601(until));
  }
  if (why.contains("others_took_ms") && why["others_took_ms"].is_number())
    out += fmt::format("  others:    {}\n", to_human(why["others_took_ms"].get<int64_t>()));
  return out;
}

Json run_summary(Services& services) {
  const auto row = services.store.run(0);
  if (!row.ok()) return nullptr;
  Json j = run_row_json(*row);
  const auto plan = services.store.plan_head(row->plan_digest);
  j["kind"] = plan.ok() ? plan->kind : "";
  j["elapsed_ms"] = (row->ended > 0 ? row->ended : services.reactor.now()) - row->started;
  return j;
}

}  // namespace

void get_status(const CallPtr& call) {
  Services& services = call->services;
  Json status = {{"version", kProgramVersion},     {"lab", services.options.lab},
                 {"time", services.reactor.now()}, {"run", run_summary(services)},
                 {"nodes", Json::array()},         {"problems", services.problems}};
  if (const auto spec = services.spec.get(); spec.ok()) {
    status["cluster"] = (*spec)->spec.cluster;
    status["spec_revision"] = (*spec)->revision;
    status["simulated"] = is_simulated((*spec)->spec, (*spec)->spec.acceptance_profile);
    if (const auto fine = refuse_lab_only((*spec)->spec, (*spec)->revision, (*spec)->spec.acceptance_profile);
        !fine.ok() && !services.options.lab)
      status["problems"]["spec"] = fine.error().message;
    status["storage"] = services.storage.status((*spec)->spec, [&](const std::string& node) {
      return services.bringup.executor().silent_since(node) > 0;
    });
  }
  Executor& executor = services.bringup.executor();
  if (const std::string why = executor.unwritten(); !why.empty())
    status["problems"]["store"] = "what happens cannot be written, it is tried again every second: " + why;
  const Json progress = executor.active() ? executor.progress() : Json{{"nodes", Json::array()}};
  std::map<std::string, const Json*> of_node;
  for (const auto& p : progress["nodes"]) of_node[p.value("node", "")] = &p;
  for (const auto& name : all_names(services)) {
    Json node = node_json(services, name);
    if (const auto p = of_node.find(name); p != of_node.end()) add_progress(node, *p->second);
    status["nodes"].push_back(std::move(node));
  }
  call->ok(status);
}

void list_nodes(const CallPtr& call) {
  Json list = Json::array();
  for (const auto& name : all_names(call->services)) list.push_back(node_json(call->services, name));
  call->ok({{"nodes", list},
            {"unknown_machines", undeclared_machines(call->services)},
            {"discover_until", call->services.discovery.until()}});
}

void get_node(const CallPtr& call) {
  const std::string name = call->arg("node");
  if (!known(call->services, name)) return call->error(fail(Code::not_found, "no node '" + name + "'"));
  Json node = node_json(call->services, name);
  const auto facts = parse_json(call->services.bringup.executor().node_row(name).facts);
  node["facts"] = facts.ok() ? *facts : Json();
  call->ok(node);
}

void why_node(const CallPtr& call) {
  const std::string name = call->arg("node");
  if (!known(call->services, name)) return call->error(fail(Code::not_found, "no node '" + name + "'"));
  Json why = call->services.bringup.executor().why(name);
  why["text"] = why_text(why);
  call->ok(why);
}

void quarantine_node(const CallPtr& call) {
  const std::string name = call->arg("node");
  if (!known(call->services, name)) return call->error(fail(Code::not_found, "no node '" + name + "'"));
  const auto body = parse_json(call->request.body.empty() ? "{}" : call->request.body);
  if (!body.ok() || !body->is_object())
    return call->error(fail(Code::invalid, "expected {reason} or {release: true}"));
  Executor& executor = call->services.bringup.executor();
  const bool release = body->value("release", false);
  const std::string given = body->value("reason", "");
  const std::string reason = given.empty() ? "by an operator" : "by an operator: " + given;
  if (release)
    executor.set_node(name, [](NodeRow& row) {
      if (row.state != NodeState::quarantined) return;
      row.state = row.facts.empty() ? NodeState::unknown : NodeState::discovered;
      row.reason.clear();
    });
  else if (executor.active() && executor.plan().kind != PlanKind::none)
    executor.quarantine(name, reason);
  if (!release)
    executor.set_node(name, [reason](NodeRow& row) {
      row.state = NodeState::quarantined;
      row.reason = reason;
      row.held_by = HeldBy::an_operator;
    });
  call->services.events.add(0, name, "node",
                            {{"action", release ? "released" : "quarantined"}, {"reason", reason}});
  call->ok(node_json(call->services, name));
}

void remove_node(const CallPtr& call) {
  const std::string name = call->arg("node");
  // One that never took part in a run may have a BMC or a server all the same.
  if (!known(call->services, name) && !call->services.power.has_pin(name))
    return call->error(fail(Code::not_found, "no node '" + name + "'"));
  const auto spec = call->services.spec.get();
  if (spec.ok() && (*spec)->spec.node(name))
    return call->error(fail(Code::conflict, name + " is in the spec: take it out there first"));
  if (!call->services.bringup.executor().forget(name))
    return call->error(fail(Code::conflict, name + " takes part in the run that is under way"));
  call->services.power.forget(name);
  call->services.power.forget_pin(name);
  // Or the next node of that name would go on with an installation of this one's server.
  const DeleteSecret record{install_record_name(name)};
  call->services.store.write({DeleteNode{name}, record}, [call, name](Status written) {
    if (!written.ok()) return call->error(written.error());
    call->services.events.add(0, name, "node", {{"action", "forgotten"}});
    call->ok({{"name", name}});
  });
}

}  // namespace muster::api
