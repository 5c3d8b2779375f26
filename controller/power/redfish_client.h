// RedfishClient: one BMC's HTTP conversation: certificate pin, authentication, ETags, tasks, and what
// refusals mean.
//
// Basic authentication over TLS with a connection per request, since BMCs mishandle keep-alive and leak
// sessions; one session where Basic is off, opened again when the BMC forgot it. A BMC without a pin gets
// asked for its certificate before any password is sent to it. One 401 is no wrong password: after a pause a
// session is tried, and only its refusal counts; after two failed logins nothing more is sent
// (controller/power/logins.h). A 403 is believed when it comes twice. Answers may be hostile: their size and
// depth are limited. Knows nothing of systems or power. Thread: one at a time; blocking.
#pragma once

#include <memory>
#include <optional>

#include "base/http.h"
#include "controller/power/bmc_json.h"
#include "controller/power/logins.h"
#include "controller/power/power.h"
#include "controller/power/waiter.h"

namespace muster {

struct RedfishAnswer {
  int status = 0;
  Json body;  // null when there was none that can be read
  Headers headers;
  std::string unreadable = {};  // why
};

class RedfishClient {
 public:
  RedfishClient(PowerTarget target, Waiter waiter);
  ~RedfishClient();

  // Starts the clock of one public call.
  void begin(DurationMs deadline) { end_ = waiter_.now() + deadline; }
  DurationMs left() const { return end_ - waiter_.now(); }
  // From now on at least so long.
  void at_least(DurationMs span) { end_ = std::max(end_, waiter_.now() + span); }
  void pause(DurationMs span);

  Result<RedfishAnswer> get(const std::string& path);
  // One GET within `at_most`, whatever status it was answered with; an Error only where no answer came.
  // readable() judges it as get() does.
  Result<RedfishAnswer> look(const std::string& path, DurationMs at_most);
  Result<RedfishAnswer> readable(RedfishAnswer answer, const std::string& path) const;
  // Follows a 202 to its end, as far as the BMC lets it. A task that vanished counts as done: look at the
  // resource.
  Result<RedfishAnswer> post(const std::string& path, const Json& body);
  // Sends If-Match as this BMC wants it.
  Result<RedfishAnswer> patch(const std::string& path, const Json& body);
  // What was to be patched last belongs to this path instead, as the BMC said when it refused; "".
  const std::string& moved_to() const { return moved_to_; }
  const std::string& fingerprint() const { return target_.pin_sha256; }

 private:
  Status connect();
  Status make_client(bool basic);
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
  std::shared_ptr<Logins> logins_;
  TimeMs end_ = 0;
  std::unique_ptr<HttpClient> http_;
  bool use_session_ = false;  // Basic is off, or was refused once
  bool basic_off_ = false, no_sessions_ = false;
  std::string token_, session_;  // empty: to be opened
  std::string sessions_, moved_to_;
};

}  // namespace muster
