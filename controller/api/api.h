// The controller's HTTP API: which role may call which route (routes.cc has the whole table), and the Call
// object that is passed to a handler.
//
// Three listeners: the Unix socket (its file mode decides who is an operator), the TLS port (operators by
// bearer token, agents by client certificate), and the plain boot port (no secrets; clients verify
// everything). dispatch() checks access by listener and route before a handler runs. Thread: the reactor's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/event_kind.h"
#include "base/json.h"
#include "base/names.h"
#include "base/result.h"
#include "controller/api/caller.h"
#include "sys/http/http.h"

namespace muster {

struct Services;  // controller/api/services.h

namespace api {

enum class Listener { local, tls, boot };
enum class Role {
  operators,  // the Unix socket, or a bearer token on the TLS port
  agents,     // a client certificate that is in the store and not revoked
  joiners,    // TLS port, no certificate yet: the one-time token in the body decides
  machines,   // the boot port: firmware and RAM systems
};

struct Call {
  Services& services;
  HttpRequest request;
  ResponderPtr responder;
  std::map<std::string, std::string> args = {};  // {node} of the path
  std::string agent = {};                        // the authenticated name, for Role::agents
  Listener listener = Listener::tls;             // through which the request arrived
  Caller caller = {};                            // for requests of operators that change something

  std::string arg(const std::string& name) const;
  std::string query(const std::string& name, std::string fallback = "") const;
  void json(int status, const Json& body) const;
  // Responds with JSON that is already serialized (body_of()).
  void body(int status, std::string text) const;
  void ok(const Json& body) const { json(200, body); }
  void text(int status, std::string body, const std::string& type = "text/plain; charset=utf-8") const;
  void error(const Error& error) const;
  // Adds the event of a change to the live log: `data`, and the caller as "by". `node` may be empty.
  void record(const NodeName& node, EventKind kind, Json data) const;
};
using CallPtr = std::shared_ptr<Call>;
using Handler = void (*)(const CallPtr&);

struct Route {
  const char* method;
  const char* path;  // "/v1/nodes/{node}/why"; a last "{path*}" takes the rest
  Role who;
  Handler handler;
  const char* help;
};
const std::vector<Route>& routes();

// `caller`: who sent the request, from caller_of().
void dispatch(Services& services, Listener listener, HttpRequest request, ResponderPtr responder,
              Caller caller);

// True if `path` matches `pattern`; fills in `args`.
bool match(const std::string& pattern, const std::string& path, std::map<std::string, std::string>& args);
int http_status(Code code);
std::string body_of(const Json& json);
Json error_json(const Error& error);

}  // namespace api
}  // namespace muster
