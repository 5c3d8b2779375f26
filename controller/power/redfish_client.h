// RedfishClient: one BMC's HTTP conversation: certificate pin, authentication, ETags, tasks, and what
// refusals mean.
//
// Basic authentication over TLS with a connection per request, since BMCs mishandle keep-alive and leak
// sessions; one session where Basic is off, opened again when the BMC forgot it. A BMC without a pin gets
// asked for its certificate before any password is sent to it. A wrong password costs one failed login: after
// it nothing more is sent. Answers may be hostile: their size and depth are limited. Knows nothing of systems
// or power. Thread: one at a time; blocking.
#pragma once

#include <memory>
#include <optional>

#include "base/http.h"
#include "controller/power/power.h"
#include "controller/power/waiter.h"

namespace muster {

struct RedfishAnswer {
  int status = 0;
  Json body;  // null when there was none
  Headers headers;
};

// Field access that survives any JSON: "" or null where the shape is another.
std::string json_text(const Json& json, const char* key);
const Json& json_at(const Json& json, const std::vector<std::string>& path);

class RedfishClient {
 public:
  RedfishClient(PowerTarget target, Waiter waiter);
  ~RedfishClient();

  // Starts the clock of one public call.
  void begin(DurationMs deadline) { end_ = waiter_.now() + deadline; }
  DurationMs left() const { return end_ - waiter_.now(); }
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
  const std::string& fingerprint() const { return target_.pin_sha256; }

 private:
  Status connect();
  Status make_client(bool basic);
  Status learn_pin();
  Status open_session();
  Result<std::string> sessions_path();
  Error refuse_secret();
  Result<RedfishAnswer> exchange(const std::string& method, const std::string& path, const Json& body,
                                 Headers headers);
  Result<RedfishAnswer> send(const std::string& method, const std::string& path, const Json& body,
                             Headers headers);
  Result<RedfishAnswer> follow_task(RedfishAnswer accepted);
  Result<RedfishAnswer> judge(RedfishAnswer answer, const std::string& what) const;

  PowerTarget target_;
  Waiter waiter_;
  TimeMs end_ = 0;
  std::unique_ptr<HttpClient> http_;
  bool use_session_ = false;     // Basic is off
  std::string token_, session_;  // empty: to be opened
  std::string sessions_;
  bool let_in_ = false;                // user and password were right in this conversation
  std::optional<Error> refused_ = {};  // they were not: nothing more is sent
};

}  // namespace muster
