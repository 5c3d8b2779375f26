#include "controller/power/redfish.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/http.h"

namespace muster {

std::string_view to_string(PowerState state) {
  return state == PowerState::on ? "on" : state == PowerState::off ? "off" : "unknown";
}

namespace {

constexpr DurationMs kPollEvery = 500;
constexpr DurationMs kBusyRetryEvery = 2 * kSecond;   // "not ready", 409 after power-off, 5xx of a rebooting BMC

class Deadline {
 public:
  explicit Deadline(DurationMs d) : end_(Clock::now() + std::chrono::milliseconds(d)) {}
  DurationMs left() const {
    return std::max<DurationMs>(0, std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now()).count());
  }
  bool over() const { return left() == 0; }
  // Waits at most `d`; false when the deadline came first.
  bool wait(DurationMs d) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(d, left())));
    return !over();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
};

struct Answer {
  int status = 0;
  Json body;
  std::string etag, location;
  bool ok() const { return status >= 200 && status < 300; }
};

// The BMC's own words, for people: the first message of its ExtendedInfo, which some send as an object instead of a list.
std::string words(const Answer& a) {
  const auto text = [](const Json& info) { return info.is_object() ? info.value("Message", info.value("MessageId", "")) : ""; };
  std::string said;
  if (a.body.is_object() && a.body.contains("error") && a.body["error"].is_object()) {
    const Json& error = a.body["error"];
    const Json info = error.value("@Message.ExtendedInfo", Json());
    if (info.is_array() && !info.empty()) said = text(info[0]);
    else said = text(info);
    if (said.empty()) said = error.value("message", "");
  }
  return "HTTP " + std::to_string(a.status) + (said.empty() ? "" : ": " + said);
}

const Json& at(const Json& j, std::initializer_list<const char*> path) {
  static const Json kNull;
  const Json* here = &j;
  for (const char* key : path) {
    if (!here->is_object() || !here->contains(key)) return kNull;
    here = &(*here)[key];
  }
  return *here;
}

std::string string_at(const Json& j, std::initializer_list<const char*> path) {
  const Json& v = at(j, path);
  return v.is_string() ? v.get<std::string>() : "";
}

bool lists(const Json& values, const std::string& wanted) {
  return values.is_array() && std::find(values.begin(), values.end(), Json(wanted)) != values.end();
}

std::string lower(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return s;
}

class Redfish : public Power {
 public:
  explicit Redfish(PowerTarget target) : target_(std::move(target)) {}

  Result<PowerState> state(DurationMs limit) override {
    const Deadline deadline(limit);
    TRY(const Answer system, get_system(deadline));
    return state_of(system.body);
  }

  Status on(DurationMs limit) override {
    const Deadline deadline(limit);
    return change(true, deadline, {"On", "ForceOn", "PushPowerButton"});
  }

  Status off(DurationMs limit, bool graceful) override {
    const Deadline deadline(limit);
    if (graceful) {
      const Deadline polite(limit / 2);
      if (change(false, polite, {"GracefulShutdown", "PushPowerButton"}).ok()) return Ok{};
    }
    return change(false, deadline, {"ForceOff"});
  }

  Status boot_once_network(DurationMs limit) override {
    const Deadline deadline(limit);
    while (true) {
      TRY(const Answer system, get_system(deadline));
      Status done = set_boot(system, deadline);
      // During POST some refuse for a while; nothing was changed, so asking again is safe.
      if (done.ok() || done.error().code != Code::unavailable || !deadline.wait(kBusyRetryEvery)) return done;
    }
  }

  Result<Json> describe(DurationMs limit) override {
    const Deadline deadline(limit);
    TRY(const Answer root, call("GET", "/redfish/v1/", nullptr, "", deadline));
    TRY(const Answer system, get_system(deadline));
    TRY(const Json resets, reset_types(system.body, deadline));
    const auto state = state_of(system.body);
    return Json{{"vendor", root.body.value("Vendor", "")},
                {"redfish", root.body.value("RedfishVersion", "")},
                {"manufacturer", string_at(system.body, {"Manufacturer"})},
                {"model", string_at(system.body, {"Model"})},
                {"serial", string_at(system.body, {"SerialNumber"})},
                {"uuid", lower(string_at(system.body, {"UUID"}))},
                {"bios", string_at(system.body, {"BiosVersion"})},
                {"power", to_string(state)},
                {"reset_types", resets},
                {"boot", at(system.body, {"Boot"})},
                {"certificate", pin_}};
  }

