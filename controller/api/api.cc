#include "controller/api/api.h"

#include "base/json_dump.h"
#include "controller/api/rechecked.h"
#include "controller/api/services.h"
#include "controller/api/trust.h"
#include "controller/boot/service/boot_service.h"
#include "controller/bringup/current_causes.h"
#include "controller/link/discovery.h"
#include "controller/link/event_log.h"
#include "controller/metrics/service/metrics_service.h"
#include "controller/ports/store.h"
#include "controller/trust/authority.h"
#include "sys/log.h"
#include "sys/reactor.h"

namespace muster::api {
namespace {

std::vector<std::string> segments(const std::string& path) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (at < path.size()) {
    const size_t end = std::min(path.find('/', at + 1), path.size());
    parts.push_back(path.substr(at + 1, end - at - 1));
    at = end;
  }
  return parts;
}

bool is_served_by(Role who, Listener listener) {
  switch (who) {
    case Role::operators:
      return listener != Listener::boot;
    case Role::agents:
    case Role::joiners:
      return listener == Listener::tls;
    case Role::machines:
      return listener == Listener::boot;
  }
  return false;
}

Status check_operator(const Services& services, Listener listener, const HttpRequest& request) {
  if (listener == Listener::local) return Ok{};
  if (!request.headers.count("Authorization"))
    return fail(Code::denied, "an operator's bearer token is required");
  if (!shows_token(request, services.authority.operator_token()))
    return fail(Code::denied, "the bearer token is not the operator's");
  return Ok{};
}

HttpResponse refusal(int status, const Error& error) {
  return HttpResponse::json(status, body_of(error_json(error)));
}

// Returns the answer to a client that has no right to one, or no longer; none: it has it. Called before the
// handler, and before each answer: meanwhile a certificate, a token or discovery may have ended.
std::optional<HttpResponse> refuse(const Services& services, Role who, Listener listener,
                                   const HttpRequest& sender) {
  if (who == Role::operators) {
    const auto allowed = check_operator(services, listener, sender);
    if (!allowed.ok()) return refusal(401, allowed.error());
  }
  if (who != Role::agents) return std::nullopt;
  const auto allowed = check_certificate(sender, services.store.certificate(sender.peer_serial));
  if (!allowed.ok()) {
    // Closes the connection as well: the server may still treat its client as authenticated.
    HttpResponse refused = refusal(401, allowed.error());
    refused.close = true;
    return refused;
  }
  // After ten minutes of rejections a RAM system reboots from disk.
  if (!mac_of_unknown(sender.peer).empty() && !services.discovery.active())
    return refusal(403, fail(Code::denied, "this machine is not declared, and discovery is off"));
  return std::nullopt;
}

void note_agent(const Services& services, const HttpRequest& sender) {
  const auto row = services.store.certificate(sender.peer_serial);
  if (!row.ok() || sender.peer_organization != Authority::kAgentOrganization) return;
  if (row->revoked) return services.boot.saw_revoked(row->node, sender.peer_serial, sender.remote);
  if (check_certificate(sender, row).ok() && mac_of_unknown(row->node).empty())
    services.metrics.saw_certificate(row->node, row->issued + Authority::kAgentDays * kDay);
}

// What refuse() reads of a request, without its body.
HttpRequest sender_of(const HttpRequest& request) {
  HttpRequest sender;
  sender.headers = request.headers;
  sender.peer = request.peer;
  sender.peer_serial = request.peer_serial;
  sender.peer_organization = request.peer_organization;
  sender.remote = request.remote;
  return sender;
}

struct Found {
  const Route* route = nullptr;
  std::map<std::string, std::string> args;
  bool other_method = false;
};

Found find(const HttpRequest& request, Listener listener) {
  Found found;
  for (const Route& route : routes()) {
    std::map<std::string, std::string> args;
    if (!is_served_by(route.who, listener) || !match(route.path, request.path, args)) continue;
    const bool same =
        request.method == route.method || (request.method == "HEAD" && std::string(route.method) == "GET");
    if (!same) {
      found.other_method = true;
      continue;
    }
    found.route = &route;
    found.args = std::move(args);
    return found;
  }
  return found;
}

}  // namespace

