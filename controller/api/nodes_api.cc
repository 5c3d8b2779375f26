// Nodes: the live status, what is known of each, and the live log (server-sent events).
#include <fmt/format.h>

#include "base/json_dump.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/bringup/bringup.h"
#include "controller/bringup/nodes_view.h"
#include "controller/executor/executor.h"
#include "controller/executor/node_changes.h"
#include "controller/link/discovery.h"
#include "controller/link/event_log.h"
#include "controller/nodes/states.h"
#include "controller/power/provider/provider_install.h"
#include "controller/power/service/power_service.h"
#include "controller/rollout/service/rollout_service.h"

namespace muster::api {
namespace {

NodesView nodes_of(const CallPtr& call) {
  Services& services = call->services;
  return NodesView({services.options.lab, services.reactor, services.store, services.spec, services.executor,
                    services.storage, services.problems});
}

}  // namespace

void get_status(const CallPtr& call) {
  Json status = nodes_of(call).status();
  if (const rollout::Record* record = call->services.rollout.record())
    if (const std::string problem = rollout_problem(*record); !problem.empty())
      status["problems"]["rollout"] = problem;
  call->ok(status);
}

void list_nodes(const CallPtr& call) {
  Json list = Json::array();
  const NodesView nodes = nodes_of(call);
  for (const auto& name : nodes.names()) list.push_back(nodes.node(NodeName(name)));
  call->ok({{"nodes", list},
            {"unknown_machines", undeclared_machines(call->services)},
            {"discover_until", call->services.discovery.until()}});
}

void get_node(const CallPtr& call) {
  const NodeName name(call->arg("node"));
  if (!nodes_of(call).contains(name)) return call->error(fail(Code::not_found, "no node '" + name + "'"));
  Json node = nodes_of(call).node(name);
  const auto facts = parse_json(call->services.executor.node_row(name).facts);
  node["facts"] = facts.ok() ? *facts : Json();
  call->ok(node);
}

void why_node(const CallPtr& call) {
  const NodeName name(call->arg("node"));
  if (!nodes_of(call).contains(name)) return call->error(fail(Code::not_found, "no node '" + name + "'"));
  call->ok(nodes_of(call).why(name));
}

void quarantine_node(const CallPtr& call) {
  const NodeName name(call->arg("node"));
  if (!nodes_of(call).contains(name)) return call->error(fail(Code::not_found, "no node '" + name + "'"));
  const auto body = parse_json(call->request.body.empty() ? "{}" : call->request.body);
  if (!body.ok() || !body->is_object())
    return call->error(fail(Code::invalid, "expected {reason} or {release: true}"));
  const bool release = body->value("release", false);
  const std::string given = body->value("reason", "");
  const std::string reason = given.empty() ? "by an operator" : "by an operator: " + given;
  if (release)
    call->services.executor.set_node(name, released());
  else
    call->services.executor.quarantine(name, reason, HeldBy::an_operator);
  call->services.events.add(0, name, "node",
                            {{"action", release ? "released" : "quarantined"}, {"reason", reason}});
  call->ok(nodes_of(call).node(name));
}

void remove_node(const CallPtr& call) {
  const NodeName name(call->arg("node"));
  // A node that was never in a run may still have a pinned BMC or a provider's server.
  if (!nodes_of(call).contains(name) && !call->services.power.has_pin(name))
    return call->error(fail(Code::not_found, "no node '" + name + "'"));
  const auto spec = call->services.spec.get();
  if (spec.ok() && (*spec)->spec.node(name))
    return call->error(fail(Code::conflict, name + " is in the spec: remove the node from the spec first"));
  if (!call->services.executor.forget(name))
    return call->error(fail(Code::conflict, name + " takes part in the active run"));
  call->services.power.forget(name);
  call->services.power.forget_pin(name);
  // Otherwise a later node of that name would continue an installation on this node's server at the provider.
  const DeleteSecret record{install_record_name(name)};
  call->services.store.write({DeleteNode{name}, record}, [call, name](Status written) {
    if (!written.ok()) return call->error(written.error());
    call->services.events.add(0, name, "node", {{"action", "forgotten"}});
    call->ok({{"name", name}});
  });
}

Json event_json(const EventRow& row) {
  auto data = parse_json(row.json);
  return {{"seq", row.seq},   {"time", row.time},
          {"run", row.run},   {"node", row.node},
          {"kind", row.kind}, {"data", data.ok() ? std::move(data).value() : Json(row.json)}};
}

void follow_events(const CallPtr& call) {
  std::string after = call->query("after", "");
  const auto resumed = call->request.headers.find("Last-Event-ID");
  if (resumed != call->request.headers.end()) after = resumed->second;
  HttpResponse head;
  head.headers["Content-Type"] = "text/event-stream";
  head.headers["Cache-Control"] = "no-store";
  call->responder->start_stream(std::move(head));
  const int64_t from = after.empty() ? -1 : std::strtoll(after.c_str(), nullptr, 10);
  call->services.events.subscribe(
      from, NodeName(call->query("node")), [call](const std::vector<EventRow>& rows) {
        if (rows.empty()) return call->responder->write(": still here\n\n");
        std::string chunk;
        // The kind comes from a node: with a line break in it, a node could forge events.
        for (const auto& row : rows)
          chunk += fmt::format("id: {}\nevent: {}\ndata: {}\n\n", row.seq,
                               row.kind.find_first_of("\r\n") == std::string::npos ? row.kind : "log",
                               dump_json(event_json(row)));
        return call->responder->write(std::move(chunk));
      });
}

void node_logs(const CallPtr& call) {
  const int64_t after = std::strtoll(call->query("after", "0").c_str(), nullptr, 10);
  const auto limit = static_cast<size_t>(std::clamp(std::atoi(call->query("limit", "500").c_str()), 1, 5000));
  const auto rows = call->services.store.events(after, limit, NodeName(call->arg("node")));
  if (!rows.ok()) return call->error(rows.error());
  Json list = Json::array();
  for (const auto& row : *rows) list.push_back(event_json(row));
  call->ok({{"events", list}});
}

}  // namespace muster::api
