// The part of Bmc that changes the machine: boot override and reset; and IPMI's way to it: ipmi_sim's chassis
// control, "get NAME..." and "set NAME VALUE...".
#include <fmt/format.h>

#include <algorithm>

#include "base/json_dump.h"
#include "lab/bmc.h"

namespace muster::lab {
namespace {

bool contains(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

HttpResponse not_in_list(const std::string& property, const std::string& value) {
  return redfish_error(
      400, "PropertyValueNotInList",
      fmt::format("The value '{}' for the property {} is not in the list of acceptable values.", value,
                  property),
      {value, property});
}

HttpResponse missing(const std::string& property) {
  return redfish_error(400, "PropertyMissing",
                       fmt::format("The property {} is a required property and must be included.", property),
                       {property});
}

HttpResponse malformed() {
  return redfish_error(400, "MalformedJSON", "The request body was malformed JSON.");
}

}  // namespace

std::optional<HttpResponse> Bmc::check_etag(const HttpRequest& request, const std::string& path) {
  if (profile_.etag == EtagRule::none) return std::nullopt;
  const auto found = request.headers.find("If-Match");
  if (found == request.headers.end()) {
    if (profile_.etag != EtagRule::required) return std::nullopt;
    return redfish_error(428, "Ami.1.0.PreconditionHeaderMissing",
                         "A precondition header (If-Match) is required on this resource.");
  }
  const auto current = resource(path);
  if (found->second == "*" || (current && found->second == etag_of(*current))) return std::nullopt;
  return redfish_error(412, "PreconditionFailed",
                       "The ETag supplied did not match the current one of the resource.");
}

HttpResponse Bmc::patch_system(const HttpRequest& request, const std::string& path) {
  if (auto refused = check_etag(request, path)) return *refused;
  auto body = parse_json(request.body);
  if (!body || !body->is_object()) return malformed();
  for (const auto& [key, value] : body->items())
    if (key != "Boot")
      return redfish_error(400, "PropertyUnknown",
                           "The property " + key + " is not in the list of valid properties.", {key});
  if (!body->contains("Boot") || !(*body)["Boot"].is_object()) return missing("Boot");
  const auto& boot = (*body)["Boot"];
  if (!profile_.settings_id.empty() && path == system_path())
    return redfish_error(400, "PropertyNotWritable",
                         "The property Boot is read only here and must be written to the settings object.",
                         {"Boot"});
  if (machine_.running() && now_() < post_until_)
    return redfish_error(400, "iLO.2.15.UnableToModifyDuringSystemPOST",
                         "This property cannot be modified while the system is in POST. Retry after POST.");
  Override next = next_;
  if (auto refused = change_override(boot, next)) return *refused;
  next_ = next;
  if (profile_.settings_id.empty()) current_ = next_;
  machine_.set_boot_first(next_.network_next() ? BootFirst::network : BootFirst::disk);
  return HttpResponse{.status = 204};
}

std::optional<HttpResponse> Bmc::change_override(const Json& boot, Override& next) const {
  const std::map<std::string, std::pair<std::string*, const std::vector<std::string>*>> fields = {
      {"BootSourceOverrideTarget", {&next.target, &profile_.boot_targets}},
      {"BootSourceOverrideEnabled", {&next.enabled, &profile_.boot_enabled}},
      {"BootSourceOverrideMode", {&next.mode, &profile_.boot_modes}},
      {"HttpBootUri", {&next.http_uri, nullptr}},
  };
  for (const auto& [key, value] : boot.items()) {
    const auto field = fields.find(key);
    const bool mode = key == "BootSourceOverrideMode";
    if (mode && !profile_.mode_writable)
      return redfish_error(400, "PropertyNotWritable", "The property " + key + " is read only.", {key});
    if (field == fields.end() || (mode && profile_.boot_modes.empty()))
      return redfish_error(400, "PropertyUnknown",
                           "The property " + key + " is not in the list of valid properties.", {key});
    if (!value.is_string())
      return redfish_error(400, "PropertyValueTypeError",
                           "The value of " + key + " is of a different type than the property can accept.",
                           {dump_json(value), key});
    const auto text = value.get<std::string>();
    if (field->second.second && !contains(*field->second.second, text)) return not_in_list(key, text);
    *field->second.first = text;
  }
  if (profile_.full_boot_request)
    for (const auto* key :
         {"BootSourceOverrideTarget", "BootSourceOverrideEnabled", "BootSourceOverrideMode"})
      if (!boot.contains(key)) return missing(key);
  if (boot.contains("BootSourceOverrideTarget") && !boot.contains("BootSourceOverrideEnabled")) {
    if (next.enabled == "Disabled") return missing("BootSourceOverrideEnabled");
  }
  if (next.enabled == "Disabled") next.target = "None";
  if (next.target == "UefiHttp" && !next.http_uri.empty() &&
      next.http_uri.find_first_of("?&=") != std::string::npos)
    return not_in_list("HttpBootUri", next.http_uri);
  return std::nullopt;
}

HttpResponse Bmc::reset_action(const HttpRequest& request) {
  auto body = parse_json(request.body);
  if (!body || !body->is_object()) return malformed();
  for (const auto& [key, value] : body->items())
    if (key != "ResetType")
      return redfish_error(400, "ActionParameterUnknown",
                           "The action does not support the parameter " + key + ".", {"Reset", key});
  if (!body->contains("ResetType") || !(*body)["ResetType"].is_string())
    return redfish_error(400, "ActionParameterMissing", "The action needs the parameter ResetType.",
                         {"Reset", "ResetType"});
  const auto type = (*body)["ResetType"].get<std::string>();
  if (!contains(profile_.reset_types, type))
    return redfish_error(
        400, "ActionParameterValueNotInList",
        "The value " + type + " for the parameter ResetType is not in the list of acceptable values.",
        {type, "ResetType", "Reset"});
  return perform(type);
}

HttpResponse Bmc::perform(const std::string& type) {
  const bool on = machine_.running();
  const bool wants_on = type == "On" || type == "ForceOn" || (type == "PushPowerButton" && !on);
  const bool wants_off =
      type == "ForceOff" || type == "GracefulShutdown" || (type == "PushPowerButton" && on);
  const bool restarts = type == "ForceRestart" || type == "GracefulRestart" || type == "PowerCycle";
  const auto conflict = [&](const std::string& why) {
    return redfish_error(409, "ActionParameterValueConflict", why, {"ResetType", type});
  };
  if (wants_on && now_() < refuse_on_until_)
    return conflict("The host is powering down; the request cannot be carried out yet.");
  if (profile_.refuse_same_state && ((wants_on && on) || (wants_off && !on)))
    return conflict("The host is in the requested power state already.");
  if (restarts && !on) return conflict("The host is off and cannot be restarted.");

  if (wants_on && !on) {
    change_power(true);
    machine_.start();
  } else if (wants_off && on) {
    if (type == "ForceOff") {
      change_power(false);
      refuse_on_until_ =
          profile_.conflict_after_off ? now_() + profile_.power_lag + profile_.conflict_after_off : 0;
      machine_.cut_power();
    } else {
      machine_.press_power();  // the state follows when the operating system has shut down
    }
  } else if (type == "PowerCycle") {
    machine_.cut_power();
    machine_.start();
  } else if (restarts) {
    machine_.reset();
  }
  return accepted_action();
}

void Bmc::change_power(bool to_on) {
  if (to_on) post_until_ = now_() + profile_.post_time;
  shown_power_ =
      profile_.transitional_states ? (to_on ? "PoweringOn" : "PoweringOff") : (to_on ? "Off" : "On");
  shown_until_ = now_() + profile_.power_lag;
}

HttpResponse Bmc::accepted_action() {
  if (!profile_.reset_as_task) return HttpResponse{.status = 204};
  const int id = ++last_task_;
  tasks_[id] = now_();
  const auto name = std::to_string(id);
  const Json body = {{"@odata.id", "/redfish/v1/TaskService/Tasks/" + name},
                     {"@odata.type", "#Task.v1_4_3.Task"},
                     {"Id", name},
                     {"Name", "Reset"},
                     {"TaskState", "Running"},
                     {"TaskMonitor", "/redfish/v1/TaskService/TaskMonitors/" + name}};
  auto response = HttpResponse::json(202, dump_json(body));
  response.headers["Location"] = "/redfish/v1/TaskService/TaskMonitors/" + name;
  response.headers["Retry-After"] = "1";
  return response;
}

Result<Json> Bmc::chassis(const std::vector<std::string>& words) {
  if (words.empty()) return fail(Code::invalid, "chassis: expected get or set");
  std::lock_guard lock(mutex_);
  ++served_;
  Json out = Json::object();
  if (words[0] == "get") {
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i] == "power")
        out["power"] = machine_.running() ? "1" : "0";
      else if (words[i] == "boot")
        out["boot"] = next_.network_next() ? "pxe" : "default";
      else
        return fail(Code::invalid, "chassis: cannot get " + words[i]);
    }
    return out;
  }
  // ipmi_sim checks whether a command is supported before it sends it.
  if (words[0] == "check") return out;
  if (words[0] != "set") return fail(Code::invalid, "chassis: expected get or set, not " + words[0]);
  for (size_t i = 1; i + 1 < words.size(); i += 2) TRY_(chassis_set(words[i], words[i + 1]));
  return out;
}

Status Bmc::chassis_set(const std::string& name, const std::string& value) {
  if (name == "boot") {
    next_ = Override{};
    if (value == "pxe") next_ = {.target = "Pxe", .enabled = "Once", .mode = "UEFI", .http_uri = ""};
    current_ = next_;
    machine_.set_boot_first(next_.network_next() ? BootFirst::network : BootFirst::disk);
  } else if (name == "power" && value == "1") {
    if (!machine_.running()) change_power(true);
    machine_.start();
  } else if (name == "power" && value == "0") {
    machine_.cut_power();
  } else if (name == "reset") {
    if (!machine_.running()) return fail(Code::conflict, "chassis: the machine is off and cannot be reset");
    machine_.reset();
  } else if (name == "shutdown") {
    machine_.press_power();
  } else {
    return fail(Code::invalid, fmt::format("chassis: cannot set {} to {}", name, value));
  }
  return Ok{};
}

}  // namespace muster::lab
