#include "lab/bmc.h"

#include "base/digest.h"
#include "base/json_at.h"
#include "base/json_dump.h"
#include "base/split.h"

namespace muster::lab {
namespace {

constexpr const char* kSessions = "/redfish/v1/SessionService/Sessions";

HttpResponse json_response(const Json& body, bool with_etag) {
  auto response = HttpResponse::json(200, dump_json(body));
  if (with_etag) response.headers["ETag"] = etag_of(body);
  return response;
}

HttpResponse not_allowed(const std::string& allow) {
  auto response =
      redfish_error(405, "OperationNotAllowed", "The HTTP method is not allowed on this resource.");
  response.headers["Allow"] = allow;
  return response;
}

std::string header(const HttpRequest& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

}  // namespace

HttpResponse redfish_error(int status, const std::string& message_id, const std::string& text,
                           const std::vector<std::string>& args) {
  const auto id = (message_id.find('.') == std::string::npos ? "Base.1.13." : "") + message_id;
  const Json info = {{"@odata.type", "#Message.v1_1_2.Message"},
                     {"MessageId", id},
                     {"Message", text},
                     {"MessageArgs", args},
                     {"Severity", "Critical"},
                     {"Resolution", "None"}};
  const Json body = {
      {"error", {{"code", id}, {"message", text}, {"@Message.ExtendedInfo", Json::array({info})}}}};
  return HttpResponse::json(status, dump_json(body));
}

std::string etag_of(const Json& resource) { return "\"" + sha256(dump_json(resource)).substr(7, 12) + "\""; }

Bmc::Bmc(BmcProfile profile, BmcIdentity identity, std::string user, std::string password, Machine& machine,
         Clock now)
    : profile_(std::move(profile)),
      identity_(std::move(identity)),
      user_(std::move(user)),
      password_(std::move(password)),
      machine_(machine),
      now_(std::move(now)) {
  machine_.on_boot([this] { booted(); });
}

HttpResponse Bmc::handle(const HttpRequest& request) {
  std::lock_guard lock(mutex_);
  ++served_;
  HttpResponse response;
  if (now_() < fail_until_) {
    response = redfish_error(503, "ServiceTemporarilyUnavailable",
                             "The service is temporarily unavailable. Retry in 2 seconds.", {"2"});
    response.headers["Retry-After"] = "2";
  } else {
    // "/redfish/v1/Systems/" and "/redfish/v1/Systems" are the same resource.
    response = dispatch(request, without_trailing_slashes(request.path));
  }
  response.headers["OData-Version"] = "4.0";
  response.headers["Cache-Control"] = "no-store";
  return response;
}

HttpResponse Bmc::dispatch(const HttpRequest& request, const std::string& path) {
  const bool read = request.method == "GET" || request.method == "HEAD";
  if (read && path == "/redfish") return json_response({{"v1", "/redfish/v1/"}}, false);
  if (read && path == "/redfish/v1") return json_response(service_root(), profile_.etag != EtagRule::none);
  if (request.method == "POST" && path == kSessions) return create_session(request);
  if (!authorised(request)) {
    auto response = redfish_error(401, "NoValidSession", "There is no valid session established.");
    if (profile_.basic) response.headers["WWW-Authenticate"] = "Basic realm=\"" + profile_.product + "\"";
    return response;
  }
  if (request.method == "POST" && path == system_path() + "/Actions/ComputerSystem.Reset")
    return reset_action(request);
  if (!profile_.second_away_while_off.empty() && path == "/redfish/v1/Systems/" + profile_.second_system &&
      !machine_.running())
    return redfish_error(503, profile_.second_away_while_off,
                         "The communication with the HMC failed. Retry in 60 seconds.", {"60"});
  if (path.starts_with("/redfish/v1/TaskService/"))
    if (auto answer = task(path)) return *answer;
  auto found = resource(path);
  if (!found)
    return redfish_error(404, "ResourceMissingAtURI", "The resource at the URI " + path + " was not found.",
                         {path});
  if (read) return json_response(*found, profile_.etag != EtagRule::none);
  if (request.method == "PATCH" && (path == system_path() || path == settings_path()))
    return patch_system(request, path);
  if (request.method == "DELETE" && path.starts_with(std::string(kSessions) + "/"))
    return delete_session(path.substr(std::string(kSessions).size() + 1));
  return not_allowed(path == system_path() || path == settings_path() ? "GET, HEAD, PATCH" : "GET, HEAD");
}

bool Bmc::authorised(const HttpRequest& request) {
  drop_idle_sessions();
  const auto token = header(request, "X-Auth-Token");
  if (!token.empty()) {
    for (auto& [id, session] : sessions_) {
      if (!constant_time_equal(session.token, token)) continue;
      session.used = now_();
      return true;
    }
    return false;
  }
  const auto basic = header(request, "Authorization");
  if (!profile_.basic || !basic.starts_with("Basic ")) return false;
  const auto plain = from_base64(basic.substr(6)).value_or("");
  const auto colon = std::min(plain.find(':'), plain.size());
  return right(plain.substr(0, colon), plain.substr(std::min(colon + 1, plain.size())));
}

// Counts failed logins. A locked account also rejects the correct password.
bool Bmc::right(const std::string& user, const std::string& password) {
  if (now_() < locked_until_) return false;
  if (constant_time_equal(user + ":" + password, user_ + ":" + password_)) {
    failed_in_a_row_ = 0;
    return true;
  }
  ++failed_logins_;
  if (++failed_in_a_row_ == profile_.lock_after) {
    failed_in_a_row_ = 0;
    locked_until_ = now_() + profile_.lock_time;
  }
  return false;
}

HttpResponse Bmc::create_session(const HttpRequest& request) {
  auto body = parse_json(request.body);
  if (!body || !body->is_object())
    return redfish_error(400, "MalformedJSON", "The request body was malformed JSON.");
  if (!right(text_at(*body, "UserName"), text_at(*body, "Password")))
    return redfish_error(401, "ResourceAtUriUnauthorized", "The user name or password is wrong.");
  drop_idle_sessions();
  if (static_cast<int>(sessions_.size()) >= profile_.session_limit)
    return redfish_error(
        503, "SessionLimitExceeded",
        "The session establishment failed due to the number of simultaneous sessions exceeding the limit.");
  const auto id = std::to_string(++last_session_);
  const Session session{random_hex(16), now_()};
  sessions_[id] = session;
  auto response = HttpResponse::json(201, dump_json(*resource(std::string(kSessions) + "/" + id)));
  response.headers["X-Auth-Token"] = session.token;
  if (profile_.session_location) response.headers["Location"] = std::string(kSessions) + "/" + id;
  return response;
}

HttpResponse Bmc::delete_session(const std::string& id) {
  sessions_.erase(id);
  return HttpResponse{.status = 204};
}

void Bmc::drop_idle_sessions() {
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    const bool idle = now_() - it->second.used > profile_.session_idle;
    it = idle ? sessions_.erase(it) : std::next(it);
  }
}

void Bmc::booted() {
  std::lock_guard lock(mutex_);
  post_until_ = now_() + profile_.post_time;
  if (next_.enabled == "Once") {
    const auto mode = next_.mode;
    next_ = Override{};
    next_.mode = mode;
  }
  current_ = next_;
  machine_.set_boot_first(next_.network_next() ? BootFirst::network : BootFirst::disk);
}

void Bmc::fail_until(TimeMs until) {
  std::lock_guard lock(mutex_);
  fail_until_ = until;
}

std::string Bmc::override_text() {
  std::lock_guard lock(mutex_);
  return next_.enabled == "Disabled" ? next_.enabled : next_.enabled + " " + next_.target;
}

int Bmc::failed_logins() {
  std::lock_guard lock(mutex_);
  return failed_logins_;
}

void Bmc::forget_sessions() {
  std::lock_guard lock(mutex_);
  sessions_.clear();
}

int Bmc::requests_served() {
  std::lock_guard lock(mutex_);
  return served_;
}

}  // namespace muster::lab