 private:
  // ---- transport ----

  Status connect() {
    if (client_) return Ok{};
    HttpClientOptions options;
    options.base = "https://" + target_.address + (target_.address.find(':') == std::string::npos ? ":443" : "");
    options.keep_alive = false;
    options.basic_user = target_.user;
    options.basic_password = target_.password;
    pin_ = target_.pin_sha256;
    if (pin_.empty()) {
      // First use: look at the certificate without sending the password, then pin it.
      HttpClientOptions look = options;
      look.basic_user.clear();
      look.basic_password.clear();
      look.insecure_first_use = true;
      TRY(auto looker, make_http_client(look));
      TRY(const auto seen, looker->request({"GET", "/redfish/v1/"}, 20 * kSecond));
      (void)seen;
      pin_ = looker->peer_fingerprint();
      if (target_.on_pin) target_.on_pin(pin_);
    }
    options.pin_sha256 = pin_;
    TRY(client_, make_http_client(options));
    return Ok{};
  }

  // 5xx to a GET is asked again until the deadline; to anything else it is `unavailable` (BMCs answer 503 before they act).
  Result<Answer> call(const std::string& method, const std::string& path, const Json& body, const std::string& etag,
                      const Deadline& deadline) {
    while (true) {
      auto answer = call_once(method, path, body, etag, deadline);
      const bool busy = answer.ok() ? answer->status >= 500 : answer.error().code == Code::unavailable;
      if (!busy || method != "GET" || !deadline.wait(kBusyRetryEvery)) {
        if (answer.ok() && answer->status >= 500)
          return fail(Code::unavailable, "the BMC at " + target_.address + " is not ready: " + words(*answer));
        if (answer.ok() && (answer->status == 401 || answer->status == 403))
          return fail(Code::denied, "the BMC at " + target_.address + " refuses user '" + target_.user + "': " + words(*answer));
        return answer;
      }
    }
  }

  Result<Answer> call_once(const std::string& method, const std::string& path, const Json& body, const std::string& etag,
                           const Deadline& deadline) {
    if (deadline.over()) return fail(Code::unavailable, "the BMC at " + target_.address + " did not answer in time");
    TRY_(connect());
    HttpRequest request{method, path};
    request.headers["Accept"] = "application/json";
    request.headers["OData-Version"] = "4.0";
    if (!etag.empty()) request.headers["If-Match"] = etag;
    if (!body.is_null()) {
      request.headers["Content-Type"] = "application/json";
      request.body = body.dump();
    }
    auto response = client_->request(request, std::min<DurationMs>(deadline.left(), 60 * kSecond));
    if (!response.ok()) return std::move(response).error().with("BMC " + target_.address);
    Answer a;
    a.status = response->status;
    if (const auto h = response->headers.find("ETag"); h != response->headers.end()) a.etag = h->second;
    if (const auto h = response->headers.find("Location"); h != response->headers.end()) a.location = h->second;
    if (auto json = parse_json(response->body); json.ok()) a.body = *json;
    if (a.etag.empty()) a.etag = string_at(a.body, {"@odata.etag"});
    return a;
  }

  Result<Answer> get(const std::string& path, const Deadline& deadline) {
    TRY(Answer a, call("GET", path, nullptr, "", deadline));
    if (!a.ok()) return fail(Code::failed, "GET " + path + ": " + words(a));
    return a;
  }

  // ---- the system ----

  Result<Answer> get_system(const Deadline& deadline) {
    if (system_path_.empty()) TRY_(find_system(deadline));
    return get(system_path_, deadline);
  }

