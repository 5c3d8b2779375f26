// RedfishClient: HTTP requests to one BMC, with certificate pin, authentication, ETags, tasks, and
// interpretation of refusals.
//
// Uses Basic authentication over TLS with one connection per request, since BMCs mishandle keep-alive and
// leak sessions; one session if Basic is disabled, opened again when the BMC lost it. For a BMC without a
// pin, the certificate is read before any password is sent. One 401 does not mean a wrong password: after a
// pause a session is tried, and only its rejection counts; after two failed logins nothing more is sent
// (controller/power/logins.h). A 403 counts if it is returned twice. Responses may be hostile: their size and
// depth are limited. Contains nothing about systems or power. Thread: one at a time; blocking.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "controller/ports/power.h"
#include "controller/power/bmc_json.h"
#include "controller/power/logins.h"
#include "controller/power/waiter.h"
#include "sys/http/http.h"

namespace muster {

struct RedfishAnswer {
  int status = 0;
  Json body;  // null if there was none or it cannot be read
  Headers headers;
  std::string unreadable = {};  // why
};

// Makes connections to BMCs; tests answer in their place.
using HttpClients = std::function<Result<std::unique_ptr<HttpClient>>(HttpClientOptions)>;

class RedfishClient {
 public:
  RedfishClient(PowerTarget target, Waiter waiter, HttpClients clients);
  ~RedfishClient();

  // Starts the clock of one public call.
  void begin(DurationMs deadline) { end_ = waiter_.now() + deadline; }
  DurationMs left() const { return end_ - waiter_.now(); }
  void at_least(DurationMs span) { end_ = std::max(end_, waiter_.now() + span); }
  void pause(DurationMs span);

  Result<RedfishAnswer> get(const std::string& path);
  // One GET within `at_most`; returns a response of any status, an Error only if there was none. readable()
  // checks it as get() does.
  Result<RedfishAnswer> look(const std::string& path, DurationMs at_most);
  Result<RedfishAnswer> readable(RedfishAnswer answer, const std::string& path) const;
  // Follows a 202 to the end of its task, as far as the BMC allows. A task that vanished counts as done: read
  // the resource.
  Result<RedfishAnswer> post(const std::string& path, const Json& body);
  // Sends If-Match as this BMC expects it.
  Result<RedfishAnswer> patch(const std::string& path, const Json& body);
  // The path that the BMC named when it refused the last PATCH; "" if none.
  const std::string& moved_to() const { return moved_to_; }
  const std::string& fingerprint() const { return target_.pin_sha256; }

 private:
  Status connect();
  Status make_client(bool basic);
  HttpClientOptions to_bmc() const;
  Status learn_pin();
  Status use_basic();
  void close_session();
  Status may_log_in();
  Status enter();
  Status open_session();
  Result<std::string> sessions_path();
  Result<RedfishAnswer> log_in(const std::string& sessions);
  Result<RedfishAnswer> exchange(const std::string& method, const std::string& path, const Json& body,
                                 Headers headers);
  Result<RedfishAnswer> admitted(const std::string& method, const std::string& path, const Json& body,
                                 const Headers& headers);
  Result<RedfishAnswer> send(const std::string& method, const std::string& path, const Json& body,
                             const Headers& headers);
  Result<RedfishAnswer> follow_task(RedfishAnswer accepted);
  Result<RedfishAnswer> judge(RedfishAnswer answer, const std::string& what) const;

  PowerTarget target_;
  Waiter waiter_;
  HttpClients clients_;
  std::shared_ptr<Logins> logins_;
  TimeMs end_ = 0;
  std::unique_ptr<HttpClient> http_;
  bool use_session_ = false;  // Basic is disabled, or was rejected once
  bool basic_off_ = false, no_sessions_ = false;
  std::string token_, session_;  // empty: to be opened
  std::string sessions_, moved_to_;
};

}  // namespace muster
