// Nodes: the live status, what is known of each, and the live log (server-sent events).
#include <fmt/format.h>

#include "base/json_dump.h"
#include "controller/api/from_archive.h"
#include "controller/api/handlers.h"
#include "controller/api/services.h"
#include "controller/bringup/bringup.h"
#include "controller/bringup/current_causes.h"
#include "controller/bringup/nodes_view.h"
#include "controller/causes/cause.h"
#include "controller/executor/executor.h"
#include "controller/executor/node_changes.h"
#include "controller/image/service/image_service.h"
#include "controller/link/discovery.h"
#include "controller/link/event_log.h"
#include "controller/link/link_hub.h"
#include "controller/nodes/states.h"
#include "controller/power/provider/provider_install.h"
#include "controller/power/service/power_service.h"
#include "controller/rollout/service/rollout_service.h"
#include "controller/spec/spec.h"

namespace muster::api {

bool has_node(const CallPtr& call, const NodeName& name) {
  const NodesView& nodes = call->services.nodes;
  if (nodes.contains(name)) return true;
  const std::string near = nearest_spelling(name, nodes.names());
  call->error(fail(Code::not_found, fmt::format("no node '{}'{}", name.str(),
                                                near.empty() ? "" : ": did you mean '" + near + "'?")));
  return false;
}

void get_status(const CallPtr& call) {
  Json status = call->services.nodes.status();
  if (const rollout::Record* record = call->services.rollout.record())
    if (const std::string problem = rollout_problem(*record); !problem.empty())
      status["problems"]["rollout"] = problem;
  status["causes"] = causes_json(call->services.causes.look());
  call->ok(status);
}

void list_nodes(const CallPtr& call) {
  Json list = Json::array();
  const NodesView& nodes = call->services.nodes;
  for (const auto& name : nodes.names()) list.push_back(nodes.node(NodeName(name)));
  call->ok({{"nodes", list},
            {"unknown_machines", undeclared_machines(call->services)},
            {"discover_until", call->services.discovery.until()}});
}

void get_node(const CallPtr& call) {
  const NodeName name(call->arg("node"));
  if (!has_node(call, name)) return;
  Json node = call->services.nodes.node(name);
  const auto facts = parse_json(call->services.executor.node_row(name).facts);
  node["facts"] = facts.ok() ? *facts : Json();
  call->ok(node);
}

void why_node(const CallPtr& call) {
  const NodeName name(call->arg("node"));
  if (!has_node(call, name)) return;
  const Cause* cause = cause_of(call->services.causes.look(), name);
  call->ok(call->services.nodes.why(name, call->services.images, cause));
}

void quarantine_node(const CallPtr& call) {
  const NodeName name(call->arg("node"));
  if (!has_node(call, name)) return;
  const auto body = parse_json(call->request.body.empty() ? "{}" : call->request.body);
  if (!body.ok() || !body->is_object())
    return call->error(fail(Code::invalid, "expected {reason} or {release: true}"));
  const bool release = body->value("release", false);
  const std::string given = body->value("reason", "");
  const std::string reason = given.empty() ? "by an operator" : "by an operator: " + given;
  if (release)
    call->services.executor.set_node(name, released());
  else
    call->services.executor.quarantine(name, reason, HeldBy::an_operator, text_of(call->caller));
  call->record(name, "node", {{"action", release ? "released" : "quarantined"}, {"reason", reason}});
  call->ok(call->services.nodes.node(name));
}

void remove_node(const CallPtr& call) {
  const NodeName name(call->arg("node"));
  // A node that was never in a run may still have a pinned BMC or a provider's server.
  if (!call->services.power.has_pin(name) && !has_node(call, name)) return;
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
    call->services.link.hang_up(name);
    call->record(name, "node", {{"action", "forgotten"}});
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
  const auto number = [&](const char* name, const char* fallback) {
    return std::strtoll(call->query(name, fallback).c_str(), nullptr, 10);
  };
  EventQuery query;
  query.node = NodeName(call->arg("node"));
  query.after = number("after", "0");
  query.run = number("run", "0");
  query.since = number("since", "0");
  query.newest = call->query("newest") == "1";
  query.limit = static_cast<size_t>(std::clamp<int64_t>(number("limit", "500"), 1, 5000));
  // Events outlast their node.
  if (!query.node.empty() && call->services.store.events(0, 1, query.node).value_or({}).empty() &&
      !has_node(call, query.node))
    return;
  const auto events_of = [query](RunArchive& archive) -> Result<HttpResponse> {
    TRY(const auto rows, archive.events(query));
    Json list = Json::array();
    for (const auto& row : rows) list.push_back(event_json(row));
    return HttpResponse::json(200, body_of({{"events", list}}));
  };
  if (query.scans()) return call->services.archive.answer(call, events_of);
  auto answer = events_of(call->services.store);
  if (!answer.ok()) return call->error(answer.error());
  call->responder->respond(std::move(answer).value());
}

}  // namespace muster::api