  Status find_system(const Deadline& deadline) {
    TRY(const Answer root, get("/redfish/v1/", deadline));
    const std::string systems = string_at(root.body, {"Systems", "@odata.id"});
    if (systems.empty()) return fail(Code::invalid, "the BMC at " + target_.address + " shows no Systems");
    TRY(const Answer members, get(systems, deadline));
    std::vector<std::pair<std::string, std::string>> found;   // path, uuid
    for (const Json& member : members.body.value("Members", Json::array())) {
      const std::string path = string_at(member, {"@odata.id"});
      if (path.empty()) continue;
      TRY(const Answer system, get(path, deadline));
      if (!string_at(system.body, {"Actions", "#ComputerSystem.Reset", "target"}).empty())
        found.emplace_back(path, lower(string_at(system.body, {"UUID"})));
    }
    if (found.empty()) return fail(Code::invalid, "the BMC at " + target_.address + " shows no system that can be reset");
    const std::string expected = lower(target_.expected_uuid);
    if (found.size() == 1) {
      // A wrong cable or a re-used address must not power off somebody else's machine.
      if (!expected.empty() && !found[0].second.empty() && found[0].second != expected)
        return fail(Code::denied, "the BMC at " + target_.address + " belongs to machine " + found[0].second + ", but " +
                                      target_.node + " is machine " + expected);
      system_path_ = found[0].first;
      return Ok{};
    }
    for (const auto& [path, uuid] : found)
      if (!expected.empty() && uuid == expected) system_path_ = path;
    if (!system_path_.empty()) return Ok{};
    return fail(Code::denied, "the BMC at " + target_.address + " shows " + std::to_string(found.size()) +
                                  " systems and none is known to be " + target_.node);
  }

  static PowerState state_of(const Json& system) {
    const std::string word = string_at(system, {"PowerState"});
    if (word == "On") return PowerState::on;
    return word == "Off" ? PowerState::off : PowerState::unknown;   // only a settled Off is off
  }

  // ---- power ----

  Result<Json> reset_types(const Json& system, const Deadline& deadline) {
    const Json& action = at(system, {"Actions", "#ComputerSystem.Reset"});
    if (action.contains("ResetType@Redfish.AllowableValues")) return action["ResetType@Redfish.AllowableValues"];
    const std::string info = string_at(action, {"@Redfish.ActionInfo"});
    if (info.empty()) return Json();
    TRY(const Answer a, get(info, deadline));
    for (const Json& parameter : a.body.value("Parameters", Json::array()))
      if (string_at(parameter, {"Name"}) == "ResetType") return parameter.value("AllowableValues", Json());
    return Json();
  }

  Status change(bool to_on, const Deadline& deadline, const std::vector<std::string>& preferred) {
    const PowerState wanted = to_on ? PowerState::on : PowerState::off;
    while (true) {
      TRY(const Answer system, get_system(deadline));
      if (state_of(system.body) == wanted) return Ok{};
      TRY(const Json allowed, reset_types(system.body, deadline));
      std::string type;
      for (const auto& p : preferred)
        if (type.empty() && (allowed.is_null() || lists(allowed, p))) type = p;
      if (type.empty()) return fail(Code::invalid, "the BMC at " + target_.address + " offers none of " + Json(preferred).dump());
      const std::string action = string_at(system.body, {"Actions", "#ComputerSystem.Reset", "target"});
      TRY(const Answer a, call("POST", action, Json{{"ResetType", type}}, "", deadline));
      const bool in_the_way = a.status == 409 || a.status == 400;   // in that state already, just powered off, or in POST
      if (!a.ok() && !in_the_way) return fail(Code::failed, type + ": " + words(a));
      const auto settled = wait_for(wanted, deadline, a.ok() ? deadline.left() : kBusyRetryEvery);
      if (settled.ok()) return Ok{};
      if (deadline.over())
        return a.ok() ? settled.error() : fail(Code::failed, type + " was refused until the deadline: " + words(a));
    }
  }

