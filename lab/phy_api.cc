#include "lab/phy_api.h"

#include <algorithm>

#include "base/digest.h"
#include "base/json_dump.h"

namespace muster::lab {
namespace {

constexpr const char* kBase = "/cloud/api/dedicated-phy/1.0/";
constexpr DurationMs kHour = 60 * kMinute;

HttpResponse json_answer(int status, const Json& body) { return HttpResponse::json(status, dump_json(body)); }

HttpResponse problem(int status, const std::string& title, const std::string& detail) {
  Json body = {{"type", "about:blank"}, {"title", title}, {"detail", detail}, {"status", status}};
  if (status == 400) body["invalid_parameters"] = nullptr;
  return json_answer(status, body);
}
HttpResponse invalid(const std::string& field, const std::string& code) {
  Json body = {
      {"type", "about:blank"}, {"title", "invalid"}, {"detail", "invalid parameter"}, {"status", 400}};
  body["invalid_parameters"][field] = Json::array({{{"code", code}, {"message", code}}});
  return json_answer(400, body);
}
HttpResponse not_found() { return problem(404, "not_found", "not found"); }

bool is_id(const std::string& text) {
  return text.size() == 12 && text.find_first_not_of("0123456789") == std::string::npos;
}

// True for 8 to 32 letters, digits and punctuation, with at least one letter and one digit.
bool is_password(const std::string& text) {
  const auto any = [&](int (*kind)(int)) {
    return std::any_of(text.begin(), text.end(), [&](unsigned char c) { return kind(c) != 0; });
  };
  const bool plain =
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  return text.size() >= 8 && text.size() <= 32 && plain && any(isalpha) && any(isdigit);
}

int number(const HttpRequest& request, const char* key, int otherwise) {
  const auto found = request.query.find(key);
  if (found == request.query.end() || found->second.empty() || found->second.size() > 6 ||
      found->second.find_first_not_of("0123456789") != std::string::npos)
    return otherwise;
  return std::stoi(found->second);
}

}  // namespace

PhyApi::PhyApi(std::string token, std::string secret, Images images, Clock now)
    : token_(std::move(token)),
      secret_(std::move(secret)),
      images_(std::move(images)),
      now_(std::move(now)) {}

void PhyApi::add(PhyMachine machine) {
  const std::lock_guard hold(mutex_);
  const std::string id = machine.id;
  servers_[id].of = std::move(machine);
}

void PhyApi::change(const std::function<void(PhyManners&)>& manners) {
  const std::lock_guard hold(mutex_);
  advance_locked();  // orders that are due still follow the previous settings
  manners(manners_);
}

int PhyApi::installs(const std::string& id) {
  const std::lock_guard hold(mutex_);
  return servers_[id].installs;
}
int PhyApi::orders(const std::string& id) {
  const std::lock_guard hold(mutex_);
  return servers_[id].ordered;
}
int PhyApi::served() {
  const std::lock_guard hold(mutex_);
  return served_;
}

void PhyApi::advance() {
  const std::lock_guard hold(mutex_);
  advance_locked();
}

void PhyApi::advance_locked() {
  for (auto& [id, server] : servers_) pass(server);
}

void PhyApi::pass(Server& server) {
  const TimeMs now = now_();
  Machine& machine = *server.of.machine;
  while (!server.orders.empty() && server.orders.front().due <= now) {
    const std::string operation = server.orders.front().operation;
    server.orders.pop_front();
    if (operation == "on") machine.start();
    if (operation == "off") machine.cut_power();
    if (operation == "soft") machine.press_power();
    if (operation == "reset") machine.reset();
  }
  if (server.install && !server.install->begun && now >= server.install->locks) {
    server.install->begun = true;
    machine.cut_power();
  }
  if (server.install && now >= server.install->ends) finish(server);
  if (manners_.cache_every > 0 && now - server.remembered_at >= manners_.cache_every) remember(server);
}

void PhyApi::finish(Server& server) {
  const Install install = *server.install;
  server.install.reset();
  if (!manners_.installs_nothing && server.of.install) server.of.install(install.image, install.keys);
  if (!manners_.leaves_off) server.of.machine->start();
}

void PhyApi::remember(Server& server) {
  server.remembered = server.of.machine->running() ? "on" : "off";
  server.remembered_at = now_();
}

std::string PhyApi::lock_of(const Server& server) const {
  if (manners_.locked_by_people) return "administrative_lock";
  const bool shown = server.install && server.install->begun && !manners_.shows_no_lock;
  return shown ? "os_install" : "";
}

// Returns a server's resource. Its network settings, as in the real API, have nulls where the description
// promises lists, and a speed that the description does not list.
Json PhyApi::show(const Server& server) const {
  const std::string lock = lock_of(server);
  const std::string& address = server.of.address;
  Json out = {
      {"server_id", server.of.id},
      {"service",
       {{"service_id", server.of.id},
        {"nickname", server.of.nickname},
        {"description", nullptr},
        {"activated", "2026-01-01T00:00:00+09:00"},
        {"tags", Json::array()}}},
      {"zone", {{"zone_id", 303}, {"region", "lab"}}},
      {"spec", {{"cpu_model_name", "lab"}, {"cpu_count", 1}, {"cpu_clock_speed", 2.1}, {"memory_size", 1}}},
      {"port_channels",
       {{{"port_channel_id", 1},
         {"bonding_type", "single"},
         {"ports", {11}},
         {"locked", false},
         {"link_speed_type", "100gbe"}}}},
      {"ports",
       {{{"port_id", 11},
         {"nickname", "port0"},
         {"port_channel_id", 1},
         {"mode", "access"},
         {"enabled", true},
         {"internet", nullptr},
         {"private_networks", nullptr}}}}};
  out["cached_power_status"] = server.remembered.empty() ? Json()
                                                         : Json{{"status", server.remembered},
                                                                {"stored", to_iso8601(server.remembered_at)}};
  out["ipv4"] = address.empty() ? Json() : Json{{"type", "common_ip_address"}, {"ip_address", address}};
  out["lock_status"] = lock.empty() ? Json() : Json(lock);
  return out;
}

std::optional<HttpResponse> PhyApi::refuse_unknown(const HttpRequest& request) {
  const auto given = request.headers.find("Authorization");
  const std::string right = "Basic " + to_base64(token_ + ":" + secret_);
  if (given != request.headers.end() && constant_time_equal(given->second, right)) return std::nullopt;
  return json_answer(
      401,
      {{"status", "401 Unauthorized"}, {"error_code", "unauthorized"}, {"error_msg", "error-unauthorized"}});
}

std::optional<HttpResponse> PhyApi::throttle() {
  const TimeMs now = now_();
  while (!request_times_.empty() && request_times_.front() <= now - kHour) request_times_.pop_front();
  DurationMs after = 0;
  if (manners_.throttled > 0) {
    --manners_.throttled;
    after = manners_.retry_after;
  } else if (static_cast<int>(request_times_.size()) >= manners_.quota) {
    after = request_times_.front() + kHour - now;
  } else {
    request_times_.push_back(now);
    return std::nullopt;
  }
  HttpResponse answer = problem(429, "throttled", "too many requests");
  answer.headers["Retry-After"] = std::to_string((after + kSecond - 1) / kSecond);
  return answer;
}

std::optional<HttpResponse> PhyApi::locked(Server& server) {
  if (manners_.conflicts > 0) {
    --manners_.conflicts;
    return problem(409, "conflict", "another task is running");
  }
  const bool installing = server.install && server.install->begun;
  if (lock_of(server).empty() && !installing) return std::nullopt;
  return problem(409, "conflict", "the server is locked");
}

HttpResponse PhyApi::handle(const HttpRequest& request) {
  const std::lock_guard hold(mutex_);
  ++served_;
  advance_locked();
  HttpResponse answer = dispatch(request);
  advance_locked();
  return answer;
}

HttpResponse PhyApi::dispatch(const HttpRequest& request) {
  if (auto refused = refuse_unknown(request)) return *refused;
  if (auto refused = throttle()) return *refused;
  const std::string& path = request.path;
  const bool ours = path.starts_with(kBase) && path.back() == '/';
  if (!ours) return HttpResponse::text(404, "Not Found");
  const bool get = request.method == "GET";
  if (!get && request.headers.find("X-Requested-With") == request.headers.end())
    return problem(400, "invalid", "X-Requested-With is missing");
  std::vector<std::string> parts;
  for (size_t from = std::string(kBase).size(), to; (to = path.find('/', from)) != std::string::npos;
       from = to + 1)
    parts.push_back(path.substr(from, to - from));
  if (parts.empty() || parts[0] != "servers") return not_found();
  if (parts.size() == 1) return get ? list(request) : problem(405, "method_not_allowed", "");
  const auto found = servers_.find(parts[1]);
  if (!is_id(parts[1]) || found == servers_.end()) return not_found();
  Server& server = found->second;
  if (parts.size() == 2 && get) return json_answer(200, {{"server", show(server)}});
  if (parts.size() != 3) return not_found();
  if (get && parts[2] == "os_images") return images();
  if (get && parts[2] == "power_status") return power_status(server);
  if (!get && parts[2] == "power_control") return power_control(server, request);
  if (!get && parts[2] == "os_install") return os_install(server, request);
  return not_found();
}

HttpResponse PhyApi::list(const HttpRequest& request) {
  const TimeMs now = now_();
  if (listed_.is_null() || now - listed_at_ >= manners_.list_age) {
    listed_ = Json::array();
    for (const auto& [id, server] : servers_) listed_.push_back(show(server));
    listed_at_ = now;
  }
  const int limit = number(request, "limit", 10), offset = number(request, "offset", 0);
  Json page = Json::array();
  for (int i = offset; i < static_cast<int>(listed_.size()) && i < offset + limit; ++i)
    page.push_back(listed_[static_cast<size_t>(i)]);
  return json_answer(200, {{"meta", {{"count", listed_.size()}}}, {"servers", page}});
}

HttpResponse PhyApi::images() const {
  Json all = Json::array();
  for (const PhyImage& image : images_())
    all.push_back({{"os_image_id", image.id},
                   {"name", image.name},
                   {"require_password", image.needs_password},
                   {"manual_partition", true},
                   {"superuser_name", image.superuser},
                   {"public_key_authentication", image.keys}});
  return json_answer(200, {{"os_images", all}});
}

HttpResponse PhyApi::power_status(Server& server) {
  if (manners_.unreadable_power > 0) {
    --manners_.unreadable_power;
    return problem(503, "temporary_unavailable", "power status could not be read");
  }
  remember(server);
  return json_answer(200, {{"power_status", {{"status", server.remembered}}}});
}

// Returns the 204 response; if `lost`, an unreadable one, as when the connection breaks.
HttpResponse PhyApi::accepted(bool lost) {
  if (lost) return HttpResponse::text(500, "internal server error");
  HttpResponse answer;
  answer.status = 204;
  return answer;
}

HttpResponse PhyApi::power_control(Server& server, const HttpRequest& request) {
  const Json body = parse_json(request.body).value_or(nullptr);
  if (!body.is_object()) return problem(400, "parse_error", "the body is not a JSON object");
  const auto operation = body.find("operation");
  if (operation == body.end()) return invalid("operation", "required");
  if (*operation != "on" && *operation != "off" && *operation != "soft" && *operation != "reset")
    return invalid("operation", "invalid_choice");
  if (auto refused = locked(server)) return *refused;
  if (manners_.lost_orders > 0) {
    --manners_.lost_orders;
    return accepted(true);
  }
  ++server.ordered;
  if (!manners_.ignores_orders)
    server.orders.push_back({operation->get<std::string>(), now_() + manners_.power_lag});
  const bool lost = manners_.lost_answers > 0;
  manners_.lost_answers -= lost;
  return accepted(lost);
}

HttpResponse PhyApi::os_install(Server& server, const HttpRequest& request) {
  const Json body = parse_json(request.body).value_or(nullptr);
  if (!body.is_object()) return problem(400, "parse_error", "the body is not a JSON object");
  const auto at = [&](const char* key) { return body.contains(key) ? body.at(key) : Json(); };
  if (!at("os_image_id").is_string()) return invalid("os_image_id", "required");
  if (body.contains("manual_partition") && !at("manual_partition").is_boolean())
    return invalid("manual_partition", "invalid");
  const auto all = images_();
  const auto image =
      std::find_if(all.begin(), all.end(), [&](const PhyImage& one) { return one.id == at("os_image_id"); });
  if (image == all.end()) return not_found();
  const Json password = at("password"), keys = at("ssh_public_keys");
  if (image->needs_password && password.is_null()) return invalid("password", "required");
  if (!password.is_null() && (!password.is_string() || !is_password(password.get<std::string>())))
    return invalid("password", "invalid");
  if (body.contains("ssh_public_keys") && (!keys.is_array() || keys.size() > 20))
    return invalid("ssh_public_keys", "invalid");
  std::vector<std::string> given;
  for (const Json& key : keys.is_array() ? keys : Json::array()) {
    if (!key.is_string() || !key.get<std::string>().starts_with("ssh-"))
      return invalid("ssh_public_keys", "invalid");
    given.push_back(key.get<std::string>());
  }
  if (at("allow_password_login") == false && given.empty()) return invalid("ssh_public_keys", "required");
  if (auto refused = locked(server)) return *refused;
  if (manners_.lost_orders > 0) {
    --manners_.lost_orders;
    return accepted(true);
  }
  ++server.installs;
  if (!manners_.ignores_orders) {
    const TimeMs locks = now_() + manners_.lock_after;
    server.install = Install{image->id, given, locks, locks + manners_.install_takes};
  }
  const bool lost = manners_.lost_answers > 0;
  manners_.lost_answers -= lost;
  return accepted(lost);
}

}  // namespace muster::lab