bool match(const std::string& pattern, const std::string& path, std::map<std::string, std::string>& args) {
  const auto want = segments(pattern);
  const auto have = segments(path);
  for (size_t i = 0; i < want.size(); ++i) {
    const bool variable = want[i].size() > 2 && want[i].front() == '{' && want[i].back() == '}';
    if (variable && want[i][want[i].size() - 2] == '*') {
      if (i >= have.size()) return false;
      std::string rest;
      for (size_t k = i; k < have.size(); ++k) rest += (rest.empty() ? "" : "/") + have[k];
      args[want[i].substr(1, want[i].size() - 3)] = rest;
      return true;
    }
    if (i >= have.size()) return false;
    if (variable && !have[i].empty())
      args[want[i].substr(1, want[i].size() - 2)] = have[i];
    else if (want[i] != have[i])
      return false;
  }
  return want.size() == have.size();
}

int http_status(Code code) {
  switch (code) {
    case Code::invalid:
      return 422;
    case Code::not_found:
      return 404;
    case Code::conflict:
      return 409;
    case Code::denied:
      return 403;
    case Code::unavailable:
      return 503;
    case Code::timeout:
      return 504;
    case Code::failed:
    case Code::corrupt:
    case Code::cancelled:
      return 500;
  }
  return 500;
}

Json error_json(const Error& error) { return {{"code", to_string(error.code)}, {"message", error.message}}; }

std::string Call::arg(const std::string& name) const {
  const auto it = args.find(name);
  return it == args.end() ? "" : it->second;
}

std::string Call::query(const std::string& name, std::string fallback) const {
  const auto it = request.query.find(name);
  return it == request.query.end() ? fallback : it->second;
}

std::string body_of(const Json& json) { return dump_json(json) + "\n"; }

void Call::json(int status, const Json& json) const { body(status, body_of(json)); }

void Call::body(int status, std::string text) const {
  responder->respond(HttpResponse::json(status, std::move(text)));
}

void Call::text(int status, std::string body, const std::string& type) const {
  HttpResponse response = HttpResponse::text(status, std::move(body));
  response.headers["Content-Type"] = type;
  responder->respond(std::move(response));
}

void Call::error(const Error& error) const { json(http_status(error.code), error_json(error)); }

void Call::record(const NodeName& node, EventKind kind, Json data) const {
  data["by"] = text_of(caller);
  services.events.add(0, node, kind, data);
}

void dispatch(Services& services, Listener listener, HttpRequest request, ResponderPtr responder,
              Caller caller) {
  const Found found = find(request, listener);
  auto call = std::make_shared<Call>(
      Call{services, std::move(request), std::move(responder), found.args, "", listener, std::move(caller)});
  // A route of a different entry point gets the same response as an unknown path.
  if (!found.route) {
    const int status = found.other_method ? 405 : 404;
    return call->json(status,
                      {{"code", "not_found"},
                       {"message", "no such route: " + call->request.method + " " + call->request.path}});
  }
  const Role who = found.route->who;
  HttpRequest sender = sender_of(call->request);
  if (who == Role::agents) note_agent(services, sender);
  if (auto refused = refuse(services, who, listener, sender))
    return call->responder->respond(std::move(*refused));
  if (who == Role::agents) call->agent = sender.peer;
  call->responder = rechecked(call->responder, [&services, who, listener, sender = std::move(sender)] {
    return refuse(services, who, listener, sender);
  });
  if (who == Role::operators && std::string(found.route->method) != "GET") services.causes.changed();
  services.reactor.label(std::string(found.route->method) + " " + found.route->path);
  // JSON of an unexpected shape makes a handler throw: one client's bad request must not end the controller.
  try {
    found.route->handler(call);
  } catch (const Json::exception& e) {
    log::warning("invalid request",
                 {{"path", call->request.path}, {"remote", call->request.remote}, {"why", e.what()}});
    call->error(fail(Code::invalid, std::string("the request has a value of the wrong type: ") + e.what()));
  } catch (const std::exception& e) {
    log::error("request failed",
               {{"path", call->request.path}, {"remote", call->request.remote}, {"why", e.what()}});
    call->error(fail(Code::failed, std::string("internal error: ") + e.what()));
  }
}

}  // namespace muster::api
