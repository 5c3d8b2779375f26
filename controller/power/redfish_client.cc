#include "controller/power/redfish_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/json_dump.h"
#include "base/lower.h"
#include "controller/power/bmc_json.h"

namespace muster {

namespace {

constexpr DurationMs kRequest = 60 * kSecond;
constexpr DurationMs kConnectOnce =
    5 * kSecond;  // many BMCs are looked at, and silent ones keep the others waiting
// Pause before retrying a request that a BMC refuses with 401 or 403 although the login succeeded.
constexpr DurationMs kRefusedPause = 5 * kSecond;
constexpr int kRefusedTries = 3;
constexpr size_t kMaxAnswer =
    4 << 20;  // the largest resource seen is below 100 kB; JSON in memory takes up to twenty times its text
constexpr const char* kRoot = "/redfish/v1/";
constexpr const char* kSessions =
    "/redfish/v1/SessionService/Sessions";  // the path in DSP0266, used if the root cannot be read

std::string header(const RedfishAnswer& answer, const std::string& name) {
  const auto found = answer.headers.find(name);
  return found == answer.headers.end() ? "" : found->second;
}

bool offers_basic(const RedfishAnswer& answer) {
  return lower(header(answer, "WWW-Authenticate")).find("basic") != std::string::npos;
}

// True if an order is carried out as a task that must be polled; the BMCs of some DPUs report that with 303.
bool is_accepted(const RedfishAnswer& answer) { return answer.status == 202 || answer.status == 303; }

std::string etag_of(const RedfishAnswer& answer) {
  std::string tag = header(answer, "ETag");
  if (tag.empty()) tag = json_text(answer.body, "@odata.etag");
  return tag == "\"\"" || tag == "W/\"\"" ? "" : tag;
}

}  // namespace

RedfishClient::RedfishClient(PowerTarget target, Waiter waiter, HttpClients clients)
    : target_(std::move(target)),
      waiter_(std::move(waiter)),
      clients_(std::move(clients)),
      logins_(target_.logins ? target_.logins : std::make_shared<Logins>(waiter_.now)),
      // Of a single login the answer must be certain: Basic may be disabled, whatever the password is.
      use_session_(logins_->has_session(target_) || target_.one_login),
      basic_off_(logins_->has_session(target_)) {}

RedfishClient::~RedfishClient() {
  begin(5 * kSecond);
  close_session();
}

// BMCs have few sessions, so the session is closed.
void RedfishClient::close_session() {
  if (!session_.empty() && http_) (void)exchange("DELETE", session_, nullptr, {});
  token_.clear();
  session_.clear();
}

void RedfishClient::pause(DurationMs span) { waiter_.sleep(std::max<DurationMs>(0, std::min(span, left()))); }

// Reads the certificate without sending a password, so that an unverified peer does not get it.
Status RedfishClient::learn_pin() {
  HttpClientOptions options = to_bmc();
  options.insecure_first_use = true;
  TRY(auto http, clients_(std::move(options)));
  HttpRequest request;
  request.target = kRoot;
  TRY_(http->request(std::move(request), std::min(left(), kRequest)));
  target_.pin_sha256 = http->peer_fingerprint();
  if (target_.pin_sha256.empty()) return fail(Code::failed, target_.address + " presented no certificate");
  if (target_.on_pin) target_.on_pin(target_.pin_sha256);
  return Ok{};
}

Status RedfishClient::connect() {
  if (http_) return Ok{};
  if (target_.pin_sha256.empty()) TRY_(learn_pin());
  return make_client(!use_session_);
}

HttpClientOptions RedfishClient::to_bmc() const {
  HttpClientOptions options;
  options.base = "https://" + target_.address;
  options.keep_alive = false;
  options.max_answer = kMaxAnswer;
  if (target_.one_login) options.connect_timeout = kConnectOnce;
  return options;
}

Status RedfishClient::make_client(bool basic) {
  HttpClientOptions options = to_bmc();
  options.pin_sha256 = target_.pin_sha256;
  if (basic) {
    options.basic_user = target_.user;
    options.basic_password = target_.password;
  }
  TRY(http_, clients_(std::move(options)));
  return Ok{};
}

Result<RedfishAnswer> RedfishClient::exchange(const std::string& method, const std::string& path,
                                              const Json& body, Headers headers) {
  if (left() <= 0)
    return fail(Code::unavailable,
                fmt::format("BMC {}: no time left for {} {}", target_.address, method, path));
  HttpRequest request;
  request.method = method;
  request.target = path;
  request.headers = std::move(headers);
  request.headers["Accept"] = "application/json";
  request.headers.try_emplace("Accept-Encoding", "identity");  // compression makes ETags weak
  request.headers["OData-Version"] = "4.0";
  if (!token_.empty()) request.headers["X-Auth-Token"] = token_;
  if (!body.is_null()) {
    request.headers["Content-Type"] = "application/json";
    request.body = dump_json(body);
  }
  auto response = http_->request(std::move(request), std::min(left(), kRequest));
  if (!response.ok()) {
    Error error =
        std::move(response).error().with(fmt::format("BMC {} {} {}", target_.address, method, path));
    // The response is too large to be read: the order may have been carried out nevertheless.
    if (error.code == Code::failed && method != "GET") error.code = Code::timeout;
    return error;
  }
  RedfishAnswer answer{response->status, nullptr, std::move(response->headers)};
  // A body that cannot be read safely is ignored: the status is enough.
  auto read = parse_bmc_json(response->body, header(answer, "Content-Encoding"), kMaxAnswer);
  if (read.ok())
    answer.body = std::move(read).value();
  else
    answer.unreadable = read.error().message;
  return answer;
}

Result<std::string> RedfishClient::sessions_path() {
  if (!sessions_.empty()) return sessions_;
  TRY(const RedfishAnswer root, exchange("GET", kRoot, nullptr, {}));
  if (root.status == 401 || root.status == 403)
    return std::string(kSessions);  // the root should be readable without login, but is not on all BMCs
  if (root.status / 100 != 2)
    return fail(Code::unavailable, fmt::format("BMC {}: GET {}: {}", target_.address, kRoot, root.status));
  sessions_ = redfish_path(json_text(json_at(root.body, {"Links", "Sessions"}), "@odata.id"));
  return sessions_;
}

// Opens a session. not_found: the BMC does not support sessions.
Status RedfishClient::open_session() {
  token_.clear();
  session_.clear();
  TRY_(make_client(false));
  TRY(const std::string sessions, sessions_path());
  if (sessions.empty()) return fail(Code::not_found, target_.address + " has no session service");
  TRY(const RedfishAnswer answer, log_in(sessions));
  token_ = header(answer, "X-Auth-Token");
  session_ = redfish_path(header(answer, "Location"));
  if (session_.empty()) session_ = redfish_path(json_text(answer.body, "@odata.id"));
  if (token_.empty())
    return fail(Code::failed, fmt::format("BMC {} returned no session token", target_.address));
  logins_->let_in(target_);
  if (basic_off_) logins_->wants_session(target_);
  return Ok{};
}

Result<RedfishAnswer> RedfishClient::log_in(const std::string& sessions) {
  const Json login = {{"UserName", target_.user}, {"Password", target_.password}};
  for (;;) {
    TRY_(may_log_in());
    TRY(RedfishAnswer answer, exchange("POST", sessions, login, {}));
    const int status = answer.status;
    if (status / 100 == 2) return answer;
    const RedfishRefusal why(answer.body);
    const bool passes = why.passes();
    if ((status == 404 || status == 405) && !passes && !basic_off_)
      return fail(Code::not_found, target_.address + " has no session service");
    // Temporary: a full session table, or a service that is starting.
    if ((status != 400 && status != 401 && status != 403) || passes)
      return fail(Code::unavailable,
                  fmt::format("BMC {} did not open a session: {} {}", target_.address, status, why.text()));
    TRY_(logins_->failed_login(target_));
  }
}

Status RedfishClient::may_log_in() {
  return logins_->may_log_in(target_, left(), [this](DurationMs span) { pause(span); });
}

Status RedfishClient::use_basic() {
  use_session_ = false;
  token_.clear();
  session_.clear();
  return make_client(true);
}

// Authenticates before each request, as far as necessary.
Status RedfishClient::enter() {
  if (!use_session_) return may_log_in();
  if (!token_.empty()) return Ok{};
  Status opened = open_session();
  if (opened.ok()) return opened;
  // No session is available, but Basic was refused only once: try it again.
  no_sessions_ = no_sessions_ || opened.error().code == Code::not_found;
  if (!basic_off_ || no_sessions_) TRY_(use_basic());
  if (opened.error().code == Code::not_found) return may_log_in();
  return opened;
}

// exchange() with authentication. A 401 or 403 counts only if it is returned again in a new session or after
// another login and a pause. Since nothing was carried out, orders are repeated as well.
Result<RedfishAnswer> RedfishClient::admitted(const std::string& method, const std::string& path,
                                              const Json& body, const Headers& headers) {
  for (int refused = 0;; ++refused) {
    const bool had_token = !token_.empty();
    TRY_(enter());
    TRY(RedfishAnswer answer, exchange(method, path, body, headers));
    const int status = answer.status;
    if (status / 100 == 2 && path != kRoot && !use_session_) logins_->let_in(target_);
    if ((status != 401 && status != 403) || RedfishRefusal(answer.body).passes()) return answer;
    if (!use_session_ && (status == 401 || !logins_->took(target_))) {
      // If Basic is not offered, it is unknown whether the password was checked: counts as a failed login.
      TRY_(logins_->failed_login(target_));
      basic_off_ = status == 401 && !no_sessions_ && !offers_basic(answer);
      use_session_ = !no_sessions_;
      continue;
    }
    if (status == 401 && had_token &&
        refused == 0) {  // the BMC lost the session: idle for too long, or restarted
      token_.clear();
      continue;
    }
    if (status == 403 && refused > 0) return answer;
    if (refused >= kRefusedTries || left() <= kRefusedPause)
      return fail(Code::unavailable,
                  fmt::format("BMC {}: {} {}: {} although the BMC accepts the user and password",
                              target_.address, method, path, status));
    pause(kRefusedPause);
    if (status == 403) close_session();
  }
}

// admitted() that follows one redirect.
Result<RedfishAnswer> RedfishClient::send(const std::string& method, const std::string& path,
                                          const Json& body, const Headers& headers) {
  TRY_(connect());
  TRY(RedfishAnswer answer, admitted(method, path, body, headers));
  const int status = answer.status;
  if (status == 301 || status == 302 || status == 307 || status == 308 ||
      (status == 303 && method == "GET")) {
    const std::string location = header(answer, "Location");
    // Redirects are followed only within the same BMC, so that the password is sent to no other host.
    if (!location.empty() && redfish_path(location) != path) {
      TRY(answer, admitted(method, redfish_path(location), body, headers));
    }
  }
  return answer;
}

Result<RedfishAnswer> RedfishClient::judge(RedfishAnswer answer, const std::string& what) const {
  if (answer.status / 100 == 2) return answer;
  const RedfishRefusal why(answer.body);
  const std::string message =
      fmt::format("BMC {}: {}: {} {}", target_.address, what, answer.status, why.text());
  if (answer.status == 409) return fail(Code::conflict, message);
  if (why.passes()) return fail(Code::unavailable, message);
  switch (answer.status) {
    case 401:
    case 403:
      return fail(Code::denied, message);
    // 404 for a link that the BMC itself returned: it is rebuilding its resource tree.
    case 404:
    case 429:
    case 503:
      return fail(Code::unavailable, message);
    default:
      // A BMC that fails during an order may have carried it out.
      return fail(answer.status >= 500 ? Code::timeout : Code::invalid, message);
  }
}

Result<RedfishAnswer> RedfishClient::get(const std::string& path) {
  TRY(RedfishAnswer answer, look(path, kRequest));
  return readable(std::move(answer), path);
}

Result<RedfishAnswer> RedfishClient::look(const std::string& path, DurationMs at_most) {
  const TimeMs end = std::exchange(end_, std::min<TimeMs>(end_, waiter_.now() + at_most));
  auto answer = send("GET", path, nullptr, {});
  if (answer.ok() && answer->status == 406) answer = send("GET", path, nullptr, {{"Accept-Encoding", "*"}});
  end_ = end;
  return answer;
}

Result<RedfishAnswer> RedfishClient::readable(RedfishAnswer answer, const std::string& path) const {
  // A GET changes nothing, so it may be retried after an error of the BMC.
  if (answer.status >= 500)
    return fail(Code::unavailable, fmt::format("BMC {}: GET {}: {} {}", target_.address, path, answer.status,
                                               RedfishRefusal(answer.body).text()));
  if (answer.status == 404 && path == kRoot)
    return fail(Code::not_found, fmt::format("{} does not support Redfish", target_.address));
  TRY(answer, judge(std::move(answer), "GET " + path));
  if (!answer.body.is_object())
    return fail(Code::failed, fmt::format("BMC {}: {} is not a JSON object{}{}", target_.address, path,
                                          answer.unreadable.empty() ? "" : ": ", answer.unreadable));
  return answer;
}

Result<RedfishAnswer> RedfishClient::post(const std::string& path, const Json& body) {
  TRY(RedfishAnswer answer, send("POST", path, body, {}));
  if (is_accepted(answer)) {
    TRY(answer, follow_task(std::move(answer)));
  }
  return judge(std::move(answer), "POST " + path);
}

Result<RedfishAnswer> RedfishClient::follow_task(RedfishAnswer accepted) {
  std::string monitor = redfish_path(header(accepted, "Location"));
  if (monitor.empty()) monitor = redfish_path(json_text(accepted.body, "@odata.id"));
  RedfishAnswer latest = std::move(accepted);
  while (!monitor.empty() && left() > 0) {
    const int seconds = std::atoi(header(latest, "Retry-After").c_str());  // a date counts as 0
    pause(std::clamp(seconds, 1, 5) * kSecond);
    auto answer = send("GET", monitor, nullptr, {});
    if (!answer.ok() && answer.error().code != Code::denied) continue;
    TRY(latest, std::move(answer));
    if (latest.status == 404 || latest.status == 410 || latest.status / 100 == 3)
      return RedfishAnswer{204, nullptr, {}};  // the task is gone: read the resource
    if (latest.status / 100 == 5) continue;
    const std::string state = json_text(latest.body, "TaskState");
    if (state == "Exception" || state == "Killed" || state == "Cancelled")
      return fail(Code::failed, fmt::format("BMC {}: its task ended with state {}", target_.address, state));
    const bool running = latest.status == 202 || state == "Running" || state == "New" ||
                         state == "Starting" || state == "Pending";
    if (!running) return latest;
  }
  return RedfishAnswer{204, nullptr, {}};  // accepted; the resource shows the result
}

Result<RedfishAnswer> RedfishClient::patch(const std::string& path, const Json& body) {
  moved_to_.clear();
  TRY(const RedfishAnswer before, get(path));
  const std::string tag = etag_of(before);
  // In order: the resource's ETag; a weak ETag as a strong one; any; none. BMCs differ in what they accept.
  std::vector<std::string> tries;
  if (!tag.empty()) tries.push_back(tag);
  if (tag.starts_with("W/")) tries.push_back(tag.substr(2));
  if (tag.empty()) tries.push_back("");
  tries.push_back(tag.empty() ? "*" : "");
  RedfishAnswer answer;
  for (const std::string& one : tries) {
    const Headers headers = one.empty() ? Headers{} : Headers{{"If-Match", one}};
    TRY(answer, send("PATCH", path, body, headers));
    if (answer.status != 412 && answer.status != 428) break;
  }
  if (answer.status == 412) {  // changed by another client meanwhile: once more with the present tag
    TRY(const RedfishAnswer again, get(path));
    if (const std::string fresh = etag_of(again); !fresh.empty() && fresh != tag) {
      TRY(answer, send("PATCH", path, body, {{"If-Match", fresh}}));
    }
  }
  if (is_accepted(answer)) {
    TRY(answer, follow_task(std::move(answer)));
  }
  moved_to_ = answer.status / 100 == 4 ? RedfishRefusal(answer.body).moved_to() : "";
  return judge(std::move(answer), "PATCH " + path);
}

}  // namespace muster
