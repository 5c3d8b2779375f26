// RedfishClient: one BMC's HTTP conversation: certificate pin, authentication, ETags, tasks, and what refusals mean.
//
// Basic authentication over TLS with a connection per request, since BMCs mishandle keep-alive and leak sessions; one session
// where Basic is off. A BMC without a pin gets asked for its certificate before any password is sent to it.
// Knows nothing of systems or power. Thread: one at a time; blocking.
#pragma once

#include <memory>

#include "base/http.h"
#include "controller/power/power.h"
#include "controller/power/waiter.h"

namespace muster {

struct RedfishAnswer {
  int status = 0;
  Json body;          // null when there was none
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
  // Follows a 202 to its end, as far as the BMC lets it. A task that vanished counts as done: look at the resource.
  Result<RedfishAnswer> post(const std::string& path, const Json& body);
  // Sends If-Match as this BMC wants it.
  Result<RedfishAnswer> patch(const std::string& path, const Json& body);
  const std::string& fingerprint() const { return target_.pin_sha256; }

 private:
  Status connect();
  Status make_client(bool basic);
  Status learn_pin();
  Status open_session();
  Result<RedfishAnswer> exchange(const std::string& method, const std::string& path, const Json& body, Headers headers);
  Result<RedfishAnswer> send(const std::string& method, const std::string& path, const Json& body, Headers headers);
  Result<RedfishAnswer> follow_task(RedfishAnswer accepted);
  Result<RedfishAnswer> judge(RedfishAnswer answer, const std::string& what) const;

  PowerTarget target_;
  Waiter waiter_;
  TimeMs end_ = 0;
  std::unique_ptr<HttpClient> http_;
  std::string token_, session_;   // where Basic is off
  bool tried_session_ = false;
};

}  // namespace muster
