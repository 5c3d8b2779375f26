#include "controller/power/redfish_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/json_dump.h"
#include "base/utf8.h"

namespace muster {

namespace {

constexpr DurationMs kRequest = 60 * kSecond;
constexpr size_t kMaxAnswer =
    4 << 20;  // the largest resource seen is below 100 kB; JSON in memory takes up to twenty times its text
constexpr const char* kRoot = "/redfish/v1/";
constexpr const char* kSessions =
    "/redfish/v1/SessionService/Sessions";  // where DSP0266 puts it, for roots that cannot be read

std::string header(const RedfishAnswer& answer, const std::string& name) {
  const auto found = answer.headers.find(name);
  return found == answer.headers.end() ? "" : found->second;
}

// "/redfish/v1/x" out of "/redfish/v1/x" or "https://10.20.1.11/redfish/v1/x".
std::string path_of(const std::string& uri) {
  const size_t scheme = uri.find("://");
  if (scheme == std::string::npos) return uri;
  const size_t slash = uri.find('/', scheme + 3);
  return slash == std::string::npos ? "/" : uri.substr(slash);
}

// The first message of a refusal, with its id: "ActionParameterValueConflict: The host is powering down". The
// list may be an object.
std::string refusal(const Json& body) {
  const Json& list = json_at(body, {"error", "@Message.ExtendedInfo"});
  const Json& info = list.is_array() && !list.empty() ? list[0] : list;
  std::string id = json_text(info, "MessageId"), text = json_text(info, "Message");
  if (id.empty()) id = json_text(json_at(body, {"error"}), "code");
  if (text.empty()) text = json_text(json_at(body, {"error"}), "message");
  return id.append(id.empty() || text.empty() ? "" : ": ").append(first_bytes(text, 300));
}

// Refusals that pass by themselves: power-on self test, services that start, Dell's "not ready".
bool passes_by_itself(const std::string& why) {
  for (const char* sign :
       {"SystemPOST", "InvalidOperationForSystemState", "SYS518", "ServiceTemporarilyUnavailable",
        "ResourceInUse", "ServiceInUnknownState", "NotReady", "SessionLimitExceeded", "MaximumSessions"})
    if (why.find(sign) != std::string::npos) return true;
  return false;
}

bool offers_basic(const RedfishAnswer& answer) {
  std::string offered = header(answer, "WWW-Authenticate");
  std::transform(offered.begin(), offered.end(), offered.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return offered.find("basic") != std::string::npos;
}

std::string etag_of(const RedfishAnswer& answer) {
  std::string tag = header(answer, "ETag");
  if (tag.empty()) tag = json_text(answer.body, "@odata.etag");
  return tag == "\"\"" || tag == "W/\"\"" ? "" : tag;
}

}  // namespace

std::string json_text(const Json& json, const char* key) {
  if (!json.is_object()) return "";
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

const Json& json_at(const Json& json, const std::vector<std::string>& path) {
  static const Json nothing;
  const Json* at = &json;
  for (const std::string& key : path) {
    if (!at->is_object()) return nothing;
    const auto found = at->find(key);
    if (found == at->end()) return nothing;
    at = &*found;
  }
  return *at;
}

RedfishClient::RedfishClient(PowerTarget target, Waiter waiter)
    : target_(std::move(target)), waiter_(std::move(waiter)) {}

RedfishClient::~RedfishClient() {
  if (session_.empty() || !http_) return;
  begin(5 * kSecond);  // sessions are few: give ours back
  (void)exchange("DELETE", session_, nullptr, {});
}

void RedfishClient::pause(DurationMs span) { waiter_.sleep(std::max<DurationMs>(0, std::min(span, left()))); }

// Asks for the certificate without sending a password, so that whoever answers first does not get it for
// nothing.
Status RedfishClient::learn_pin() {
  HttpClientOptions options;
  options.base = "https://" + target_.address;
  options.insecure_first_use = true;
  options.keep_alive = false;
  options.max_answer = kMaxAnswer;
  TRY(auto http, make_http_client(std::move(options)));
  HttpRequest request;
  request.target = kRoot;
  TRY_(http->request(std::move(request), std::min(left(), kRequest)));
  target_.pin_sha256 = http->peer_fingerprint();
  if (target_.pin_sha256.empty()) return fail(Code::failed, target_.address + " showed no certificate");
  if (target_.on_pin) target_.on_pin(target_.pin_sha256);
  return Ok{};
}

Status RedfishClient::connect() {
  if (http_) return Ok{};
  if (target_.pin_sha256.empty()) TRY_(learn_pin());
  return make_client(true);
}

Status RedfishClient::make_client(bool basic) {
  HttpClientOptions options;
  options.base = "https://" + target_.address;
  options.pin_sha256 = target_.pin_sha256;
  if (basic) {
    options.basic_user = target_.user;
    options.basic_password = target_.password;
  }
  options.keep_alive = false;
  options.max_answer = kMaxAnswer;
  TRY(http_, make_http_client(std::move(options)));
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
    // An answer too large to be read: the order may have been carried out all the same.
    if (error.code == Code::failed && method != "GET") error.code = Code::timeout;
    return error;
  }
  // What cannot be read, or not without danger, counts as nothing: the status says enough.
  return RedfishAnswer{response->status, parse_json(response->body).value_or(nullptr),
                       std::move(response->headers)};
}

// Where to log in.
Result<std::string> RedfishClient::sessions_path() {
  if (!sessions_.empty()) return sessions_;
  TRY(const RedfishAnswer root, exchange("GET", kRoot, nullptr, {}));
  if (root.status == 401 || root.status == 403)
    return std::string(kSessions);  // it should be open to all, and is not everywhere
  if (root.status / 100 != 2)
    return fail(Code::unavailable, fmt::format("BMC {}: GET {}: {}", target_.address, kRoot, root.status));
  sessions_ = path_of(json_text(json_at(root.body, {"Links", "Sessions"}), "@odata.id"));
  return sessions_;
}

Status RedfishClient::open_session() {
  token_.clear();
  session_.clear();
  TRY_(make_client(false));
  TRY(const std::string sessions, sessions_path());
  if (sessions.empty()) return refuse_secret();  // Basic was the only way, and it was refused
  const Json login = {{"UserName", target_.user}, {"Password", target_.password}};
  TRY(const RedfishAnswer answer, exchange("POST", sessions, login, {}));
  const std::string why = refusal(answer.body);
  const int status = answer.status;
  if ((status == 400 || status == 401 || status == 403 || status == 404 || status == 405) &&
      !passes_by_itself(why))
    return refuse_secret();
  // A table of sessions that is full, a service that starts: it passes.
  if (status / 100 != 2)
    return fail(Code::unavailable,
                fmt::format("BMC {}: opening a session: {} {}", target_.address, status, why));
  token_ = header(answer, "X-Auth-Token");
  session_ = path_of(header(answer, "Location"));
  if (session_.empty()) session_ = path_of(json_text(answer.body, "@odata.id"));
  if (token_.empty()) return fail(Code::failed, fmt::format("BMC {} gave no session token", target_.address));
  let_in_ = true;
  return Ok{};
}

// After it nothing more is sent with this user and password.
Error RedfishClient::refuse_secret() {
  Error error = fail(Code::denied, fmt::format("BMC {} refuses the user and password", target_.address));
  if (let_in_) return error;  // it took them a moment ago: not a wrong password
  refused_ = error;
  if (target_.on_refused) target_.on_refused();
  return error;
}

// exchange() that authenticates and follows one redirect.
Result<RedfishAnswer> RedfishClient::send(const std::string& method, const std::string& path,
                                          const Json& body, Headers headers) {
  if (refused_) return *refused_;
  TRY_(connect());
  if (use_session_ && token_.empty()) TRY_(open_session());
  TRY(RedfishAnswer answer, exchange(method, path, body, headers));
  if (answer.status == 401) {
    // Basic is offered, so the password is wrong: trying it on a session as well would be the second failed
    // login.
    if (!use_session_ && offers_basic(answer)) return refuse_secret();
    use_session_ = true;  // for the first time, or the BMC forgot ours: idle for too long, restarted
    TRY_(open_session());
    TRY(answer, exchange(method, path, body, headers));
  }
  if (answer.status == 301 || answer.status == 302 || answer.status == 307 || answer.status == 308) {
    const std::string location = header(answer, "Location");
    // Only to another path of the same BMC: nobody else gets the password.
    if (!location.empty() && path_of(location) != path) {
      TRY(answer, exchange(method, path_of(location), body, headers));
    }
  }
  if (answer.status / 100 == 2 && path != kRoot) let_in_ = true;
  return answer;
}

Result<RedfishAnswer> RedfishClient::judge(RedfishAnswer answer, const std::string& what) const {
  if (answer.status / 100 == 2) return answer;
  const std::string why = refusal(answer.body);
  const std::string message = fmt::format("BMC {}: {}: {} {}", target_.address, what, answer.status, why);
  switch (answer.status) {
    case 401:
    case 403:
      return fail(Code::denied, message);
    // Only links that the BMC itself gave are followed: it is building its tree anew.
    case 404:
      return fail(Code::unavailable, message);
    case 409:
      return fail(Code::conflict, message);
    case 429:
    case 503:
      return fail(Code::unavailable, message);
    default:
      break;
  }
  if (passes_by_itself(why)) return fail(Code::unavailable, message);
  // A BMC that fails in the middle of an order may have carried it out.
  return fail(answer.status >= 500 ? Code::timeout : Code::invalid, message);
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
  // Reading changes nothing, so a fault of the BMC may simply be asked again.
  if (answer.status >= 500)
    return fail(Code::unavailable, fmt::format("BMC {}: GET {}: {} {}", target_.address, path, answer.status,
                                               refusal(answer.body)));
  if (answer.status == 404 && path == kRoot)
    return fail(Code::not_found, fmt::format("{} does not speak Redfish", target_.address));
  TRY(answer, judge(std::move(answer), "GET " + path));
  if (!answer.body.is_object())
    return fail(Code::failed, fmt::format("BMC {}: {} is no JSON object", target_.address, path));
  return answer;
}

Result<RedfishAnswer> RedfishClient::post(const std::string& path, const Json& body) {
  TRY(RedfishAnswer answer, send("POST", path, body, {}));
  if (answer.status == 202) {
    TRY(answer, follow_task(std::move(answer)));
  }
  return judge(std::move(answer), "POST " + path);
}

Result<RedfishAnswer> RedfishClient::follow_task(RedfishAnswer accepted) {
  std::string monitor = path_of(header(accepted, "Location"));
  if (monitor.empty()) monitor = path_of(json_text(accepted.body, "@odata.id"));
  RedfishAnswer latest = std::move(accepted);
  while (!monitor.empty() && left() > 0) {
    const int seconds = std::atoi(header(latest, "Retry-After").c_str());  // a date counts as 0
    pause(std::clamp(seconds, 1, 5) * kSecond);
    auto answer = send("GET", monitor, nullptr, {});
    if (!answer.ok() && answer.error().code != Code::denied) continue;
    TRY(latest, std::move(answer));
    if (latest.status == 404 || latest.status == 410)
      return RedfishAnswer{204, nullptr, {}};  // gone: judge by the resource
    if (latest.status / 100 == 5) continue;
    const std::string state = json_text(latest.body, "TaskState");
    if (state == "Exception" || state == "Killed" || state == "Cancelled")
      return fail(Code::failed, fmt::format("BMC {}: its task ended as {}", target_.address, state));
    const bool running = latest.status == 202 || state == "Running" || state == "New" ||
                         state == "Starting" || state == "Pending";
    if (!running) return latest;
  }
  return RedfishAnswer{204, nullptr, {}};  // accepted; what became of it shows in the resource
}

Result<RedfishAnswer> RedfishClient::patch(const std::string& path, const Json& body) {
  TRY(const RedfishAnswer before, get(path));
  const std::string tag = etag_of(before);
  // In turn: its tag; a weak tag as a strong one; any; none. Which of them a BMC takes differs between
  // vendors.
  std::vector<std::string> tries;
  if (!tag.empty()) tries.push_back(tag);
  if (tag.rfind("W/", 0) == 0) tries.push_back(tag.substr(2));
  if (tag.empty()) tries.push_back("");
  tries.push_back(tag.empty() ? "*" : "");
  RedfishAnswer answer;
  for (const std::string& one : tries) {
    const Headers headers = one.empty() ? Headers{} : Headers{{"If-Match", one}};
    TRY(answer, send("PATCH", path, body, headers));
    if (answer.status != 412 && answer.status != 428) break;
  }
  if (answer.status == 412) {  // somebody else changed it since we looked: once more with the tag of now
    TRY(const RedfishAnswer again, get(path));
    if (const std::string fresh = etag_of(again); !fresh.empty() && fresh != tag) {
      TRY(answer, send("PATCH", path, body, {{"If-Match", fresh}}));
    }
  }
  if (answer.status == 202) {
    TRY(answer, follow_task(std::move(answer)));
  }
  return judge(std::move(answer), "PATCH " + path);
}

}  // namespace muster