  // Success is a state that was read, not an accepted request: tasks vanish and BMCs promise what they do not do.
  Status wait_for(PowerState wanted, const Deadline& deadline, DurationMs at_most) {
    const Deadline here(std::min(at_most, deadline.left()));
    while (true) {
      TRY(const Answer system, get_system(deadline));
      if (state_of(system.body) == wanted) return Ok{};
      if (!here.wait(kPollEvery))
        return fail(Code::timeout, "the BMC accepted the request, but the power state is still '" +
                                       string_at(system.body, {"PowerState"}) + "', not " + std::string(to_string(wanted)));
    }
  }

  // ---- boot once ----

  Status set_boot(const Answer& system, const Deadline& deadline) {
    const std::string settings_path = string_at(system.body, {"@Redfish.Settings", "SettingsObject", "@odata.id"});
    Answer resource = system;
    std::string path = system_path_;
    if (!settings_path.empty()) {
      TRY(const Answer settings, get(settings_path, deadline));
      if (!at(settings.body, {"Boot", "BootSourceOverrideTarget"}).is_null() ||
          !at(settings.body, {"Boot", "BootSourceOverrideTarget@Redfish.AllowableValues"}).is_null()) {
        resource = settings;
        path = settings_path;
      }
    }
    const Json* targets = &at(resource.body, {"Boot", "BootSourceOverrideTarget@Redfish.AllowableValues"});
    if (targets->is_null()) targets = &at(system.body, {"Boot", "BootSourceOverrideTarget@Redfish.AllowableValues"});
    if (targets->is_array() && !lists(*targets, "Pxe"))
      return fail(Code::invalid, "the BMC at " + target_.address + " does not offer the boot target Pxe");
    const Json full = {{"BootSourceOverrideEnabled", "Once"}, {"BootSourceOverrideTarget", "Pxe"}, {"BootSourceOverrideMode", "UEFI"}};
    Json less = full;
    less.erase("BootSourceOverrideMode");   // HPE: Mode is not writable
    Answer last;
    for (const Json& boot : {full, less}) {
      TRY(last, patch(path, Json{{"Boot", boot}}, resource.etag, deadline));
      if (last.ok()) return read_back(path, deadline);
      if (last.status != 400 && last.status != 405) break;
    }
    const bool post = words(last).find("POST") != std::string::npos || last.status == 409;
    return fail(post ? Code::unavailable : Code::failed, "boot once from the network was refused: " + words(last));
  }

  // The ETag of the resource being written; then a weak tag as a strong one, then none.
  Result<Answer> patch(const std::string& path, const Json& body, const std::string& etag, const Deadline& deadline) {
    std::vector<std::string> tags = {etag};
    if (etag.rfind("W/", 0) == 0) tags.push_back(etag.substr(2));
    if (!etag.empty()) tags.emplace_back();
    tags.emplace_back("*");   // 428 from one that showed no tag
    Answer answer;
    for (const auto& tag : tags) {
      TRY(answer, call("PATCH", path, body, tag, deadline));
      if (answer.status != 412 && answer.status != 428) break;
    }
    return answer;
  }

  Status read_back(const std::string& path, const Deadline& deadline) {
    TRY(const Answer now, get(path, deadline));
    const std::string target = string_at(now.body, {"Boot", "BootSourceOverrideTarget"});
    const std::string enabled = string_at(now.body, {"Boot", "BootSourceOverrideEnabled"});
    if ((target == "Pxe" || target == "UefiBootNext") && enabled == "Once") return Ok{};
    return fail(Code::failed, "the BMC accepted boot-once from the network, but shows '" + enabled + " " + target + "'");
  }

  PowerTarget target_;
  std::string pin_, system_path_;
  std::unique_ptr<HttpClient> client_;
};

}  // namespace

PowerDriver redfish_driver() {
  return {"redfish", "A BMC that speaks Redfish over HTTPS: power, and boot once from the network. Needs address and secret "
                     "(user:password); the certificate is pinned on first use.",
          [](PowerTarget target) -> Result<std::unique_ptr<Power>> {
            if (target.address.empty()) return fail(Code::invalid, "redfish: no address");
            return std::unique_ptr<Power>(std::make_unique<Redfish>(std::move(target)));
          }};
}

}  // namespace muster
